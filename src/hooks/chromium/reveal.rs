//! Makes a page load what it loads only when it comes into view.

use super::cdp::{CdpError, Session};
use super::consent::{Consent, Rules, Walls};
use crate::process::invocation::Invocation;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

/// Height in pixels to which a page is scrolled: a page may grow for ever.
const SCROLL_MAX_PIXELS: u32 = 100_000;
/// Number of steps in which a page is scrolled: one that grows by a few pixels each is not high.
const SCROLL_MAX_STEPS: u32 = 150;
/// Time for scrolling in milliseconds of the page's clock, for a machine that draws few frames in a
/// second. Height and steps bound the time of one that draws many.
const SCROLL_MAX_MS: u32 = 15_000;
/// Time that a medium gets for its first picture or sound. On a busy machine Chromium needs more than two
/// seconds until it requests the first medium of its life. The page's clock cannot tell: after a grant that
/// was lost it makes up for seconds in a moment, in which nothing is loaded.
const MEDIUM_MAX: Duration = Duration::from_secs(10);
const SCRIPT: &str = concat!(
    "(...bounds) => { ",
    include_str!("fading.js"),
    "\nreturn (",
    include_str!("reveal.js"),
    ")(...bounds); }"
);
const OPENING: &str = include_str!("opening.js");
/// Functions that all scripts may call.
const SHARED: &str = include_str!("boxes.js");

/// What is done to a page before it is saved. A page on which nothing of it is found is not changed.
#[derive(Debug, Clone)]
pub struct Behaviors {
    /// What to do about walls.
    consent: Consent,
    /// `CHROMIUM_CONSENT_RULES=`: rules for walls that have no known button.
    rules: Option<Arc<Rules>>,
    /// `CHROMIUM_CONSENT_HOSTS=`: hosts of consent platforms whose frames are clicked.
    hosts: Vec<String>,
    /// `CHROMIUM_SCROLL=`: scroll to the end of the page and back.
    scroll: bool,
    /// `CHROMIUM_MEDIA=`: start audio and video that load nothing before.
    media: bool,
    /// `CHROMIUM_DETAILS=`: open the sections that the reader opens.
    details: bool,
}

impl Behaviors {
    /// Reads the settings.
    pub fn of(invocation: &Invocation) -> Behaviors {
        let settings = &invocation.settings;
        let consent = Consent::of(invocation);
        Behaviors {
            consent,
            rules: consent.rules(invocation),
            hosts: settings.list("CHROMIUM_CONSENT_HOSTS"),
            scroll: settings.flag("CHROMIUM_SCROLL"),
            media: settings.flag("CHROMIUM_MEDIA"),
            details: settings.flag("CHROMIUM_DETAILS"),
        }
    }
}

/// Result of `opening.js`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Opened {
    /// Number of sections that were opened.
    details: usize,
    /// Number of media that were started.
    media: usize,
}

impl Opened {
    /// Remarks about what was done.
    fn notes(&self) -> Vec<String> {
        let section = if self.details == 1 { "section" } else { "sections" };
        let medium = if self.media == 1 { "medium" } else { "media" };
        let notes = [
            (self.details > 0).then(|| format!("opened {} {section}", self.details)),
            (self.media > 0).then(|| format!("started {} {medium}", self.media)),
        ];
        notes.into_iter().flatten().collect()
    }
}

/// Result of `reveal.js`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Scrolled {
    /// Number of steps.
    steps: u32,
    /// Number of elements that are kept as they were in view.
    kept: usize,
}

impl Scrolled {
    /// A remark about what was done.
    fn note(&self) -> Option<String> {
        let part = if self.kept == 1 { "part" } else { "parts" };
        (self.kept > 0)
            .then(|| format!("kept {} {part} that the page hides out of view", self.kept))
    }
}

/// Progress of [`reveal`].
pub enum Revealing {
    /// A remark about what was changed in the page.
    Changed(String),
    Done,
}

/// A world of our own in the present document of a frame: its objects are not those that the scripts
/// of the page may have changed.
pub struct World<'a> {
    pub session: &'a Session,
    id: u64,
}

