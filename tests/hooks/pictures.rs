//! What is in the picture and in the PDF of a page: pages of `tests/web` in a real browser.

use crate::fixture::{Session, Snapshot, WebServer, busy, has};

/// A browser with one tab, and the server of its pages.
struct Bed {
    session: Session,
    web: WebServer,
    snap: Snapshot,
}

/// A screenshot.
struct Picture {
    width: u32,
    height: u32,
    /// Pixels that are pure red, as the pictures of the server are.
    red: usize,
}

impl Bed {
    fn start() -> Option<Bed> {
        if !has(&["chromium"]) {
            return None;
        }
        let snap = Snapshot::new();
        Some(Bed {
            session: Session::shared(&snap, &[]),
            web: WebServer::start("25-lazy-images"),
            snap,
        })
    }

    fn open(&mut self, path: &str) -> String {
        self.open_with(path, &[])
    }

    fn open_with(&mut self, path: &str, settings: &[(&str, &str)]) -> String {
        self.session.open(&self.snap, &self.web.url(path), settings)
    }

    /// The saved document, and what was done to the page.
    fn document(&self, path: &str) -> (String, String) {
        self.snap.run("dom", &self.web.url(path), &[]);
        let note = &self.snap.json("chromium/navigation.json")["note"];
        let note = note.as_str().unwrap_or_default().to_owned();
        let html = String::from_utf8(self.snap.read("dom/output.html")).unwrap();
        (html, note)
    }

    fn picture(&self, path: &str, settings: &[(&str, &str)]) -> (Picture, String) {
        let ran = self.snap.run("screenshot", &self.web.url(path), settings);
        ran.assert(0, "succeeded", "screenshot.png");
        let note = ran.result()["note"].as_str().unwrap_or_default().to_owned();
        (decode(&self.snap.read("screenshot/screenshot.png")), note)
    }

    /// Text of the PDF, and the number of its pictures.
    fn pdf(&self, path: &str) -> (String, usize, String) {
        let ran = self.snap.run("pdf", &self.web.url(path), &[]);
        ran.assert(0, "succeeded", "output.pdf");
        assert!(ran.elapsed < busy(5), "{:?}", ran.elapsed);
        let note = ran.result()["note"].as_str().unwrap_or_default().to_owned();
        let file = self.snap.file("pdf/output.pdf");
        let text =
            std::process::Command::new("pdftotext").args([file.as_os_str(), "-".as_ref()]).output();
        let text = text.map_or_else(
            |_| String::new(),
            |done| String::from_utf8_lossy(&done.stdout).into_owned(),
        );
        let bytes = self.snap.read("pdf/output.pdf");
        let mark = b"/Subtype /Image";
        let pictures = bytes.windows(mark.len()).filter(|part| part == mark);
        (text, pictures.count(), note)
    }
}

fn decode(bytes: &[u8]) -> Picture {
    let (width, height, pixels) = pixels(bytes);
    let red = pixels.iter().filter(|pixel| **pixel == [255, 0, 0]);
    Picture { width, height, red: red.count() }
}

fn thumbnail(snap: &Snapshot) -> archivist_hooks::picture::Picture {
    let file = snap.read("screenshot/thumbnail.webp");
    archivist_hooks::picture::Picture::decode(&file).unwrap()
}

/// The number of pixels that are more or less red: not every colour is kept.
fn red_of(picture: &archivist_hooks::picture::Picture) -> usize {
    let rows = (0..picture.height).flat_map(|y| picture.row(y).chunks_exact(3));
    rows.filter(|pixel| pixel[0] > 200 && pixel[1] < 80 && pixel[2] < 80).count()
}

/// Width, height and pixels of a PNG.
pub fn pixels(bytes: &[u8]) -> (u32, u32, Vec<[u8; 3]>) {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().unwrap();
    let mut samples = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut samples).unwrap();
    let pixels = samples.chunks(info.color_type.samples());
    let pixels = pixels.map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    (info.width, info.height, pixels)
}

#[test]
fn lazy_pictures_are_in_the_screenshot_and_in_the_pdf() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    for (path, height, least) in [
        ("/lazy-far", 9000, 4000),
        ("/eager-far", 9000, 4000),
        ("/lazy-mid", 3500, 4000),
        ("/lazy-top", 2000, 4000),
        ("/lazy-shadow", 9000, 4000),
        ("/observer", 9000, 4000),
        ("/carousel", 2000, 15_000),
    ] {
        let text = bed.open(path);
        assert_eq!(text, "page loaded http=200\n", "{path}");
        let (picture, note) = bed.picture(path, &[]);
        assert_eq!((picture.width, note.as_str()), (1440, ""), "{path}");
        assert!(picture.height >= height, "{path}: {}", picture.height);
        assert!(picture.red >= least, "{path}: {} red pixels", picture.red);
        let (_, pictures, _) = bed.pdf(path);
        assert!(pictures >= 1, "{path}: no picture in the PDF");
    }
    let thumbnail = thumbnail(&bed.snap);
    assert_eq!((thumbnail.width, thumbnail.height), (720, 540));
}

