//! Runs the built-in hooks as a worker does, against the site in `tests/site`.
//!
//! Tests that need a missing program are skipped with a message, which `tests/run` counts.

mod arrival;
mod browser;
mod certificate;
mod consent;
mod fixture;
mod frames;
mod front;
mod identity;
mod letters;
mod passwords;
mod pictures;
mod recording;
mod recording_limits;
mod replay;
mod reports;
mod sharing;
mod standalone;
mod text;
mod trial;
mod visits;
mod wget;

use fixture::{Site, Snapshot, WebServer, busy, has};

#[test]
fn wget_saves_the_page_its_requisites_and_a_warc() {
    if !has(&["wget"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let ran = snap.run("wget", &site.url(""), &[]);
    let host = site.address.trim_start_matches("http://").trim_end_matches('/').replace(':', "+");
    ran.assert(0, "succeeded", &format!("{host}/index.html"));
    for name in ["index.html", "style.css", "logo.png", "script.js"] {
        assert!(snap.file(&format!("wget/{host}/{name}")).is_file(), "{name}");
    }
    assert!(snap.read("wget/warc/page.warc.gz").starts_with(b"\x1f\x8b"));
}

#[test]
fn imported_page_names_the_file_with_its_recording() {
    let snap = Snapshot::new();
    let url = "https://page.test/";
    let settings = [("IMPORT_FILE", "0a.wacz"), ("IMPORT_SOURCE", "site.wacz")];
    snap.run("import", url, &settings).assert(0, "succeeded", "from 'site.wacz'");
    let reference = snap.read("import/recording.json");
    let reference: serde_json::Value = serde_json::from_slice(&reference).unwrap();
    let expected = serde_json::json!({"file": "0a.wacz", "source": "site.wacz", "url": url});
    assert_eq!(reference, expected);
    let alone = Snapshot::new().run("import", url, &[]);
    assert_eq!(alone.result()["status"], "skipped");
}

#[test]
fn wget_fails_with_a_reason_within_its_time_limit() {
    if !has(&["wget"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let missing = snap.run("wget", &site.url("missing"), &[]);
    assert_eq!(missing.result()["note"], "the server answered 404");
    let refused = snap.run("wget", "http://127.0.0.1:1/", &[]);
    assert_eq!(refused.exit, Some(1), "{:?}", refused.records);
    let reason = refused.result()["output_str"].as_str().unwrap();
    assert!(reason.starts_with("wget failed (exit 4)") && reason.contains("refused"), "{reason}");
    let endless = snap.run("wget", &site.url("endless"), &[("WGET_TIMEOUT", "3")]);
    let host = site.address.trim_start_matches("http://").trim_end_matches('/');
    let saved = format!("{}/endless.html", host.replace(':', "+"));
    endless.assert(0, "succeeded", &saved);
    let note = "the answer ended early: wget was stopped after 2 s: time limit";
    assert_eq!(endless.result()["note"], note);
    assert!(endless.elapsed < busy(3), "{:?}", endless.elapsed);
    let large = snap.run("wget", &site.url("large?mb=20"), &[("WGET_MAX_SIZE", "1m")]);
    large.assert(1, "failed", "wget was stopped: more than WGET_MAX_SIZE=1m");
}

#[test]
fn cookies_are_kept_between_redirects() {
    if !has(&["curl"]) {
        return;
    }
    let (site, snap) = (WebServer::start("08-cookie-redirect"), Snapshot::new());
    for path in ["/", "/way"] {
        snap.run("headers", &site.url(path), &[]).assert(0, "succeeded", "headers.json");
        assert_eq!(snap.json("headers/headers.json")["status"], 200, "{path}");
    }
}

#[test]
fn stopped_hook_prints_its_record() {
    if !has(&["wget"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    // The first line means that the hook catches signals.
    let daemon = snap.daemon("wget", &site.url("hang"), &[]);
    let ran = daemon.stopped(&snap);
    ran.assert(1, "failed", "wget was stopped: the hook received SIGTERM");
}

#[test]
fn headers_of_all_redirects_are_saved() {
    if !has(&["curl"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    snap.run("headers", &site.url("redirect/3"), &[]).assert(0, "succeeded", "headers.json");
    let headers = snap.json("headers/headers.json");
    let statuses: Vec<_> = headers["redirects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hop| hop["status"].as_u64().unwrap())
        .collect();
    assert_eq!((statuses, headers["status"].as_u64()), (vec![301, 307, 302], Some(200)));
    assert_eq!(headers["final_url"], site.url("redirected"));
    // The status of the document is that of the final response, also of an error.
    for (path, status) in [("redirect/3", 200), ("no-such-page", 404)] {
        let ran = snap.run("headers", &site.url(path), &[]);
        assert_eq!(ran.records[0]["http_status"], status, "{path}");
    }
    snap.run("headers", &site.url("endless"), &[]).assert(0, "succeeded", "headers.json");
    let to_file = snap.run("headers", &site.url("redirect-file"), &[]);
    assert_eq!(to_file.exit, Some(1));
}

#[test]
fn icon_comes_from_the_page_or_the_default_path() {
    if !has(&["curl"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    snap.run("favicon", &site.url("icon"), &[]).assert(0, "succeeded", "favicon.png");
    snap.run("favicon", &site.url("page/1"), &[]).assert(0, "succeeded", "favicon.ico");
}

#[test]
fn hostile_titles_and_links_are_text() {
    if !has(&["curl"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let title = r#"$(touch /tmp/pwned) "<b>"#;
    snap.run("title", &site.url("hostile"), &[]).assert(0, "succeeded", title);
    assert_eq!(snap.read("title/title.txt"), format!("{title}\n").as_bytes());
    let ran = snap.run("outlinks", &site.url("hostile"), &[]);
    ran.assert(0, "succeeded", "5 links");
    let first = &ran.records[0];
    assert_eq!(first["url"], site.url("page/1?q=$(touch%20/tmp/pwned)"));
    assert_eq!((first["type"].as_str(), first["depth"].as_u64()), (Some("Snapshot"), Some(2)));
    let url = format!("{}$(touch /tmp/pwned)`id`%n\n'\"", site.url("page/"));
    snap.run("title", &url, &[]).assert(0, "succeeded", "Not found");
}

#[test]
fn unusual_pages_are_read() {
    if !has(&["curl"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    snap.run("title", &site.url("latin1"), &[]).assert(0, "succeeded", "Café à la carte");
    snap.run("title", &site.url("shift-jis"), &[]).assert(0, "succeeded", "日本語の表");
    snap.run("title", &site.url("windows-1252"), &[]).assert(0, "succeeded", "“Price” – 5 €");
    snap.run("title", &site.url("bad-utf8"), &[]).assert(
        0,
        "succeeded",
        "Broken \u{fffd}\u{fffd}\u{fffd} bytes",
    );
    snap.run("title", &site.url("empty"), &[]).assert(0, "noresults", "the page has no title");
    snap.run("title", &site.url("endless?fast"), &[]).assert(0, "succeeded", "Endless page");
    let pdf = snap.run("outlinks", &site.url("document.pdf"), &[]);
    pdf.assert(0, "noresults", "not an HTML page: application/pdf");
    snap.run("outlinks", &site.url("links/1000"), &[]).assert(0, "succeeded", "1000 links");
    snap.run("outlinks", &site.url("base"), &[]).assert(0, "succeeded", "7 links");
    let lines = String::from_utf8(snap.read("outlinks/urls.jsonl")).unwrap();
    assert!(lines.contains(&site.url("deep/dir/child")), "{lines}");
}

/// The file has no charset of its own: the response header that the hook headers stored names it.
#[test]
fn saved_page_is_decoded_by_its_response_header() {
    if !has(&["curl", "wget"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let url = site.url("shift-jis");
    snap.run("wget", &url, &[]);
    snap.run("headers", &url, &[]);
    snap.run("title", &url, &[("CURL_BINARY", "/nonexistent")]).assert(
        0,
        "succeeded",
        "日本語の表",
    );
}

#[test]
fn missing_program_skips_the_hook_and_names_the_package() {
    if !has(&[]) {
        return;
    }
    let snap = Snapshot::new();
    let url = "http://127.0.0.1:1/";
    let ran = snap.run("wget", url, &[("WGET_BINARY", "wget-is-missing")]);
    ran.assert(10, "skipped", "wget is not installed (Debian package wget)");
    let ran = snap.run("headers", url, &[("CURL_BINARY", "/nowhere/curl")]);
    ran.assert(10, "skipped", "/nowhere/curl is not installed (Debian package curl)");
    let missing = [("CHROME_BINARY", "chromium-is-missing")];
    let ran = snap.run("chromium_launch", url, &missing);
    ran.assert(10, "skipped", "chromium-is-missing is not installed (Debian package chromium)");
    snap.run("title", url, &[("SAVE_TITLE", "False")]).assert(
        10,
        "skipped",
        "TITLE_ENABLED is off",
    );
    assert_eq!(snap.run("wget", "file:///etc/passwd", &[]).exit, Some(1));
}
