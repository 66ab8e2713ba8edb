//! Kinds of pages that users of other archivers have reported (tests/web/README.md, second table).

use crate::fixture::{Session, Snapshot, WebServer, has};
use crate::recording::recorded;
use crate::replay::has_wall;
use std::process::Command;

/// A browser with one tab, and the server of its pages.
struct Bed {
    session: Session,
    web: WebServer,
    snap: Snapshot,
}

impl Bed {
    fn start(case: &str) -> Option<Bed> {
        if !has(&["chromium"]) {
            return None;
        }
        let snap = Snapshot::new();
        Some(Bed { session: Session::shared(&snap, &[]), web: WebServer::start(case), snap })
    }

    fn open(&mut self, path: &str) -> String {
        self.session.open(&self.snap, &self.web.url(path), &[])
    }

    /// Runs a hook, which must succeed. Returns the text of its file.
    #[track_caller]
    fn saved(&self, hook: &str, path: &str) -> String {
        let ran = self.snap.run(hook, &self.web.url(path), &[]);
        let result = ran.result();
        assert_eq!(result["status"], "succeeded", "{path}: {result}");
        let file = format!("{hook}/{}", result["output_str"].as_str().unwrap());
        String::from_utf8_lossy(&self.snap.read(&file)).into_owned()
    }

    /// Status and text of the result of a hook.
    fn result(&self, hook: &str, path: &str) -> (String, String) {
        let ran = self.snap.run(hook, &self.web.url(path), &[]);
        let text = |name: &str| ran.result()[name].as_str().unwrap().to_owned();
        (text("status"), text("output_str"))
    }

    /// Number of pixels of the screenshot that are pure red, and those that are pure blue.
    fn colours(&self, path: &str) -> (usize, usize) {
        self.saved("screenshot", path);
        let bytes = self.snap.read("screenshot/screenshot.png");
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let samples = reader.next_frame(&mut pixels).unwrap().color_type.samples();
        let count = |colour: [u8; 3]| {
            let own = pixels.chunks(samples).filter(|pixel| pixel[..3] == colour);
            own.count()
        };
        (count([255, 0, 0]), count([0, 0, 255]))
    }

    /// Text of the PDF. `None` if it cannot be read here.
    fn printed(&self, path: &str) -> Option<String> {
        self.saved("pdf", path);
        if !has(&["pdftotext"]) {
            return None;
        }
        let file = self.snap.file("pdf/output.pdf");
        let done = Command::new("pdftotext").args([file.as_os_str(), "-".as_ref()]).output();
        Some(String::from_utf8_lossy(&done.unwrap().stdout).into_owned())
    }
}

#[test]
fn pages_look_as_they_do_on_a_screen() {
    let Some(mut bed) = Bed::start("60-looks") else {
        return;
    };
    // Least and most red pixels of the screenshot, and text of the PDF.
    for (path, least, most, text) in [
        ("/late-font", 14_000, 20_000, "XXXXXXXXXX"),
        ("/script-font", 14_000, 20_000, "XXXXXXXXXX"),
        ("/scheme", 20_000, 20_000, "SHOWN"),
        ("/hero", 2_800_000, 2_880_000, "END OF PAGE"),
        ("/sticky", 70_000, 72_000, "END OF PAGE"),
        ("/appear", 100_000, 144_000, "APPEARED"),
        ("/visibility", 50_000, 60_000, "SECTION11"),
        ("/drawing", 60_000, 60_000, ""),
        ("/webgl", 30_000, 30_000, ""),
        ("/styled", 38_000, 40_000, "INSIDE"),
        ("/formula", 0, 0, "7351"),
        ("/picture", 20_000, 2_000_000, ""),
        ("/background", 130_000, 144_000, "WHITE ON RED"),
    ] {
        assert_eq!(bed.open(path), "page loaded http=200\n", "{path}");
        let (red, blue) = bed.colours(path);
        assert!(red >= least && red <= most, "{path}: {red} red pixels");
        assert!(blue < 1000 || path == "/sticky", "{path}: {blue} blue pixels");
        let printed = bed.printed(path);
        assert!(printed.is_none_or(|all| all.contains(text)), "{path}");
    }
}