/// Chromium lays out the page for another window for a moment, so that transitions begin.
#[test]
fn picture_of_a_long_page_has_no_transition_that_the_camera_began() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    bed.open("/wide-header");
    let (picture, _) = bed.picture("/wide-header", &[]);
    assert_eq!(picture.red, 60_000);
}

/// Each part has 200 x 100 red pixels, as have the two pictures whose turn it is.
#[test]
fn what_fades_out_of_view_is_in_the_picture_as_it_is_in_view() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    bed.open("/fades");
    let (picture, _) = bed.picture("/fades", &[]);
    assert_eq!(picture.red, 10 * 200 * 100);
    let (html, note) = bed.document("/fades");
    assert_eq!(note, "kept 8 parts that the page hides out of view");
    assert_eq!(html.matches(r#"class="part in""#).count(), 4, "{html}");
    assert_eq!(html.matches(r#"class="slide on""#).count(), 2, "{html}");
    assert!(!html.contains(r#"class="top on""#), "{html}");
}

/// The page grows when its end comes into view, also while it takes most of a second to draw.
#[test]
fn page_that_grows_is_scrolled_to_its_end_however_slowly_it_is_drawn() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    for (path, last) in [("/more", "PART 4"), ("/more-slow", "PART 8")] {
        let text = bed.open(path);
        assert_eq!(text, "page loaded http=200\n", "{path}");
        bed.snap.run("dom", &bed.web.url(path), &[]);
        let html = String::from_utf8(bed.snap.read("dom/output.html")).unwrap();
        assert!(html.contains(last), "{path}: {html}");
    }
}

#[test]
fn what_waits_for_the_reader_is_opened_and_started_if_that_is_wanted() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    bed.open("/sections");
    let (html, note) = bed.document("/sections");
    assert_eq!((html.matches("open=").count(), note.as_str()), (1, ""));
    bed.open_with("/sections", &[("CHROMIUM_DETAILS", "true")]);
    let (html, note) = bed.document("/sections");
    assert_eq!((html.matches("open=").count(), note.as_str()), (3, "opened 2 sections"), "{html}");

    let count = |bed: &Bed, path: &str| bed.web.requests().iter().filter(|it| *it == path).count();
    bed.open_with("/media", &[("CHROMIUM_MEDIA", "false")]);
    assert_eq!((count(&bed, "/idle.wav"), count(&bed, "/eager.wav")), (0, 1));
    bed.open("/media");
    let (html, note) = bed.document("/media");
    assert_eq!(note, "started 2 media");
    assert_eq!((count(&bed, "/idle.wav"), count(&bed, "/eager.wav")), (1, 2));
    assert!(html.contains("preload=\"none\"") && !html.contains("<title>1"), "{html}");
    assert!(!html.contains("muted"), "{html}");
}

/// The first screen of the picture is that of the page before it was scrolled.
#[test]
fn picture_shows_the_page_at_its_top_and_at_rest() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    for path in ["/pinned-short", "/pinned-long", "/late-header", "/late-header#end"] {
        let plain = path.trim_end_matches("#end");
        bed.open_with(plain, &[("CHROMIUM_SCROLL", "false")]);
        bed.picture(plain, &[("SCREENSHOT_FULL_PAGE", "no")]);
        let (width, height, first) = pixels(&bed.snap.read("screenshot/screenshot.png"));
        bed.open(path);
        // What a picture does to the page is not in the next one.
        for _ in 0..3 {
            bed.picture(path, &[]);
            let (_, whole, picture) = pixels(&bed.snap.read("screenshot/screenshot.png"));
            assert!(whole > height, "{path}: {whole}");
            let screen = &picture[..(width * height) as usize];
            assert!(screen == first, "{path}: another first screen");
        }
    }
}

/// The window has room for its viewport, the screen for the window, also when a picture was taken.
#[test]
fn window_is_one_of_a_browser_with_a_screen() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    bed.open("/window");
    for _ in 0..2 {
        let (html, _) = bed.document("/window");
        assert!(html.contains(">true,true,1440,2000<"), "{html}");
        bed.picture("/window", &[]);
    }
}

/// Each page waits for one kind of event of the browser, loads something slow, and shows it later.
#[test]
fn what_waits_for_the_first_event_of_a_reader_is_there() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    for kind in
        ["mousemove", "mouseover", "pointermove", "keydown", "wheel", "touchstart", "pointerdown"]
    {
        let path = format!("/first-{kind}");
        assert_eq!(bed.open(&path), "page loaded http=200\n", "{path}");
        let (html, note) = bed.document(&path);
        assert!(html.contains(&format!("FULL {kind}")), "{path}: {html}");
        assert!(!html.contains("<title>CLICKED"), "{path}: {html}");
        assert_eq!(note, "", "{path}");
    }
    for path in ["/first-late", "/first-body", "/first-moves"] {
        bed.open(path);
        assert!(bed.document(path).0.contains(">FULL<"), "{path}");
    }
    bed.open("/hovers");
    let (html, _) = bed.document("/hovers");
    assert!(
        html.contains("data-seen=\"moved\"") && html.contains("data-open=\"closed\""),
        "{html}"
    );
    assert!(!html.contains(">DO NOT GO"), "{html}");
    let (text, _, _) = bed.pdf("/hovers");
    let is_closed = text.contains("MENU") && !text.contains("OPEN MENU");
    assert!(is_closed || !has(&["pdftotext"]), "{text}");
}

