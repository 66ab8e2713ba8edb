//! Directories with declarations, and the directories that archivist-generator makes of them:
//! `tests/generate/CASE/in` is the root of a file system, `CASE/out` what is written, `CASE/problems`
//! the messages. `UPDATE_GOLDEN=1` rewrites `out` and `problems`.

use archivist_config::declare::files;
use archivist_config::{Scope, UserDirs};
use archivist_core::text::Problem;
use archivist_generator::{Context, generate, write, write_all};
use archivist_plugin::files::remove::remove_tree;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generate");
    let mut cases: Vec<_> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

/// Files by path, links as `-> target`.
fn tree(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        let Ok(entries) = fs::read_dir(&next) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if let Ok(target) = fs::read_link(&path) {
                found.insert(below(&path, directory), format!("-> {}", target.display()));
            } else if path.is_dir() {
                open.push(path);
            } else {
                found.insert(below(&path, directory), fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

fn below(path: &Path, directory: &Path) -> String {
    let relative = path.strip_prefix(directory).unwrap();
    relative.to_str().unwrap().to_owned()
}

/// The case's name says whose it is and, at its end, of which systemd.
fn scope_and_context(case: &Path) -> (Scope, Context) {
    let name = case.file_name().unwrap().to_str().unwrap();
    let user = name.starts_with("user");
    let scope = Scope {
        user,
        dirs: UserDirs {
            config: "/home/me/.config".into(),
            data: "/home/me/.local/share".into(),
            runtime: "/run/user/1000".into(),
        },
        ..Scope::system(case.join("in"))
    };
    let context = Context {
        user,
        systemd: if name.ends_with("-252") { 252 } else { 257 },
        program: "/usr/bin/archivist".into(),
        lacks_pools: false,
    };
    (scope, context)
}

/// Paths of the test's directory are left out.
fn at_root(text: &str, case: &Path) -> String {
    text.replace(&case.join("in").display().to_string(), "")
}

#[test]
fn directories_become_directories() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    for case in cases() {
        let (scope, context) = scope_and_context(&case);
        let (declarations, mut problems) = files::read(&scope);
        let generated = generate(&declarations, &context);
        problems.extend(generated.problems);
        let written = tempfile::tempdir().unwrap();
        assert_eq!(write::units(&generated.units, written.path()), []);
        let mut made = tree(written.path());
        made.values_mut().for_each(|text| *text = at_root(text, &case));
        let said: String = problems
            .iter()
            .map(|problem: &Problem| at_root(&format!("{problem}\n"), &case))
            .collect();
        if update {
            put(&case.join("out"), &made);
            fs::write(case.join("problems"), &said).unwrap();
        }
        let hint = format!(
            "{}: UPDATE_GOLDEN=1 cargo test --test all generate:: writes it anew",
            case.display()
        );
        assert_eq!(tree(&case.join("out")), made, "{hint}");
        let expected = fs::read_to_string(case.join("problems")).unwrap_or_default();
        assert_eq!(expected, said, "{hint}");
    }
}

fn put(directory: &Path, files: &BTreeMap<String, String>) {
    let _ = remove_tree(directory);
    for (name, text) in files {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("-> ") {
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }
}

/// Only files are opened.
#[test]
fn a_fifo_does_not_block_the_boot() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("etc/archivist");
    fs::create_dir_all(&directory).unwrap();
    let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
    nix::unistd::mkfifo(&directory.join("pipe.pool"), mode).unwrap();
    fs::write(directory.join("good.pool"), "[Pool]\nExec=/bin/true\n").unwrap();
    let (declarations, problems) = files::read(&Scope::system(root.path()));
    assert_eq!(declarations.len(), 1);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].text().ends_with("pipe.pool: it is not a regular file"));
}

/// Each is finished before the next one, and nothing gets lost or mixed up.
#[test]
fn a_thousand_files() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("etc/archivist");
    let out = root.path().join("out");
    fs::create_dir_all(&directory).unwrap();
    fs::create_dir_all(&out).unwrap();
    for number in 0..1000 {
        let text = format!("[Pool]\nExec=/usr/bin/worker {number} %i\nWorkers=4\n");
        fs::write(directory.join(format!("p{number}.pool")), text).unwrap();
    }
    fs::write(directory.join("p500.pool"), "[Pool]\n").unwrap();
    let scope = Scope::system(root.path());
    let problems = write_all(&scope, &out, true);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let (declarations, _) = files::read(&scope);
    let generated = generate(&declarations, &Context::default());
    let expected: Vec<&String> = generated.units.files.keys().collect();
    let made = tree(&out);
    assert_eq!(made.keys().collect::<Vec<_>>(), expected);
    assert_eq!(made.len(), 2 * 999);
    let text = &made["archivist-pool-p77@.service"];
    assert!(text.contains("ExecStart=/usr/bin/worker 77 %i\n"), "{text}");
}
