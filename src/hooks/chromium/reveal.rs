//! Makes a page load what it loads only when it comes into view.

use super::cdp::{CdpError, Session};
use super::consent::Consent;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

/// Height in pixels to which a page is scrolled: a page may grow for ever.
const SCROLL_MAX_PIXELS: u32 = 100_000;
/// Number of steps in which a page is scrolled: one that grows by a few pixels each is not high.
const SCROLL_MAX_STEPS: u32 = 150;
/// Time for scrolling in milliseconds of the page's clock, for a machine that draws few frames in a
/// second. Height and steps bound the time of one that draws many.
const SCROLL_MAX_MS: u32 = 15_000;
const SCRIPT: &str = include_str!("reveal.js");
/// Functions that all scripts may call.
const SHARED: &str = include_str!("boxes.js");

/// Progress of [`reveal`].
pub enum Revealing {
    /// A remark about what was changed in the page.
    Changed(String),
    Done,
}

/// Evaluates a function of our own in the page with these arguments, in a world of its own: its
/// objects are not those that the scripts of the page may have changed. The function may call those of
/// `boxes.js`.
pub async fn evaluate(
    session: &Session,
    frame: &str,
    function: &str,
    arguments: &[Value],
) -> Result<Value, CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct World {
        execution_context_id: u64,
    }
    #[derive(Deserialize)]
    struct Evaluated {
        result: Returned,
    }
    #[derive(Deserialize)]
    struct Returned {
        #[serde(default)]
        value: Value,
    }
    let world = json!({"frameId": frame, "worldName": "archivist"});
    let world: World = session.call("Page.createIsolatedWorld", world).await?;
    let arguments: Vec<String> = arguments.iter().map(Value::to_string).collect();
    let expression = format!(
        "(() => {{ {SHARED}\nreturn ({function})({}); }})()",
        arguments.join(", ")
    );
    let evaluated: Evaluated = session
        .call(
            "Runtime.evaluate",
            json!({"expression": expression, "contextId": world.execution_context_id,
                "awaitPromise": true, "returnByValue": true}),
        )
        .await?;
    Ok(evaluated.result.value)
}

/// Removes the walls that cover the page, loads lazy images and frames, and scrolls to the end of
/// the page, within bounds, and back. Sends a remark about each wall to `changes`. What fails is only
/// logged: the page is saved without it.
pub async fn reveal(
    session: &Session,
    frame: &str,
    consent: Consent,
    changes: &UnboundedSender<Revealing>,
) {
    let report = |notes: Vec<String>| {
        for note in notes {
            let _ = changes.send(Revealing::Changed(note));
        }
    };
    report(consent.clear(session, frame).await);
    let bounds = [SCROLL_MAX_PIXELS, SCROLL_MAX_STEPS, SCROLL_MAX_MS];
    let arguments = bounds.map(Value::from);
    let done = evaluate(session, frame, SCRIPT, &arguments).await;
    if let Err(error) = done {
        eprintln!("failed to scroll through the page: {error}, ignoring");
        return;
    }
    // Some walls wait for a reader who scrolls.
    report(consent.clear(session, frame).await);
}
