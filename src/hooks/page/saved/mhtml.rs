//! MHTML: a message of RFC 2557, with the document of the page and its files as parts.

use super::{DOCUMENT_MAX_BYTES, SavedPage, short, with_document};
use archivist_core::model::moment;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::borrow::Cow;

/// Longest header of a message or part in bytes.
const HEADER_MAX_BYTES: usize = 64 << 10;
/// Digits of base64 that are decoded: those of a document that is too long.
const DIGITS_MAX: usize = DOCUMENT_MAX_BYTES / 3 * 4 + 8;
/// Parts that are looked at.
const PARTS_MAX: usize = 100_000;
const DEPTH_MAX: usize = 4;

type Fields = Vec<(String, String)>;

/// Whether a file begins as MHTML.
pub fn is_mhtml(start: &[u8]) -> bool {
    let Some((fields, _)) = header(start) else {
        return false;
    };
    let kind = kind(&fields);
    let is_page = kind.starts_with("multipart/related")
        || is_document(&kind) && field(&fields, "content-location").is_some();
    field(&fields, "mime-version").is_some() && is_page
}

pub fn read(bytes: &[u8]) -> Result<SavedPage, String> {
    let (fields, body) = header(bytes).ok_or("its header is damaged")?;
    let found = document(&fields, body, 0).ok_or("it has no HTML document")?;
    let own = |name: &str| field(&fields, name).and_then(short);
    let location = found.location.filter(|url| !url.starts_with("cid:"));
    let page = SavedPage {
        format: "MHTML page".to_owned(),
        url: own("snapshot-content-location").or_else(|| own("content-location")).or(location),
        time: own("date").and_then(|time| moment(&time)).filter(|time| time.contains('T')),
        ..SavedPage::default()
    };
    let mut page = with_document(page, &found.bytes, &found.kind);
    if !found.is_whole {
        page.faults.push("it ends within its document".to_owned());
    }
    Ok(page)
}

struct Document<'a> {
    kind: String,
    location: Option<String>,
    bytes: Cow<'a, [u8]>,
    is_whole: bool,
}

/// The document of a message or part: of several parts, that which `start=` names, else the first.
fn document<'a>(fields: &Fields, body: &'a [u8], depth: usize) -> Option<Document<'a>> {
    let kind = kind(fields);
    if is_document(&kind) {
        return Some(Document {
            location: field(fields, "content-location").and_then(short),
            bytes: decoded(body, field(fields, "content-transfer-encoding").unwrap_or("")),
            kind,
            is_whole: true,
        });
    }
    if !kind.starts_with("multipart/") || depth >= DEPTH_MAX {
        return None;
    }
    let content_type = field(fields, "content-type")?;
    let boundary = parameter(content_type, "boundary").filter(|text| !text.is_empty())?;
    let root = parameter(content_type, "start");
    let mut first = None;
    for (part, is_whole) in parts(body, &boundary).take(PARTS_MAX) {
        let Some((own, body)) = header(part) else {
            continue;
        };
        let is_root = root.is_some() && field(&own, "content-id") == root.as_deref();
        if first.is_some() && !is_root {
            continue;
        }
        if let Some(found) = document(&own, body, depth + 1) {
            first = Some(Document { is_whole, ..found });
            if is_root || root.is_none() {
                break;
            }
        }
    }
    first
}

fn is_document(kind: &str) -> bool {
    ["text/html", "application/xhtml+xml"]
        .iter()
        .any(|name| kind.split(';').next().unwrap_or_default().trim() == *name)
}

/// The content type of a header in lower case.
fn kind(fields: &Fields) -> String {
    field(fields, "content-type").unwrap_or_default().to_ascii_lowercase()
}

fn field<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    let found = fields.iter().find(|(own, _)| own == name);
    found.map(|(_, value)| value.as_str())
}

