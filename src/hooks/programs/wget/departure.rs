//! Pages that go on to another page by themselves.

use super::markup::{Use, rewrite, starts};
use crate::page::html;
use std::time::Duration;

/// Calls `take` with the value of each `<meta http-equiv=refresh>`, and with that of `<base href>`.
pub fn each_refresh(source: &[u8], take: &mut dyn FnMut(&[u8], Use)) {
    rewrite(source, &mut |value, usage| {
        if matches!(usage, Use::Base | Use::RefreshValue) && !value.is_empty() {
            take(value, usage);
        }
        None
    });
}

/// Time for reading a page that may only lead to another.
const READING_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest text in bytes of a page that only leads to another, and longest document.
const STUB_MAX_BYTES: usize = 400;
const STUB_DOCUMENT_MAX_BYTES: usize = 1 << 20;

/// Whether a page has next to no text, and a script that goes to another page.
pub fn leaves_by_script(source: &[u8]) -> bool {
    if source.len() > STUB_DOCUMENT_MAX_BYTES {
        return false;
    }
    let text = String::from_utf8_lossy(source);
    let page = html::parse(&text, READING_TIMEOUT);
    let is_hidden = |name: &str| matches!(name, "script" | "style" | "title" | "noscript" | "head");
    let mut scripts = String::new();
    let mut shown = 0;
    for node in page.tree.nodes() {
        let Some(words) = node.value().as_text() else {
            if let Some(element) = node.value().as_element() {
                scripts += element.attr("onload").unwrap_or_default();
                scripts.push('\n');
            }
            continue;
        };
        let parent = node.parent().and_then(|parent| parent.value().as_element().cloned());
        match parent.as_ref().map(|parent| parent.name()) {
            Some("script") => scripts += words,
            Some(name) if is_hidden(name) => {}
            _ => shown += words.trim().len(),
        }
    }
    let leaves = regex::Regex::new(
        r"\blocation(\.href)?\s*=[^=]|\blocation\.(replace|assign|reload)\s*\(|\.submit\s*\(",
    );
    shown <= STUB_MAX_BYTES && leaves.is_ok_and(|leaves| leaves.is_match(&scripts))
}

/// The address in the value of `Refresh`, without quotes; also without `url=`.
pub fn refresh_target(value: &[u8]) -> Option<&[u8]> {
    let separator = value.iter().position(|byte| matches!(byte, b';' | b','))?;
    let mut rest = value[separator + 1..].trim_ascii();
    if starts(rest, b"url") {
        let after = rest[3..].trim_ascii_start();
        if let Some(after) = after.strip_prefix(b"=") {
            rest = after.trim_ascii_start();
        }
    }
    if let Some(quote @ (b'"' | b'\'')) = rest.first() {
        let end = rest[1..].iter().position(|byte| byte == quote);
        rest = &rest[1..end.map_or(rest.len(), |end| end + 1)];
    }
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refresh_is_read_as_browsers_do() {
        for value in ["0; url=/t", "3,URL = '/t' x", "0;/t", " 1 ; url=\"/t"] {
            assert_eq!(refresh_target(value.as_bytes()), Some(&b"/t"[..]), "{value}");
        }
        assert_eq!(refresh_target(b"5"), None);
    }

    #[test]
    fn page_without_text_that_goes_on_by_a_script_is_recognized() {
        for page in [
            "<title>stub</title><script>location.replace('/t')</script>",
            "<script>setTimeout(() => window.location = '/t', 9)</script>",
            "<body onload='f.submit()'><form id=f method=post action=/t></form>",
        ] {
            assert!(leaves_by_script(page.as_bytes()), "{page}");
        }
        let long = format!("{}<script>location = '/t'</script>", "words ".repeat(100));
        for page in [long.as_str(), "<script>if (location == '/t') {}</script>", "<p>location = 1"]
        {
            assert!(!leaves_by_script(page.as_bytes()), "{page}");
        }
    }

    #[test]
    fn what_would_stop_a_copy_is_renamed() {
        let html = "<meta http-equiv=Content-Security-Policy content=\"default-src 'self'\"><NOSCRIPT>\
            <meta http-equiv=refresh content='0; url=/enable'><img src=a.png></noscript><meta name=x content=y>";
        let mut used = Vec::new();
        let new = rewrite(html.as_bytes(), &mut |url, usage| {
            used.push((String::from_utf8_lossy(url).into_owned(), usage));
            (usage == Use::Base).then(String::new)
        });
        assert_eq!(
            String::from_utf8(new).unwrap(),
            "<meta http-equiv=Content-Security-Policy data-content=\"default-src 'self'\"><NOSCRIPT>\
            <meta http-equiv=refresh data-content='0; url=/enable'><img src=a.png></noscript><meta name=x content=y>"
        );
        used.retain(|(_, usage)| *usage != Use::Base);
        assert_eq!(used, [("a.png".to_owned(), Use::Requisite)]);
    }
}
