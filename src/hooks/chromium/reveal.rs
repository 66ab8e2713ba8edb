//! Makes a page load what it loads only when it comes into view.

use super::cdp::{CdpError, Session};
use serde::Deserialize;
use serde_json::{Value, json};

/// Height in pixels to which a page is scrolled: a page may grow for ever.
const SCROLL_MAX_PIXELS: u32 = 100_000;
/// Time for scrolling in milliseconds of the page's clock.
const SCROLL_MAX_MS: u32 = 4000;
const SCRIPT: &str = include_str!("reveal.js");

/// Evaluates a function of our own in the page with these arguments, in a world of its own: its
/// objects are not those that the scripts of the page may have changed.
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
    let expression = format!("({function})({})", arguments.join(", "));
    let evaluated: Evaluated = session
        .call(
            "Runtime.evaluate",
            json!({"expression": expression, "contextId": world.execution_context_id,
                "awaitPromise": true, "returnByValue": true}),
        )
        .await?;
    Ok(evaluated.result.value)
}

/// Loads lazy images and frames, and scrolls to the end of the page, within bounds, and back. What fails is only logged: the page is saved without it.
pub async fn reveal(session: &Session, frame: &str) {
    let arguments = [json!(SCROLL_MAX_PIXELS), json!(SCROLL_MAX_MS)];
    let done = evaluate(session, frame, SCRIPT, &arguments).await;
    if let Err(error) = done {
        eprintln!("failed to scroll through the page: {error}, ignoring");
    }
}
