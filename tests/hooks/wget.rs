//! The copy of a page that wget saves: every file is there, is linked, and opens.

use crate::fixture::{Ran, Snapshot, WebServer, busy, has};
use regex::Regex;
use std::path::{Path, PathBuf};

/// A page that wget saved.
struct Saved {
    server: WebServer,
    snap: Snapshot,
    ran: Ran,
}

impl Saved {
    fn page(case: &str, path: &str, settings: &[(&str, &str)]) -> Saved {
        let (server, snap) = (WebServer::start(case), Snapshot::new());
        let ran = snap.run("wget", &server.url(path), settings);
        println!("{case} {path}: {:?} {:?}", ran.elapsed, ran.records);
        Saved { server, snap, ran }
    }

    fn field(&self, name: &str) -> &str {
        self.ran.result()[name].as_str().unwrap_or_default()
    }

    /// Path of the main file.
    #[track_caller]
    fn main(&self) -> PathBuf {
        assert_eq!(self.field("status"), "succeeded", "{:?}", self.ran.records);
        let path = self.snap.file("wget").join(self.field("output_str"));
        assert!(path.is_file(), "{}", path.display());
        path
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.main()).unwrap()).into_owned()
    }

    /// Files that a saved document shows: the targets of `src`, `data`, `href` and `url()`.
    #[track_caller]
    fn shown(&self, document: &Path) -> Vec<PathBuf> {
        let text = String::from_utf8_lossy(&std::fs::read(document).unwrap()).into_owned();
        let link = r#"(?:(?:src|data|href)=["']?|url\(["']?|@import ["'])([^"'\s)>]+)"#;
        let links = Regex::new(link).unwrap();
        let mut files = Vec::new();
        for found in links.captures_iter(&text) {
            let link = found[1].split('#').next().unwrap().to_owned();
            if link.starts_with("http") && !link.contains("/i/") || link.is_empty() {
                continue;
            }
            let name = percent_encoding::percent_decode_str(&link);
            let name = name.decode_utf8().unwrap().into_owned();
            let file = document.parent().unwrap().join(&name);
            assert!(file.is_file(), "{}: {link}: {text}", document.display());
            files.push(file.canonicalize().unwrap());
        }
        files
    }

    fn contents(&self) -> Vec<Vec<u8>> {
        let files = self.shown(&self.main());
        files.iter().map(|file| std::fs::read(file).unwrap()).collect()
    }
}

#[test]
fn pictures_with_long_addresses_are_saved_and_linked() {
    if !has(&["wget"]) {
        return;
    }
    let long = format!("/long?{}", "a".repeat(300));
    let (page, near) = (format!("/{}", "e".repeat(280)), format!("/{}", "f".repeat(240)));
    for path in ["/query", "/dirs", "/paths", &long, &page, &near] {
        let saved = Saved::page("19-long-names", path, &[]);
        let pictures = saved.contents();
        assert_eq!(pictures.len(), 2, "{path}");
        assert_ne!(pictures[0], pictures[1], "{path}");
        for file in saved.shown(&saved.main()) {
            assert_eq!(file.extension().unwrap(), "png", "{path}: {}", file.display());
        }
        assert_eq!(saved.main().extension().unwrap(), "html", "{path}");
        assert_eq!(saved.field("note"), "", "{path}");
    }
}

#[test]
fn names_that_are_not_utf8_are_found() {
    if !has(&["wget"]) {
        return;
    }
    for path in ["/caf%E9", "/caf%E9.html", "/%93%FA%96%7B.html"] {
        let saved = Saved::page("34-wget-names", path, &[]);
        assert!(saved.text().contains("CAFE"), "{path}");
        assert_eq!(saved.contents().len(), 1, "{path}");
        let link = saved.server.url("/next");
        assert!(saved.text().contains(&link), "{path}: {}", saved.text());
    }
}

#[test]
fn files_have_suffixes_that_open() {
    if !has(&["wget"]) {
        return;
    }
    let saved = Saved::page("34-wget-names", "/gallery", &[]);
    let pictures = saved.shown(&saved.main());
    assert!(
        pictures.iter().any(|file| file.extension().is_some_and(|it| it == "png")),
        "{pictures:?}"
    );
    let original = format!("{}.orig", saved.main().display());
    let original = std::fs::read_to_string(original).unwrap();
    assert!(original.contains("<img src='/full?img=1'>"), "{original}");
    let saved = Saved::page("34-wget-names", "/download", &[]);
    let suffixes: Vec<_> = saved
        .shown(&saved.main())
        .iter()
        .map(|file| file.extension().unwrap().to_owned())
        .collect();
    assert_eq!(suffixes, ["png", "pdf"]);
    let saved = Saved::page("34-wget-names", "/document", &[]);
    assert_eq!(saved.main().extension().unwrap(), "pdf");
}

