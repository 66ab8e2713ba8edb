//! Encodings, links and lists: pages of `tests/web` with wget, curl and a real browser.

use crate::fixture::{Session, Snapshot, WebServer, has};

/// URLs of the links that the hook wrote, without the address of the server.
fn links(snap: &Snapshot, web: &WebServer) -> Vec<String> {
    let lines = String::from_utf8(snap.read("outlinks/urls.jsonl")).unwrap();
    let records =
        lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    records.map(|record| record["url"].as_str().unwrap().replace(&web.url(""), "")).collect()
}

#[test]
fn encodings_of_pages_are_those_of_browsers() {
    if !has(&["curl"]) {
        return;
    }
    let (web, snap) = (WebServer::start("07-charset-sniff"), Snapshot::new());
    for path in [
        "comment",
        "commented",
        "script",
        "script-text",
        "description",
        "pragma",
        "late",
        "header",
        "bom",
        "none",
        "xml",
        "utf16",
        "utf16be",
        "says-utf16",
        "unlabelled-utf8",
    ] {
        println!("{path}");
        snap.run("title", &web.url(&format!("/{path}")), &[]).assert(
            0,
            "succeeded",
            "国家图书馆 公告",
        );
    }
}

#[test]
fn saved_dom_is_readable_and_its_links_have_the_encoding_of_the_page() {
    if !has(&["chromium"]) {
        return;
    }
    let (web, snap) = (WebServer::start("05-dom-charset"), Snapshot::new());
    let mut session = Session::shared(&snap, &[]);
    for (path, words, query) in [
        ("/shift_jis", "こんにちは、世界", "%82%B1%82%F1"),
        ("/pragma/euc-kr", "안녕하세요 세계", "%BE%C8%B3%E7"),
        ("/comment/gb18030", "你好，世界", "%C4%E3%BA%C3"),
        ("/header/windows-1251", "Здравствуй, мир", "%C7%E4"),
        ("/xhtml/shift_jis", "こんにちは、世界", "%82%B1%82%F1"),
    ] {
        let url = web.url(path);
        session.open(&snap, &url, &[]);
        snap.run("dom", &url, &[]).assert(0, "succeeded", "output.html");
        let saved = snap.read("dom/output.html");
        let file = snap.file("dom/output.html");
        let shown = dump_dom(&snap, file.to_str().unwrap());
        assert!(shown.contains(words), "{path}: {shown}");
        let text = String::from_utf8(saved).unwrap();
        assert!(text.contains("<meta charset=\"utf-8\""), "{path}: {text}");
        snap.run("title", &url, &[]).assert(0, "succeeded", words);
        snap.run("outlinks", &url, &[]);
        let expected = [format!("/search?q={query}")];
        assert_eq!(links(&snap, &web), expected, "{path}: from the file");
        std::fs::remove_file(file).unwrap();
        snap.run("outlinks", &url, &[]);
        assert_eq!(links(&snap, &web), expected, "{path}: from the tab");
    }
}

