//! Puts the documents of frames into the HTML of their page, so that a saved page shows them when it
//! is opened from disk.

use super::tags::{Tag, Tags};
use archivist_core::text::escape_markup;

/// Attribute that keeps the address of a frame whose document is in `srcdoc`.
pub const KEPT_SRC: &str = "data-archivist-src";
/// Attributes of a frame that its copy replaces.
const REPLACED: [&[u8]; 4] = [b"src", b"srcdoc", b"sandbox", KEPT_SRC.as_bytes()];

pub struct FrameCopy {
    /// HTML of the element that owns the frame, as it is in the page.
    pub owner: String,
    pub html: String,
}

/// Puts the documents of frames into their `iframe` elements as `srcdoc`, in a sandbox without
/// scripts, as long as the page has at most `most` bytes. Returns the page and the number of frames
/// in it.
pub fn embed(page: &str, frames: Vec<FrameCopy>, most: usize) -> (String, usize) {
    let mut frames: Vec<_> = frames.into_iter().map(Some).collect();
    let (mut text, mut at, mut count) = (String::with_capacity(page.len()), 0, 0);
    let mut size = page.len();
    let mut tags = Tags::new(page.as_bytes());
    while let Some(tag) = tags.next() {
        if tag.is_end || !tag.is(b"iframe") {
            continue;
        }
        let start = &page[tag.span.clone()];
        let own = |frame: &&mut Option<FrameCopy>| {
            let owner = frame.as_ref().map(|frame| frame.owner.as_str());
            owner.is_some_and(|owner| owner.starts_with(start))
        };
        let Some(frame) = frames.iter_mut().find(own).and_then(Option::take) else {
            continue;
        };
        let copy = with_document(&tag, &frame.html);
        if size + copy.len() > most {
            continue;
        }
        size += copy.len();
        count += 1;
        text += &page[at..tag.span.start];
        text += &copy;
        at = tag.span.end;
    }
    text += &page[at..];
    (text, count)
}

fn with_document(tag: &Tag<'_>, html: &str) -> String {
    let mut text = "<iframe".to_owned();
    let mut add = |name: &str, value: &str| text += &format!(" {name}=\"{value}\"");
    for (name, value) in tag.attributes() {
        if !REPLACED.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            // The tag is from Chromium, which quotes all values and escapes quotation marks.
            add(&String::from_utf8_lossy(name), &String::from_utf8_lossy(value));
        }
    }
    if let Some((src, _)) = tag.attribute(b"src") {
        add(KEPT_SRC, &String::from_utf8_lossy(src));
    }
    add("sandbox", "");
    add("srcdoc", &escape_markup(html));
    text + ">"
}

/// Adds a base to a document, whose relative addresses are relative to the page otherwise. The first
/// base of a document counts.
pub fn with_base(html: &str, base: &str) -> String {
    let element = format!("<base href=\"{}\">", escape_markup(base));
    let mut tags = Tags::new(html.as_bytes());
    let mut at = None;
    while let Some(tag) = tags.next() {
        if tag.is(b"head") || tag.is(b"html") {
            at = Some(tag.span.end);
        }
        if !tag.is(b"html") {
            break;
        }
    }
    match at {
        Some(at) => format!("{}{element}{}", &html[..at], &html[at..]),
        // A drawing, or a tree of XML.
        None => html.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(owner: &str, html: &str) -> FrameCopy {
        let (owner, html) = (owner.to_owned(), html.to_owned());
        FrameCopy { owner, html }
    }

    #[test]
    fn documents_are_put_into_their_own_frames() {
        let page = "<!-- <iframe src=\"/a\"></iframe> --><p><iframe src=\"/b\" width=\"5\"></iframe>\
            <iframe src=\"/a\" sandbox=\"allow-scripts\"></iframe><script>'<iframe src=\"/a\">'</script>";
        let frames = vec![
            copy("<iframe src=\"/a\" sandbox=\"allow-scripts\"></iframe>", "<p title=\"1\">&amp;A"),
            copy("<iframe src=\"/b\" width=\"5\"></iframe>", "B"),
            copy("<object data=\"/c\"></object>", "C"),
        ];
        let expected = "<!-- <iframe src=\"/a\"></iframe> --><p>\
            <iframe width=\"5\" data-archivist-src=\"/b\" sandbox=\"\" srcdoc=\"B\"></iframe>\
            <iframe data-archivist-src=\"/a\" sandbox=\"\" \
            srcdoc=\"&lt;p title=&quot;1&quot;&gt;&amp;amp;A\"></iframe><script>'<iframe src=\"/a\">'</script>";
        assert_eq!(embed(page, frames, 1 << 20), (expected.to_owned(), 2));
    }

    #[test]
    fn frames_above_the_limit_are_left_out() {
        let page = "<iframe src=\"/a\"></iframe><iframe src=\"/b\"></iframe>";
        let frames = vec![
            copy("<iframe src=\"/a\"></iframe>", &"x".repeat(500)),
            copy("<iframe src=\"/b\"></iframe>", "B"),
        ];
        let (text, count) = embed(page, frames, 300);
        assert_eq!(count, 1);
        assert!(text.starts_with("<iframe src=\"/a\"></iframe>"), "{text}");
        assert!(text.contains("srcdoc=\"B\""), "{text}");
    }

    #[test]
    fn base_is_the_first_of_the_head() {
        let html =
            "<!DOCTYPE html><html lang=\"a\"><head><base href=\"/x\"></head><body></body></html>";
        let expected = "<!DOCTYPE html><html lang=\"a\"><head><base href=\"http://a.test/?a=1&amp;b\">\
            <base href=\"/x\"></head><body></body></html>";
        assert_eq!(with_base(html, "http://a.test/?a=1&b"), expected);
        assert_eq!(with_base("<svg></svg>", "http://a.test/"), "<svg></svg>");
    }
}
