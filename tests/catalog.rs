//! The journal's message catalog against the code: `journalctl -x` explains what is logged, and
//! every field that the text shows is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Name and id of every message in src/shared/journal.rs.
fn messages() -> BTreeMap<String, String> {
    let text = read("src/shared/journal.rs");
    let constants = text.lines().filter_map(|line| {
        let (name, value) = line.trim().strip_prefix("pub const ")?.split_once(": &str = \"")?;
        Some((name.to_owned(), value.trim_end_matches("\";").to_owned()))
    });
    constants.collect()
}

/// Text of every entry of the catalog, by its id.
fn entries() -> BTreeMap<String, String> {
    let text = read("packaging/tree/usr/lib/systemd/catalog/archivist.catalog");
    let parts = text.split("\n-- ").skip(1);
    let entry = |part: &str| {
        let (id, rest) = part.split_once('\n').unwrap();
        (id.to_owned(), rest.to_owned())
    };
    parts.map(entry).collect()
}

/// The names between @ signs.
fn fields_shown(text: &str) -> BTreeSet<String> {
    let field = |c: char| c.is_ascii_uppercase() || c == '_';
    let shown = text.split('@').filter(|part| !part.is_empty() && part.chars().all(field));
    shown.map(str::to_owned).collect()
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { sources(&path, found) } else { found.push(path) }
    }
}

/// Every macro call that logs with an id: the messages it may be, and its fields.
fn log_lines() -> Vec<(BTreeSet<String>, BTreeSet<String>)> {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    let texts: Vec<String> = files.iter().map(read).collect();
    // An id in a variable is one of those that a function `message_of` returns.
    let chosen = texts
        .iter()
        .filter_map(|text| text.split_once("\nfn message_of("))
        .filter_map(|(_, rest)| rest.split_once("\n}\n"))
        .flat_map(|(body, _)| names(body))
        .collect::<BTreeSet<String>>();
    let mut lines = Vec::new();
    for call in texts.iter().flat_map(|text| text.split("tracing::").skip(1)) {
        let end = call.find(");").unwrap_or(call.len());
        let call = &call[..end];
        if call.contains("message_id = message::") {
            lines.push((names(call), fields_logged(call)));
        } else if call.contains("message_id = ") {
            lines.push((chosen.clone(), fields_logged(call)));
        }
    }
    lines
}

fn names(text: &str) -> BTreeSet<String> {
    let name = |c: char| c.is_ascii_uppercase() || c == '_';
    let rest = text.split("message::").skip(1);
    let found = rest.map(|rest| rest.chars().take_while(|c| name(*c)).collect::<String>());
    found.filter(|name| !name.is_empty()).collect()
}

fn fields_logged(call: &str) -> BTreeSet<String> {
    let starts = call.lines().filter_map(|line| line.trim().split_once(" = "));
    let fields = starts.filter(|(name, _)| name.starts_with("archivist_"));
    fields.map(|(name, _)| name.to_ascii_uppercase()).collect()
}

#[test]
fn every_message_has_an_entry_and_every_entry_a_message() {
    let ids: BTreeSet<String> = messages().into_values().collect();
    let explained: BTreeSet<String> = entries().into_keys().collect();
    assert_eq!(ids, explained);
}

#[test]
fn the_list_at_the_top_of_the_catalog_is_right() {
    let text = read("packaging/tree/usr/lib/systemd/catalog/archivist.catalog");
    let words = text.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(' '));
    let listed: BTreeMap<String, String> = words
        .map(|(name, id)| (name.to_owned(), id.trim().to_owned()))
        .filter(|(_, id)| id.len() == 32)
        .collect();
    assert_eq!(listed, messages());
}

#[test]
fn every_message_is_logged() {
    let logged: BTreeSet<String> = log_lines().into_iter().flat_map(|(names, _)| names).collect();
    let known: BTreeSet<String> = messages().into_keys().collect();
    assert_eq!(logged, known);
}

#[test]
fn every_field_that_an_entry_shows_is_logged_with_it() {
    let (messages, entries) = (messages(), entries());
    let mut missing = Vec::new();
    for (names, logged) in log_lines() {
        for name in names {
            for field in fields_shown(&entries[&messages[&name]]) {
                if !logged.contains(&field) {
                    missing.push(format!("{name} shows {field}, which is not logged"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

#[test]
fn placeholders_are_read() {
    let text = "c@ARCHIVIST_CRAWL_ID@ and mail@example.org, @ARCHIVIST_URL@";
    let fields = fields_shown(text);
    assert_eq!(fields.into_iter().collect::<Vec<_>>(), ["ARCHIVIST_CRAWL_ID", "ARCHIVIST_URL"]);
}
