//! Hostile texts and questions, and indexes that are damaged, missing, read-only or of another version.

use crate::sample::Sample;
use archivist_core::model::search::SearchQuestion;
use archivist_plugin::files::remove::remove_tree;
use archivist_search::{Builder, Problem, answer, change, check};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

#[test]
fn strange_texts_are_indexed() {
    let mut sample = Sample::new();
    let texts: [(&str, Vec<u8>); 7] = [
        ("empty", Vec::new()),
        ("zero", b"before\0after zeroword".to_vec()),
        ("invalid", b"\xff\xfe\xed\xa0\x80 invalidword \xc3".to_vec()),
        ("long", vec![b'a'; 1 << 20]),
        ("runs", "語".repeat(400_000).into_bytes()),
        ("marks", "\u{202e}\u{301}\u{200d} directionword \u{2066}".as_bytes().to_vec()),
        ("blank", vec![b'\n'; 1 << 20]),
    ];
    let entry = sample.page("https://a.test/huge", "huge", "en", b"hugeword");
    let path = entry.directory.join("text/text.txt");
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_len(100 << 20).unwrap();
    sample.put(&entry);
    for (name, text) in texts {
        let entry = sample.page(&format!("https://a.test/{name}"), name, "en", &text);
        sample.put(&entry);
        assert_eq!(sample.found(&format!("title:{name}")).len(), 1, "{name}");
    }
    for word in ["zeroword", "before", "invalidword", "directionword", "hugeword", "aaaa*"] {
        assert_eq!(sample.found(word).len(), 1, "{word}");
    }
    assert_eq!(sample.found("語語").len(), 1);
    assert!(peak_memory() < 256 << 10, "{} KiB", peak_memory());
}

#[test]
fn strange_questions_are_answered() {
    let mut sample = Sample::new();
    sample.add("https://a.test/", "Title", "the text of a page with some words");
    let questions = [
        String::new(),
        "\"".to_owned(),
        "\"\"\"\"\"\"".to_owned(),
        "*".to_owned(),
        "** *".to_owned(),
        "-".to_owned(),
        "-*".to_owned(),
        "-the".to_owned(),
        "title:".to_owned(),
        "#".to_owned(),
        "the of a".to_owned(),
        "\0".to_owned(),
        "://".to_owned(),
        "word ".repeat(200),
        "\"".repeat(1 << 20),
        "語".repeat(1 << 18),
        "a".repeat(1 << 20),
        "-a ".repeat(1 << 18),
        "a* ".repeat(200),
        "(".repeat(1 << 20),
        format!("\"{}\"", "the text ".repeat(1 << 17)),
        format!("http://{}", "a/".repeat(1 << 19)),
    ];
    for question in questions {
        let shown: String = question.chars().take(20).collect();
        let answer = sample.answer(&question);
        assert!(answer.hits.len() <= 1, "{shown}");
    }
    assert!(peak_memory() < 256 << 10, "{} KiB", peak_memory());
}

