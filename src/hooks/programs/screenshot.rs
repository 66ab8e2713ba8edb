//! `screenshot`: saves a screenshot of the page in `screenshot.png`, and a small picture of its
//! first screen in `thumbnail.webp`.

use crate::chromium::browser::viewport::window;
use crate::chromium::view;
use crate::chromium::view::glyphs;
use crate::chromium::view::{PAGE_MAX_BYTES, TabView};
use crate::picture::{Picture, PictureFormat, compressed, is_whole};
use crate::process::files;
use crate::process::finding::Outcome;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use serde_json::json;
use tokio::task::spawn_blocking;

/// Width of the small picture in pixels.
const THUMBNAIL_WIDTH: u32 = 720;
/// Height of the first screen in parts of its width.
const FIRST_SCREEN_RATIO: f64 = 0.75;

/// A screenshot, the small picture, and what is missing.
struct Pictures {
    screenshot: Vec<u8>,
    thumbnail: Vec<u8>,
    note: Option<String>,
    fonts: Option<String>,
}

/// Takes the screenshot and checks that the files are whole.
pub fn run(invocation: &Invocation) -> Outcome {
    let mut runner = ProgramRunner::new(invocation.budget())?;
    progress("taking a screenshot with chromium");
    let settings = &invocation.settings;
    let size = window(&settings.text("SCREENSHOT_RESOLUTION"));
    let most = settings.flag("SCREENSHOT_FULL_PAGE").then(|| {
        let most = settings.number("SCREENSHOT_MAX_HEIGHT");
        u32::try_from(most).unwrap_or(u32::MAX).max(1)
    });
    let captured = view::with_page(invocation, &mut runner, PAGE_MAX_BYTES, async |view| {
        take(view, size, most).await
    });
    let (pictures, navigation) = captured?;
    for (name, picture, format) in [
        ("screenshot.png", &pictures.screenshot, PictureFormat::Png),
        ("thumbnail.webp", &pictures.thumbnail, PictureFormat::Webp),
    ] {
        if !is_whole(picture, format) {
            let size = picture.len();
            let reason = format!("chromium returned an incomplete {name} ({size} bytes)");
            return Err(Finding::failed(reason));
        }
        files::write(name, picture)?;
    }
    Ok(Finding::succeeded("screenshot.png")
        .lacking([blank(&pictures.thumbnail), pictures.note, pictures.fonts])
        .with_notes([navigation.note]))
}

/// Remark on a first screen without any content.
fn blank(thumbnail: &[u8]) -> Option<String> {
    let picture = Picture::decode(thumbnail).ok()?;
    picture.is_uniform().then(|| "the first screen is blank".to_owned())
}

/// Takes both pictures. `most` is the greatest height of the whole page; without it, the screenshot
/// is the viewport of this `size`.
async fn take(view: &TabView, size: (u32, u32), most: Option<u32>) -> Result<Pictures, Finding> {
    view.resize(size).await?;
    let (left, picture, note) = match most {
        None => (view.page_size().await?.2, size, None),
        Some(most) => whole_page(view, size, most).await?,
    };
    let first_screen = (f64::from(size.0) * FIRST_SCREEN_RATIO) as u32;
    let first = (size.0, first_screen.clamp(1, picture.1.min(size.1)));
    let scale = f64::from(THUMBNAIL_WIDTH) / f64::from(size.0);
    // One after the other: chromium scales all of a tab while it takes a picture.
    let screenshot = view.screenshot(left, picture, size, 1.0, PictureFormat::Png).await?;
    let compressing = spawn_blocking(|| compressed(screenshot));
    let (_, _, left) = view.page_size().await?;
    let thumbnail = view.screenshot(left, first, size, scale, PictureFormat::Webp).await?;
    view.evaluate(RENDER, &[json!(false)]).await?;
    let fonts = glyphs::missing_fonts(view).await;
    let screenshot = compressing.await;
    let screenshot = screenshot
        .map_err(|error| Finding::failed(format!("failed to compress the picture: {error}")))?;
    Ok(Pictures { screenshot, thumbnail, note, fonts })
}

/// The first pixel from the left and the size of the picture of the whole page, and what does not fit.
async fn whole_page(
    view: &TabView,
    (width, height): (u32, u32),
    most: u32,
) -> Result<(u32, (u32, u32), Option<String>), Finding> {
    let boxed = view.evaluate(BOXED, &[]).await?;
    let is_turned = boxed[2] == json!(true);
    let boxed = |axis: usize| u32::try_from(boxed[axis].as_u64().unwrap_or_default());
    let (boxed_width, boxed_height) = (boxed(0).unwrap_or(u32::MAX), boxed(1).unwrap_or(u32::MAX));
    if boxed_width > width || boxed_height > height {
        // The page scrolls in a box of its own, which grows with the viewport.
        view.resize((boxed_width.min(most).max(width), boxed_height.min(most).max(height))).await?;
        if is_turned {
            view.evaluate(view::REACTED, &[]).await?;
        }
    }
    view.evaluate(RENDER, &[json!(true)]).await?;
    let (page_width, page_height, left) = view.page_size().await?;
    let (full_width, full) = (page_width.max(boxed_width), page_height.max(boxed_height));
    let flow = view.evaluate(FLOW, &[]).await?;
    let is_sideways = boxed_width > width || flow["isSideways"] == json!(true);
    // A page that is wider than the viewport is shown as wide as it is, within reason.
    let widest = if is_sideways { most.max(width) } else { width.saturating_mul(4) };
    let hides_sides = flow["hidesSides"] == json!(true);
    let picture_width = if hides_sides { width } else { full_width.clamp(width, widest) };
    let limit = format!("(SCREENSHOT_MAX_HEIGHT={most})");
    let high = (full > most).then(|| format!("cut at {most} of {full} pixels {limit}"));
    let wide = (!hides_sides && full_width > picture_width).then(|| {
        let limit = if is_sideways { limit } else { "in width".to_owned() };
        format!("cut at {picture_width} of {full_width} pixels {limit}")
    });
    let notes: Vec<_> = high.into_iter().chain(wide).collect();
    // Such a page begins at its right side.
    let begins_right = left > 0;
    let left = match (hides_sides, begins_right) {
        (true, _) => left,
        (false, true) => page_width.saturating_sub(picture_width),
        (false, false) => 0,
    };
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok((left, (picture_width, full.clamp(1, most)), note))
}

/// Width and height that the viewport needs to show all of the box in which the page scrolls; 0 if it
/// scrolls as a whole, or not in this direction. Whether the page moves its content itself in place of that.
const BOXED: &str = r#"() => {
  const box = scrollBox();
  if (!box) return [0, turnedHeight(), turnedHeight() > 0];
  return growsSideways(box)
    ? [innerWidth + box.scrollWidth - box.clientWidth, 0, false]
    : [0, innerHeight + box.scrollHeight - box.clientHeight, false];
}"#;

const FLOW: &str = r#"() => {
  const root = document.documentElement;
  return { isSideways: Boolean(root) && growsSideways(root), hidesSides: hidesSides() };
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
