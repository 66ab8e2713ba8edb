//! `screenshot`: saves a screenshot of the page in `screenshot.png`.

use crate::chromium;
use crate::chromium::{PAGE_MAX_BYTES, window};
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::{Outcome, page};

/// Takes the screenshot and checks that the PNG is complete.
pub fn run(invocation: &Invocation) -> Outcome {
    let mut runner = ProgramRunner::new(invocation.budget())?;
    progress("taking a screenshot with chromium");
    let size = window(&invocation.settings.text("SCREENSHOT_RESOLUTION"));
    let taken = chromium::with_page(invocation, &mut runner, PAGE_MAX_BYTES, async |view| {
        view.screenshot(size).await
    });
    let (screenshot, navigation) = taken?;
    if !is_png(&screenshot) {
        let size = screenshot.len();
        let reason = format!("chromium returned an incomplete PNG ({size} bytes)");
        return Err(Finding::failed(reason));
    }
    page::write("screenshot.png", &screenshot)?;
    Ok(Finding::succeeded("screenshot.png").with_note(navigation.note))
}

/// Whether the bytes are a PNG from its signature to its last chunk.
fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n")
        && bytes.len() > 57
        && bytes.ends_with(b"IEND\xaeB`\x82")
}

#[cfg(test)]
mod tests {
    use super::is_png;

    #[test]
    fn incomplete_png_is_refused() {
        let mut whole = b"\x89PNG\r\n\x1a\n".to_vec();
        whole.extend([0; 60]);
        assert!(!is_png(&whole));
        whole.extend(b"IEND\xaeB`\x82");
        assert!(is_png(&whole));
        assert!(!is_png(b""));
    }
}
