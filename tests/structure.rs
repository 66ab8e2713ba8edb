//! Who may import what: ARCHITECTURE.md has the rooms, this test reads the walls.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Longest file in src, in lines.
const LINES_MAX: usize = 500;

struct Room {
    /// A directory or file below src.
    place: &'static str,
    /// What of the crate it may import, itself aside.
    may: &'static [&'static str],
    /// What it never mentions.
    never: &'static [&'static str],
}

const PURE: &[&str] = &[
    "tokio",
    "zbus",
    "rusqlite",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "now()",
    "getrandom",
];

/// Files and nothing else of the world: it runs when the machine has just begun to boot.
const CARRIES_FILES: &[&str] = &[
    "tokio",
    "zbus",
    "rusqlite",
    "std::net",
    "std::process::Command",
];

/// The first room that fits a file is its room.
const ROOMS: &[Room] = &[
    // Judgement and nouns: functions of their arguments.
    room("model", &[], PURE),
    room("plan", &["model"], PURE),
    room("unit", &["model"], PURE),
    room("bus/report.rs", &["model"], PURE),
    room("bus/watches.rs", &["model"], PURE),
    room("bus/work.rs", &["bus::report", "model"], PURE),
    room("bus/record.rs", &["bus::report", "model"], PURE),
    room(
        "bus/bounds.rs",
        &["bus::report", "bus::work", "model"],
        PURE,
    ),
    room("page", &["bus::report", "model"], PURE),
    room("worker/sequence.rs", &["bus::work"], PURE),
    room("generate/files.rs", &["config", "generate"], CARRIES_FILES),
    room("generate/write.rs", &["generate"], CARRIES_FILES),
    room("generate/report.rs", &["generate"], CARRIES_FILES),
    room("generate/run.rs", &["config", "generate"], CARRIES_FILES),
    room("generate", &["config", "model", "watch"], PURE),
    room("daemon/starts.rs", &["manager", "model", "unit"], PURE),
    // The edges: each knows one thing of the world outside.
    room("manager", &["model", "unit"], &["rusqlite"]),
    room("bus/client.rs", &["bus", "manager"], &["rusqlite"]),
    room(
        "bus",
        &["model"],
        &["rusqlite", "org.freedesktop.systemd1.Manager"],
    ),
    room(
        "store",
        &["bus::report", "bus::watches", "model", "plan", "unit"],
        &["zbus", "tokio"],
    ),
    room(
        "config",
        &["model", "plugin::filter"],
        &["zbus", "tokio", "rusqlite"],
    ),
    room("plugin", &["model"], &["zbus", "tokio", "rusqlite"]),
    room("hook", &["model"], &["zbus", "rusqlite"]),
    room("watch", &["config::ini", "config::units", "model"], PURE),
    room("check", &["hook", "model"], &["zbus", "rusqlite", "tokio"]),
    room("journal.rs", &[], &["tokio", "rusqlite"]),
    // Those that carry.
    room(
        "daemon",
        &[
            "bus", "config", "generate", "journal", "manager", "model", "plan", "plugin", "store",
            "unit", "watch",
        ],
        &["rusqlite", "org.freedesktop", "SELECT "],
    ),
    room(
        "worker",
        &["bus", "journal", "model", "page", "plugin"],
        &["rusqlite", "org.freedesktop.systemd1"],
    ),
    room("service.rs", &["config", "daemon", "worker"], &["rusqlite"]),
    // The verbs: hooks and checks are handed over to their rooms.
    room("cli/hook.rs", &["hook"], &["rusqlite"]),
    room(
        "cli/persona",
        &["config", "hook", "model", "cli"],
        &["rusqlite"],
    ),
    room("cli/generate.rs", &["config", "generate"], &["rusqlite"]),
    room("cli/check.rs", &["check", "config", "model"], &["rusqlite"]),
    room(
        "cli/plugins",
        &["bus", "config", "hook", "model", "plugin", "cli"],
        &["rusqlite"],
    ),
    room(
        "cli/run/scope.rs",
        &["config", "manager", "unit"],
        &["rusqlite"],
    ),
    room(
        "cli/watch",
        &["bus", "config", "generate", "manager", "model", "watch"],
        &["rusqlite"],
    ),
    // Pools are systemd's: the verb talks to it as systemctl does.
    room(
        "cli/pool",
        &["config", "generate", "manager", "model", "cli"],
        &["rusqlite"],
    ),
    room("cli", &["bus", "config", "journal", "model"], &["rusqlite"]),
    room("lib.rs", &[], PURE),
    room(
        "orchestrator.rs",
        &["service"],
        &["tokio", "zbus", "rusqlite"],
    ),
    room("main.rs", &[], &["tokio", "zbus", "rusqlite"]),
    // Every hook pays for its start.
    room(
        "hook_exec.rs",
        &[],
        &["archivist::", "tokio", "zbus", "rusqlite", "serde"],
    ),
];

