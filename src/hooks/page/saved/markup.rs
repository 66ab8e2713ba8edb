//! HTML documents that say of which page they are.

use super::{HEAD_MAX_BYTES, SavedPage, short, title};
use crate::page::charset;
use crate::page::tags::{Tag, Tags};
use archivist_core::model::moment;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Bytes in which comments about the origin are looked for.
const COMMENT_MAX_BYTES: usize = 16 << 10;
/// First words of the comment of SingleFile.
const SINGLE_FILE: &str = "Page saved with SingleFile";
/// First words of the comment of Chromium, Edge and Internet Explorer, which the length of the address in
/// parentheses follows.
const SAVED_FROM: &str = "saved from url=";

pub fn read(start: &[u8], is_page: bool) -> Option<SavedPage> {
    let text = charset::decode(start, "text/html", None).text;
    let trimmed = text.trim_start();
    if !trimmed.starts_with('<') {
        return None;
    }
    let first = &trimmed[..trimmed.floor_char_boundary(1024)];
    let first = first.to_ascii_lowercase();
    let is_list = first.contains("netscape-bookmark-file");
    let is_html = ["<!doctype html", "<html", "<head", "<body", "<title"];
    let is_html = is_html.iter().any(|begin| first.contains(begin)) && !first.starts_with("<?xml");
    let found = (!is_list).then(|| origin(&text)).flatten();
    let page = found.or_else(|| {
        (is_page && (is_html || first.contains("<!doctype")))
            .then(|| SavedPage { format: "HTML page".to_owned(), ..SavedPage::default() })
    })?;
    Some(SavedPage { title: page.title.clone().or_else(|| title(&text)), ..page })
}

/// What a document says about its origin; `None` if it says nothing.
pub fn origin(text: &str) -> Option<SavedPage> {
    let text = &text[..text.floor_char_boundary(HEAD_MAX_BYTES)];
    single_file(text).or_else(|| of_attributes(text)).or_else(|| saved_from(text))
}

fn comments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = &text[..text.floor_char_boundary(COMMENT_MAX_BYTES)];
    std::iter::from_fn(move || {
        let (_, from) = rest.split_once("<!--")?;
        let (comment, after) = from.split_once("-->")?;
        rest = after;
        Some(comment)
    })
}

fn single_file(text: &str) -> Option<SavedPage> {
    let comment = comments(text).find(|comment| comment.trim_start().starts_with(SINGLE_FILE))?;
    let line = |name: &str| {
        let mut lines = comment.lines();
        lines.find_map(|line| short(line.trim().strip_prefix(name)?))
    };
    Some(SavedPage {
        format: "page of SingleFile".to_owned(),
        is_single_file: true,
        url: line("url:"),
        time: line("saved date:").and_then(|time| time_of(&time)),
        ..SavedPage::default()
    })
}

fn saved_from(text: &str) -> Option<SavedPage> {
    let found = comments(text).find_map(|comment| comment.trim().strip_prefix(SAVED_FROM))?;
    let url = found.split_once(')').map_or(found, |(_, url)| url);
    // `about:internet` marks pages without an address.
    let url = short(url).filter(|url| !url.starts_with("about:"));
    Some(SavedPage { format: "HTML page of a browser".to_owned(), url, ..SavedPage::default() })
}

/// WebScrapBook marks the element `html`, Save Page WE adds `meta` elements.
fn of_attributes(text: &str) -> Option<SavedPage> {
    let mut tags = Tags::new(text.as_bytes());
    let mut page = SavedPage::default();
    while let Some(tag) = tags.next() {
        if tag.is(b"html") {
            if let Some(url) = value(&tag, b"data-scrapbook-source") {
                let time = value(&tag, b"data-scrapbook-create");
                return Some(SavedPage {
                    format: "page of WebScrapBook".to_owned(),
                    url: Some(url),
                    title: value(&tag, b"data-scrapbook-title"),
                    time: time.and_then(|time| of_digits(&time)),
                    ..SavedPage::default()
                });
            }
        } else if tag.is(b"meta") {
            let content = || value(&tag, b"content");
            match value(&tag, b"name").as_deref() {
                Some("savepage-url") => page.url = content(),
                Some("savepage-title") => page.title = content(),
                Some("savepage-date") => page.time = content().and_then(|time| time_of(&time)),
                _ => {}
            }
        } else if tag.is(b"body") {
            break;
        }
    }
    page.url.is_some().then(|| SavedPage { format: "page of Save Page WE".to_owned(), ..page })
}

fn value(tag: &Tag<'_>, name: &[u8]) -> Option<String> {
    let (bytes, _) = tag.attribute(name)?;
    let text = String::from_utf8_lossy(bytes);
    let plain = quick_xml::escape::unescape(&text).map_or(text.to_string(), |text| text.into());
    short(&plain)
}

/// A time as JavaScript writes it, such as `Fri Nov 27 2026 00:04:28 GMT+0100 (CET)`, or as in lists.
fn time_of(text: &str) -> Option<String> {
    let plain = text.split(" (").next().unwrap_or(text).trim();
    let plain = plain.split_once(' ').map_or(plain, |(_, rest)| rest);
    Timestamp::strptime("%b %d %Y %H:%M:%S GMT%z", plain)
        .ok()
        .map(|time| time.to_string())
        .or_else(|| moment(text).filter(|time| time.contains('T')))
}

/// A time as WebScrapBook writes it: year to milliseconds in digits, in UTC.
fn of_digits(text: &str) -> Option<String> {
    if text.len() != 17 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize, to: usize| text[from..to].parse::<i16>().ok();
    let small = |from: usize| text[from..from + 2].parse::<i8>().ok();
    let time = DateTime::new(
        part(0, 4)?,
        small(4)?,
        small(6)?,
        small(8)?,
        small(10)?,
        small(12)?,
        i32::from(part(14, 17)?) * 1_000_000,
    );
    let zoned = time.ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(zoned.timestamp().to_string())
}
