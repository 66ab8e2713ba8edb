//! One browser for many pages: tests of the hooks of the plugin `chromium`, and of those that save
//! its page.

use crate::fixture::{Ran, Session, Site, Snapshot, busy, has};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[test]
fn screenshot_pdf_and_html_of_a_page_are_complete() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let mut session = Session::start(&snap, &[]);
    let url = site.url("js-title");
    assert_eq!(session.open(&snap, &url, &[]), "page loaded http=200\n");
    snap.run("screenshot", &url, &[("RESOLUTION", "800,600")]).assert(
        0,
        "succeeded",
        "screenshot.png",
    );
    let picture = snap.read("screenshot/screenshot.png");
    assert_eq!(picture[16..24], [0, 0, 3, 32, 0, 0, 2, 88], "800 by 600");
    snap.run("pdf", &url, &[]).assert(0, "succeeded", "output.pdf");
    // Without saved HTML, these two hooks read the page from the tab.
    snap.run("title", &url, &[]).assert(0, "succeeded", "Set by script");
    let ran = snap.run("outlinks", &url, &[]);
    ran.assert(0, "succeeded", "1 link");
    assert_eq!(ran.records[0]["url"], site.url("page/77"));
    snap.run("dom", &url, &[]).assert(0, "succeeded", "output.html");
    let html = String::from_utf8(snap.read("dom/output.html")).unwrap();
    assert!(html.to_lowercase().starts_with("<!doctype html>"), "{html}");
    assert!(html.contains("made by script"), "{html}");
    assert_eq!(snap.json("chromium/navigation.json")["status"], 200);

    let tab = session.tab().stopped(&snap);
    tab.assert(0, "succeeded", "page loaded http=200");
    let closed = snap.run("screenshot", &url, &[]);
    closed.assert(1, "failed", "the tab of the page is closed");
    let (exit, text) = session.take_browser().end();
    assert_eq!(exit, Some(0));
    assert!(!text.contains("ArchiveResult"), "{text}");
    for gone in ["cdp_url.txt", "cdp.sock", "target_id.txt"] {
        for directory in ["chromium", "crawl/chromium"] {
            assert!(!snap.file(directory).join(gone).exists(), "{directory}/{gone}");
        }
    }
}

/// What a server shows in place of a page is not the page; a page with the widget of a check is one.
#[test]
fn check_for_robots_is_no_page() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let mut session = Session::shared(&snap, &[]);
    for (path, name) in [
        ("cloudflare", "Cloudflare"),
        ("anubis", "Anubis"),
        ("datadome", "DataDome"),
        ("human", "HUMAN"),
        ("kasada", "Kasada"),
        ("hcaptcha", "hCaptcha"),
        ("recaptcha", "reCAPTCHA"),
        ("title", "Imperva"),
    ] {
        let url = site.url(&format!("check/{path}"));
        let text = session.open(&snap, &url, &[]);
        let reason = format!("the server shows a check for robots ({name}) instead of the page");
        assert!(text.contains(&reason), "{path}: {text}");
        snap.run("dom", &url, &[]).assert(10, "skipped", &reason);
    }
    for path in ["check/widget", "check/contact"] {
        assert_eq!(session.open(&snap, &site.url(path), &[]), "page loaded http=200\n", "{path}");
    }
}

/// A page for signing in to which the server redirects is not the page; one that was asked for is, and so is
/// an article with a form for signing in.
#[test]
fn page_for_signing_in_is_not_the_page_that_was_asked_for() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let mut session = Session::shared(&snap, &[]);
    let url = site.url("wall/article");
    let text = session.open(&snap, &url, &[]);
    let reason = "the server shows a page for signing in instead of the page";
    assert!(text.contains(reason), "{text}");
    for path in ["wall/header", "wall/moved", "users/sign_in"] {
        let text = session.open(&snap, &site.url(path), &[]);
        assert!(text.starts_with("page loaded http=200"), "{path}: {text}");
    }
}