/// What stays in view would cover the text of each sheet.
#[test]
fn fixed_elements_are_printed_once() {
    let Some(mut bed) = Bed::start("60-looks") else {
        return;
    };
    bed.open("/sticky");
    let before = bed.saved("dom", "/sticky");
    let printed = bed.printed("/sticky");
    assert!(printed.is_none_or(|text| text.matches("FIXED").count() == 1));
    assert_eq!(bed.saved("dom", "/sticky"), before);
}

#[test]
fn document_has_the_state_of_the_page() {
    let Some(mut bed) = Bed::start("60-looks") else {
        return;
    };
    for (path, parts) in [
        ("/styled", &["data-archivist-rules", ".b { background: rgb(255, 0, 0); }", ".c {"][..]),
        (
            "/form",
            &[
                "value=\"TYPED\"",
                "type=\"checkbox\" checked=\"\"",
                "id=\"d\" type=\"checkbox\">",
                ">WRITTEN</textarea>",
                "<option selected=\"\">two",
                "type=\"password\">",
            ],
        ),
        ("/drawing", &["background: url(", "data:image/png;base64,"]),
    ] {
        bed.open(path);
        let html = bed.saved("dom", path);
        for part in parts {
            assert!(html.contains(part), "{path}: no {part} in {html}");
        }
        assert!(!html.contains("value=\"SECRET\""), "{html}");
        // The page itself stays as it was.
        assert_eq!(bed.saved("dom", path), html);
        let (red, _) = bed.colours(path);
        assert!(red >= 38_000 || path == "/form", "{path}: {red} red pixels");
    }
}

#[test]
fn policies_of_pages_do_not_keep_them_from_being_saved() {
    let Some(mut bed) = Bed::start("61-policies") else {
        return;
    };
    for path in [
        "/no-scripts",
        "/sandbox",
        "/trusted-types",
        "/isolated",
        "/own-policy",
        "/integrity",
        "/hotlink",
        "/members",
        "/a/b/base",
    ] {
        let text = bed.open(path);
        assert!(text.starts_with("page loaded http=200"), "{path}: {text}");
        assert!(bed.saved("dom", path).contains("SHOWN"), "{path}");
        let (red, _) = bed.colours(path);
        assert!(red >= 19_800, "{path}: {red} red pixels");
        let printed = bed.printed(path);
        assert!(printed.is_none_or(|text| text.contains("SHOWN")), "{path}");
    }
    bed.open("/modules");
    let html = bed.saved("dom", "/modules");
    assert!(html.contains("IMPORTED LATE CHUNK"), "{html}");
    bed.open("/frameset");
    let printed = bed.printed("/frameset");
    assert!(printed.is_none_or(|text| text.contains("MENU") && text.contains("MAIN")));
}

/// A server that asks for a password has a page that says so.
#[test]
fn page_of_a_login_is_saved() {
    let Some(mut bed) = Bed::start("61-policies") else {
        return;
    };
    assert_eq!(bed.open("/login"), "page loaded http=401\n");
    let html = bed.saved("dom", "/login");
    assert!(html.contains("LOG IN FIRST"), "{html}");
}

/// The copy on disk is shown as the page is: whatever its author says about hosts and checksums.
#[test]
fn copies_are_not_bound_to_their_server() {
    if !has(&["wget"]) {
        return;
    }
    let web = WebServer::start("61-policies");
    let saved = |path: &str| {
        let snap = Snapshot::new();
        let ran = snap.run("wget", &web.url(path), &[]);
        let file = ran.result()["output_str"].as_str().unwrap().to_owned();
        assert_eq!(ran.result()["note"].as_str(), None, "{path}");
        String::from_utf8(snap.read(&format!("wget/{file}"))).unwrap()
    };
    let policy = saved("/own-policy");
    assert!(policy.contains("content-security-policy data-content="), "{policy}");
    let integrity = saved("/integrity");
    assert!(integrity.contains(" data-integrity=sha256-"), "{integrity}");
    assert!(integrity.contains(" data-crossorigin"), "{integrity}");
    let page = saved("/no-script-refresh");
    assert!(page.contains("SHOWN"), "{page}");
    assert!(page.contains("refresh data-content="), "{page}");
    let base = saved("/a/b/base");
    assert!(base.contains("src=\"../../red.png\""), "{base}");
}

