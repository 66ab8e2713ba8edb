//! When is a page there? Pages of `tests/web` in a real browser.

use crate::fixture::{Session, Snapshot, WebServer, busy, has};
use std::time::{Duration, Instant};

/// Time in which a page is there whose requests do not end, also on a busy machine: their limits are up to
/// five seconds, and the server holds them for a minute.
const ARRIVAL_MAX: Duration = Duration::from_secs(12);

/// A browser with one tab, and the server of its pages.
struct Bed {
    session: Session,
    web: WebServer,
    snap: Snapshot,
}

impl Bed {
    fn start(name: &str) -> Option<Bed> {
        if !has(&["chromium"]) {
            return None;
        }
        let snap = Snapshot::new();
        Some(Bed { session: Session::shared(&snap, &[]), web: WebServer::start(name), snap })
    }

    /// Opens a page. Returns what its hook printed first, and the time that it took.
    fn open(&mut self, path: &str) -> (String, Duration) {
        let begin = Instant::now();
        let text = self.session.open(&self.snap, &self.web.url(path), &[]);
        (text, begin.elapsed())
    }

    fn save(&self, hook: &str, path: &str) -> crate::fixture::Ran {
        self.snap.run(hook, &self.web.url(path), &[])
    }

    fn dom(&self, path: &str) -> String {
        self.save("dom", path).assert(0, "succeeded", "output.html");
        String::from_utf8(self.snap.read("dom/output.html")).unwrap()
    }

