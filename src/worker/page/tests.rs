//! Tests of pages about hostile snapshots, parsed as a browser parses them.

use super::groups::Group;
use super::pages::entry_of;
use super::*;
use archivist_core::model::{CrawlId, Figures, Owner, ResultState, SnapshotId, Time, Unsaved};
use archivist_core::text::clean_to;
use archivist_shared::bus::documents::report::{File, HookResult};
use proptest::prelude::*;
use scraper::{Html, Selector};
use serde_json::json;
use std::collections::BTreeSet;

fn file(path: &str, mimetype: &str) -> File {
    File { path: path.to_owned(), mimetype: mimetype.to_owned(), size: 1234 }
}

fn result(plugin: &str, status: ResultState, files: Vec<File>) -> HookResult {
    HookResult {
        id: None,
        owner: Owner::Snapshot(SnapshotId(7)),
        plugin: plugin.to_owned(),
        hook: format!("on_Snapshot__20_{plugin}"),
        status,
        output: None,
        error: None,
        size: files.iter().map(|file| file.size).sum(),
        files,
        attempts: 1,
        started_at: Some(Time(1_795_253_105_000)),
        ended_at: Some(Time(1_795_253_107_500)),
        figures: Default::default(),
    }
}

fn snapshot(text: &str) -> SnapshotPage {
    let mut failed = result("wget", ResultState::Failed, vec![file(text, "text/html")]);
    failed.error = Some(text.to_owned());
    failed.output = Some(text.to_owned());
    let screenshot = file("screenshot.png", "image/png");
    SnapshotPage {
        id: SnapshotId(7),
        url: text.to_owned(),
        title: Some(text.to_owned()),
        crawl: Some(CrawlId(3)),
        depth: 1,
        tags: vec![text.to_owned()],
        added_at: Some(Time(1_795_253_100_000)),
        archived_at: Time(1_795_253_105_123),
        visited_at: Time(1_795_253_105_123),
        http_status: Some(200),
        unsaved: None,
        results: vec![
            failed,
            result("screenshot", ResultState::Succeeded, vec![screenshot]),
            result(text, ResultState::Skipped, vec![]),
        ],
        directory: Some("20261121/example.com/s7".into()),
        crawl_directory: Some("20261121/example.com/c3".into()),
    }
}

fn entry(text: &str) -> ListEntry {
    ListEntry {
        id: SnapshotId(7),
        url: text.to_owned(),
        title: Some(text.to_owned()),
        archived_at: Time(1_795_253_105_123),
        visited_at: None,
        directory: format!("20261121/{text}/s7"),
        screenshot: Some(format!("screenshot/{text}.png")),
        succeeded: 3,
        failed: 1,
        unsaved: None,
        tags: Vec::new(),
        partial: false,
        version: None,
    }
}

/// A result of wacz whose recording lacks a part of the page.
fn with_missing_parts() -> SnapshotPage {
    let figures = json!({"lacks": 1});
    let mut recording = result("wacz", ResultState::Succeeded, vec![]);
    recording.figures = Figures::of(figures.as_object().unwrap());
    SnapshotPage { results: vec![recording], ..snapshot("http://a/") }
}

#[test]
fn page_and_lists_mark_missing_parts() {
    let shown = |page: &SnapshotPage| {
        let entry = entry_of(page).unwrap();
        let list = list(ListKind::Crawl("c3".into()), "20261121/a/c3", vec![entry]).render();
        [page.render(), list].map(|text| text.contains("parts are missing"))
    };
    let partial = with_missing_parts();
    assert_eq!(shown(&partial), [true, true]);
    assert_eq!(shown(&snapshot("http://a/")), [false, false]);
    // A page that was not saved lacks more than parts.
    let unsaved = Some(Unsaved::Document);
    assert_eq!(shown(&SnapshotPage { unsaved, ..partial }), [false, false]);
}

#[test]
fn page_names_the_http_error() {
    let text = |http_status| {
        let page = SnapshotPage { http_status, ..snapshot("http://a/") };
        page.render()
    };
    let says = |status| text(status).contains("the server sent an error instead of the page");
    assert!(says(Some(404)) && says(Some(503)));
    assert!(!says(Some(200)) && !says(None));
    assert!(!text(None).contains("HTTP status"));
}

