use super::*;
use archivist_warc::exchange::Exchange;
use archivist_warc::wacz::{About, Recording};
use std::collections::BTreeMap;
use std::path::Path;

const TIME: &str = "2026-11-26T09:53:41.25Z";
const URL: &str = "https://a.test/dir/page";

/// A recorded answer: URL, status, a header, body.
type Recorded<'a> = (&'a str, u16, (&'a str, &'a str), &'a str);

fn wacz(answers: &[Recorded<'_>]) -> Arc<Wacz> {
    let file = tempfile::tempfile().unwrap();
    let created = TIME.parse().unwrap();
    let about = About { created, ..About::default() };
    let mut recording = Recording::create(file.try_clone().unwrap(), &about).unwrap();
    for (url, status, (name, value), body) in answers {
        let exchange = Exchange {
            url: (*url).to_owned(),
            method: "GET".to_owned(),
            time: created,
            request: Vec::new(),
            posted: None,
            status: *status,
            reason: String::new(),
            response: vec![((*name).to_owned(), (*value).to_owned())],
            protocols: Vec::new(),
            address: None,
            kind: "other".to_owned(),
            truncated: None,
        };
        recording.add(&exchange, &mut body.as_bytes(), body.len() as u64).unwrap();
    }
    recording.finish().unwrap();
    Arc::new(Wacz::open(file).unwrap())
}

fn page<'a>(id: &'a str, url: &'a str, recording: &'a Arc<Wacz>, dom: Option<&'a str>) -> Page<'a> {
    Page { id, title: "A <title>", url, time: TIME.parse().unwrap(), recording, dom }
}

/// Writes a copy of pages, and returns its files and counts.
fn copy(pages: &[Page<'_>]) -> (BTreeMap<String, String>, Counts) {
    copy_within(pages, u64::MAX)
}

/// The same with room for so many bytes.
fn copy_within(pages: &[Page<'_>], room: u64) -> (BTreeMap<String, String>, Counts) {
    let top = tempfile::tempdir().unwrap();
    let names = std::cell::RefCell::new(Vec::new());
    let create = |name: &str| {
        let path = top.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap())?;
        names.borrow_mut().push(name.to_owned());
        File::create_new(path)
    };
    let mut site = Site::new(&create, pages.len(), room);
    let plans: Vec<Plan> = pages.iter().map(|page| site.plan(page).unwrap()).collect();
    for (page, plan) in pages.iter().zip(&plans) {
        assert_eq!(site.write(page, plan).unwrap(), [""; 0]);
    }
    let counts = site.finish("Pages").unwrap();
    let read = |name: &String| {
        let bytes = std::fs::read(Path::new(top.path()).join(name)).unwrap();
        (name.clone(), String::from_utf8_lossy(&bytes).into_owned())
    };
    let files = names.borrow().iter().map(read).collect();
    (files, counts)
}

const HTML: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");
const CSS: (&str, &str) = ("Content-Type", "text/css");
const PNG: (&str, &str) = ("Content-Type", "image/png");
const SVG: (&str, &str) = ("Content-Type", "image/svg+xml");

/// The only file that ends like this.
fn find<'a>(files: &'a BTreeMap<String, String>, end: &str) -> (&'a str, &'a str) {
    let mut found = files.iter().filter(|(name, _)| name.ends_with(end));
    let (name, text) = found.next().unwrap_or_else(|| panic!("no {end} in {files:?}"));
    assert!(found.next().is_none(), "{end}: {files:?}");
    (name, text)
}

#[test]
fn file_without_room_stays_in_the_recording() {
    let html = "<base href=/b/><img src=large.png><img src=large.png><img src=small.png><img src=full.png>";
    let large = "x".repeat(20);
    let recording = wacz(&[
        (URL, 200, HTML, html),
        ("https://a.test/b/large.png", 200, PNG, &large),
        ("https://a.test/b/small.png", 200, PNG, "1234567"),
        ("https://a.test/b/full.png", 200, PNG, "1234"),
    ]);
    let page = [page("s1", URL, &recording, None)];
    let (files, counts) = copy_within(&page, 10);
    assert_eq!(counts, Counts { pages: 1, files: 1, absent: 0, left_out: 2 });
    assert!(files[FIRST].contains("<img src=\"https://a.test/b/large.png\">"));
    let sizes: usize = files.iter().filter(|(name, _)| *name != FIRST).map(|it| it.1.len()).sum();
    assert_eq!(sizes, 7);
    assert_eq!(copy_within(&page, 31).1.left_out, 0);
}

#[test]
fn addresses_of_every_kind_lead_to_files() {
    let html = r##"<!doctype html><base href="/b/"><link rel=stylesheet href="s.css" integrity=x crossorigin>
        <img src=one.png srcset="one.png 1x, two.png 2x"><picture><source srcset=no.avif><img src=/moved></picture>
        <p style="background: url('one.png')"><svg><image xlink:href="one.png"/><use href="d.svg#x"/></svg>
        <iframe src=frame.html></iframe><a href="one.png#y">one</a><a href="/dir/page#z">here</a><a href="#z">z</a>
        <a href="other?a=1&amp;b">away</a><video src=lost.mp4 poster=one.png></video><form action=send></form>
        <style>@import "t.css"; p { background: url(#own), url(one.png) }</style><body background=one.png>"##;
    let recording = wacz(&[
        (URL, 200, HTML, html),
        ("https://a.test/b/s.css", 200, CSS, "@import 't.css'; a{background:url(one.png)}"),
        ("https://a.test/b/t.css", 200, CSS, "@import 's.css'; b{src:url(\"/f.woff?#iefix\")}"),
        ("https://a.test/f.woff?", 200, ("Content-Type", "font/woff"), "F"),
        ("https://a.test/b/one.png", 200, PNG, "1"),
        ("https://a.test/b/d.svg", 200, SVG, "<svg/>"),
        ("https://a.test/moved", 302, ("Location", "https://c.test/x"), ""),
        ("https://c.test/x", 200, PNG, "2"),
        ("https://a.test/b/frame.html", 200, HTML, "<p>framed <img src=one.png>"),
    ]);
    let (files, counts) = copy(&[page("s1", URL, &recording, None)]);
    let (one, _) = find(&files, "/one-6b86b273ff34fce19d6b804e.png");
    let text = &files[FIRST];
    for expected in [
        &format!("<img src=\"{one}\" srcset=\"{one} 1x\">"),
        &format!("<p style=\"background: url(&quot;{one}&quot;)\">"),
        &format!("<image xlink:href=\"{one}\">"),
        &format!(
            "<a href=\"{one}#y\">one</a><a href=\"#z\">here</a><a href=\"https://a.test/b/#z\">"
        ),
        "<a href=\"https://a.test/b/other?a=1&amp;b\">away</a>",
        &format!("<video poster=\"{one}\" src=\"https://a.test/b/lost.mp4\">"),
        "<form action=\"https://a.test/b/send\">",
        &format!("url(#own), url(\"{one}\")"),
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(text.starts_with("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\""));
    for dropped in ["<base", "integrity", "crossorigin", "avif"] {
        assert!(!text.contains(dropped), "{dropped} in {text}");
    }
    let frame = files.iter().find(|(name, _)| name.contains("/frame-")).unwrap();
    assert!(text.contains(frame.0) && frame.1.contains(&format!("<img src=\"../{one}\"")));
    assert_eq!(counts, Counts { pages: 1, files: 7, absent: 1, left_out: 0 });
}

#[test]
fn nothing_in_a_copy_acts() {
    let html = r##"<title>x</title><script>bad()</script><script src=/s.js></script><p onclick="bad()" id=p>
        <a href="javascript:bad()">a</a><a href=" java&#10;script:bad()">b</a><a href="data:text/html,bad">c</a>
        <iframe src="javascript:bad()"></iframe><iframe srcdoc="<p onload=bad()><script>bad()</script>f"></iframe>
        <img src="file:///etc/passwd"><form action=javascript:bad()><button formaction="vbscript:bad()">d</button></form>
        <svg onload=bad()><script>bad()</script><a xlink:href="javascript:bad()"><set attributeName=href to=javascript:bad() /></a></svg>
        <math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=bad()&gt;">
        <meta http-equiv=refresh content="0;url=/away"><noscript><img src=/lazy.png></noscript><template><p onclick=bad()></template>
        <object data=/frame></object><link rel=preload href=/x.js as=script><xmp><b onclick=1></xmp><img src=/d.svg><embed src=/bad.svg>"##;
    let drawing = "<?xml version='1.0'?><?xml-stylesheet href='bad.css'?><svg xmlns='http://www.w3.org/2000/svg' \
        xmlns:xlink='http://www.w3.org/1999/xlink' onload='bad()'><script>bad()<x/></script><a xlink:href='javascript:bad()'>\
        <style>p{fill:url(l.png)}</style><rect id='r'/></a><set attributeName='xlink:href' to='javascript:bad()'/></svg>";
    let hidden = "<!DOCTYPE svg [<!ENTITY x '<script>bad()</script>'>]><svg>&x;</svg>";
    let recording = wacz(&[
        (URL, 200, HTML, html),
        ("https://a.test/s.js", 200, ("Content-Type", "text/javascript"), "bad()"),
        ("https://a.test/x.js", 200, ("Content-Type", "text/javascript"), "bad()"),
        ("https://a.test/frame", 200, HTML, "<body onload=bad()>framed<script>bad()</script>"),
        ("https://a.test/d.svg", 200, SVG, drawing),
        ("https://a.test/l.png", 200, PNG, "1"),
        ("https://a.test/lazy.png", 200, PNG, "2"),
        ("https://a.test/bad.svg", 200, SVG, hidden),
    ]);
    let (files, counts) = copy(&[page("s1", URL, &recording, None)]);
    let all = files.values().cloned().collect::<String>();
    // What is left of it is text in an attribute, and in an element that shows markup.
    let left = ["title=\"--&gt;&lt;img src=1 onerror=bad()&gt;\"", "<xmp><b onclick=1></xmp>"];
    let mut rest = all.clone();
    for left in left {
        assert!(rest.contains(left), "{left} in {all}");
        rest = rest.replace(left, "");
    }
    for bad in [
        "bad()",
        "<script",
        "javascript:",
        "refresh",
        "passwd",
        "onclick",
        "onload",
        "data:text",
        "<?xml",
    ] {
        assert!(!rest.contains(bad), "{bad} in {rest}");
    }
    // For those without scripts.
    assert!(files[FIRST].contains("<img src=\"files/") && !all.contains("noscript"), "{all}");
    let (_, drawing) = find(&files, ".svg");
    assert!(
        drawing.contains("fill:url(\"../files/") && drawing.contains("<rect id=\"r\"/>"),
        "{drawing}"
    );
    assert_eq!(counts, Counts { pages: 1, files: 4, absent: 0, left_out: 0 });
}

#[test]
fn no_address_leads_to_files_of_the_reader() {
    let css = "@\\69mport '//evil/a';a{b:u\\72l(//evil/b);c:url(file:///etc/d);d:url(data:,x);e:image-set('//evil/e' 1x)}";
    let html = format!(
        "<style>{css}</style><p style='{}'><svg><rect fill='url(//evil/f)' mask='url(#own)'/></svg>\
         <img srcset='//evil/g, file://evil/h' attributionsrc='//evil/i'><img src='/d.svg'>",
        css.replace('\'', "&#39;")
    );
    let drawing = format!(
        "<svg><style>{css}</style><rect fill='url(//evil/f)'/><a data='//evil/x' srcset='//evil/y'/></svg>"
    );
    let recording = wacz(&[(URL, 200, HTML, &html), ("https://a.test/d.svg", 200, SVG, &drawing)]);
    let (files, _) = copy(&[page("s1", URL, &recording, None)]);
    let all = files.values().cloned().collect::<String>();
    // With a scheme, these are of the web, from which the policy lets nothing be loaded.
    let rest = all.replace("https://evil/", "");
    assert!(
        !rest.contains("url(//") && !rest.contains("file://") && !rest.contains("\"//"),
        "{rest}"
    );
    assert!(
        rest.contains("u_72l(//evil/b)")
            && rest.contains("url(#own)")
            && rest.contains("url(data:,x)"),
        "{rest}"
    );
    assert_eq!(rest.matches("'//evil").count(), 2, "after the rule that is none: {rest}");
}

#[test]
fn pages_are_as_the_browser_saw_them_and_lead_to_each_other() {
    let other = "https://a.test/other";
    let links = "<a href=\"/other#x\">other</a><a href=\"http://a.test/dir/page\">own</a><a href=\"/pdf\">pdf</a>";
    let first = wacz(&[
        (URL, 200, HTML, "<noscript>off</noscript><div id=app></div>"),
        ("https://a.test/dir/one.png", 200, PNG, "1"),
    ]);
    let second =
        wacz(&[(other, 302, ("Location", "/new"), ""), ("https://a.test/new", 200, HTML, links)]);
    let pdf = wacz(&[("https://a.test/pdf", 200, ("Content-Type", "application/pdf"), "%PDF")]);
    let dom = format!(
        "<html><head></head><body><noscript>off</noscript><div id=app>built <img src=one.png>{links}</div>\
         <iframe sandbox srcdoc=\"&lt;base href='https://a.test/dir/'&gt;&lt;img src=one.png&gt;\" data-archivist-src=x></iframe></body></html>"
    );
    let pages = [
        page("s1", URL, &first, Some(&dom)),
        page("s2", other, &second, None),
        page("s3", "https://a.test/pdf", &pdf, Some("<embed>")),
    ];
    let (files, counts) = copy(&pages);
    assert_eq!(counts, Counts { pages: 3, files: 1, absent: 0, left_out: 0 });
    let (built, text) = find(&files, "-s1.html");
    let (one, _) = find(&files, ".png");
    let (document, content) = find(&files, "-s3.pdf");
    assert_eq!(content, "%PDF");
    assert!(
        text.contains(&format!(
            "built <img src=\"../{one}\"><a href=\"../pages/a-test-other-s2.html#x\">"
        )),
        "{text}"
    );
    assert!(
        text.contains(&format!("<a href=\"../{document}\">pdf")) && !text.contains("off"),
        "{text}"
    );
    assert!(text.contains(&format!("&lt;img src=&quot;../{one}&quot;&gt;")), "{text}");
    let (_, text) = find(&files, "-s2.html");
    assert!(text.contains(&format!("<a href=\"../{built}\">own</a>")), "{text}");
    let list = &files[FIRST];
    assert!(list.contains(&format!("<li><a href=\"{built}\">A &lt;title&gt;</a>")), "{list}");

    let missing = wacz(&[("https://a.test/x", 200, PNG, "1")]);
    let create = |_: &str| File::open("/nowhere");
    let reason = Site::new(&create, 1, 0).plan(&page("s4", URL, &missing, None)).unwrap_err();
    assert_eq!(reason, "is not in its recording");
}

proptest::proptest! {
    /// Whatever a recording has, no element, attribute or address of the copy acts.
    #[test]
    fn any_document_is_converted(
        html in "(<|>|</|<p |<svg>|<style>|</style>|<script>|</script>|<math>|<iframe |srcdoc=|<!--|-->|onclick=x |src=|href=|javascript:|<template>|<textarea>|<noscript>|<select>|<plaintext>|[\"'= a/&;é]){0,40}"
    ) {
        let recording = wacz(&[(URL, 200, HTML, &html), ("https://a.test/d", 200, SVG, &html)]);
        let (files, _) = copy(&[page("s1", URL, &recording, None)]);
        let again = crate::page::html::parse(&files[FIRST], crate::page::html::PARSING_TIMEOUT);
        let acts = |element: scraper::ElementRef<'_>| {
            let value = element.value();
            let mut attributes = value.attrs();
            value.name() == "script" || attributes.any(|(name, value)| {
                let is_address = matches!(name, "href" | "src" | "action" | "formaction" | "data");
                name.starts_with("on") || is_address && value.trim().starts_with("javascript:")
            })
        };
        let found = crate::page::html::select(&again, "*").find(|element| acts(*element));
        proptest::prop_assert!(found.is_none(), "{:?} in {}", found.map(|it| it.html()), files[FIRST]);
    }
}
