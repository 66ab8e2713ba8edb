//! Bodies of requests as text that two equal requests share: the form in which index lines have
//! them, as arguments of a query.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;
use std::collections::BTreeMap;

/// Longest text; other programs cut what is longer, too.
const TEXT_MAX_BYTES: usize = 4096;
/// Largest body that is taken apart.
const BODY_MAX_BYTES: usize = 1 << 20;
/// What the values of a form keep as it is.
const QUOTED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The text of a posted body. The fields of forms and of JSON become arguments, so that the
/// boundary of a multipart body, which is random, does not count. Other bodies are in base64.
pub(crate) fn text(body: &[u8]) -> String {
    let known = Some(body)
        .filter(|body| body.len() <= BODY_MAX_BYTES)
        .and_then(|body| multipart(body).or_else(|| json(body)).or_else(|| form(body)));
    match known {
        Some(text) if text.len() <= TEXT_MAX_BYTES => text,
        Some(text) => cut(&text, text.as_bytes()),
        None => {
            let start = &body[..body.len().min(TEXT_MAX_BYTES)];
            let text = format!("__wb_post_data={}", base64(start));
            if text.len() <= TEXT_MAX_BYTES { text } else { cut(&text, body) }
        }
    }
}

/// The start of a text that is too long, with the digest of what it stands for.
fn cut(text: &str, whole: &[u8]) -> String {
    let mut end = TEXT_MAX_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}&{CUT}{}", &text[..end], crate::digest::of(whole))
}

/// The argument that distinguishes texts that were cut.
const CUT: &str = "__posted=";

/// Whether the text of a body and one in an index line are of the same body.
pub(crate) fn is_same(ours: &str, theirs: &str) -> bool {
    let cut = ours.rsplit_once(CUT);
    ours == theirs
        || cut.is_some_and(|(start, _)| {
            // Other programs keep the start alone.
            let theirs_is_cut = theirs.len() >= TEXT_MAX_BYTES - 4 && !theirs.contains(CUT);
            theirs_is_cut && start.starts_with(theirs)
        })
}

/// The URL under which an index has a request that is not GET.
pub(crate) fn url_with(url: &str, method: &str, posted: Option<&str>) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    let mut text = format!("{url}{separator}__wb_method={method}");
    if let Some(posted) = posted.filter(|posted| !posted.is_empty()) {
        text.push('&');
        text.push_str(posted);
    }
    text
}

fn quoted(text: &str) -> String {
    utf8_percent_encode(text, QUOTED).to_string().replace("%20", "+")
}

/// The arguments of an HTML form, decoded.
fn form(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let is_form = text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_form || !text.contains('=') {
        return text.is_empty().then(String::new);
    }
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8().ok()?;
    // A text in one line is part of a key.
    Some(decoded.replace(['\r', '\n'], " "))
}

/// The scalars of a JSON value by the names of their members.
fn json(body: &[u8]) -> Option<String> {
    let start = body.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if !b"{[".contains(start) {
        return None;
    }
    let value: Value = serde_json::from_slice(body).ok()?;
    let mut fields = Vec::new();
    let mut seen = BTreeMap::new();
    flatten(&value, "", &mut fields, &mut seen);
    let arguments: Vec<_> =
        fields.iter().map(|(name, value)| format!("{}={}", quoted(name), quoted(value))).collect();
    Some(arguments.join("&"))
}

fn flatten(
    value: &Value,
    name: &str,
    fields: &mut Vec<(String, String)>,
    seen: &mut BTreeMap<String, usize>,
) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                flatten(value, name, fields, seen);
            }
        }
        Value::Array(items) => {
            for item in items {
                flatten(item, name, fields, seen);
            }
        }
        _ if name.is_empty() => {}
        scalar => {
            let count = seen.entry(name.to_owned()).or_default();
            *count += 1;
            let name = match *count {
                1 => name.to_owned(),
                count => format!("{name}.{count}_"),
            };
            let text = match scalar {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            fields.push((name, text));
        }
    }
}

/// The parts of a multipart form (RFC 7578).
fn multipart(body: &[u8]) -> Option<String> {
    if !body.starts_with(b"--") {
        return None;
    }
    let end = find(body, b"\r\n")?;
    let boundary = &body[..end];
    let mut arguments = Vec::new();
    let mut rest = &body[end..];
    let delimiter = [b"\r\n", boundary].concat();
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let head = find(part, b"\r\n\r\n")?;
        let (_, fields) = crate::head::parse(&[b"part\r\n", &part[..head], b"\r\n"].concat());
        let disposition = crate::head::value(&fields, "content-disposition")?;
        let name = parameter(disposition, "name")?;
        let content = &part[head + 4..];
        let end = find(content, &delimiter)?;
        let value = percent_encoding::percent_encode(&content[..end], QUOTED);
        let value = value.to_string().replace("%20", "+");
        arguments.push(format!("{}={value}", quoted(&name)));
        rest = &content[end + delimiter.len()..];
    }
    rest.starts_with(b"--").then(|| arguments.join("&"))
}

/// The quoted parameter of a `Content-Disposition`.
fn parameter(disposition: &str, name: &str) -> Option<String> {
    let mut parts = disposition.split(';').map(str::trim);
    let value = parts.find_map(|part| part.strip_prefix(name)?.trim_start().strip_prefix('='))?;
    Some(value.trim().trim_matches('"').to_owned())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

/// Base64 (RFC 4648, section 4).
fn base64(body: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_forms_and_json_are_arguments() {
        assert_eq!(text(b"a=1&b=x+y%26"), "a=1&b=x y&");
        let value = br#"{"a": 1, "b": {"c": [true, null, "x y"], "a": 2.5}}"#;
        assert_eq!(text(value), "a=1&c=true&c.2_=null&c.3_=x+y&a.2_=2.5");
        assert_eq!(text(b"\x00\x01"), "__wb_post_data=AAE=");
        assert_eq!(text(b""), "");
        assert_eq!(text(b"{not json"), "__wb_post_data=e25vdCBqc29u");
    }

    #[test]
    fn boundary_does_not_count() {
        let body = |boundary: &str, value: &str| {
            let part = |name, value| {
                format!(
                    "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
                )
            };
            let parts = [part("first", value), part("second", "x y")].concat();
            format!("{parts}--{boundary}--\r\n").into_bytes()
        };
        let expected = "first=1&second=x+y";
        assert_eq!(text(&body("----WebKitFormBoundaryA", "1")), expected);
        assert_eq!(text(&body("----WebKitFormBoundaryB", "1")), expected);
        assert_ne!(text(&body("----WebKitFormBoundaryB", "2")), expected);
    }

    #[test]
    fn long_bodies_differ_by_their_ends() {
        let long = |end: u8| text(&[&[0; 10_000][..], &[end]].concat());
        assert!(is_same(&long(1), &long(1)) && !is_same(&long(1), &long(2)));
        assert!(long(1).len() < TEXT_MAX_BYTES + 100);
        assert!(is_same(&long(1), &long(2)[..TEXT_MAX_BYTES]));
        assert!(!is_same("a=1", "a=12") && is_same("a=1", "a=1"));
    }

    proptest::proptest! {
        #[test]
        fn any_body_has_one_line(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            for start in [&b""[..], b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\n", b"{\"a\":"] {
                proptest::prop_assert!(!text(&[start, &bytes].concat()).contains(['\n', '\r']));
            }
        }
    }
}