/// The fields of a header, whose names become lower case, and what follows it. `None` if it is too long or
/// begins with none.
fn header(bytes: &[u8]) -> Option<(Fields, &[u8])> {
    let mut fields = Fields::new();
    let mut at = 0;
    while bytes.get(at..)?.first().is_some_and(|b| b"\r\n".contains(b)) {
        at += 1;
    }
    loop {
        let rest = bytes.get(at..)?;
        let length = rest.iter().take(HEADER_MAX_BYTES).position(|byte| *byte == b'\n')?;
        at += length + 1;
        if at > HEADER_MAX_BYTES {
            return None;
        }
        let line = String::from_utf8_lossy(&rest[..length]);
        let line = line.trim_end_matches('\r');
        if line.trim().is_empty() {
            return (!fields.is_empty()).then(|| (fields, &bytes[at..]));
        }
        if line.starts_with([' ', '\t']) {
            let (_, value) = fields.last_mut()?;
            // The address of a page continues without a blank.
            if value.ends_with(';') {
                value.push(' ');
            }
            value.push_str(line.trim());
            continue;
        }
        let (name, value) = line.split_once(':')?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_name) {
            return None;
        }
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

fn parameter(content_type: &str, name: &str) -> Option<String> {
    let mut rest = content_type.split_once(';')?.1;
    loop {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => {
                let (value, next) = quoted.split_once('"')?;
                (value, next.split_once(';').map(|(_, next)| next))
            }
            None => match after.split_once(';') {
                Some((value, next)) => (value.trim(), Some(next)),
                None => (after.trim(), None),
            },
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(value.to_owned());
        }
        rest = next?;
    }
}

/// The parts of a body, and whether each ends before the body does.
fn parts<'a>(body: &'a [u8], boundary: &str) -> impl Iterator<Item = (&'a [u8], bool)> {
    let line = format!("--{boundary}").into_bytes();
    let mut from = delimiter(body, &line, 0).map(|(_, end)| end);
    std::iter::from_fn(move || {
        let start = from?;
        if body.get(start..)?.starts_with(b"--") {
            return None;
        }
        let next = delimiter(body, &line, start);
        from = next.map(|(_, end)| end);
        let end = next.map_or(body.len(), |(begin, _)| begin);
        Some((&body[start..end], next.is_some()))
    })
}

/// Begin and end of the next line that begins with the boundary.
fn delimiter(body: &[u8], line: &[u8], from: usize) -> Option<(usize, usize)> {
    let mut at = from;
    loop {
        let found = crate::page::tags::find(body, line, at)?;
        if found == 0 || body[found - 1] == b'\n' {
            return Some((found, found + line.len()));
        }
        at = found + line.len();
    }
}

fn decoded<'a>(body: &'a [u8], coding: &str) -> Cow<'a, [u8]> {
    match coding.trim().to_ascii_lowercase().as_str() {
        "quoted-printable" => Cow::Owned(quoted_printable(body)),
        "base64" => Cow::Owned(base64_of(body)),
        _ => Cow::Borrowed(body),
    }
}

/// Decodes quoted-printable (RFC 2045, 6.7), until the document is too long. What is no escape stays as it is.
fn quoted_printable(body: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut rest = body;
    while let Some((byte, after)) = rest.split_first() {
        if text.len() > DOCUMENT_MAX_BYTES {
            break;
        }
        rest = after;
        if *byte != b'=' {
            text.push(*byte);
            continue;
        }
        let hex = |byte: &u8| char::from(*byte).to_digit(16);
        match after {
            [b'\r', b'\n', rest_of @ ..] | [b'\n', rest_of @ ..] => rest = rest_of,
            [high, low, rest_of @ ..] => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => {
                    text.extend(u8::try_from(high * 16 + low));
                    rest = rest_of;
                }
                _ => text.push(b'='),
            },
            _ => text.push(b'='),
        }
    }
    text
}

/// Decodes base64 up to its first fault.
pub(super) fn base64_of(body: &[u8]) -> Vec<u8> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let engine = GeneralPurpose::new(&STANDARD, config);
    let is_digit = |b: &u8| b.is_ascii_alphanumeric() || *b == b'+' || *b == b'/';
    let digits = body.iter().copied().filter(|b| !b.is_ascii_whitespace());
    let digits = digits.take_while(is_digit);
    let mut digits: Vec<u8> = digits.take(DIGITS_MAX).collect();
    if digits.len() % 4 == 1 {
        digits.pop();
    }
    engine.decode(digits).unwrap_or_default()
}