/// A worker waits only five seconds for a page before it starts the hooks that follow.
#[test]
fn hooks_that_start_before_the_page_is_ready_wait_for_it() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let mut session = Session::shared(&snap, &[]);
    let url = site.url("js-title");
    let hooks = [
        ("title", "Set by script"),
        ("outlinks", "1 link"),
        ("wacz", "page.wacz"),
        ("screenshot", "screenshot.png"),
        ("dom", "output.html"),
        ("pdf", "output.pdf"),
        ("headers", "headers.json"),
    ];
    snap.select("chromium");
    let early = hooks.map(|(hook, _)| snap.spawn(hook, &url, &[], Stdio::piped()));
    assert_eq!(session.open(&snap, &url, &[]), "page loaded http=200\n");
    for ((hook, output), early) in hooks.into_iter().zip(early) {
        let ended = early.wait_with_output().unwrap();
        let text = String::from_utf8(ended.stdout).unwrap();
        let ran = snap.ran(ended.status.code(), &text, Duration::ZERO);
        assert_eq!(ran.result()["status"], "succeeded", "{hook}: {text}");
        ran.assert(0, "succeeded", output);
    }
    let requests = site.requests();
    let of_page = requests.iter().filter(|path| path.ends_with("/js-title"));
    assert_eq!(of_page.count(), 1, "{requests:?}");
}

#[test]
fn browser_loads_no_page_but_that_of_the_tab() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let mut session = Session::start(&snap, &[]);
    let url = site.url("page/1");
    session.open(&snap, &url, &[]);
    let screenshot = snap.run("screenshot", &url, &[]);
    screenshot.assert(0, "succeeded", "screenshot.png");
    let all = json!({"id": 1, "method": "Target.getTargets", "params": {"filter": [{}]}});
    let all = ask(&snap, &all);
    let targets = all["result"]["targetInfos"].as_array().unwrap();
    let pages = targets.iter().filter(|target| target["type"] == "page");
    assert_eq!(pages.count(), 1, "{targets:#?}");
    let others = targets.iter().filter(|target| target["url"] != url.as_str());
    assert_eq!(others.count(), 0, "{targets:#?}");
    // The browser runs on without a page.
    session.tab().stopped(&snap);
    let next = site.url("page/2");
    assert_eq!(session.open(&snap, &next, &[]), "page loaded http=200\n");
}

#[test]
fn browser_asks_no_host_but_that_of_the_page() {
    if !has(&["chromium"]) {
        return;
    }
    let snap = Snapshot::new();
    let proxy = Proxy::start();
    let arguments =
        json!([format!("--proxy-server={}", proxy.address), "--proxy-bypass-list=<-loopback>"]);
    let mut session = Session::start(&snap, &[("CHROME_ARGS_EXTRA", &arguments.to_string())]);
    assert_eq!(session.open(&snap, "http://page.test/", &[]), "page loaded http=200\n");
    session.tab().stopped(&snap);
    let asked = proxy.asked.lock().unwrap();
    assert!(asked.contains("page.test"), "{asked:?}");
    assert_eq!(asked.len(), 1, "{asked:?}");
}

/// A proxy that answers for `page.test`, and notes which hosts it is asked for.
struct Proxy {
    address: SocketAddr,
    asked: Arc<Mutex<BTreeSet<String>>>,
}

impl Proxy {
    fn start() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy { address: listener.local_addr().unwrap(), asked: Arc::default() };
        let asked = proxy.asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, asked) = (stream.unwrap(), asked.clone());
                std::thread::spawn(move || Proxy::answer(stream, &asked));
            }
        });
        proxy
    }

    fn answer(mut stream: TcpStream, asked: &Mutex<BTreeSet<String>>) {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let Some(Ok(request)) = lines.next() else {
            return;
        };
        let rest = lines.map_while(Result::ok);
        rest.take_while(|line| !line.is_empty()).for_each(drop);
        let target = request.split(' ').nth(1).unwrap_or_default();
        let host = target.trim_start_matches("http://");
        let host = host.split(['/', ':']).next().unwrap_or_default().to_owned();
        let is_page = host == "page.test";
        asked.lock().unwrap().insert(host);
        // Chromium asks other hosts when it opens its first page: the picture comes after that.
        if target.ends_with("/late.png") {
            std::thread::sleep(Duration::from_secs(2));
        }
        let body = "<!doctype html><title>Page</title><p>Text<img src=late.png>";
        let head = if is_page { "200 OK" } else { "502 Bad Gateway" };
        let answer = format!(
            "HTTP/1.1 {head}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        // The browser may have closed the connection.
        let _ = stream.write_all(answer.as_bytes());
    }
}