#[test]
fn file_and_directory_of_one_name_are_both_saved() {
    if !has(&["wget"]) {
        return;
    }
    let saved = Saved::page("34-wget-names", "/conflict", &[]);
    assert_eq!(saved.contents().len(), 4);
    assert_eq!(saved.field("note"), "");
}

#[test]
fn encodings_that_were_not_requested_are_decoded() {
    if !has(&["wget"]) {
        return;
    }
    for path in ["/gzip", "/deflate"] {
        let saved = Saved::page("34-wget-names", path, &[]);
        assert!(saved.text().contains("<title>"), "{path}: {}", saved.text());
        let files = saved.shown(&saved.main());
        assert!(files.iter().any(|file| file.ends_with("inside.png")), "{path}");
        for style in files.iter().filter(|file| file.ends_with("gzip.css")) {
            assert_eq!(saved.shown(style).len(), 1);
        }
    }
    for (path, shown, picture) in [
        ("/brotli", 2, "styled.png"),
        ("/zstd", 1, "picture.png"),
        ("/not-brotli", 1, "styled.png"),
    ] {
        let saved = Saved::page("51-requisites", path, &[]);
        assert!(saved.text().contains("<title>"), "{path}: {}", saved.text());
        assert_eq!(saved.main().extension().unwrap(), "html", "{path}");
        assert_eq!(saved.field("note"), "", "{path}");
        let files = saved.shown(&saved.main());
        assert_eq!(files.len(), shown, "{path}");
        assert!(files.iter().any(|file| file.ends_with(picture)), "{path}");
        for style in files.iter().filter(|file| file.ends_with("br.css")) {
            assert_eq!(saved.shown(style).len(), 1);
        }
        for file in files.iter().filter(|file| file.ends_with(picture)) {
            assert!(std::fs::read(file).unwrap().starts_with(b"\x89PNG"), "{path}");
        }
    }
    let saved = Saved::page("51-requisites", "/unknown", &[]);
    let note = saved.field("note");
    assert!(note.contains("content encoding 'compress'"), "{note}");
}

#[test]
fn small_answer_that_stands_for_many_bytes_is_not_written() {
    if !has(&["wget"]) {
        return;
    }
    let saved = Saved::page("51-requisites", "/bomb", &[("WGET_MAX_SIZE", "4m")]);
    let note = saved.field("note");
    assert!(note.contains("more bytes than WGET_MAX_SIZE allows"), "{note}");
    assert!(saved.main().metadata().unwrap().len() < 100);
}

#[test]
fn page_that_a_time_limit_cuts_off_shows_what_was_saved() {
    if !has(&["wget"]) {
        return;
    }
    let saved = Saved::page("50-slow-pictures", "/", &[("WGET_TIMEOUT", "5")]);
    assert!(saved.ran.elapsed < busy(5), "{:?}", saved.ran.elapsed);
    let pictures = saved.shown(&saved.main());
    assert!(pictures.len() > 5 && pictures.len() < 300, "{}", pictures.len());
    let note = saved.field("note");
    assert!(
        note.contains("time limit") && note.contains("of 301 files of the page are missing"),
        "{note}"
    );
    let style = saved.main().with_file_name("s.css");
    assert_eq!(saved.shown(&style).len(), 1);
}

