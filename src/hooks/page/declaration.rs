//! Encodings that documents declare: `meta` elements and XML declarations.
//!
//! Reads `meta` elements as browsers do before they parse a page: only tags count, not comments,
//! the content of scripts and styles, or the values of attributes (HTML standard, "prescan a byte
//! stream to determine its encoding").

use super::tags::{Tag, Tags, blanks, find};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use std::ops::Range;

/// Bytes in which a declaration counts anywhere.
const PRESCAN_BYTES: usize = 1024;
/// Bytes in which a declaration counts if only elements of the head precede it, as in Chromium and
/// Firefox.
const HEAD_BYTES: usize = 1 << 20;
/// Elements that do not end the head.
const HEAD_ELEMENTS: [&[u8]; 11] = [
    b"html",
    b"head",
    b"script",
    b"noscript",
    b"style",
    b"link",
    b"meta",
    b"object",
    b"title",
    b"base",
    b"template",
];
/// Name of the attribute that keeps the encoding of the server's document in a saved DOM.
const SERVED: &str = "data-served-charset";

/// The encoding that the `meta` elements of a page declare, if any.
pub fn in_html(bytes: &[u8]) -> Option<&'static Encoding> {
    let mut tags = Tags::new(bytes);
    let mut in_head = true;
    while let Some(tag) = tags.next() {
        if tag.span.start >= if in_head { HEAD_BYTES } else { PRESCAN_BYTES } {
            return None;
        }
        let is_of_head = HEAD_ELEMENTS.iter().any(|name| tag.is(name));
        in_head &= is_of_head && !(tag.is_end && tag.is(b"head"));
        if let Some(declared) = tag.declared().and_then(|(label, _)| Encoding::for_label(label)) {
            return Some(in_bytes(declared));
        }
    }
    None
}

/// The encoding that an XML declaration names, also one in UTF-16 without a byte order mark.
pub fn in_xml(bytes: &[u8]) -> Option<&'static Encoding> {
    if bytes.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if bytes.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    let label = &bytes[xml_label(bytes)?];
    Encoding::for_label(label).map(in_bytes)
}

/// Range of the label in `<?xml … encoding="LABEL"?>`.
fn xml_label(bytes: &[u8]) -> Option<Range<usize>> {
    if !bytes.starts_with(b"<?xml") {
        return None;
    }
    let end = find(&bytes[..bytes.len().min(PRESCAN_BYTES)], b">", 0)?;
    let mut at = find(&bytes[..end], b"encoding", 5)? + b"encoding".len();
    at += blanks(&bytes[at..end]);
    if bytes.get(at) != Some(&b'=') {
        return None;
    }
    at += 1 + blanks(&bytes[at + 1..end]);
    let quote = *bytes.get(at).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let close = find(&bytes[..end], &[quote], at + 1)?;
    Some(at + 1..close)
}

/// The encoding of a document whose declaration was read as ASCII, which proves that the document
/// is not UTF-16.
fn in_bytes(declared: &'static Encoding) -> &'static Encoding {
    match declared {
        e if e == UTF_16LE || e == UTF_16BE => UTF_8,
        e if e == X_USER_DEFINED => WINDOWS_1252,
        e => e,
    }
}

/// Changes the declarations of a document that is saved as UTF-8, so that its text is readable from
/// a file, and adds one if there is none. `served` is the encoding of the server's document, which
/// [`served`] returns: its links are built with that.
pub fn declare_utf8(text: &str, served: &'static Encoding) -> String {
    let bytes = text.as_bytes();
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    if let Some(label) = xml_label(bytes) {
        changes.push((label, "UTF-8".to_owned()));
    }
    let is_xml = bytes.starts_with(b"<?xml");
    let slash = if is_xml { " /" } else { "" };
    let kept =
        if served == UTF_8 { String::new() } else { format!(" {SERVED}=\"{}\"", served.name()) };
    let declaration = format!("<meta charset=\"utf-8\"{kept}{slash}>");
    let mut head = None;
    let mut is_declared = false;
    let mut tags = Tags::new(bytes);
    while let Some(tag) = tags.next() {
        if tag.is(b"body") || tag.is_end && tag.is(b"head") || tag.span.start >= HEAD_BYTES {
            break;
        }
        if !tag.is_end && tag.is(b"head") {
            head.get_or_insert(tag.span.end);
        }
        let Some((label, range)) = tag.declared() else {
            continue;
        };
        let is_utf8 = Encoding::for_label(label) == Some(UTF_8);
        if !is_declared && tag.span.end <= PRESCAN_BYTES && !(is_utf8 && kept.is_empty()) {
            changes.push((tag.span.clone(), declaration.clone()));
        } else if !is_utf8 {
            changes.push((range, "utf-8".to_owned()));
        }
        is_declared |= tag.span.end <= PRESCAN_BYTES;
    }
    match head {
        _ if is_declared => {}
        Some(at) => changes.push((at..at, declaration)),
        // A document without a head, such as a drawing.
        None if is_xml => {}
        None => changes.push((0..0, '\u{feff}'.to_string())),
    }
    changes.sort_by_key(|(range, _)| (range.start, range.end));
    let mut changed = String::with_capacity(text.len() + 100);
    let mut done = 0;
    for (range, new) in changes {
        // Ranges begin and end at ASCII characters; one that overlaps the one before is left out.
        if let Some(before) = text.get(done..range.start) {
            changed += before;
            changed += &new;
            done = range.end;
        }
    }
    changed + text.get(done..).unwrap_or_default()
}

/// The encoding of the server's document, if [`declare_utf8`] changed this one.
pub fn served(text: &[u8]) -> Option<&'static Encoding> {
    let mut tags = Tags::new(&text[..text.len().min(HEAD_BYTES)]);
    while let Some(tag) = tags.next() {
        if tag.is(b"body") {
            return None;
        }
        if let Some((label, _)) = tag.attribute(SERVED.as_bytes()).filter(|_| tag.is(b"meta")) {
            return Encoding::for_label(label);
        }
    }
    None
}

