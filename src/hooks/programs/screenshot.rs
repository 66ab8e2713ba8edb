//! `screenshot`: saves a screenshot of the page in `screenshot.png`, and a small picture of its
//! first screen in `thumbnail.png`.

use crate::chromium;
use crate::chromium::{PAGE_MAX_BYTES, TabView, window};
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::{Outcome, page};
use serde_json::json;

/// Width of the small picture in pixels.
const THUMBNAIL_WIDTH: u32 = 720;
/// Height of the first screen in parts of its width.
const FIRST_SCREEN_RATIO: f64 = 0.75;

/// A screenshot, the small picture, and what is missing.
struct Pictures {
    screenshot: Vec<u8>,
    thumbnail: Vec<u8>,
    note: Option<String>,
    /// Remark about fonts that the machine lacks.
    fonts: Option<String>,
}

/// Takes the screenshot and checks that the PNG is complete.
pub fn run(invocation: &Invocation) -> Outcome {
    let mut runner = ProgramRunner::new(invocation.budget())?;
    progress("taking a screenshot with chromium");
    let settings = &invocation.settings;
    let size = window(&settings.text("SCREENSHOT_RESOLUTION"));
    let most = settings.flag("SCREENSHOT_FULL_PAGE").then(|| {
        let most = settings.number("SCREENSHOT_MAX_HEIGHT");
        u32::try_from(most).unwrap_or(u32::MAX).max(1)
    });
    let taken = chromium::with_page(invocation, &mut runner, PAGE_MAX_BYTES, async |view| {
        take(view, size, most).await
    });
    let (pictures, navigation) = taken?;
    for picture in [&pictures.screenshot, &pictures.thumbnail] {
        if !is_png(picture) {
            let size = picture.len();
            let reason = format!("chromium returned an incomplete PNG ({size} bytes)");
            return Err(Finding::failed(reason));
        }
    }
    page::write("screenshot.png", &pictures.screenshot)?;
    page::write("thumbnail.png", &pictures.thumbnail)?;
    Ok(Finding::succeeded("screenshot.png").with_notes([
        navigation.note,
        pictures.note,
        pictures.fonts,
    ]))
}

/// Takes both pictures. `most` is the greatest height of the whole page; without it, the screenshot
/// is the viewport of this `size`.
async fn take(view: &TabView, size: (u32, u32), most: Option<u32>) -> Result<Pictures, Finding> {
    view.resize(size).await?;
    let (picture, note) = match most {
        None => (size, None),
        Some(most) => whole_page(view, size, most).await?,
    };
    let first_screen = (f64::from(size.0) * FIRST_SCREEN_RATIO) as u32;
    let first = (size.0, first_screen.clamp(1, picture.1.min(size.1)));
    let scale = f64::from(THUMBNAIL_WIDTH) / f64::from(size.0);
    // One after the other: chromium scales all of a tab while it takes a picture.
    let screenshot = view.screenshot(picture, size, 1.0).await?;
    let thumbnail = view.screenshot(first, size, scale).await?;
    view.evaluate(RENDER, &[json!(false)]).await?;
    Ok(Pictures { screenshot, thumbnail, note, fonts: chromium::missing_fonts(view).await })
}

/// Size of the picture of the whole page, and what does not fit.
async fn whole_page(
    view: &TabView,
    (width, height): (u32, u32),
    most: u32,
) -> Result<((u32, u32), Option<String>), Finding> {
    let boxed = view.evaluate(BOXED_HEIGHT, &[]).await?;
    let boxed = u32::try_from(boxed.as_u64().unwrap_or_default()).unwrap_or(u32::MAX);
    if boxed > height {
        // The page scrolls in a box of its own, which grows with the viewport.
        view.resize((width, boxed.min(most))).await?;
    }
    view.evaluate(RENDER, &[json!(true)]).await?;
    let (page_width, page_height) = view.page_size().await?;
    let full = page_height.max(boxed);
    let note = (full > most)
        .then(|| format!("cut at {most} of {full} pixels (SCREENSHOT_MAX_HEIGHT={most})"));
    let hides_sides = view.evaluate("() => hidesSides()", &[]).await? == json!(true);
    // A page that is wider than the viewport is shown as wide as it is, within reason.
    let picture_width =
        if hides_sides { width } else { page_width.clamp(width, width.saturating_mul(4)) };
    Ok(((picture_width, full.clamp(1, most)), note))
}

/// Height that the viewport needs to show all of the box in which the page scrolls; 0 if it scrolls
/// as a whole.
const BOXED_HEIGHT: &str = r#"() => {
  const box = scrollBox();
  return box ? innerHeight + box.scrollHeight - box.clientHeight : 0;
}"#;

/// Renders the parts of the page that chromium leaves blank until they come near the viewport
/// (`content-visibility: auto`), stops transitions, and undoes that. For the picture of a page that is
/// longer than the viewport, chromium lays it out for another window and back, and transitions that this
/// begins would be in the picture.
const RENDER: &str = r#"(on) => {
  const undo = (globalThis.archivistRendered ||= []);
  while (!on && undo.length > 0) undo.pop()();
  if (!on) return;
  const still = new CSSStyleSheet();
  still.replaceSync("*, ::before, ::after { transition: none !important }");
  const roots = [document];
  for (const root of roots) {
    for (const element of root.querySelectorAll("*")) if (element.shadowRoot) roots.push(element.shadowRoot);
    // An element can have the name of a property of the document.
    if (!Array.isArray(root.adoptedStyleSheets)) continue;
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, still];
    undo.push(() => { root.adoptedStyleSheets = [...root.adoptedStyleSheets].filter((sheet) => sheet !== still); });
  }
  for (const element of document.querySelectorAll("body *")) {
    if (getComputedStyle(element).contentVisibility !== "auto") continue;
    const style = element.getAttribute("style");
    element.style.setProperty("content-visibility", "visible", "important");
    undo.push(() => {
      if (style === null) element.removeAttribute("style");
      else element.setAttribute("style", style);
    });
  }
}"#;

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
