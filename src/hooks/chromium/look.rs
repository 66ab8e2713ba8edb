//! What a page looks like at one moment. A recording keeps that of the moment when its page is ready,
//! and a replay is compared with it.

use super::cdp::{CdpError, Ignored, Session};
use super::reveal::World;
use super::{console, stream};
use crate::process::finding::Finding;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

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

/// What a page looks like.
#[derive(Debug, Default)]
pub struct Look {
    pub title: String,
    /// The visible text.
    pub text: String,
    /// A picture of the viewport as PNG.
    pub picture: Vec<u8>,
    /// Errors of its scripts; `None` if they are not known.
    pub errors: Option<Vec<String>>,
}

/// Looks at the document that a tab shows now. `page` is the target id of the tab. The clock of the
/// page must run meanwhile, or chromium takes no picture.
pub async fn look(session: &Session, page: &str) -> Result<Look, Finding> {
    #[derive(Deserialize)]
    struct Shot {
        data: String,
    }
    let world = World::of(session, page).await?;
    let seen = world.evaluate(TEXT, &[TEXT_MAX_CHARS.into()]).await?;
    let text = |name: &str| seen[name].as_str().unwrap_or_default().to_owned();
    redraw(&world).await?;
    let format = json!({"format": "png"});
    let shot: Shot = session.call("Page.captureScreenshot", format).await?;
    Ok(Look {
        title: text("title"),
        text: text("text"),
        picture: stream::decode(&shot.data)?,
        errors: console::errors(session).await.ok(),
    })
}

/// Lets chromium place all of the page again. An element that stays in view while the page scrolls can
/// be half a pixel off afterwards, in some visits and not in others, so that their pictures differ. All
/// places are computed again when a filter is laid over the document, here one that takes its colours,
/// and when it is taken away. No script can see the filter. A page that is too busy to draw gets no
/// more time for it.
async fn redraw(world: &World<'_>) -> Result<(), CdpError> {
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
