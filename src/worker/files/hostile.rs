//! Tests that a worker never reads or changes files outside a directory whose content a hook keeps
//! replacing with links.

use crate::files::directory;
use crate::files::write;
use crate::output::claims::Claims;
use crate::output::report;
use crate::output::stdout;
use archivist_core::model::Outcome;
use archivist_plugin::Directory;
use archivist_plugin::files::output::Listing;
use archivist_plugin::files::tidy;
use nix::fcntl::{RenameFlags, renameat2};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Names that hooks and the worker use in the directory.
const NAMES: [&str; 8] = [
    "stdout.log",
    "stdout.log.1",
    "a.stdout.log",
    "urls.jsonl",
    "index.html",
    ".index.html.part",
    "sub",
    "file",
];
const SECRET: &str = "http://secret.test/";

/// Metadata and content of everything in a directory of another crawl.
fn victim(path: &Path) -> BTreeMap<PathBuf, (u32, u64, u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut ahead = vec![path.to_owned()];
    while let Some(path) = ahead.pop() {
        let about = fs::symlink_metadata(&path).unwrap();
        let content = match about.file_type() {
            kind if kind.is_dir() => {
                ahead.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            }
            kind if kind.is_symlink() => {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            }
            _ => fs::read(&path).unwrap(),
        };
        found.insert(path, (about.mode(), about.ino(), about.nlink(), content));
    }
    found
}

fn make_victim(path: &Path) {
    fs::create_dir_all(path.join("sub/sub")).unwrap();
    for directory in [path.to_owned(), path.join("sub")] {
        for name in NAMES.iter().filter(|name| **name != "sub") {
            let line = format!(
                "{{\"type\": \"Snapshot\", \"url\": \"{SECRET}\", \"title\": \"{name}\"}}\n"
            );
            fs::write(directory.join(name), line).unwrap();
            fs::set_permissions(directory.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(directory.join("private-report"), SECRET).unwrap();
        symlink("/etc", directory.join("link")).unwrap();
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Exchanges the plugin's directory and a symbolic link.
    Swap,
    /// Exchanges two entries of the directory.
    Exchange(usize, usize),
    Link(usize, bool),
    Write(usize),
    Directory(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES.len();
    prop_oneof![
        3 => Just(Step::Swap),
        2 => (name.clone(), name.clone()).prop_map(|(a, b)| Step::Exchange(a, b)),
        3 => (name.clone(), any::<bool>()).prop_map(|(n, deep)| Step::Link(n, deep)),
        1 => name.clone().prop_map(Step::Write),
        1 => name.prop_map(Step::Directory),
    ]
}

/// Removes what it replaces: directories that it only renamed would become more with each step, and the
/// worker, which reads them all, would never end.
fn hostile(own: &Directory, outside: &Path, step: &Step) {
    let Ok(real) = own.enter("plugin").or_else(|_| own.enter("link")) else {
        return;
    };
    let link = |target: &Path, directory: &Directory, name: &str| {
        let _ = directory.remove(name);
        let _ = nix::unistd::symlinkat(target, directory, name);
    };
    let swap = |directory: &Directory, a: &str, b: &str| {
        let _ = renameat2(directory, a, directory, b, RenameFlags::RENAME_EXCHANGE);
    };
    match *step {
        Step::Swap => {
            if own.enter("plugin").is_ok() {
                link(outside, own, "link");
            }
            swap(own, "plugin", "link");
        }
        Step::Exchange(a, b) => swap(&real, NAMES[a], NAMES[b]),
        Step::Link(n, deep) => {
            let target = if deep { outside.join("sub") } else { outside.to_owned() };
            link(&target.join(NAMES[n]), &real, NAMES[n]);
        }
        Step::Write(n) => {
            let _ = real.create(NAMES[n], 0o755);
        }
        Step::Directory(n) => {
            let _ = real.remove(NAMES[n]);
            let _ = real.make(NAMES[n], 0o770);
        }
    }
}

/// Everything that a worker does for a hook and at the end of a snapshot. Returns the names and
/// URLs that it reported.
fn work(own: &Directory, join: bool) -> Vec<String> {
    let mut reported = Vec::new();
    let plugin = match directory::enter(own, "plugin") {
        Ok(plugin) => Arc::new(plugin),
        Err(error) => {
            assert!(error.to_string().ends_with("a hook replaced it"), "{error}");
            return reported;
        }
    };
    let before = Listing::of(&plugin);
    // Each step may fail, because the hook may remove what the worker has just created.
    if let Ok(file) = stdout::open(&plugin, "a.stdout.log", join) {
        stdout::link_newest(&plugin, "a.stdout.log");
        let context = report::RunContext {
            directory: plugin.clone(),
            owner: Arc::new(own.here().unwrap()),
            before: Some(before),
            of_crawl: false,
            claims: Arc::new(Mutex::new(Claims::default())),
        };
        let report = report::build("plugin/a", "plugin", &Outcome::Exit(0), &file, &context, None);
        reported.extend(report.files.into_iter().map(|file| file.path));
        reported.extend(report.children.into_iter().map(|child| child.url));
        stdout::remove_earlier(&plugin, "a.stdout.log");
    }
    let _ = write::replace(&plugin, "index.html", "ours");
    let _ = write::open_to_append(&plugin, "urls.jsonl");
    assert!(!plugin.has_file("sub/private-report"));
    let _ = tidy::sweep(own);
    reported
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_outside_is_read_or_changed(steps in prop::collection::vec(step(), 1..30), joins in prop::collection::vec(any::<bool>(), 1..25)) {
        let top = tempfile::tempdir().unwrap();
        let outside = top.path().join("victim");
        make_victim(&outside);
        let untouched = victim(&outside);
        let own = directory::make(&top.path().join("day/host/s1")).unwrap();
        own.make("plugin", 0o770).unwrap();

        let stop = AtomicBool::new(false);
        let reported: Vec<String> = std::thread::scope(|scope| {
            scope.spawn(|| {
                for step in steps.iter().cycle() {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    hostile(&own, &outside, step);
                }
            });
            let reported = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                joins.iter().flat_map(|join| work(&own, *join)).collect()
            }));
            stop.store(true, Ordering::Relaxed);
            reported.unwrap()
        });
        prop_assert!(!reported.iter().any(|text| text.contains("private-report") || text.contains(SECRET)), "{:?}", reported);
        // When no hook runs any more, no link leads out of the directory.
        let problems = tidy::sweep(&own).unwrap().problems;
        prop_assert!(problems.is_empty(), "{:?}", problems);
        prop_assert!(victim(&outside) == untouched, "files outside were changed");
    }
}