#[test]
fn page_states_what_replays() {
    let stated = |state| {
        let result = |plugin, figures: serde_json::Value| HookResult {
            figures: Figures::of(figures.as_object().unwrap()),
            ..result(plugin, state, Vec::new())
        };
        let page = SnapshotPage {
            results: vec![
                result("wacz", json!({"requests": 53, "kept": 52})),
                result("verify", json!({"resources": 1, "exact": 52, "text": 0.5})),
            ],
            ..snapshot("http://a/")
        };
        let html = page.render();
        [
            "52 of 53 requests",
            "100.0 % of resources answered (52 exactly, 0 by a rule, 0 not recorded), text 50.0 %",
        ]
        .map(|text| html.contains(text))
    };
    assert_eq!(stated(ResultState::Succeeded), [true; 2]);
    assert_eq!(stated(ResultState::Failed), [false; 2]);
}

fn list(kind: ListKind, directory: &str, entries: Vec<ListEntry>) -> ListPage {
    ListPage {
        kind,
        directory: directory.to_owned(),
        total: 1,
        entries,
        before: None,
        newer: None,
        older: Some("page-1.html".into()),
    }
}

fn attributes(html: &str, name: &str) -> Vec<String> {
    let page = Html::parse_document(html);
    let all = Selector::parse("*").unwrap();
    let values = page.select(&all).filter_map(|element| element.attr(name));
    values.map(str::to_owned).collect()
}

/// Names of elements and their attributes, which no text may add to.
fn shape(html: &str) -> BTreeSet<String> {
    let page = Html::parse_document(html);
    let all = Selector::parse("*").unwrap();
    let mut found = BTreeSet::new();
    for element in page.select(&all) {
        found.insert(element.value().name().to_owned());
        found.extend(element.value().attrs().map(|(name, _)| format!("@{name}")));
    }
    found
}

fn texts(html: &str, selector: &str) -> Vec<String> {
    let page = Html::parse_document(html);
    let selector = Selector::parse(selector).unwrap();
    let texts = page.select(&selector).map(|element| element.text().collect());
    texts.collect()
}

fn is_harmless(html: &str) -> Result<(), String> {
    const KNOWN: &[&str] = &[
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "nav",
        "main",
        "header",
        "footer",
        "section",
        "article",
        "h1",
        "h2",
        "h3",
        "small",
        "p",
        "a",
        "bdi",
        "div",
        "span",
        "img",
        "dl",
        "dt",
        "dd",
        "ul",
        "li",
        "time",
        "details",
        "summary",
        "@charset",
        "@http-equiv",
        "@content",
        "@name",
        "@lang",
        "@class",
        "@href",
        "@rel",
        "@src",
        "@alt",
        "@title",
        "@datetime",
        "@loading",
        "@decoding",
        "@width",
        "@height",
        "@aria-hidden",
        "@aria-label",
        "@id",
        "object",
        "@data",
        "@type",
        "@target",
    ];
    if let Some(strange) = shape(html).iter().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(format!("there is {strange}"));
    }
    for link in attributes(html, "href") {
        let fine = ["./", "../", "http://", "https://"].iter().any(|start| link.starts_with(start));
        if !fine {
            return Err(format!("a link to {link:?}"));
        }
    }
    for source in attributes(html, "src") {
        if !source.starts_with("./") && !source.starts_with("../") {
            return Err(format!("a picture from {source:?}"));
        }
    }
    Ok(())
}

const HOSTILE: [&str; 14] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)//.html",
    "data:text/html,<script>alert(1)</script>",
    "</title></style><svg onload=alert(1)>",
    "<!--",
    "]]><!DOCTYPE html>",
    "//evil.test/x",
    "../../../../etc/passwd",
    "a\u{202e}lmth.exe",
    "&lt;b&gt;&quot;&#x22;",
    "file:///etc/passwd",
];

fn all_pages(text: &str) -> Vec<String> {
    let version = ListEntry {
        version: Some(versions::ListedVersion { at: Time(7), http_status: Some(404), text: None }),
        ..entry(text)
    };
    vec![
        versions::links(SnapshotId(7), Some(&version), Some(&entry(text))),
        list(ListKind::Url, "urls/00/u00", vec![version.clone(), entry(text), version]).render(),
        snapshot(text).render(),
        list(
            ListKind::Archive(
                vec![Day { directory: text.into(), snapshots: 1 }],
                Group::ALL.to_vec(),
            ),
            "",
            vec![entry(text)],
        )
        .render(),
        list(ListKind::Day(text.into()), text, vec![entry(text)]).render(),
        list(ListKind::Of(Group::Tag, text.into()), "tags/t", vec![entry(text)]).render(),
        groups::index(Group::Site, [text.to_owned()]),
        list(ListKind::Crawl(text.into()), "20261121/example.com/c3", vec![entry(text)]).render(),
        days(&[text.to_owned()]),
    ]
}