    fn navigation(&self, field: &str) -> String {
        let value = &self.snap.json("chromium/navigation.json")[field];
        value.as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn requests_that_do_not_end_do_not_hold_the_page() {
    let Some(mut bed) = Bed::start("12-event-stream") else {
        return;
    };
    let ignored = [
        ("/", "(event stream)"),
        ("/longpoll", "/hold"),
        ("/endless-fetch", "/hang"),
        ("/beacon", "(beacon)"),
        ("/late-image", "/hold"),
        ("/stream-then-data", "(event stream)"),
    ];
    for (path, note) in ignored {
        let (text, took) = bed.open(path);
        println!("{path}: {text:?} {took:?}");
        assert!(text.contains("ignored 1 request"), "{path}: {text}");
        assert!(text.contains(note), "{path}: {text}");
        assert!(took < ARRIVAL_MAX, "{path}: {took:?}");
        assert!(bed.dom(path).contains("CONTENT READY"), "{path}");
    }
    assert!(bed.dom("/stream-then-data").contains("DATA ARRIVED"));
    for path in ["/plain", "/poll", "/socket", "/worker"] {
        let (text, took) = bed.open(path);
        println!("{path}: {text:?} {took:?}");
        assert_eq!(text, "page loaded http=200\n", "{path}");
        assert!(took < ARRIVAL_MAX, "{path}: {took:?}");
        assert!(bed.dom(path).contains("CONTENT READY"), "{path}");
    }
    let (text, took) = bed.open("/dead-image");
    assert!(text.contains("ignored 1 request"), "{text}");
    assert!(took < ARRIVAL_MAX, "{took:?}");
    assert!(bed.dom("/dead-image").contains("CONTENT READY"));
}

#[test]
fn page_that_goes_elsewhere_is_saved_where_it_ends() {
    let Some(mut bed) = Bed::start("24-client-redirects") else {
        return;
    };
    let paths = [
        "/meta",
        "/meta-slow",
        "/script",
        "/script-late",
        "/script-last-moment",
        "/other-host",
        "/post",
        "/refresh-header",
        "/chain/1",
    ];
    for path in paths {
        let (text, took) = bed.open(path);
        println!("{path}: {text:?} {took:?}");
        let last = bed.navigation("finalUrl");
        assert!(last.ends_with("/dir/target"), "{path}: {last}");
        assert!(bed.dom(path).contains("TARGET BODY"), "{path}");
        bed.save("title", path).assert(0, "succeeded", "TARGET");
        let links = bed.save("outlinks", path);
        let link = links.records[0]["url"].as_str().unwrap();
        assert!(link.ends_with("/dir/rel"), "{path}: {link}");
    }
    bed.open("/push-state");
    assert!(bed.navigation("finalUrl").ends_with("/dir/pushed"));
    bed.open("/dead-end");
    let error = bed.navigation("error");
    assert!(error.contains("http://127.0.0.1:1/"), "{error}");
    bed.open("/download-later");
    assert!(bed.navigation("finalUrl").ends_with("/download-later"));
}

#[test]
fn page_that_reloads_itself_is_saved_once() {
    let Some(mut bed) = Bed::start("24-client-redirects") else {
        return;
    };
    for path in ["/reload", "/meta-reload", "/counter"] {
        let (text, took) = bed.open(path);
        println!("{path}: {text:?} {took:?}");
        assert!(text.starts_with("page loaded http=200"), "{path}: {text}");
        assert!(bed.dom(path).contains("AGAIN"), "{path}");
        bed.save("pdf", path).assert(0, "succeeded", "output.pdf");
        bed.save("screenshot", path).assert(0, "succeeded", "screenshot.png");
    }
    bed.open("/cookie-wall");
    assert!(bed.dom("/cookie-wall").contains("BEHIND THE WALL"));
}

#[test]
fn answers_without_a_page_have_a_reason() {
    let Some(mut bed) = Bed::start("21-no-content") else {
        return;
    };
    let reasons = [
        ("/204", 0, "the answer has no content (204)"),
        ("/205", 0, "the answer has no content (205)"),
        ("/304", 0, "the answer has no content (304)"),
        ("/empty", 0, "the answer has no content (200)"),
        ("/empty-chunked", 0, "the answer has no content (200)"),
        ("/404", 10, "the answer has no content (404)"),
        ("/503", 10, "the answer has no content (503)"),
        ("/false-gzip", 10, "the answer has no content: net::ERR_CONTENT_DECODING_FAILED"),
    ];
    for (path, exit, reason) in reasons {
        let (_, took) = bed.open(path);
        println!("{path}: {took:?}");
        // Nothing is waited for until a time limit.
        assert!(took < busy(10), "{path}: {took:?}");
        for hook in ["pdf", "dom", "standalone"] {
            let status = if exit == 0 { "noresults" } else { "skipped" };
            bed.save(hook, path).assert(exit, status, reason);
        }
    }
    for path in ["/short", "/cut-chunk"] {
        let (text, took) = bed.open(path);
        println!("{path}: {text:?} {took:?}");
        assert!(text.contains("the answer ended early"), "{path}: {text}");
        assert!(took < busy(2), "{path}: {took:?}");
        assert!(bed.dom(path).contains("shown"), "{path}");
    }
    for (path, status) in [("/206", 206), ("/300", 300), ("/301", 301), ("/error-page", 404)] {
        let (text, _) = bed.open(path);
        assert_eq!(text, format!("page loaded http={status}\n"));
        assert!(bed.dom(path).contains("shown"), "{path}");
    }
}

#[test]
fn endless_scripts_and_dialogs_are_stopped() {
    let Some(mut bed) = Bed::start("17-memory-page") else {
        return;
    };
    // The dialogs take 5 s; concurrently with other browsers they took 24 s.
    let pages = [
        ("/alerts", 45, "dialogs"),
        ("/alerts-later", 45, "dialogs"),
        ("/spin", 15, "a script that did not end was stopped"),
        ("/late-spin", 8, "a script that did not end was stopped"),
    ];
    for (path, seconds, note) in pages {
        let (text, took) = bed.open(path);
        println!("{path}: {text:?} {took:?}");
        assert!(text.contains(note), "{path}: {text}");
        assert!(took < busy(seconds), "{path}: {took:?}");
        assert!(bed.dom(path).contains("shown"), "{path}");
        bed.save("screenshot", path).assert(0, "succeeded", "screenshot.png");
    }
    bed.open("/good");
    assert!(bed.dom("/good").contains("good page"));
}

#[test]
fn odd_pages_are_saved_and_printed() {
    let Some(mut bed) = Bed::start("41-odd-pages") else {
        return;
    };
    let paths = [
        "/service-worker",
        "/other-site",
        "/media",
        "/prints",
        "/opens",
        "/prompts",
        "/writes",
        "/blob",
        "/mail",
        "/data",
        "/stays",
        "/framed",
        "/animated",
        "/webgl",
        "/xml",
        "/json",
        "/text",
        "/drawing",
    ];
    for path in paths {
        let (text, took) = bed.open(path);
        println!("{path}: {text:?} {took:?}");
        if path != "/media" {
            assert_eq!(text, "page loaded http=200\n", "{path}");
        }
        assert!(took < busy(7), "{path}: {took:?}");
        assert!(bed.dom(path).contains("SHOWN"), "{path}");
        bed.save("pdf", path).assert(0, "succeeded", "output.pdf");
    }
    bed.open("/blank");
    bed.save("pdf", "/blank").assert(10, "skipped", "the page went to about:blank");
}