impl<'a> Tag<'a> {
    /// The label that a `meta` element declares, and its range.
    fn declared(&self) -> Option<(&'a [u8], Range<usize>)> {
        if self.is_end || !self.is(b"meta") {
            return None;
        }
        if let Some((label, range)) = self.attribute(b"charset") {
            return Some((label, range));
        }
        let (pragma, _) = self.attribute(b"http-equiv")?;
        let (content, range) = self.attribute(b"content")?;
        let label = in_content(content)?;
        pragma.eq_ignore_ascii_case(b"content-type").then(|| {
            let at = range.start + label.start..range.start + label.end;
            (&content[label], at)
        })
    }
}

/// Range of the label in `text/html; charset=LABEL` (HTML standard, "extracting a character encoding
/// from a meta element").
pub fn in_content(content: &[u8]) -> Option<Range<usize>> {
    let lower = content.to_ascii_lowercase();
    let mut from = 0;
    loop {
        let mut at = find(&lower, b"charset", from)? + b"charset".len();
        at += blanks(&lower[at..]);
        if lower.get(at) != Some(&b'=') {
            from = at;
            continue;
        }
        at += 1;
        at += blanks(&lower[at..]);
        let rest = &lower[at..];
        let length = match rest.first()? {
            quote @ (b'"' | b'\'') => {
                at += 1;
                rest[1..].iter().position(|byte| byte == quote)?
            }
            _ => rest
                .iter()
                .position(|byte| *byte == b';' || byte.is_ascii_whitespace())
                .unwrap_or(rest.len()),
        };
        return Some(at..at + length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(page: &str) -> Option<&'static str> {
        in_html(page.as_bytes()).map(Encoding::name)
    }

    #[test]
    fn only_meta_elements_declare_an_encoding() {
        for before in [
            "<!-- keep the charset=utf-8 line first! -->",
            "<!-- <meta charset=utf-8> -->",
            "<script src=/a.js charset=utf-8></script>",
            "<script>document.write('<meta charset=utf-8>')</script>",
            "<style>/* <meta charset=utf-8> */</style>",
            "<title>how to write <meta charset=utf-8></title>",
            "<meta name=description content='text/html; charset=utf-8'>",
            "<meta name=x content='<meta charset=utf-8>'>",
            "<meta http-equiv=refresh content='0;url=/?charset=utf-8'>",
            "<link rel=stylesheet href='/a?charset=utf-8' charset=utf-8>",
            "<meta charset=klingon>",
            "<meta http-equiv=content-type content='text/html; charset'>",
            "<!-->",
            "<?php charset=utf-8 ?>",
        ] {
            let page = format!("<!doctype html><html><head>{before}<META Charset = 'gb2312' ><p>");
            assert_eq!(name(&page), Some("GBK"), "{before}");
        }
        assert_eq!(name("<p title='<meta charset=gbk>'>charset=gbk"), None);
        assert_eq!(name("<!-- <meta charset=gbk>"), None);
    }

    #[test]
    fn forms_of_declarations() {
        for (page, encoding) in [
            (
                "<meta content='text/html; Charset = \"Shift_JIS\"' http-equiv=Content-Type>",
                "Shift_JIS",
            ),
            ("<meta http-equiv='Content-Type' content='charset charset=euc-kr; x'>", "EUC-KR"),
            ("<meta charset=utf-16>", "UTF-8"),
            ("<meta charset=x-user-defined>", "windows-1252"),
            ("<meta/charset=koi8-r/>", ""),
            ("<meta/charset='koi8-r'/>", "KOI8-R"),
            ("<meta charset=big5 charset=gbk>", "Big5"),
        ] {
            assert_eq!(name(page).unwrap_or_default(), encoding, "{page}");
        }
        let far = format!("<head><script>{}</script><meta charset=gbk>", "x".repeat(5000));
        assert_eq!(name(&far), Some("GBK"));
        let late = format!("<head></head><body>{}<meta charset=gbk>", "x".repeat(5000));
        assert_eq!(name(&late), None);
    }

    #[test]
    fn xml_declarations_name_the_encoding() {
        let xml = |text: &[u8]| in_xml(text).map(Encoding::name);
        assert_eq!(xml(b"<?xml version='1.0' encoding = 'gb2312'?>"), Some("GBK"));
        assert_eq!(xml(b"<?xml version='1.0' encoding=\"UTF-16\"?>"), Some("UTF-8"));
        assert_eq!(xml(b"<?xml version='1.0'?><a encoding='gbk'/>"), None);
        assert_eq!(xml(b"<\0?\0x\0m\0l\0"), Some("UTF-16LE"));
        assert_eq!(xml(b"\0<\0?\0x\0m\0l"), Some("UTF-16BE"));
    }

    #[test]
    fn saved_documents_declare_utf_8() {
        let sjis = encoding_rs::SHIFT_JIS;
        let page = "<!DOCTYPE html><html><head><meta charset=\"Shift_JIS\"><title>題</title></head><body><meta charset=x></body></html>";
        let saved = declare_utf8(page, sjis);
        assert_eq!(
            saved,
            "<!DOCTYPE html><html><head><meta charset=\"utf-8\" data-served-charset=\"Shift_JIS\"><title>題</title></head><body><meta charset=x></body></html>"
        );
        assert_eq!(in_html(saved.as_bytes()), Some(UTF_8));
        assert_eq!(served(saved.as_bytes()), Some(sjis));
        let utf8 = "<html><head><meta charset=utf-8></head></html>";
        assert_eq!(declare_utf8(utf8, UTF_8), utf8);
        assert_eq!(served(utf8.as_bytes()), None);
        for page in [
            "<html><head><!-- <meta charset=gbk> --><script>'<meta charset=gbk>'</script></head><body>é",
            "<html><head><meta http-equiv=\"Content-Type\" content=\"text/html; charset=gbk\"></head>é",
            &format!("<html><head><script>{}</script><meta charset=gbk></head>é", "x".repeat(2000)),
            "<svg>é</svg>",
        ] {
            let saved = declare_utf8(page, UTF_8);
            let read = super::super::charset::decode(saved.as_bytes(), "text/html", None);
            assert_eq!(read.encoding, UTF_8, "{saved}");
            assert_eq!(Tags::new(saved.as_bytes()).last_declared(), Some(true), "{saved}");
            assert!(read.text.contains('é'));
        }
        let xml = "<?xml version=\"1.0\" encoding=\"gb2312\"?><html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title>国</title></head></html>";
        assert_eq!(
            declare_utf8(xml, encoding_rs::GBK),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><html xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta charset=\"utf-8\" data-served-charset=\"GBK\" /><title>国</title></head></html>"
        );
    }

    impl Tags<'_> {
        /// Whether every declaration is UTF-8.
        fn last_declared(mut self) -> Option<bool> {
            let mut all = true;
            while let Some(tag) = self.next() {
                if let Some((label, _)) = tag.declared() {
                    all &= Encoding::for_label(label) == Some(UTF_8);
                }
            }
            Some(all)
        }
    }

    proptest::proptest! {
        #[test]
        fn any_document_is_read_and_declared(words in proptest::collection::vec(
            "(<!--|-->|</?(script|head|meta|title|body)[ />]?|charset ?= ?['\"]?[a-z0-9-]{0,8}['\"]?|http-equiv=content-type |content=|<\\?xml|encoding='|[é='\" />]{0,5})", 0..30)) {
            let text = words.concat();
            in_html(text.as_bytes());
            in_xml(text.as_bytes());
            let saved = declare_utf8(&text, encoding_rs::GBK);
            proptest::prop_assert!(saved.len() + 100 >= text.len() / 2);
            served(saved.as_bytes());
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            in_html(&bytes);
            in_xml(&bytes);
            in_content(&bytes);
            served(&bytes);
        }
    }
}