#[test]
fn hostile_texts_stay_text() {
    for text in HOSTILE {
        for page in all_pages(text) {
            is_harmless(&page).unwrap_or_else(|what| panic!("{text:?}: {what}"));
        }
        let page = snapshot(text).render();
        assert_eq!(texts(&page, "h1"), [clean_to(text, 500)], "the title is shown as it is");
        assert_eq!(
            attributes(&page, "href").iter().filter(|link| link.starts_with("http")).count(),
            0
        );
    }
}

#[test]
fn page_shows_failures_with_reasons() {
    let mut page = snapshot("https://example.com/");
    page.results[0].error = Some("exit status 8; ERROR 404".into());
    page.results[0].output = page.results[0].error.clone();
    page.results[0].attempts = 3;
    let html = page.render();
    assert_eq!(texts(&html, "article.failed .why"), ["exit status 8; ERROR 404"]);
    assert!(texts(&html, ".says").is_empty(), "the same text is not shown twice");
    assert_eq!(texts(&html, "article.failed .meta span"), ["2.5s", "3 attempts"]);
    assert_eq!(
        texts(&html, "article h3"),
        ["screenshot", "wget", "https://example.com/"],
        "successful results are first"
    );
    assert_eq!(texts(&html, ".facts .pill"), ["1 succeeded", "1 failed", "1 skipped"]);
    let links = attributes(&html, "href");
    for link in [
        "../../../index.html",
        "../../../20261121/index.html",
        "../../../20261121/example.com/c3/index.html",
        "https://example.com/",
        "./screenshot/screenshot.png",
    ] {
        assert!(links.iter().any(|found| found == link), "{link} is not among {links:?}");
    }
}

#[test]
fn hooks_that_were_skipped_for_the_same_reason_are_shown_together() {
    let mut page = snapshot("x");
    for plugin in ["pdf", "dom"] {
        let mut skipped = page.results[0].clone();
        skipped.plugin = plugin.into();
        (skipped.status, skipped.error) = (ResultState::Skipped, Some("no answer".into()));
        (skipped.output, skipped.files) = (None, Vec::new());
        page.results.push(skipped);
    }
    let html = page.render();
    assert_eq!(texts(&html, "article.skipped .why").last().unwrap(), "no answer");
    assert!(texts(&html, "article h3").last().unwrap().starts_with("pdf/"), "{html}");
}

#[test]
fn screenshot_is_an_image_of_a_successful_result() {
    let mut page = snapshot("x");
    assert_eq!(page.thumbnail().as_deref(), Some("screenshot/screenshot.png"));
    page.results[1].files.insert(0, file("frame.png", "image/png"));
    assert_eq!(page.thumbnail().as_deref(), Some("screenshot/screenshot.png"));
    page.results[1].files = vec![file("output.html", "text/html")];
    assert_eq!(page.thumbnail(), None);
    page.results[1] =
        result("screenshot", ResultState::Failed, vec![file("screenshot.png", "image/png")]);
    assert_eq!(page.thumbnail(), None);
    assert!(attributes(&page.render(), "src").is_empty());
}

#[test]
fn small_picture_is_shown_and_links_to_the_screenshot() {
    let mut page = snapshot("x");
    page.results[1].files.insert(0, file("thumbnail.png", "image/png"));
    page.results[1].output = Some("screenshot.png".into());
    let html = page.render();
    assert_eq!(attributes(&html, "src"), ["./screenshot/thumbnail.png"]);
    assert_eq!(linked(&html, "a.shot"), ["./screenshot/screenshot.png"]);
}

fn linked(html: &str, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    let page = Html::parse_document(html);
    let links = page.select(&selector).filter_map(|element| element.attr("href"));
    links.map(str::to_owned).collect()
}

