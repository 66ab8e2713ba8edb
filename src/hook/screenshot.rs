//! `screenshot`: a picture of the page, in `screenshot.png`.

use super::Outcome;
use super::chromium::{self, MOST_HTML, file_option, window};
use super::invocation::Invocation;
use super::record::{Finding, progress};

/// Chromium chooses the format by the extension.
const PART: &str = ".part.png";

/// Takes the picture and checks that it is one.
pub fn run(it: &Invocation) -> Outcome {
    progress("taking a picture with chromium");
    let window = window(&it.settings.text("SCREENSHOT_RESOLUTION"));
    let rendered = chromium::render(it, &[file_option("screenshot", PART)?], &window, MOST_HTML)
        .inspect_err(|_| chromium::discard(PART))?;
    chromium::keep(PART, "screenshot.png", is_png)?;
    let finding = Finding::succeeded("screenshot.png");
    Ok(match rendered.note {
        Some(note) => finding.with("note", note),
        None => finding,
    })
}

/// A PNG from its signature to its last chunk.
fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n")
        && bytes.len() > 57
        && bytes.ends_with(b"IEND\xaeB`\x82")
}

#[cfg(test)]
mod tests {
    use super::is_png;

    #[test]
    fn half_a_picture_is_none() {
        let mut whole = b"\x89PNG\r\n\x1a\n".to_vec();
        whole.extend([0; 60]);
        assert!(!is_png(&whole));
        whole.extend(b"IEND\xaeB`\x82");
        assert!(is_png(&whole));
        assert!(!is_png(b""));
    }
}