#[test]
fn huge_pages_are_saved() {
    let Some(mut bed) = Bed::start("62-huge") else {
        return;
    };
    for (path, end, links) in [
        ("/megabytes", "END OF PAGE", "noresults"),
        ("/rows", "END OF PAGE", "50 links"),
        ("/nested", "INNERMOST", "1 link"),
        ("/built", "INNERMOST", "1 link"),
        ("/one-line", "END OF PAGE", "noresults"),
        ("/attributes", "END OF PAGE", "noresults"),
    ] {
        let text = bed.open(path);
        assert!(text.starts_with("page loaded http=200"), "{path}: {text}");
        assert!(bed.saved("dom", path).contains(end), "{path}");
        let (status, output) = bed.result("outlinks", path);
        assert!([status, output].contains(&links.to_owned()), "{path}");
        assert_eq!(bed.result("title", path).1, "huge", "{path}");
    }
}

#[test]
fn documents_are_read_whatever_their_type_says() {
    let Some(mut bed) = Bed::start("63-types") else {
        return;
    };
    for path in [
        "/no-type",
        "/plain",
        "/twice",
        "/broken.xhtml",
        "/good.xhtml",
        "/nul",
        "/wide.txt",
        "/svg-title",
        "/camera",
        "/a;b=1;c",
        "/a//b",
        "/a|b",
        "/c'd",
        "/e(f)",
        "/g$h!*",
        "/i@j:k",
    ] {
        assert_eq!(bed.open(path), "page loaded http=200\n", "{path}");
        assert!(bed.saved("dom", path).contains("SHOWN"), "{path}");
    }
    for (path, reason) in [
        ("/document.pdf", "not a page: application/pdf"),
        ("/sound", "not a page: audio/wav"),
        ("/octets", "not a page: application/octet-stream"),
        ("/attached", "not a page: the server offers a download"),
    ] {
        bed.open(path);
        let finding = ("noresults".to_owned(), reason.to_owned());
        assert_eq!(bed.result("pdf", path), finding, "{path}");
    }
    bed.open("/picture");
    assert_eq!(bed.colours("/picture").0, 20_000);
}

#[test]
fn titles_and_icons_are_those_of_browsers() {
    if !has(&["curl"]) {
        return;
    }
    let web = WebServer::start("63-types");
    let run = |hook: &str, path: &str| {
        let snap = Snapshot::new();
        let ran = snap.run(hook, &web.url(path), &[]);
        ran.result()["output_str"].as_str().unwrap().to_owned()
    };
    for (path, title) in [
        ("/svg-title", "RIGHT"),
        ("/empty-title", "the page has no title"),
        ("/tag-title", "It starts with a <textarea> & ends"),
        ("/good.xhtml", "types & more"),
    ] {
        assert_eq!(run("title", path), title, "{path}");
    }
    assert_eq!(run("title", "/long-title").chars().count(), 1024);
    assert_eq!(run("favicon", "/svg-icon"), "favicon.svg");
    assert_eq!(run("favicon", "/data-icon"), "favicon.svg");
    assert_eq!(run("headers", "/head-405"), "headers.json");
}

/// A page shows a line for each request that was answered as wanted.
#[test]
fn replays_answer_as_the_server_did() {
    if !has_wall() {
        return;
    }
    let web = WebServer::start("66-replay");
    for (path, lines) in [
        ("/turns", 4),
        ("/kinds", 15),
        ("/next", 1),
        ("/stored", 1),
        ("/goes", 1),
        ("/posts", 1),
        ("/refused", 1),
    ] {
        let (snap, url) = (Snapshot::new(), web.url(path));
        snap.select("wacz");
        let mut session = Session::shared(&snap, &[]);
        session.open(&snap, &url, &[]);
        snap.run("wacz", &url, &[]).assert(0, "succeeded", "page.wacz");
        session.tab().stopped(&snap);
        let text = recorded(&snap).text();
        let is_right = |line: &&str| line.ends_with(": RIGHT");
        assert_eq!(text.lines().filter(is_right).count(), lines, "{path}: {text}");
        let ran = snap.run("verify", &url, &[("VERIFY_ENABLED", "true")]);
        ran.assert(0, "succeeded", "verify.json");
        let proof = snap.json("verify/verify.json");
        assert_eq!((&proof["text"], &proof["resources"]), (&1.0.into(), &1.0.into()), "{proof}");
        assert_eq!(proof["requests"]["fuzzy"], 0, "{proof}");
    }
}