#[test]
fn later_attempt_continues_a_copy_that_a_time_limit_cut_off() {
    if !has(&["wget"]) {
        return;
    }
    let limit = [("WGET_TIMEOUT", "4")];
    let mut saved = Saved::page("50-slow-pictures", "/few", &limit);
    let mut counts = vec![saved.shown(&saved.main()).len()];
    let first = saved.snap.read("wget/warc/page.warc.gz");
    assert!(saved.field("note").contains("of 25 files of the page are missing"));
    let url = saved.server.url("/few");
    while saved.field("note").contains("missing") {
        assert!(counts.len() < 10, "{counts:?}");
        saved.ran = saved.snap.run("wget", &url, &limit);
        counts.push(saved.shown(&saved.main()).len());
    }
    // The style sheet and 24 pictures, in the order of the attempts.
    assert!(counts.is_sorted() && counts.len() > 1, "{counts:?}");
    assert_eq!(counts.last(), Some(&25), "{counts:?}");
    let whole = saved.snap.read("wget/warc/page.warc.gz");
    assert!(whole.starts_with(&first), "the first part stays");
    let mut records = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(&whole[..]);
    std::io::Read::read_to_end(&mut reader, &mut records).unwrap();
    let text = String::from_utf8_lossy(&records);
    let heads: Vec<_> = text
        .split("WARC-Type: response\r\n")
        .skip(1)
        .map(|record| record.split("\r\n\r\n").next().unwrap())
        .collect();
    for path in (0..24).map(|n| format!("/picture/{n}.png")).chain(["/few".to_owned()]) {
        let target = saved.server.url(&path);
        let found = heads.iter().filter(|head| {
            head.contains(&format!("<{target}>")) || head.contains(&format!(" {target}\r\n"))
        });
        assert_eq!(found.count(), 1, "responses of {path}");
    }
    assert_eq!(saved.field("note"), "continued the copy of an earlier attempt");
    assert!(!saved.snap.file("wget/warc/unfinished.log").exists());
    let again = saved.snap.run("wget", &url, &[]);
    assert_eq!(again.result()["note"], serde_json::Value::Null);
}

/// The server is gone when the copy is continued: what is there stays.
#[test]
fn attempt_without_an_answer_keeps_the_part_that_is_there() {
    if !has(&["wget"]) {
        return;
    }
    let Saved { server, snap, ran } =
        Saved::page("50-slow-pictures", "/few", &[("WGET_TIMEOUT", "4")]);
    let (url, main) = (server.url("/few"), ran.result()["output_str"].clone());
    let warc = snap.read("wget/warc/page.warc.gz").len();
    drop(server);
    let again = snap.run("wget", &url, &[("WGET_TIMEOUT", "4")]);
    assert_eq!((again.exit, &again.result()["output_str"]), (Some(0), &main));
    let note = again.result()["note"].as_str().unwrap();
    assert!(note.contains("of 25 files of the page are missing"), "{note}");
    assert!(snap.read("wget/warc/page.warc.gz").len() >= warc);
}

#[test]
fn requisites_of_requisites_are_saved_and_linked() {
    if !has(&["wget"]) {
        return;
    }
    let saved = Saved::page("51-requisites", "/", &[]);
    let top = saved.main().parent().unwrap().to_owned();
    for file in ["index.html", "css/one.css", "css/two.css", "css/deep/three.css"] {
        saved.shown(&top.join(file));
    }
    let mut all = saved.shown(&saved.main());
    let mut seen = Vec::new();
    while let Some(file) = all.pop() {
        if seen.contains(&file) {
            continue;
        }
        let kind = file.extension().unwrap_or_default();
        if file.ends_with("frame.html") {
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.contains("i/h.png"), "{text}");
        } else if ["css", "svg", "xml", "xsl", "html"].iter().any(|it| *it == kind) {
            all.extend(saved.shown(&file));
        }
        seen.push(file);
    }
    let names: Vec<_> = seen.iter().map(|file| file.display().to_string()).collect();
    for name in ["y.xsl", "i/g.png", "i/f.png", "three.css", ".woff2"] {
        assert!(names.iter().any(|file| file.contains(name)), "{name}: {names:#?}");
    }
    let note = saved.field("note");
    assert!(note.starts_with("1 of ") && note.contains("/i/missing.png (404)"), "{note}");
}

#[test]
fn answers_without_content_and_cut_answers_have_a_reason() {
    if !has(&["wget"]) {
        return;
    }
    for status in ["204", "205", "304"] {
        let saved = Saved::page("21-no-content", &format!("/{status}"), &[]);
        let expected = format!("the answer has no content ({status})");
        saved.ran.assert(0, "noresults", &expected);
    }
    Saved::page("21-no-content", "/empty", &[]).ran.assert(
        0,
        "noresults",
        "the answer has no content (200)",
    );
    for path in ["/short", "/cut-chunk"] {
        let saved = Saved::page("21-no-content", path, &[]);
        assert!(saved.text().contains("shown"), "{path}: {}", saved.text());
        assert!(
            saved.field("note").starts_with("the answer ended early"),
            "{path}: {}",
            saved.field("note")
        );
        assert!(saved.ran.elapsed < busy(5), "{path}");
    }
    for path in ["/206", "/300", "/301", "/false-gzip"] {
        let saved = Saved::page("21-no-content", path, &[]);
        assert!(saved.text().contains("shown"), "{path}: {}", saved.text());
    }
}