/// The answer of the crawl's browser to a request.
fn ask(snap: &Snapshot, request: &Value) -> Value {
    let mut browser = UnixStream::connect(snap.crawl().join("chromium/cdp.sock")).unwrap();
    browser.write_all(format!("{request}\0").as_bytes()).unwrap();
    for message in BufReader::new(browser).split(0) {
        let message: Value = serde_json::from_slice(&message.unwrap()).unwrap();
        if message["id"] == request["id"] {
            return message;
        }
    }
    panic!("the browser closed the connection");
}

#[test]
fn every_page_ends() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let mut session = Session::start(&snap, &[]);
    let limit = [("TIMEOUT", "10")];
    let mut page = |path: &str, hook: &str| {
        let url = site.url(path);
        session.open(&snap, &url, &limit);
        snap.run(hook, &url, &limit)
    };
    let endless = page("endless", "screenshot");
    endless.assert(0, "succeeded", "screenshot.png");
    let note = endless.result()["note"].as_str().unwrap_or_default();
    assert!(note.contains("still loading"), "{note}");
    page("slow-image", "pdf").assert(0, "succeeded", "output.pdf");
    page("js-forever", "dom").assert(0, "succeeded", "output.html");
    page("missing", "dom").assert(0, "succeeded", "output.html");
    page("download", "pdf").assert(0, "noresults", "not a page: application/octet-stream");
    page("document.pdf", "screenshot").assert(0, "noresults", "not a page: application/pdf");
    let looping = "failed to load the page in chromium: net::ERR_TOO_MANY_REDIRECTS";
    page("redirect-loop", "dom").assert(10, "skipped", looping);
    let hanging = page("hang", "dom");
    let reason = hanging.result()["output_str"].as_str().unwrap_or_default();
    assert!(reason.starts_with("the page did not answer within"), "{reason}");
    assert_eq!(hanging.exit, Some(10));
    assert!(hanging.elapsed < busy(10), "{:?}", hanging.elapsed);
}

/// The page answers after three seconds.
#[test]
fn a_slow_server_gets_the_time_of_the_setting_that_the_reason_names() {
    let site = Site::start();
    let url = site.url("slow?s=3");
    let short = [("TIMEOUT", "20"), ("ANSWER_TIMEOUT", "1")];
    let long = [("TIMEOUT", "20"), ("ANSWER_TIMEOUT", "9")];
    if has(&["chromium"]) {
        let snap = Snapshot::new();
        let mut session = Session::start(&snap, &[]);
        session.open(&snap, &url, &short);
        let reason = "the page did not answer within 1 s (ANSWER_TIMEOUT= allows more)";
        snap.run("dom", &url, &short).assert(10, "skipped", reason);
        session.open(&snap, &url, &long);
        snap.run("dom", &url, &long).assert(0, "succeeded", "output.html");
    }
    let has_reason = |ran: &Ran| {
        let reason = ran.result()["output_str"].as_str().unwrap_or_default();
        assert!(reason.ends_with("(ANSWER_TIMEOUT= allows more)"), "{reason}");
    };
    if has(&["curl"]) {
        let snap = Snapshot::new();
        has_reason(&snap.run("headers", &url, &[("TIMEOUT", "2")]));
        snap.run("headers", &url, &long).assert(0, "succeeded", "headers.json");
    }
    if has(&["wget"]) {
        let snap = Snapshot::new();
        has_reason(&snap.run("wget", &url, &short));
        assert_eq!(snap.run("wget", &url, &long).result()["status"], "succeeded");
    }
}

#[test]
fn dialogs_are_dismissed_and_cookies_are_not_shared() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap, other) = (Site::start(), Snapshot::new(), Snapshot::new());
    let mut session = Session::start(&snap, &[]);
    let crawl = snap.file("crawl");
    let settings = [("CRAWL_DIR", crawl.to_str().unwrap())];
    let url = site.url("dialogs");
    for snapshot in [&snap, &other] {
        // The page counts its visits in a cookie and opens dialogs continuously.
        assert_eq!(session.open(snapshot, &url, &settings), "page loaded http=200\n");
        snapshot.run("dom", &url, &[]).assert(0, "succeeded", "output.html");
        let html = String::from_utf8(snapshot.read("dom/output.html")).unwrap();
        assert!(html.contains("seen 1 times"), "{html}");
    }
}

