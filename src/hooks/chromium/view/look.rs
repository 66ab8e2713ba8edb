//! What a page looks like at one moment. A recording keeps that of the moment when its page is ready,
//! and a replay is compared with it.

use crate::chromium::cdp::isolated_world::IsolatedWorld;
use crate::chromium::cdp::{CdpError, Ignored, Session};
use crate::chromium::cdp::{console, stream};
use crate::chromium::reveal::STOP;
use crate::picture::PictureFormat;
use crate::process::finding::Finding;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// Quality of pictures in WebP, of 100: letters are as sharp as in a PNG.
const QUALITY: u32 = 80;
/// Bytes of a picture of a viewport, as chromium writes it, from which on it shows photographs. That of a page
/// of text has half of it.
const TEXT_MAX_BYTES: usize = 1 << 20;
/// Characters of a page's text that are read.
const TEXT_MAX_CHARS: u32 = 4_000_000;

/// Title and visible text. Elements can have the names of properties of the document.
const TEXT: &str = r#"(most) => {
  const of = (name) => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
  const root = of("documentElement");
  return { title: of("title") || "", text: ((root && root.innerText) || "").slice(0, most) };
}"#;

/// Returns when two frames were begun: the first one is drawn by then.
const DRAWN: &str = r#"() => new Promise((drawn) => {
  requestAnimationFrame(() => requestAnimationFrame(() => drawn(true)));
})"#;
/// Time for two frames: a page can be too busy to draw any.
const DRAWN_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub struct Look {
    pub title: String,
    pub text: String,
    /// A picture of the viewport.
    pub picture: Vec<u8>,
    /// Errors of its scripts; `None` if they are not known.
    pub errors: Option<Vec<String>>,
}

/// Looks at the document that a tab shows now. `page` is the target id of the tab. Without a `format`, it is
/// the one for what the page shows. The clock of the page must run meanwhile, or chromium takes no picture.
pub async fn look(
    session: &Session,
    page: &str,
    format: Option<PictureFormat>,
) -> Result<Look, Finding> {
    let world = IsolatedWorld::of(session, page).await?;
    // A page that was busy when its revealing was given up may scroll until now.
    world.evaluate(STOP, &[]).await?;
    let seen = world.evaluate(TEXT, &[TEXT_MAX_CHARS.into()]).await?;
    let text = |name: &str| seen[name].as_str().unwrap_or_default().to_owned();
    redraw(&world).await?;
    let picture = match format {
        Some(format) => in_format(session, format).await?,
        None => {
            let picture = capture(session, PictureFormat::Png, json!({})).await?;
            if picture.len() <= TEXT_MAX_BYTES {
                picture
            } else {
                in_format(session, PictureFormat::Webp).await?
            }
        }
    };
    Ok(Look {
        title: text("title"),
        text: text("text"),
        picture,
        errors: console::errors(session).await.ok(),
    })
}

/// Takes a picture of the viewport, as a PNG if it is longer than one in this format can be.
async fn in_format(session: &Session, format: PictureFormat) -> Result<Vec<u8>, Finding> {
    let picture = capture(session, format, json!({})).await?;
    if picture.is_empty() {
        return capture(session, PictureFormat::Png, json!({})).await;
    }
    Ok(picture)
}

/// Takes a picture of a tab; `how` has further parameters of `Page.captureScreenshot`. Without bytes if the
/// picture is larger than its format can be. A PNG is larger than it must be, see
/// [`compressed`](crate::picture::compressed).
pub async fn capture(
    session: &Session,
    format: PictureFormat,
    mut how: Value,
) -> Result<Vec<u8>, Finding> {
    #[derive(Deserialize)]
    struct Shot {
        data: String,
    }
    how["format"] = format.name().into();
    match format {
        PictureFormat::Webp => how["quality"] = QUALITY.into(),
        // Chromium writes pictures in the thread that all its tabs wait for: a PNG with all compression takes
        // five times as long, a WebP ten times.
        PictureFormat::Png => how["optimizeForSpeed"] = true.into(),
    }
    let shot: Shot = session.call("Page.captureScreenshot", how).await?;
    stream::decode(&shot.data)
}

/// Lets chromium place all of the page again. An element that stays in view while the page scrolls can
/// be half a pixel off afterwards, in some visits and not in others, so that their pictures differ. All
/// places are computed again when a filter is laid over the document, here one that takes its colours,
/// and when it is taken away. No script can see the filter. A page that is too busy to draw gets no
/// more time for it.
async fn redraw(world: &IsolatedWorld<'_>) -> Result<(), CdpError> {
    for filter in ["achromatopsia", "none"] {
        let filter = json!({"type": filter});
        let method = "Emulation.setEmulatedVisionDeficiency";
        let _: Ignored = world.session.call(method, filter).await?;
        if let Ok(drawn) = timeout(DRAWN_MAX, world.evaluate(DRAWN, &[])).await {
            drawn?;
        }
    }
    Ok(())
}