#[test]
fn error_pages_are_pages_with_a_note() {
    if !has(&["wget"]) {
        return;
    }
    for (path, status) in [("/error-page", 404), ("/403", 403), ("/500", 500)] {
        let saved = Saved::page("21-no-content", path, &[]);
        assert_eq!(saved.text(), "<title>part</title><p>shown</p", "{path}");
        assert_eq!(saved.main().extension().unwrap(), "html", "{path}");
        let note = format!("the server answered {status}");
        assert_eq!(saved.field("note"), note);
        assert_eq!(saved.ran.result()["http_status"], status);
    }
    let saved = Saved::page("21-no-content", "/gone", &[]);
    assert!(
        saved.text().contains("src='there.png'") || saved.text().contains("src=\"there.png\""),
        "{}",
        saved.text()
    );
    let original = std::fs::read_to_string(format!("{}.orig", saved.main().display())).unwrap();
    assert!(original.contains("<img src=/there.png>"), "{original}");
    let note = saved.field("note");
    assert!(
        note.starts_with("the server answered 410; 1 of 2 files of the page is missing: http")
            && note.ends_with("/nowhere.png (404)"),
        "{note}"
    );
    for (path, status) in [("/404", 404), ("/503", 503)] {
        let saved = Saved::page("21-no-content", path, &[]);
        let reason = format!("the answer has no content ({status})");
        saved.ran.assert(1, "failed", &reason);
        // A server that refuses the visit with it gets a later one.
        assert_eq!(saved.ran.result()["http_status"], status, "{path}");
        assert_eq!(
            std::fs::read_dir(saved.snap.file("wget"))
                .unwrap()
                .filter(|entry| entry
                    .as_ref()
                    .unwrap()
                    .file_name()
                    .to_string_lossy()
                    .starts_with("127"))
                .count(),
            0,
            "{path}"
        );
    }
}

#[test]
fn page_that_goes_elsewhere_is_saved_where_it_ends_or_named() {
    if !has(&["wget"]) {
        return;
    }
    for path in ["/meta", "/meta-slow", "/refresh-header"] {
        let saved = Saved::page("24-client-redirects", path, &[]);
        assert!(saved.text().contains("TARGET"), "{path}: {}", saved.text());
        assert!(saved.field("note").contains("went on to"), "{path}");
    }
    for path in ["/script", "/post", "/script-late", "/cookie-wall", "/chain/1"] {
        let saved = Saved::page("24-client-redirects", path, &[]);
        assert!(
            saved.field("note").contains("goes elsewhere by a script"),
            "{path}: {}",
            saved.field("note")
        );
    }
}

/// The browser of the same visit knows where the script leads.
#[test]
fn page_that_a_script_leads_to_is_saved_if_the_browser_shows_it() {
    if !has(&["wget"]) {
        return;
    }
    let server = WebServer::start("24-client-redirects");
    let url = server.url("/chain/1");
    for (shown, is_target) in [
        (server.url("/dir/target#x"), true),
        (url.clone(), false),
        ("http://127.0.0.1:1/".to_owned(), false),
        ("about:blank".to_owned(), false),
    ] {
        let snap = Snapshot::new();
        let navigation = serde_json::json!({"url": url, "finalUrl": shown});
        std::fs::create_dir_all(snap.file("chromium")).unwrap();
        std::fs::write(snap.file("chromium/navigation.json"), navigation.to_string()).unwrap();
        let ran = snap.run("wget", &url, &[]);
        let (file, note) = (&ran.result()["output_str"], ran.result()["note"].as_str().unwrap());
        let main = format!("wget/{}", file.as_str().unwrap());
        let text = String::from_utf8_lossy(&snap.read(&main)).into_owned();
        assert_eq!(text.contains("TARGET BODY"), is_target, "{shown}: {text}");
        assert_eq!(note.contains("the page went on to"), is_target, "{note}");
        assert_eq!(note.contains("goes elsewhere by a script"), !is_target, "{note}");
    }
}