#[test]
fn cookie_file_is_loaded_before_the_first_navigation() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let mut session = Session::shared(&snap, &[]);
    let file = snap.file("cookies.txt");
    let line = "#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tclub\tmember\n";
    std::fs::write(&file, line).unwrap();
    let url = site.url("club");
    session.open(&snap, &url, &[("COOKIES_FILE", file.to_str().unwrap())]);
    snap.run("title", &url, &[]).assert(0, "succeeded", "Club: MEMBER");
    session.open(&snap, &url, &[]);
    snap.run("title", &url, &[]).assert(0, "succeeded", "Club: GUEST");
}

#[test]
fn each_snapshot_may_have_its_own_browser() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let own = [("CHROME_ISOLATION", "snapshot")];
    let reason = "CHROMIUM_ISOLATION=snapshot: every snapshot has its own browser";
    snap.run("chromium_launch", "", &own).assert(10, "skipped", reason);
    let url = site.url("page/1");
    let tab = snap.daemon("chromium_tab", &url, &own);
    assert_eq!(tab.text, "page loaded http=200\n");
    snap.run("screenshot", &url, &[]).assert(0, "succeeded", "screenshot.png");
    let product = snap.json("chromium/browser.json")["product"].clone();
    assert!(product.as_str().unwrap().starts_with("Chrome/"), "{product}");
    tab.stopped(&snap).assert(0, "succeeded", "page loaded http=200");
}

#[test]
fn crashed_browser_fails_all_hooks_that_use_it() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let mut session = Session::start(&snap, &[]);
    let url = site.url("page/1");
    session.open(&snap, &url, &[]);
    let browser = child_of(session.browser().pid());
    nix::sys::signal::kill(browser, nix::sys::signal::SIGKILL).unwrap();
    let (exit, text) = session.tab().ended();
    assert_eq!(exit, Some(1), "{text}");
    assert!(text.contains("lost the connection to chromium: the browser closed it"), "{text}");
    let (exit, text) = session.take_browser().ended();
    assert_eq!(exit, Some(1), "{text}");
    assert!(text.contains("chromium was killed (SIGKILL)"), "{text}");
    let late = snap.run("chromium_tab", &url, &[]);
    late.assert(1, "failed", "the crawl's browser: chromium was killed (SIGKILL)");
    let screenshot = snap.run("screenshot", &url, &[]);
    screenshot.assert(10, "skipped", "the crawl's browser: chromium was killed (SIGKILL)");
    assert!(screenshot.elapsed < busy(5));
}

#[test]
fn crashing_and_busy_pages_do_not_affect_other_pages() {
    if !has(&["chromium", "curl"]) {
        return;
    }
    let (site, snap) = (Site::start(), Snapshot::new());
    let mut session = Session::start(&snap, &[]);
    let limit = [("TIMEOUT", "10")];
    let busy = site.url("busy");
    let text = session.open(&snap, &busy, &limit);
    assert_eq!(text, "page loaded http=200, a script that did not end was stopped\n");
    // Its script was stopped, so the page can be saved.
    snap.run("dom", &busy, &[("TIMEOUT", "3")]).assert(0, "succeeded", "output.html");
    snap.run("title", &busy, &[("TIMEOUT", "6")]).assert(0, "succeeded", "Busy page");

    let url = site.url("page/1");
    session.open(&snap, &url, &[]);
    for renderer in renderers_below(session.browser().pid()) {
        let _ = nix::sys::signal::kill(renderer, nix::sys::signal::SIGKILL);
    }
    let (exit, text) = session.tab().ended();
    assert_eq!(exit, Some(1), "{text}");
    assert!(text.contains("the page's renderer process crashed"), "{text}");
    let late = snap.run("screenshot", &url, &[]);
    late.assert(1, "failed", "the tab of the page is closed");
    // The browser still works.
    assert_eq!(session.open(&snap, &url, &[]), "page loaded http=200\n");
}

/// Processes of pages at any depth below a browser.
fn renderers_below(pid: i32) -> Vec<nix::unistd::Pid> {
    let file = |pid: i32, name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}"));
    let (mut open, mut found) = (vec![pid], Vec::new());
    while let Some(pid) = open.pop() {
        if file(pid, "cmdline").is_ok_and(|line| line.contains("--type=renderer")) {
            found.push(nix::unistd::Pid::from_raw(pid));
        }
        let children = file(pid, &format!("task/{pid}/children")).unwrap_or_default();
        open.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
    assert!(!found.is_empty(), "a browser without renderers");
    found
}

/// The only child process of a process.
fn child_of(pid: i32) -> nix::unistd::Pid {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    nix::unistd::Pid::from_raw(children.trim().parse().unwrap())
}