/// Result of an evaluation or call.
#[derive(Deserialize)]
struct Evaluated {
    result: Returned,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Returned {
    value: Value,
    object_id: String,
}

impl World<'_> {
    /// Enters the document that the frame shows now.
    pub async fn of<'a>(session: &'a Session, frame: &str) -> Result<World<'a>, CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Created {
            execution_context_id: u64,
        }
        let world = json!({"frameId": frame, "worldName": "archivist"});
        let world: Created = session.call("Page.createIsolatedWorld", world).await?;
        Ok(World { session, id: world.execution_context_id })
    }

    /// Evaluates a function of our own with these arguments, which may call those of `boxes.js`.
    /// Fails if the frame shows another document by now.
    pub async fn evaluate(&self, function: &str, arguments: &[Value]) -> Result<Value, CdpError> {
        let arguments: Vec<String> = arguments.iter().map(Value::to_string).collect();
        let expression =
            format!("(() => {{ {SHARED}\nreturn ({function})({}); }})()", arguments.join(", "));
        let evaluated: Evaluated = self
            .session
            .call(
                "Runtime.evaluate",
                json!({"expression": expression, "contextId": self.id,
                    "awaitPromise": true, "returnByValue": true}),
            )
            .await?;
        Ok(evaluated.result.value)
    }

    /// Returns the id of the document in the world of the page, for [`World::call_in_page`].
    pub async fn document_of_page(&self) -> Result<String, CdpError> {
        let own = json!({"expression": "document", "contextId": self.id});
        let own: Evaluated = self.session.call("Runtime.evaluate", own).await?;
        let own = json!({"objectId": own.result.object_id});
        let described: Value = self.session.call("DOM.describeNode", own).await?;
        let node = json!({"backendNodeId": described["node"]["backendNodeId"]});
        let resolved: Value = self.session.call("DOM.resolveNode", node).await?;
        let id = resolved["object"]["objectId"].as_str();
        Ok(id.unwrap_or_default().to_owned())
    }

    /// Evaluates an expression in the world of the page at the root of the session, whose objects
    /// may be those of its scripts.
    pub async fn evaluate_in_page(&self, expression: &str) -> Result<Value, CdpError> {
        let call = json!({"expression": expression, "returnByValue": true});
        let evaluated: Evaluated = self.session.call("Runtime.evaluate", call).await?;
        Ok(evaluated.result.value)
    }

    /// Calls a function in the world of the page, whose objects may be those of its scripts.
    pub async fn call_in_page(&self, document: &str, function: &str) -> Result<Value, CdpError> {
        let call =
            json!({"objectId": document, "functionDeclaration": function, "returnByValue": true});
        let called: Evaluated = self.session.call("Runtime.callFunctionOn", call).await?;
        Ok(called.result.value)
    }
}

/// Evaluates a function of our own in the page with these arguments, see [`World`].
pub async fn evaluate(
    session: &Session,
    frame: &str,
    function: &str,
    arguments: &[Value],
) -> Result<Value, CdpError> {
    let world = World::of(session, frame).await?;
    world.evaluate(function, arguments).await
}

/// Removes the walls that cover the page, loads lazy images and frames, scrolls to the end of the
/// page, within bounds, and back, and starts media. Sends a remark about each change to `changes`.
/// What fails is only logged: the page is saved without it.
pub async fn reveal(
    session: &Session,
    frame: &str,
    behaviors: Behaviors,
    changes: &UnboundedSender<Revealing>,
) {
    let done = reveal_in(session, frame, behaviors, changes).await;
    if let Err(error) = done {
        eprintln!("failed to show all of the page: {error}, ignoring");
    }
}

async fn reveal_in(
    session: &Session,
    frame: &str,
    behaviors: Behaviors,
    changes: &UnboundedSender<Revealing>,
) -> Result<(), CdpError> {
    let report = |notes: Vec<String>| {
        for note in notes {
            let _ = changes.send(Revealing::Changed(note));
        }
    };
    let world = World::of(session, frame).await?;
    let mut walls = Walls::new(behaviors.consent, behaviors.rules.as_deref(), &behaviors.hosts);
    report(walls.clear(&world, frame).await);
    if behaviors.details {
        // The page is longer with them.
        report(open(&world, true, false).await?);
    }
    let steps = if behaviors.scroll { SCROLL_MAX_STEPS } else { 0 };
    let bounds = [SCROLL_MAX_PIXELS, steps, SCROLL_MAX_MS];
    let arguments = bounds.map(Value::from);
    let scrolled = world.evaluate(SCRIPT, &arguments).await?;
    let scrolled: Scrolled = serde_json::from_value(scrolled).unwrap_or_default();
    report(scrolled.note().into_iter().collect());
    // Some walls wait for a reader who scrolls.
    if scrolled.steps > 0 {
        report(walls.clear(&world, frame).await);
    }
    if behaviors.media {
        report(open(&world, false, true).await?);
    }
    Ok(())
}

/// Opens the sections of a page, or starts its media. Returns remarks about it.
async fn open(world: &World<'_>, details: bool, media: bool) -> Result<Vec<String>, CdpError> {
    let arguments = [json!(details), json!(media)];
    let mut opening = std::pin::pin!(world.evaluate(OPENING, &arguments));
    let opened = match timeout(MEDIUM_MAX, &mut opening).await {
        Ok(opened) => opened?,
        Err(_) => {
            world.evaluate("() => globalThis.endWaiting?.()", &[]).await?;
            opening.await?
        }
    };
    let opened: Opened = serde_json::from_value(opened).unwrap_or_default();
    Ok(opened.notes())
}