/// What a browser shows of a file.
fn dump_dom(snap: &Snapshot, file: &str) -> String {
    let profile = snap.file("profile");
    let mut command = std::process::Command::new("chromium");
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", profile.display()));
    let output = command.arg(format!("file://{file}")).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn routes_frames_and_shadow_roots_have_links() {
    if !has(&["chromium"]) {
        return;
    }
    let (web, snap) = (WebServer::start("14-hash-routes"), Snapshot::new());
    let mut session = Session::shared(&snap, &[]);
    let url = web.url("/");
    session.open(&snap, &url, &[]);
    let expected = ["#/home", "#/about", "#!/old", "shadow", "framed", "by-script"];
    let expected = expected.map(|path| format!("/{path}"));
    snap.run("outlinks", &url, &[]).assert(0, "succeeded", "6 links");
    assert_eq!(links(&snap, &web), expected, "from the tab");
    snap.run("dom", &url, &[]).assert(0, "succeeded", "output.html");
    snap.run("outlinks", &url, &[]).assert(0, "succeeded", "6 links");
    assert_eq!(links(&snap, &web), expected, "from the file");
    let no = [("OUTLINKS_HASH_ROUTES", "no")];
    snap.run("outlinks", &url, &no).assert(0, "succeeded", "3 links");
    let route = web.url("/#/about");
    session.open(&snap, &route, &[]);
    std::fs::remove_file(snap.file("dom/output.html")).unwrap();
    snap.run("title", &route, &[]).assert(0, "succeeded", "app #/about");
    let other = Snapshot::new();
    other.run("outlinks", &web.url("/one"), &[]).assert(0, "succeeded", "1 link");
    let yes = [("OUTLINKS_HASH_ROUTES", "yes")];
    other.run("outlinks", &web.url("/one"), &yes);
    assert_eq!(links(&other, &web), ["/one#/only", "/x"]);
}

const LISTS: [(&str, &[&str], &str); 8] = [
    ("rss.xml", &["/post/1", "/post/2"], "F"),
    ("atom.xml", &["/post/3"], "F"),
    ("rdf", &["/post/8"], "F"),
    ("feed.json", &["/post/7"], "F"),
    ("sitemap.xml", &["/post/4"], ""),
    ("sitemap.xml.gz", &["/post/4"], ""),
    ("index.xml", &["/sitemap.xml"], ""),
    ("list.txt", &["/post/5", "/post/6"], ""),
];

fn assert_list(snap: &Snapshot, web: &WebServer, list: &(&str, &[&str], &str)) {
    let (path, pages, title) = list;
    let url = web.url(&format!("/{path}"));
    assert_eq!(snap.run("outlinks", &url, &[]).exit, Some(0), "{path}");
    assert_eq!(links(snap, web).iter().map(String::as_str).collect::<Vec<_>>(), *pages, "{path}");
    let ran = snap.run("title", &url, &[]);
    if title.is_empty() {
        ran.assert(0, "noresults", "the page has no title");
    } else {
        ran.assert(0, "succeeded", title);
    }
}

#[test]
fn entries_of_feeds_and_lists_are_pages() {
    if !has(&["curl", "wget"]) {
        return;
    }
    let web = WebServer::start("15-feed-depth");
    for list in &LISTS {
        assert_list(&Snapshot::new(), &web, list);
        let saved = Snapshot::new();
        saved.run("wget", &web.url(&format!("/{}", list.0)), &[]);
        assert_list(&saved, &web, list);
    }
    let snap = Snapshot::new();
    let ran = snap.run("outlinks", &web.url("/rss.xml"), &[]);
    let first = &ran.records[0];
    assert_eq!(first["title"], "One");
    assert_eq!(first["bookmarked_at"], "2024-02-03T04:05:06Z");
    let text = snap.run("outlinks", &web.url("/readme.txt"), &[]);
    text.assert(0, "noresults", "not an HTML page: text/plain");
}

#[test]
fn entries_of_feeds_that_a_browser_shows_are_pages() {
    if !has(&["chromium", "curl"]) {
        return;
    }
    let (web, snap) = (WebServer::start("15-feed-depth"), Snapshot::new());
    let mut session = Session::shared(&snap, &[]);
    for list in LISTS.iter().filter(|(path, ..)| *path != "sitemap.xml.gz") {
        let url = web.url(&format!("/{}", list.0));
        session.open(&snap, &url, &[]);
        // Chromium downloads documents of some types.
        if snap.run("dom", &url, &[]).result()["status"] != "succeeded" {
            let _ = std::fs::remove_file(snap.file("dom/output.html"));
        }
        assert_list(&snap, &web, list);
    }
}

#[test]
fn links_and_titles_come_from_wgets_files_of_any_name() {
    if !has(&["curl", "wget"]) {
        return;
    }
    let web = WebServer::start("34-wget-names");
    let no_curl = [("CURL_BINARY", "/nonexistent")];
    for path in ["/gallery", "/gallery.html"] {
        let snap = Snapshot::new();
        snap.run("wget", &web.url(path), &[]);
        snap.run("outlinks", &web.url(path), &no_curl);
        assert_eq!(links(&snap, &web), ["/full?img=1", "/other.html"], "{path}");
    }
}