const fn room(
    place: &'static str,
    may: &'static [&'static str],
    never: &'static [&'static str],
) -> Room {
    Room { place, may, never }
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

/// All files of src, by their path below it, in order.
fn sources() -> Vec<(String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    files(&src, &mut found);
    found.sort();
    let name = |path: &Path| {
        path.strip_prefix(&src)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    let read = |path: PathBuf| (name(&path), std::fs::read_to_string(&path).unwrap());
    found.into_iter().map(read).collect()
}

/// Tests may reach further than what they test.
fn is_test(file: &str) -> bool {
    file.ends_with("tests.rs") || file.contains("/tests/") || file.ends_with("sample.rs")
}

/// The code of a file: without comments, and without its tests, which are its end.
fn code(text: &str) -> String {
    let text = match text.find("#[cfg(test)]\nmod tests {") {
        Some(end) => &text[..end],
        None => text,
    };
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Everything of the crate that the code names, as `room` and `room::module`.
fn imports(code: &str) -> BTreeSet<String> {
    let word = |c: char| c.is_ascii_lowercase() || c == '_';
    let head = |text: &str| -> String { text.chars().take_while(|c| word(*c)).collect() };
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let room = head(rest);
        let module = rest[room.len()..].strip_prefix("::").map(head);
        match module.filter(|module| !module.is_empty()) {
            Some(module) => found.insert(format!("{room}::{module}")),
            None => found.insert(room),
        };
    }
    found
}

fn is_allowed(room: &Room, import: &str) -> bool {
    let own = room
        .place
        .split('/')
        .next()
        .unwrap()
        .trim_end_matches(".rs");
    let within = |allowed: &str| {
        import == allowed
            || import
                .strip_prefix(allowed)
                .is_some_and(|r| r.starts_with("::"))
    };
    // A file that is a room of its own does not get the rest of its directory for free.
    let is_own = !room.place.contains('/') && within(own);
    is_own || room.may.iter().any(|allowed| within(allowed))
}

fn breaches(file: &str, text: &str) -> Vec<String> {
    let fits = |room: &&Room| {
        file == room.place
            || file
                .strip_prefix(room.place)
                .is_some_and(|r| r.starts_with('/'))
    };
    let Some(room) = ROOMS.iter().find(fits) else {
        return vec![format!("src/{file} is in no room: add it to the table")];
    };
    let code = code(text);
    let mut found = Vec::new();
    if code.contains("use crate::{") {
        found.push(format!(
            "src/{file}: 'use crate::{{' hides what is imported"
        ));
    }
    for import in imports(&code) {
        if !is_allowed(room, &import) {
            found.push(format!("src/{file} imports crate::{import}"));
        }
    }
    for word in room.never {
        if code.contains(word) {
            found.push(format!("src/{file} mentions '{word}'"));
        }
    }
    found
}

#[test]
fn every_file_keeps_to_its_room() {
    let sources = sources();
    let files = sources.iter().filter(|(file, _)| !is_test(file));
    let found: Vec<String> = files
        .flat_map(|(file, text)| breaches(file, text))
        .collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn no_file_is_too_long() {
    let long = |(file, text): (String, String)| {
        let lines = text.lines().count();
        (lines > LINES_MAX).then(|| format!("src/{file}: {lines} lines"))
    };
    let found: Vec<String> = sources().into_iter().filter_map(long).collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// What the map shows is there: `name()`, `Type::name` and the files of its table.
#[test]
fn the_map_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let code: String = sources().into_iter().map(|(_, text)| text).collect();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
    let mut missing = Vec::new();
    for quoted in map.split('`').skip(1).step_by(2) {
        let name = quoted.trim_end_matches("()");
        let last = name.rsplit("::").next().unwrap();
        if !name.chars().all(plain) || !(quoted.ends_with("()") || name.contains("::")) {
            continue;
        }
        let words = code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        if !words.into_iter().any(|word| word == last) {
            missing.push(quoted);
        }
    }
    for room in ROOMS.iter().filter(|room| !room.place.ends_with("main.rs")) {
        let top = room.place.split('/').next().unwrap();
        if !map.contains(top) && top != "lib.rs" {
            missing.push(room.place);
        }
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md: {missing:?}");
}

#[test]
fn a_breach_is_seen() {
    let seen = |file, text| !breaches(file, text).is_empty();
    assert!(seen("model/x.rs", "let t = jiff::Timestamp::now();"));
    assert!(seen("plan/x.rs", "use crate::store::Tx;"));
    assert!(seen("store/x.rs", "use crate::bus::client::Address;"));
    assert!(seen("daemon/x.rs", "use rusqlite::Connection;"));
    assert!(seen("cli/x.rs", "    crate::daemon::main()"));
    assert!(seen("worker/sequence.rs", "use crate::plugin::Verdict;"));
    assert!(seen(
        "bus/work.rs",
        "use super::super::store; use crate::store::Tx;"
    ));
    assert!(!seen(
        "plan/x.rs",
        "use crate::model::Time;\n// crate::store"
    ));
    assert!(!seen("store/x.rs", "use crate::bus::report::Counts;"));
}
