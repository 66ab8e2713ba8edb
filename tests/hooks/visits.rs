//! How often a site is asked: hooks take from the browser what it has already got.

use crate::fixture::{Ran, Session, Site, Snapshot, WebServer, has};
use crate::recording::recorded;
use std::io::{BufRead, BufReader, Write};
use std::sync::mpsc::{Receiver, channel};

/// Opens a page in the browser, and runs hooks as a crawl without wget does. Returns their results.
fn visit<const N: usize>(snap: &Snapshot, url: &str, hooks: [&str; N]) -> [Ran; N] {
    let mut session = Session::shared(snap, &[]);
    session.open(snap, url, &[]);
    let ran = hooks.map(|hook| snap.run(hook, url, &[]));
    session.tab().stopped(snap);
    ran
}

/// The requests of a site without those for robots.txt, of which a crawl makes one for each host.
fn requests(site: &Site) -> Vec<String> {
    let mut paths = site.requests();
    paths.retain(|path| path != "/robots.txt");
    paths.sort();
    paths
}

#[test]
fn a_page_is_asked_for_once() {
    if !has(&["chromium", "curl"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let hooks = ["favicon", "headers", "title", "outlinks"];
    let [favicon, headers, title, outlinks] = visit(&snap, &site.url("icon"), hooks);
    favicon.assert(0, "succeeded", "favicon.png");
    assert!(snap.read("favicon/favicon.png").starts_with(b"\x89PNG"));
    headers.assert(0, "succeeded", "headers.json");
    title.assert(0, "succeeded", "Own icon");
    outlinks.assert(0, "noresults", "the page has no links to other pages");
    assert_eq!(requests(&site), ["/icon", "/icons/site.png", "/style.css"]);
}

#[test]
fn a_recorded_page_is_left_to_the_browser_by_wget() {
    if !has(&["chromium", "curl", "wget"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    snap.select("wacz");
    let (page, download) = (site.url("icon"), site.url("download"));
    let mut session = Session::shared(&snap, &[]);
    let left = "the browser records the page; WGET_ALWAYS=true requests it again";
    session.open(&snap, &page, &[]);
    for hook in ["favicon", "headers", "dom", "title", "outlinks", "wacz"] {
        assert_eq!(snap.run(hook, &page, &[]).exit, Some(0), "{hook}");
    }
    snap.run("wget", &page, &[]).assert(0, "noresults", left);
    assert_eq!(requests(&site), ["/icon", "/icons/site.png", "/style.css"]);
    let always = snap.run("wget", &page, &[("WGET_ALWAYS", "true")]);
    assert_eq!(always.result()["status"], "succeeded");
    let times = |path: &str| site.requests().iter().filter(|own| *own == path).count();
    assert_eq!(times("/icon"), 2);

    session.open(&snap, &download, &[]);
    snap.run("wget", &download, &[]).assert(0, "noresults", left);
    snap.run("wacz", &download, &[]).assert(0, "succeeded", "page.wacz");
    assert_eq!(times("/download"), 1);

    // The tab does not record.
    session.open(&snap, &page, &[("WACZ_ENABLED", "false")]);
    assert_eq!(snap.run("wget", &page, &[]).result()["status"], "succeeded");
    assert_eq!(times("/icon"), 4);
    session.tab().stopped(&snap);
}

#[test]
fn a_page_that_the_browser_fails_to_show_is_requested_by_wget() {
    if !has(&["chromium", "wget"]) {
        return;
    }
    let (site, snap) = (WebServer::start("21-no-content"), Snapshot::new());
    snap.select("wacz");
    // Its coding is another one than it says.
    let url = site.url("/false-gzip");
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, &url, &[]);
    let tab = session.tab().stopped(&snap);
    assert_eq!(tab.result()["status"], "failed");
    let wget = snap.run("wget", &url, &[]);
    assert_eq!(wget.result()["status"], "succeeded", "{:?}", wget.records);
    // Without a page there is nothing to request again.
    let url = site.url("/204");
    session.open(&snap, &url, &[]);
    session.tab().stopped(&snap);
    let wget = snap.run("wget", &url, &[]);
    let reason = wget.result()["output_str"].as_str().unwrap();
    assert!(reason.starts_with("the browser records"), "{reason}");
}

#[test]
fn redirects_are_those_of_the_browser() {
    if !has(&["chromium", "curl"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let url = site.url("redirect/3");
    let [headers] = visit(&snap, &url, ["headers"]);
    headers.assert(0, "succeeded", "headers.json");
    let saved = snap.json("headers/headers.json");
    let redirects = saved["redirects"].as_array().unwrap();
    let statuses: Vec<_> = redirects.iter().map(|hop| &hop["status"]).collect();
    assert_eq!(statuses, [301, 307, 302]);
    assert_eq!(saved["final_url"], site.url("redirected"));
    assert_eq!(saved["status"], 200);
    let visits = requests(&site);
    let times = visits.iter().filter(|path| *path == "/redirect/3").count();
    assert_eq!(times, 1, "{visits:?}");

    // The browser does not say what it refused.
    let [headers] = visit(&snap, &site.url("redirect-file"), ["headers"]);
    assert_eq!(headers.exit, Some(1), "{:?}", headers.records);
    let reason = headers.result()["output_str"].as_str().unwrap();
    assert!(reason.starts_with("curl failed"), "{reason}");

    // The cookie of a login, which the browser's own interface for scripts does not show.
    let [headers] = visit(&snap, &site.url("login"), ["headers"]);
    headers.assert(0, "succeeded", "headers.json");
    let saved = snap.json("headers/headers.json");
    let cookie = saved["response_headers"]["set-cookie"].as_str().unwrap();
    assert!(cookie.starts_with("club=member"), "{cookie}");
}

#[test]
fn a_page_without_an_icon_of_its_own_has_that_of_its_site() {
    if !has(&["chromium", "curl"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let [favicon] = visit(&snap, &site.url("page/1"), ["favicon"]);
    favicon.assert(0, "succeeded", "favicon.ico");
    let visits = requests(&site);
    let times = |path: &str| visits.iter().filter(|visit| *visit == path).count();
    assert_eq!((times("/page/1"), times("/favicon.ico")), (1, 1), "{visits:?}");
}

#[test]
fn a_download_is_begun_once_by_all_hooks_but_wget() {
    if !has(&["chromium", "curl"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let hooks = ["favicon", "headers", "title", "outlinks"];
    let [favicon, headers, title, outlinks] = visit(&snap, &site.url("download"), hooks);
    favicon.assert(0, "succeeded", "favicon.ico");
    headers.assert(0, "succeeded", "headers.json");
    let saved = snap.json("headers/headers.json");
    let disposition = &saved["response_headers"]["content-disposition"];
    assert_eq!(disposition, "attachment; filename=\"download.bin\"");
    for ran in [title, outlinks] {
        assert_eq!(ran.exit, Some(0), "{:?}", ran.records);
    }
    let visits = requests(&site);
    let times = visits.iter().filter(|path| *path == "/download").count();
    assert_eq!(times, 1, "{visits:?}");

    // A large one is not kept for the other hooks, which have no use for it.
    let [title, outlinks] = visit(&snap, &site.url("image.bin"), ["title", "outlinks"]);
    for ran in [title, outlinks] {
        ran.assert(0, "noresults", "not an HTML page: application/octet-stream");
    }
    let visits = requests(&site);
    let times = visits.iter().filter(|path| *path == "/image.bin").count();
    assert_eq!(times, 1, "{visits:?}");
}

/// A file that a server offers as a download.
#[derive(Clone)]
struct Download {
    path: &'static str,
    kind: &'static str,
    has_length: bool,
    body: Vec<u8>,
}

/// Serves downloads, and nothing else. Returns the address, and for each request its first line and the
/// bytes of the body that were sent.
fn serve(files: Vec<Download>) -> (String, Receiver<(String, usize)>) {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (asked, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let Some(Ok(first)) = lines.next() else {
                continue;
            };
            lines.map_while(Result::ok).find(String::is_empty);
            let path = first.split(' ').nth(1).unwrap_or_default();
            let Some(file) = files.iter().find(|file| file.path == path) else {
                let none =
                    "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                let _ = stream.write_all(none.as_bytes());
                continue;
            };
            let length = if file.has_length {
                format!("Content-Length: {}\r\n", file.body.len())
            } else {
                String::new()
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {}\r\n{length}\
                 Content-Disposition: attachment\r\nConnection: close\r\n\r\n",
                file.kind
            );
            let _ = stream.write_all(head.as_bytes());
            let mut pieces = file.body.chunks(64 << 10);
            let sent = pieces.by_ref().map_while(|piece| {
                stream.write_all(piece).ok()?;
                Some(piece.len())
            });
            let sent = sent.sum();
            let _ = asked.send((first, sent));
        }
    });
    (address, requests)
}

#[test]
fn a_large_list_is_fetched_once() {
    if !has(&["chromium", "curl"]) {
        return;
    }
    let lines = (0..60_000).map(|n| format!("http://a.test/a/page/with/a/long/name/{n}\n"));
    let list: String = lines.collect();
    assert!(list.len() > 2 << 20, "{}", list.len());
    // Chromium sends them as text, with six characters for each.
    let zeros = vec![0; 3 << 20];
    let csv = |path, body| Download { path, kind: "text/csv", has_length: true, body };
    let files = vec![csv("/list", list.clone().into_bytes()), csv("/zeros", zeros.clone())];
    let (address, requests) = serve(files);
    let url = format!("{address}/list");
    let snap = Snapshot::new();
    let [headers, title, outlinks] = visit(&snap, &url, ["headers", "title", "outlinks"]);
    headers.assert(0, "succeeded", "headers.json");
    title.assert(0, "noresults", "the page has no title");
    assert_eq!(outlinks.exit, Some(0), "{:?}", outlinks.result());
    assert!(snap.read("chromium/document/list.csv") == list.as_bytes());
    let requests: Vec<_> = requests.try_iter().collect();
    let visits = requests.iter().filter(|(line, _)| line.contains("/list"));
    assert_eq!(visits.count(), 1, "{requests:?}");
    let navigation = snap.json("chromium/navigation.json");
    assert_eq!(navigation["status"], 200);
    let reason = "not a page: the server offers a download";
    assert_eq!(navigation["error"], reason);

    let url = format!("{address}/zeros");
    let [_] = visit(&snap, &url, ["headers"]);
    assert!(snap.read("chromium/document/zeros.csv") == zeros);

    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, "http://127.0.0.1:1/", &[]);
    let (exit, text) = session.tab().ended();
    assert!(exit == Some(1) && text.contains("ERR_"), "{text}");
    assert!(snap.read("chromium/document/zeros.csv") == zeros, "of the last visit that saved it");
}

#[test]
fn a_large_download_is_fetched_once_and_recorded() {
    if !has(&["chromium", "curl", "wget"]) {
        return;
    }
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    let file = |path, kind, has_length, length: usize| Download {
        path,
        kind,
        has_length,
        body: bytes.repeat(length / bytes.len()),
    };
    let files = vec![
        file("/a.zip", "application/zip", true, 50 << 20),
        file("/b.pdf", "application/pdf", true, 3 << 20),
        file("/c.bin", "application/octet-stream", false, 5 << 20),
    ];
    let (address, requests) = serve(files.clone());
    let snap = Snapshot::new();
    snap.select("wacz");
    for file in files {
        let url = format!("{address}{}", file.path);
        let hooks = ["headers", "title", "outlinks", "dom", "wget", "wacz"];
        let [headers, _, _, dom, wget, wacz] = visit(&snap, &url, hooks);
        headers.assert(0, "succeeded", "headers.json");
        assert_eq!(dom.result()["status"], "noresults", "{:?}", dom.records);
        let reason = wget.result()["output_str"].as_str().unwrap();
        assert!(reason.starts_with("the browser records"), "{reason}");
        wacz.assert(0, "succeeded", "page.wacz");
        assert_eq!(wacz.result()["missing"], serde_json::json!([]));
        assert!(snap.read(&format!("chromium/document{}", file.path)) == file.body, "{url}");
        let recorded = recorded(&snap);
        let bodies = &recorded.bodies[&format!("GET {url}")];
        assert!(bodies.len() == 1 && bodies[0] == file.body, "{url}");
        let requests: Vec<_> = requests.try_iter().collect();
        let line = format!("GET {} HTTP/1.1", file.path);
        assert_eq!(requests, [(line, file.body.len())]);
    }
}

#[test]
fn a_download_that_exceeds_the_limit_is_left_to_wget() {
    if !has(&["chromium", "wget"]) {
        return;
    }
    let body = vec![7; 3 << 20];
    let file =
        Download { path: "/a.zip", kind: "application/zip", has_length: false, body: body.clone() };
    let (address, _) = serve(vec![file]);
    let (snap, url) = (Snapshot::new(), format!("{address}/a.zip"));
    snap.select("wacz");
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, &url, &[("WACZ_MAX_BODY", "2500k")]);
    session.tab().stopped(&snap);
    assert!(!snap.file("chromium/document").exists());
    let wget = snap.run("wget", &url, &[]);
    assert_eq!(wget.result()["status"], "succeeded", "{:?}", wget.records);
    let saved = wget.result()["output_str"].as_str().unwrap();
    assert!(snap.read(&format!("wget/{saved}")) == body);
}

#[test]
fn a_site_that_is_down_is_asked_by_the_browser_alone() {
    if !has(&["chromium", "curl"]) {
        return;
    }
    let snap = Snapshot::new();
    let reason = "failed to load the page in chromium: net::ERR_CONNECTION_REFUSED";
    let hooks = ["favicon", "headers", "title", "outlinks", "dom", "screenshot", "pdf"];
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", free.local_addr().unwrap());
    drop(free);
    let mut session = Session::start(&snap, &[]);
    session.open(&snap, &url, &[]);
    for hook in hooks {
        snap.run(hook, &url, &[]).assert(10, "skipped", reason);
    }
    if has(&["wget"]) {
        snap.run("wget", &url, &[]).assert(10, "skipped", reason);
    }
    session.tab().stopped(&snap).assert(1, "failed", reason);
    session.take_browser().end();
    // Without a browser, that was an earlier visit.
    let again = snap.run("headers", &url, &[]);
    let reason = again.result()["output_str"].as_str().unwrap();
    assert!(reason.starts_with("curl failed"), "{reason}");
}

/// An unknown authority is another matter: wget and curl trust those of the machine.
#[test]
fn an_invalid_certificate_is_refused_by_the_browser_alone() {
    if !has(&["chromium", "curl", "wget"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let url = site.url("page/1");
    let _session = Session::shared(&snap, &[]);
    let visit = |error: &str| {
        let reason = format!("failed to load the page in chromium: net::{error}");
        let navigation = serde_json::json!({"url": url, "final_url": url, "mime_type": "",
            "timestamp": "", "error": reason});
        std::fs::create_dir_all(snap.file("chromium")).unwrap();
        std::fs::write(snap.file("chromium/navigation.json"), navigation.to_string()).unwrap();
        reason
    };
    for error in ["ERR_CERT_DATE_INVALID", "ERR_CERT_COMMON_NAME_INVALID"] {
        let reason = visit(error);
        for hook in ["headers", "wget"] {
            snap.run(hook, &url, &[]).assert(10, "skipped", &reason);
        }
        let off = [("CHECK_SSL_VALIDITY", "no")];
        let ran = snap.run("headers", &url, &off);
        ran.assert(0, "succeeded", "headers.json");
        let ran = snap.run("wget", &url, &[("WGET_CHECK_SSL_VALIDITY", "no")]);
        assert_eq!(ran.result()["status"], "succeeded", "{:?}", ran.records);
    }
    visit("ERR_CERT_AUTHORITY_INVALID");
    let ran = snap.run("wget", &url, &[]);
    assert_eq!(ran.result()["status"], "succeeded", "{:?}", ran.records);
}

#[test]
fn a_server_that_does_not_answer_is_one_failure() {
    if !has(&["chromium", "curl"]) {
        return;
    }
    let snap = Snapshot::new();
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let mut session = Session::shared(&snap, &[]);
    session.open(&snap, &url, &[]);
    let (exit, text) = session.tab().ended();
    assert_eq!(exit, Some(1), "{text}");
    let record: serde_json::Value =
        serde_json::from_str(text.lines().next_back().unwrap()).unwrap();
    let reason = record["output_str"].as_str().unwrap();
    assert!(reason.contains("net::ERR_"), "{reason}");
    for hook in ["favicon", "headers", "title", "outlinks", "dom"] {
        snap.run(hook, &url, &[]).assert(10, "skipped", reason);
    }
    // The user's options for curl may lead another way.
    let options = [("HEADERS_ARGS_EXTRA", "[\"--http1.0\"]")];
    let headers = snap.run("headers", &url, &options);
    assert_eq!(headers.exit, Some(1), "{:?}", headers.records);
}
