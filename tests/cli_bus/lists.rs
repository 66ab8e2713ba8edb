//! `archivist add` with the lists of tests/web: what is sent, what is printed.

use super::{Bus, Cardboard};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns a file of tests/web for port 80, as bytes of UTF-16 on request.
fn list(directory: &Path, path: &str, utf16: bool) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web").join(path);
    let text = std::fs::read_to_string(from).unwrap().replace("PORT", "80");
    let bytes = if utf16 {
        text.encode_utf16().flat_map(u16::to_be_bytes).collect()
    } else {
        text.into_bytes()
    };
    let file = directory.join(path.rsplit('/').next().unwrap());
    std::fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn marks_and_encodings_are_no_part_of_what_is_sent() {
    let cardboard = Arc::new(Cardboard::default());
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    for utf16 in [false, true] {
        let file = list(directory.path(), "01-list-bom/urls.txt", utf16);
        let (code, _, stderr) = bus.run(&["add", "--file", file.to_str().unwrap()]);
        assert_eq!((code, stderr.as_str()), (0, ""));
        let sent = cardboard.urls.lock().unwrap().clone();
        let words: Vec<&str> =
            sent.lines().map(|line| line.trim_matches(['\u{a0}', '\u{200b}'])).collect();
        assert_eq!(words, ["http://127.0.0.1:80/one", "http://127.0.0.1:80/two"]);
    }
}

#[test]
fn a_bookmark_file_is_named_and_sent_with_titles_and_tags() {
    let cardboard = Arc::new(Cardboard::default());
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = list(directory.path(), "03-bookmark-export/bookmarks.html", false);
    let (_, stdout, stderr) = bus.run(&["add", "--json", "--file", file.to_str().unwrap()]);
    assert_eq!(stderr, "Netscape bookmark file: 3 addresses\n");
    serde_json::from_str::<serde_json::Value>(&stdout).unwrap();
    let sent = cardboard.urls.lock().unwrap().clone();
    let first = sent.lines().next().unwrap();
    let first: serde_json::Value = serde_json::from_str(first).unwrap();
    assert_eq!(first["url"], "http://127.0.0.1:80/recipe?a=1&b=2");
    assert_eq!(first["title"], "Soup & bread");
    assert_eq!(first["tags"], serde_json::json!(["food", "later"]));

    let page = directory.path().join("page.html");
    std::fs::write(&page, "<!DOCTYPE html>\n<title>x</title>").unwrap();
    let (code, _, stderr) = bus.run(&["add", "--file", page.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(stderr.contains("it is an HTML page, not a list"), "{stderr}");
}
