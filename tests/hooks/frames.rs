//! Frames of a page in its saved DOM and among its links.

use crate::fixture::{Session, Site, Snapshot, WebServer, busy, has};

/// A browser with one tab, and the server of its pages.
struct Bed {
    session: Session,
    web: WebServer,
    snap: Snapshot,
}

impl Bed {
    fn start() -> Option<Bed> {
        if !has(&["chromium"]) {
            return None;
        }
        let snap = Snapshot::new();
        Some(Bed { session: Session::shared(&snap, &[]), web: WebServer::start("54-frames"), snap })
    }

    /// Opens a page and saves its DOM. Returns it with the note of the result.
    fn save(&mut self, path: &str) -> (String, String) {
        let url = self.web.url(path);
        self.session.open(&self.snap, &url, &[]);
        let ran = self.snap.run("dom", &url, &[]);
        ran.assert(0, "succeeded", "output.html");
        assert!(ran.elapsed < busy(30), "{:?}", ran.elapsed);
        let note = ran.result()["note"].as_str().unwrap_or_default().to_owned();
        let html = String::from_utf8(self.snap.read("dom/output.html")).unwrap();
        (html, note)
    }

    fn links(&self, path: &str) -> Vec<String> {
        let ran = self.snap.run("outlinks", &self.web.url(path), &[]);
        let links = ran.records.iter().filter_map(|record| record["url"].as_str());
        links.map(str::to_owned).collect()
    }
}

#[test]
fn frames_of_all_sites_are_in_the_dom_and_their_links_in_outlinks() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    let (html, note) = bed.save("/");
    assert_eq!(note, "");
    for text in
        ["<p>OF THE OTHER SITE</p>", "OF THE SAME SITE \"quoted\" &lt;b&gt;", "<p>IN SRCDOC</p>"]
    {
        let escaped = text
            .replace('&', "&amp;")
            .replace('"', "&quot;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        assert!(html.contains(&escaped), "{escaped}: {html}");
    }
    assert!(html.contains("TWO DEEP"), "{html}");
    assert!(html.contains("data-archivist-src=\"/dir/same\""), "{html}");
    assert_eq!(html.matches("sandbox=\"\" srcdoc=\"").count(), 3, "{html}");
    assert!(html.contains("<!-- <iframe src='http"), "{html}");
    let here = bed.web.url("");
    let other = here.replace("127.0.0.1", "localhost");
    let expected = [
        format!("{other}/dir/by-other"),
        format!("{here}/dir/by-inner"),
        format!("{here}/else/by-same"),
        format!("{here}/by-srcdoc"),
        format!("{other}/dir/other"),
        format!("{here}/dir/same"),
        format!("{other}/last"),
        format!("{here}/last"),
    ];
    let links = bed.links("/");
    for link in &expected {
        assert!(links.contains(link), "{link}: {links:?}");
    }
    // The tab has the same links.
    std::fs::remove_file(bed.snap.file("dom/output.html")).unwrap();
    assert_eq!(bed.links("/"), links);
}

#[test]
fn frames_beyond_the_limits_are_counted() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    let (html, note) = bed.save("/many");
    // A busy machine may read fewer in the time for all.
    let count = html.matches("SMALL").count();
    assert!((5..=50).contains(&count), "{count}");
    let left_out = 60 - count;
    assert_eq!(note, format!("{left_out} frames are not in the saved page"));
    let (_, note) = bed.save("/itself");
    assert_eq!(note, "1 frame is not in the saved page");
    let (html, note) = bed.save("/shadow");
    assert!(html.contains("OF THE SAME SITE"), "{html}");
    assert_eq!(note, "");
}

/// A frame of another site whose script does not end holds neither the page nor its other frames.
#[test]
fn busy_frame_is_left_out() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    let (html, note) = bed.save("/busy");
    assert!(html.contains("OF THE SAME SITE"), "{html}");
    assert!(note.contains("1 frame is not in the saved page"), "{note}");
}

/// The files of an earlier visit stay until a hook replaces them.
#[test]
fn title_is_that_of_this_visit() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    let url = bed.web.url("/visits");
    bed.save("/visits");
    let title =
        |bed: &Bed, title: &str| bed.snap.run("title", &url, &[]).assert(0, "succeeded", title);
    title(&bed, "visit 1");
    bed.session.open(&bed.snap, &url, &[]);
    title(&bed, "visit 2");
}

/// Chromium puts pages of its own into frames: the viewer of a PDF, and what it says about an error.
#[test]
fn pages_of_the_browser_are_no_frames_of_the_page() {
    if !has(&["chromium"]) {
        return;
    }
    let (site, snap) = (Site::of_kinds(), Snapshot::new());
    let mut session = Session::shared(&snap, &[]);
    let url = site.url("papers");
    session.open(&snap, &url, &[]);
    let ran = snap.run("dom", &url, &[]);
    ran.assert(0, "succeeded", "output.html");
    let html = String::from_utf8(snap.read("dom/output.html")).unwrap();
    for own in ["chrome-extension:", "chrome-error:", "ERR_CONNECTION", "srcdoc="] {
        assert!(!html.contains(own), "{own} in {html}");
    }
    for source in ["/paper.pdf?frame", "/pieces.pdf", "http://127.0.0.1:10/"] {
        assert!(html.contains(&format!("<iframe src=\"{source}\"")), "{source} not in {html}");
    }
}
