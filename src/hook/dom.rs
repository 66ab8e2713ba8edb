//! `dom`: the page's HTML as it is after its scripts ran, in `output.html`.

use super::chromium::{self, MOST_HTML, window};
use super::invocation::Invocation;
use super::record::{Finding, progress};
use super::{Outcome, page};

/// Has chromium write the HTML and keeps it if it is some.
pub fn run(it: &Invocation) -> Outcome {
    progress("reading the page with chromium");
    let most = match it.settings.size("DOM_MAX_SIZE") {
        0 => MOST_HTML,
        most => most.min(MOST_HTML),
    };
    let rendered = chromium::render(it, &[], &window(&it.settings.text("RESOLUTION")), most)?;
    if !looks_like_html(&rendered.html) {
        let size = rendered.html.len();
        return Err(Finding::failed(format!(
            "chromium gave no HTML ({size} bytes)"
        )));
    }
    page::write("output.html", &rendered.html)?;
    let finding = Finding::succeeded("output.html");
    Ok(match rendered.note {
        Some(note) => finding.with("note", note),
        None => finding,
    })
}

/// A start tag or declaration at the start, the html element's end tag at the end.
fn looks_like_html(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii();
    text.starts_with(b"<") && text.ends_with(b">") && text.len() > "<html></html>".len()
}

#[cfg(test)]
mod tests {
    use super::looks_like_html;

    #[test]
    fn half_a_page_is_none() {
        assert!(looks_like_html(
            b"<!DOCTYPE html>\n<html><body></body></html>\n"
        ));
        assert!(looks_like_html(b"<?xml version=\"1.0\"?><rss></rss>"));
        assert!(!looks_like_html(b""));
        assert!(!looks_like_html(b"<html><bo"));
    }
}