#[test]
fn a_page_is_not_scrolled_if_that_is_not_wanted() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    bed.open_with("/more", &[("CHROMIUM_SCROLL", "false")]);
    let (html, _) = bed.document("/more");
    assert!(!html.contains("PART 2"), "{html}");
}

/// The saved document has what its author wrote.
#[test]
fn lazy_attributes_stay_in_the_document() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    bed.open("/lazy-hidden");
    let url = bed.web.url("/lazy-hidden");
    bed.snap.run("dom", &url, &[]);
    let html = String::from_utf8(bed.snap.read("dom/output.html")).unwrap();
    assert!(html.contains(r#"loading="lazy""#), "{html}");
}

#[test]
fn page_is_printed_as_wide_and_as_long_as_it_is() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    bed.open("/box");
    let (picture, _) = bed.picture("/box", &[]);
    assert!(picture.height > 9000, "{}", picture.height);
    assert!(picture.red >= 4000, "{}", picture.red);
    let (text, pictures, _) = bed.pdf("/box");
    assert!(text.contains("END OF THE BOX") || !has(&["pdftotext"]), "{text}");
    assert!(pictures >= 1);
    let url = bed.web.url("/box");
    bed.snap.run("dom", &url, &[]);
    let html = String::from_utf8(bed.snap.read("dom/output.html")).unwrap();
    assert!(!html.contains("data-archivist"), "{html}");

    bed.open("/wide");
    let (picture, _) = bed.picture("/wide", &[]);
    assert!(picture.width > 4000, "{}", picture.width);
    let (text, _, _) = bed.pdf("/wide");
    assert!(text.contains("COLUMN19") || !has(&["pdftotext"]), "{text}");

    // What the page hides at its sides is no part of it.
    for path in ["/sides-html", "/sides-body"] {
        bed.open(path);
        let (picture, _) = bed.picture(path, &[]);
        assert_eq!(picture.width, 1440, "{path}");
        assert!(picture.height > 9000, "{path}");
        let (text, _, _) = bed.pdf(path);
        let is_whole = text.contains("TEXT") && !text.contains("MENU");
        assert!(is_whole || !has(&["pdftotext"]), "{text}");
    }

    bed.open("/print-hides");
    let (text, _, note) = bed.pdf("/print-hides");
    assert!(text.contains("six words") || !has(&["pdftotext"]), "{text}");
    assert!(note.contains("0 of 6 words"), "{note}");

    bed.open("/print-part");
    let (_, _, note) = bed.pdf("/print-part");
    let missing = "the style sheet for print shows 160 of 720 letters";
    assert!(note == missing || !has(&["pdftotext"]), "{note}");

    bed.open("/more");
    let (picture, _) = bed.picture("/more", &[]);
    assert!(picture.height > 12_000, "{}", picture.height);
}

/// Text that runs from top to bottom, or from right to left, begins at the right side of the page.
#[test]
fn pages_that_begin_at_the_right_are_whole() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    let square = 64 * 64;
    let has_text = has(&["pdftotext"]);
    for (path, squares) in
        [("/rtl-wide", 1), ("/vertical", 2), ("/vertical-body", 2), ("/vertical-box", 2)]
    {
        bed.open(path);
        let (picture, note) = bed.picture(path, &[]);
        assert_eq!((picture.red, note.as_str()), (squares * square, ""), "{path}");
        assert!(picture.width > 4000, "{path}: {}", picture.width);
        let red = red_of(&thumbnail(&bed.snap));
        assert!((850..1150).contains(&red), "{path}: {red}");
        let (text, pictures, note) = bed.pdf(path);
        let last = if squares == 1 { "COLUMN19" } else { "END OF THE PAGE" };
        assert!(text.contains(last) || !has_text, "{path}: {text}");
        assert!(pictures >= 1 && note.is_empty(), "{path}: {note}");
        let (viewport, _) = bed.picture(path, &[("SCREENSHOT_FULL_PAGE", "no")]);
        assert_eq!((viewport.width, viewport.red), (1440, square), "{path}");
    }
    for (path, note) in [
        ("/rtl-wider", "cut at 5760 of 15008 pixels in width"),
        ("/vertical-long", "cut at 32000 of 402"),
    ] {
        bed.open(path);
        let (picture, found) = bed.picture(path, &[]);
        assert_eq!(picture.red, square, "{path}");
        assert!(found.starts_with(note), "{path}: {found}");
    }
    let (text, _, note) = bed.pdf("/vertical-long");
    assert!(text.contains("END OF THE PAGE") || !has_text, "{text}");
    assert_eq!(note, "");
    bed.open("/rtl-wider");
    let (_, _, note) = bed.pdf("/rtl-wider");
    assert_eq!(note, "cut at 14400 of 15008 pixels in width");
}

