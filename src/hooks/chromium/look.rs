//! What a page looks like at one moment. A recording keeps that of the moment when its page is ready,
//! and a replay is compared with it.

use super::cdp::Session;
use super::{console, reveal, stream};
use crate::process::finding::Finding;
use serde::Deserialize;
use serde_json::json;

/// Characters of a page's text that are read.
const TEXT_MAX_CHARS: u32 = 4_000_000;

/// Title and visible text. Elements can have the names of properties of the document.
const TEXT: &str = r#"(most) => {
  const of = (name) => Object.getOwnPropertyDescriptor(Document.prototype, name).get.call(document);
  const root = of("documentElement");
  return { title: of("title") || "", text: ((root && root.innerText) || "").slice(0, most) };
}"#;

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
    let seen = reveal::evaluate(session, page, TEXT, &[TEXT_MAX_CHARS.into()]).await?;
    let text = |name: &str| seen[name].as_str().unwrap_or_default().to_owned();
    let format = json!({"format": "png"});
    let shot: Shot = session.call("Page.captureScreenshot", format).await?;
    Ok(Look {
        title: text("title"),
        text: text("text"),
        picture: stream::decode(&shot.data)?,
        errors: console::errors(session).await.ok(),
    })
}
