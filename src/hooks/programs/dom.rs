//! `dom`: saves the page's HTML after its scripts ran in `output.html`.

use crate::chromium::view;
use crate::chromium::view::PAGE_MAX_BYTES;
use crate::process::files;
use crate::process::finding::Outcome;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::source;

/// Reads the HTML from chromium and checks that it is complete.
pub fn run(invocation: &Invocation) -> Outcome {
    let mut runner = ProgramRunner::new(invocation.budget())?;
    progress("reading the page in chromium");
    let most = match invocation.settings.size("DOM_MAX_SIZE") {
        0 => PAGE_MAX_BYTES,
        most => most.min(PAGE_MAX_BYTES),
    };
    let read = view::with_page(invocation, &mut runner, most, async |view| {
        Ok(view.document(most).await?)
    });
    let ((html, note), navigation) = read?;
    let size = html.len();
    if size as u64 > most {
        let reason = format!("the page has {size} bytes, more than DOM_MAX_SIZE");
        return Err(Finding::failed(reason));
    }
    if !looks_like_html(html.as_bytes()) {
        return Err(Finding::failed(format!("chromium returned no HTML ({size} bytes)")));
    }
    files::write("output.html", html.as_bytes())?;
    Ok(Finding::succeeded("output.html")
        .with(source::results::VISIT, navigation.target)
        .lacking([note])
        .with_note(navigation.note))
}

/// Declares UTF-8 in documents without an element for that.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether the text begins and ends with a tag and is longer than an empty document.
fn looks_like_html(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = text.trim_ascii();
    text.starts_with(b"<") && text.ends_with(b">") && text.len() > "<html></html>".len()
}

#[cfg(test)]
mod tests {
    use super::looks_like_html;

    #[test]
    fn incomplete_page_is_refused() {
        assert!(looks_like_html(b"<!DOCTYPE html>\n<html><body></body></html>\n"));
        assert!(looks_like_html(b"<?xml version=\"1.0\"?><rss></rss>"));
        assert!(looks_like_html(b"\xef\xbb\xbf<svg><g></g></svg>"));
        assert!(!looks_like_html(b""));
        assert!(!looks_like_html(b"<html><bo"));
    }
}