#[test]
fn rows_that_a_list_holds_only_in_view_are_in_the_document() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    let rows = |html: &str| (0..9000).filter(|n| html.contains(&format!(">Row {n}!<"))).count();
    for (path, count) in [("/rows-box", 1000), ("/rows-page", 600)] {
        bed.open(path);
        let (html, note) = bed.document(path);
        assert_eq!(rows(&html), count, "{path}: {note}");
        assert_eq!(html.matches("Row 99!").count(), 1, "{path}");
        assert!(html.find("Row 99!") < html.find("Row 100!"), "{path}");
        assert!(!html.contains("data-archivist"), "{path}");
        let end = format!(" of {count} rows; text and DOM have them all");
        assert!(note.starts_with("a list shows ") && note.ends_with(&end), "{path}: {note}");
        // The page is as it was.
        let (_, of_picture) = bed.picture(path, &[]);
        let (_, _, of_pdf) = bed.pdf(path);
        assert!(of_picture.contains(&note) && of_pdf.contains(&note), "{of_picture} {of_pdf}");
        let (html, _) = bed.document(path);
        assert_eq!(rows(&html), count, "{path}, again");
    }
    bed.open("/rows-many");
    let (html, note) = bed.document("/rows-many");
    let seen = rows(&html);
    assert!(
        note.ends_with(&format!(" of about 9000 rows; text and DOM have {seen} of them")),
        "{note}"
    );
    assert!(seen > 1000, "{note}");
    bed.open("/rows-all");
    assert_eq!(bed.document("/rows-all").1, "");
}

#[test]
fn wheel_shows_all_parts_of_a_page_that_moves_its_content() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    bed.open("/wheel");
    let (picture, _) = bed.picture("/wheel", &[]);
    assert_eq!((picture.height, picture.red), (6000, 4 * 64 * 64));
    let (text, pictures, _) = bed.pdf("/wheel");
    assert!(text.contains("FOUR") || !has(&["pdftotext"]), "{text}");
    assert!(pictures >= 4, "{pictures}");
    let (html, _) = bed.document("/wheel");
    assert!(html.contains("translate3d(0px, 0px, 0px)"), "{html}");
}

#[test]
fn high_pages_are_cut_with_a_note() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    bed.open("/high");
    let (picture, note) = bed.picture("/high", &[]);
    assert_eq!((picture.width, picture.height), (1440, 32_000));
    assert!(note.starts_with("cut at 32000 of 400"), "{note}");
    let viewport = [("SCREENSHOT_FULL_PAGE", "no"), ("RESOLUTION", "800,600")];
    let (picture, note) = bed.picture("/high", &viewport);
    assert_eq!((picture.width, picture.height), (800, 600));
    assert_eq!(note, "");
}

/// fontconfig knows which fonts there are.
#[test]
fn scripts_without_a_font_are_named() {
    let Some(mut bed) = Bed::start() else { return };
    if !has(&["fc-list"]) {
        return;
    }
    let has_font = |character: &str| {
        let mut list = std::process::Command::new("fc-list");
        let fonts = list.arg(format!(":charset={character}")).output().unwrap();
        !fonts.stdout.is_empty()
    };
    bed.open("/scripts");
    let (_, of_picture) = bed.picture("/scripts", &[]);
    let (_, _, of_pdf) = bed.pdf("/scripts");
    for (script, character) in
        [("Cyrillic", "0421"), ("Han", "6f22"), ("Ethiopic", "1200"), ("Thai", "0e01")]
    {
        for note in [&of_picture, &of_pdf] {
            assert_eq!(note.contains(script), !has_font(character), "{script}: {note}");
        }
    }
    assert!(!of_picture.contains("Hebrew"), "hidden: {of_picture}");
    bed.open("/wide");
    assert_eq!(bed.picture("/wide", &[]).1, "");
}