#[test]
fn files_of_a_page_are_not_followed_out_of_it() {
    let mut sample = Sample::new();
    let secret = sample.root.path().join("secret");
    fs::write(&secret, "secretword").unwrap();
    let entry = sample.page("https://a.test/", "Linked", "en", b"");
    fs::remove_file(entry.directory.join("text/text.txt")).unwrap();
    symlink(&secret, entry.directory.join("text/text.txt")).unwrap();
    sample.put(&entry);
    assert_eq!(sample.found("linked"), [1]);
    assert_eq!(sample.found("secretword"), [0; 0]);
    let entry = sample.page("https://a.test/2", "", "en", b"");
    remove_tree(&entry.directory.join("text")).unwrap();
    nix::unistd::mkfifo(&entry.directory.join("text"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    sample.put(&entry);
}

fn files(sample: &Sample) -> Vec<PathBuf> {
    let current = fs::read_link(sample.index().join("current")).unwrap();
    let entries = fs::read_dir(sample.index().join(current)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_none_or(|end| end != "lock"));
    files.sort();
    files
}

fn problem(sample: &Sample) -> Option<Problem> {
    let question =
        SearchQuestion { words: "word".to_owned(), limit: 5, ..SearchQuestion::default() };
    answer(&sample.index(), &question).err()
}

#[test]
fn truncated_index_is_built_again() {
    let sample = || {
        let mut sample = Sample::new();
        sample.add("https://a.test/", "word", "word");
        sample
    };
    let names: Vec<_> =
        files(&sample()).iter().map(|file| file.extension().map(|e| e.to_owned())).collect();
    assert!(names.len() > 5, "{names:?}");
    for at in 0..names.len() {
        for keep in [0, 3] {
            let sample = sample();
            let file = files(&sample)[at].clone();
            if file.file_name().unwrap() == ".managed.json" {
                continue;
            }
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, &bytes[..bytes.len().min(keep)]).unwrap();
            let (problem, name) = (check(&sample.index()), file.display());
            assert!(matches!(problem, Err(Problem::Rebuild(_))), "{name}: {problem:?}");
        }
    }
}

/// Tantivy panics for files of four to seven bytes.
#[test]
fn panics_of_the_engine_are_a_damaged_index() {
    let mut sample = Sample::new();
    sample.add("https://a.test/", "word", "word");
    let status = |task: &str| {
        let program = env!("CARGO_BIN_EXE_archivist-search");
        let mut command = std::process::Command::new(program);
        let output = command.arg(task).arg(sample.index()).output().unwrap();
        output.status.code()
    };
    assert_eq!(status("check"), Some(0));
    let is_store = |file: &PathBuf| file.extension().is_some_and(|end| end == "store");
    let store = files(&sample).into_iter().find(is_store).unwrap();
    let bytes = fs::read(&store).unwrap();
    fs::write(&store, &bytes[..5]).unwrap();
    assert_eq!(status("check"), Some(75));
}

#[test]
fn missing_and_older_index_is_built_again() {
    let mut sample = Sample::new();
    sample.add("https://a.test/", "word", "word");
    let version = files(&sample).into_iter().find(|file| file.ends_with("version")).unwrap();
    fs::write(&version, "archivist-search 0 tantivy 6\n").unwrap();
    assert!(matches!(problem(&sample), Some(Problem::Rebuild(_))));
    assert!(matches!(change(&sample.index(), &[]), Err(Problem::Rebuild(_))));
    let builder = Builder::begin(&sample.index(), 2).unwrap();
    // It is not read before it is complete.
    assert!(matches!(problem(&sample), Some(Problem::Rebuild(_))));
    builder.finish().unwrap();
    assert!(problem(&sample).is_none());
    let builds = fs::read_dir(sample.index()).unwrap().count();
    assert_eq!(builds, 2, "the link and one build");
    remove_tree(&sample.index()).unwrap();
    assert!(matches!(problem(&sample), Some(Problem::Rebuild(_))));
    assert!(matches!(change(&sample.index(), &[]), Err(Problem::Rebuild(_))));
}

#[test]
fn build_continues_after_a_kill_and_replaces_its_own_leftovers() {
    let mut sample = Sample::new();
    let one = sample.add("https://a.test/", "word", "word");
    let put = [archivist_core::model::search::SearchChange::Put(one)];
    Builder::begin(&sample.index(), 7).unwrap().add(&put).unwrap();
    Builder::resume(&sample.index(), 7).add(&put).unwrap();
    assert!(matches!(Builder::resume(&sample.index(), 8).add(&put), Err(Problem::Rebuild(_))));
    Builder::resume(&sample.index(), 7).finish().unwrap();
    assert_eq!(sample.found("word"), [1]);
    assert_eq!(sample.answer("word").hits[0].versions, 1);
}

/// As a user who may read the index alone.
#[test]
fn read_only_index_is_searched() {
    let mut sample = Sample::new();
    sample.add("https://a.test/", "word", "word");
    let current = sample.index().join(fs::read_link(sample.index().join("current")).unwrap());
    let before = fs::read_dir(&current).unwrap().count();
    let set = |mode| fs::set_permissions(&current, fs::Permissions::from_mode(mode)).unwrap();
    set(0o500);
    assert_eq!(sample.found("word"), [1]);
    if nix::unistd::geteuid().is_root() {
        eprintln!("skipped: root may write everything");
    } else {
        assert!(matches!(change(&sample.index(), &[]), Err(Problem::Failed(_))));
    }
    set(0o700);
    // A reader leaves nothing, not even locks.
    assert_eq!(fs::read_dir(&current).unwrap().count(), before);
}

/// Most memory of this process so far, in KiB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let figure = line.and_then(|line| line.split_whitespace().next());
    figure.unwrap().parse().unwrap()
}
