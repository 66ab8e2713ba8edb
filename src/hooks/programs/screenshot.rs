//! `screenshot`: a picture of the page, in `screenshot.png`.

use crate::chromium;
use crate::chromium::{MOST, window};
use crate::process::invocation::Invocation;
use crate::process::program::Runner;
use crate::process::record::{Finding, progress};
use crate::{Outcome, page};

/// Takes the picture and checks that it is one.
pub fn run(it: &Invocation) -> Outcome {
    let mut runner = Runner::new(it.budget())?;
    progress("taking a picture with chromium");
    let size = window(&it.settings.text("SCREENSHOT_RESOLUTION"));
    let taken = chromium::of_page(it, &mut runner, MOST, async |view| view.picture(size).await);
    let (picture, navigation) = taken?;
    if !is_png(&picture) {
        let size = picture.len();
        let reason = format!("chromium made a broken picture ({size} bytes)");
        return Err(Finding::failed(reason));
    }
    page::write("screenshot.png", &picture)?;
    Ok(Finding::succeeded("screenshot.png").with_note(navigation.note))
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