#[test]
fn page_that_opens_without_the_web_is_offered_first() {
    let mut page = snapshot("x");
    fn saved(plugin: &str, status: ResultState, output: &str, files: &[&str]) -> HookResult {
        let files = files.iter().map(|path| file(path, "text/html")).collect();
        HookResult { output: Some(output.to_owned()), ..result(plugin, status, files) }
    }
    use ResultState::{Failed, Succeeded};
    page.results.extend([
        saved("dom", Succeeded, "output.html", &["output.html"]),
        saved("text", Succeeded, "text.txt", &["text.json", "text.txt"]),
        saved("pdf", Failed, "no page", &["output.pdf"]),
    ]);
    let pictured = page.render();
    assert_eq!(linked(&pictured, ".views a"), ["./screenshot/screenshot.png", "./text/text.txt"]);
    assert_eq!(linked(&pictured, "a.shot"), ["./screenshot/screenshot.png"]);
    let files = ["files/0a/frame.html", "index.html"];
    page.results.push(saved("standalone", Succeeded, "index.html", &files));
    let html = page.render();
    assert_eq!(texts(&html, ".views a"), ["Page without scripts", "Screenshot", "Text"]);
    assert_eq!(linked(&html, "a.shot"), ["./standalone/index.html"]);
    assert_eq!(linked(&html, ".views a")[0], "./standalone/index.html");
    assert_eq!(
        texts(&html, "article.succeeded h3"),
        ["standalone", "screenshot", "text", "dom"],
        "in this order, and what is no page last"
    );
}

#[test]
fn file_that_the_hook_names_is_first() {
    let files = ["a.css", "b.html", "page/index.html"];
    let mut page = snapshot("x");
    page.results[0].files =
        files.map(|path| file(path, mime_guess::from_path(path).first_raw().unwrap())).to_vec();
    page.results[0].error = None;
    for (output, first, shown) in [
        ("page/index.html", "page/index.html", None),
        ("wget/page/index.html", "page/index.html", None),
        ("3 files", "b.html", Some("3 files")),
    ] {
        page.results[0].output = Some(output.into());
        let html = page.render();
        assert_eq!(texts(&html, "article.failed .files a")[0], first);
        assert_eq!(texts(&html, "article.failed .says").first().map(String::as_str), shown);
    }
}

#[test]
fn many_files_are_collapsed() {
    let mut page = snapshot("x");
    page.results[0].files = (0..20).map(|n| file(&format!("{n}.css"), "text/css")).collect();
    let html = page.render();
    assert_eq!(texts(&html, "summary"), ["12 more files"]);
    assert_eq!(texts(&html, "article.failed .files a").len(), 20);
}

#[test]
fn lists_link_to_pages_and_adjacent_lists() {
    let html =
        list(ListKind::Crawl("c3".into()), "20261121/example.com/c3", vec![entry("example.com")])
            .render();
    let links = attributes(&html, "href");
    assert_eq!(
        links,
        [
            "../../../index.html",
            "../../../20261121/index.html",
            "../../../20261121/example.com/s7/index.html",
            "./page-1.html"
        ]
    );
    assert_eq!(
        attributes(&html, "src"),
        ["../../../20261121/example.com/s7/screenshot/example.com.png"]
    );
    let day = |n: usize| Day { directory: format!("202611{n:02}"), snapshots: n };
    let html =
        list(ListKind::Archive((1..=20).map(day).collect(), Vec::new()), "", vec![]).render();
    assert_eq!(texts(&html, ".days li").last().unwrap(), "All days");
    let html = days(&["20261202".into(), "20261201".into(), "20261130".into()]);
    assert_eq!(texts(&html, "h2"), ["2026-12", "2026-11"]);
}

#[test]
fn pages_run_no_scripts_and_load_nothing() {
    let html = snapshot("x").render();
    let policy = &attributes(&html, "content")[0];
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"));
    assert!(html.find("Content-Security-Policy") < html.find("<title"), "before anything hostile");
}

proptest! {
    #[test]
    fn any_text_stays_text(text in "([<>\"'&;:/\\\\=# \n]|script|javascript:|on[a-z]{1,3}=|\\PC|\u{202e}|\u{0}){0,12}") {
        for page in all_pages(&text) {
            prop_assert_eq!(is_harmless(&page), Ok(()));
        }
        let page = snapshot(&text).render();
        let shown = clean_to(&text, 500);
        prop_assert_eq!(&texts(&page, "h1")[0], &shown);
    }
}

/// "not saved: the server answered with an error" is wider than a card, whose edge would cut it.
#[test]
fn a_long_pill_wraps_in_its_card() {
    let style = include_str!("style.css");
    let of_pills: Vec<&str> = style.lines().filter(|line| line.starts_with(".pill")).collect();
    assert!(!of_pills.is_empty() && of_pills.iter().all(|rule| !rule.contains("nowrap")));
}
