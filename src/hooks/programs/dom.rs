//! `dom`: the page's HTML as it is after its scripts ran, in `output.html`.

use crate::chromium;
use crate::chromium::MOST;
use crate::process::invocation::Invocation;
use crate::process::program::Runner;
use crate::process::record::{Finding, progress};
use crate::{Outcome, page};

/// Has chromium write the HTML and keeps it if it is some.
pub fn run(it: &Invocation) -> Outcome {
    let mut runner = Runner::new(it.budget())?;
    progress("reading the page in chromium");
    let most = match it.settings.size("DOM_MAX_SIZE") {
        0 => MOST,
        most => most.min(MOST),
    };
    let read = chromium::of_page(it, &mut runner, most, async |view| Ok(view.html().await?));
    let (html, navigation) = read?;
    let size = html.len();
    if size as u64 > most {
        let reason = format!("the page has {size} bytes, above DOM_MAX_SIZE");
        return Err(Finding::failed(reason));
    }
    if !looks_like_html(html.as_bytes()) {
        return Err(Finding::failed(format!(
            "chromium gave no HTML ({size} bytes)"
        )));
    }
    page::write("output.html", html.as_bytes())?;
    Ok(Finding::succeeded("output.html").with_note(navigation.note))
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
