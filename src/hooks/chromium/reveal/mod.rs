//! Makes a page load what it loads only when it comes into view.

mod interaction;

use crate::chromium::cdp::isolated_world::{IsolatedWorld, evaluate};
use crate::chromium::cdp::{CdpError, Session};
use crate::chromium::consent::{Consent, Rules, Walls};
use crate::process::invocation::Invocation;
use interaction::interact;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// Height in pixels to which a page is scrolled: a page may grow for ever.
const SCROLL_MAX_PIXELS: u32 = 100_000;
/// Number of steps in which a page is scrolled: one that grows by a few pixels each is not high.
const SCROLL_MAX_STEPS: u32 = 150;
/// Time for frames in milliseconds of the page's clock each time that the page is scrolled to its end, for
/// a machine that draws few in a second. Height and steps bound the time of one that draws many.
const SCROLL_MAX_MS: u32 = 15_000;
/// Most turns of the wheel, and events of each: pages move their content by 50 to 100 pixels for one.
const TURNS_MAX: u32 = 40;
const TURN_EVENTS: u8 = 20;
/// Time of the page's clock in which a page reacts to where it is scrolled: most look at the position a few
/// times a second.
const REACTION: Duration = Duration::from_secs(1);
/// Time that a medium gets for its first picture or sound. On a busy machine Chromium needs more than two
/// seconds until it requests the first medium of its life. The page's clock cannot tell: after a grant that
/// was lost it makes up for seconds in a moment, in which nothing is loaded.
const MEDIUM_MAX: Duration = Duration::from_secs(10);
/// A page that is busy with a script is left where it is.
const STOP_MAX: Duration = Duration::from_secs(1);
const SCRIPT: &str = concat!(
    "(...bounds) => { ",
    include_str!("fading.js"),
    include_str!("lists.js"),
    include_str!("reveal.js"),
    "\nglobalThis.scrolling = new Scrolling(...bounds); }"
);
/// Leaves the page as its author wrote it, at its top, if it is still revealed.
pub const STOP: &str = "() => globalThis.scrolling?.stop()";
/// How often a page settles again that loads something in each frame.
const SCRIPTS_MAX: usize = 50;
/// How much the page has loaded, two frames later: in the first one, what waits for a frame begins. The
/// clock of a page that draws none goes on.
const SIZE: &str = r#"async () => {
  const frame = () => new Promise((drawn) => { requestAnimationFrame(drawn); setTimeout(drawn, 500); });
  await frame();
  await frame();
  return [performance.getEntriesByType("resource").length, document.querySelectorAll("*").length];
}"#;
const OPENING: &str = include_str!("opening.js");
/// What is done to a page before it is saved. A page on which nothing of it is found is not changed.
#[derive(Debug, Clone)]
pub struct Behaviors {
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
    details: usize,
    media: usize,
}

impl Opened {
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

/// What was done to a page at the end of its revealing.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Kept {
    kept: u64,
    lists: Vec<List>,
}

/// Numbers of rows of a list that holds only those in view.
#[derive(Deserialize)]
struct List {
    shown: u64,
    /// Collected while the list was scrolled.
    seen: u64,
    /// More than were collected if it is a guess.
    total: u64,
}

impl List {
    fn note(&self) -> String {
        let List { shown, seen, total } = self;
        if seen == total {
            format!("a list shows {shown} of {total} rows; text and DOM have them all")
        } else {
            format!("a list shows {shown} of about {total} rows; text and DOM have {seen} of them")
        }
    }
}

/// A remark about elements that are kept as they were in view.
fn kept_note(kept: u64) -> Option<String> {
    let part = if kept == 1 { "part" } else { "parts" };
    (kept > 0).then(|| format!("kept {kept} {part} that the page hides out of view"))
}

/// Progress of the revealing of a page.
pub enum Revealing {
    Changed(String),
    /// It goes on by [`Revealer::resume`], after at most this time of the page's clock.
    Rest(Duration),
    Done,
}

/// Reveals the document of a tab in a task, which ends with this value.
#[derive(Default)]
pub struct Revealer {
    task: Option<AbortHandle>,
    progress: Option<mpsc::UnboundedReceiver<(Revealing, Option<oneshot::Sender<()>>)>>,
    resting: Option<oneshot::Sender<()>>,
}

impl Revealer {
    pub fn start(session: &Session, frame: &str, behaviors: Behaviors) -> Revealer {
        let (progress, received) = mpsc::unbounded_channel();
        let (session, frame) = (session.clone(), frame.to_owned());
        let task = tokio::spawn(async move {
            let page = Page { session: &session, frame: &frame, progress: &progress };
            if let Err(error) = page.reveal(behaviors).await {
                eprintln!("failed to show all of the page: {error}, ignoring");
            }
            page.send(Revealing::Done, None);
        });
        Revealer { task: Some(task.abort_handle()), progress: Some(received), resting: None }
    }

    /// Waits for progress.
    pub async fn next(&mut self) -> Revealing {
        match &mut self.progress {
            Some(progress) => match progress.recv().await {
                Some((step, resting)) => {
                    self.resting = resting;
                    step
                }
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    /// Ends the task. Returns whether it was working.
    pub fn give_up(&mut self) -> bool {
        let task = self.task.take().filter(|task| !task.is_finished());
        task.map(|task| task.abort()).is_some()
    }

    /// Lets the task go on if it rests.
    pub fn resume(&mut self) {
        self.resting.take().map(|resting| resting.send(()));
    }
}

impl Drop for Revealer {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Leaves a page at its top whose revealing was given up.
pub async fn stop(session: &Session, frame: &str) {
    let stopping = evaluate(session, frame, STOP, &[]);
    let _ = timeout(STOP_MAX, stopping).await;
}

/// A page that is revealed.
struct Page<'a> {
    session: &'a Session,
    frame: &'a str,
    progress: &'a mpsc::UnboundedSender<(Revealing, Option<oneshot::Sender<()>>)>,
}

impl Page<'_> {
    /// Does what a reader does first, removes the walls that cover the page, loads lazy images and frames,
    /// scrolls to the end of the page, within bounds, and back to its top, and starts media. What fails is
    /// only logged: the page is saved without it.
    async fn reveal(&self, behaviors: Behaviors) -> Result<(), CdpError> {
        let world = IsolatedWorld::of(self.session, self.frame).await?;
        if interact(&world).await? {
            self.settle(&world).await?;
        }
        let mut walls = Walls::new(behaviors.consent, behaviors.rules.as_deref(), &behaviors.hosts);
        self.report(walls.clear(&world, self.frame).await);
        if behaviors.details {
            // The page is longer with them.
            self.report(open(&world, true, false).await?);
        }
        let steps = if behaviors.scroll { SCROLL_MAX_STEPS } else { 0 };
        let bounds = [SCROLL_MAX_PIXELS, steps, SCROLL_MAX_MS];
        world.evaluate(SCRIPT, &bounds.map(Value::from)).await?;
        self.go_home(&world).await?;
        let mut has_scrolled = self.turn_wheel(&world).await?;
        // A page may grow when its end is in view.
        while world.evaluate("() => scrolling.down()", &[]).await? == json!(true) {
            has_scrolled = true;
            self.rest(REACTION).await;
        }
        self.go_home(&world).await?;
        if has_scrolled {
            // Some walls wait for a reader who scrolls.
            self.report(walls.clear(&world, self.frame).await);
        }
        let kept = world.evaluate("() => scrolling.end()", &[]).await?;
        let kept: Kept = serde_json::from_value(kept).unwrap_or_default();
        self.report(kept_note(kept.kept));
        self.report(kept.lists.iter().map(List::note));
        if behaviors.media {
            self.report(open(&world, false, true).await?);
        }
        Ok(())
    }

    /// Turns the wheel on a page that moves its content itself, until nothing moves any more, and back.
    /// Returns whether anything moved.
    async fn turn_wheel(&self, world: &IsolatedWorld<'_>) -> Result<bool, CdpError> {
        const PLACE: &str = "() => scrolling.place()";
        let mut before = world.evaluate(PLACE, &[]).await?;
        let mut turns = 0;
        while turns < TURNS_MAX && !before.is_null() {
            interaction::turn(world, i32::from(TURN_EVENTS)).await?;
            self.rest(REACTION).await;
            let now = world.evaluate(PLACE, &[]).await?;
            if now == before {
                break;
            }
            (before, turns) = (now, turns + 1);
        }
        for _ in 0..turns {
            interaction::turn(world, -i32::from(TURN_EVENTS)).await?;
        }
        // Most pages slow down on their way.
        for _ in 0..turns.min(1) * TURNS_MAX {
            self.rest(REACTION).await;
            let now = world.evaluate(PLACE, &[]).await?;
            if now == before {
                break;
            }
            before = now;
        }
        Ok(turns > 0)
    }

    /// Scrolls to the top, and waits until the page has reacted.
    async fn go_home(&self, world: &IsolatedWorld<'_>) -> Result<(), CdpError> {
        if world.evaluate("() => scrolling.home()", &[]).await? == json!(true) {
            self.rest(REACTION).await;
        }
        Ok(())
    }

    /// Waits until what the page loads only now has settled as the page did before, also if each of its
    /// scripts waits for a frame before it loads the next one.
    async fn settle(&self, world: &IsolatedWorld<'_>) -> Result<(), CdpError> {
        let mut before = Value::Null;
        for _ in 0..SCRIPTS_MAX {
            self.rest(Duration::MAX).await;
            let now = world.evaluate(SIZE, &[]).await?;
            if now == before {
                break;
            }
            before = now;
        }
        Ok(())
    }

    fn send(&self, progress: Revealing, resting: Option<oneshot::Sender<()>>) {
        let _ = self.progress.send((progress, resting));
    }

    fn report(&self, notes: impl IntoIterator<Item = String>) {
        for note in notes {
            self.send(Revealing::Changed(note), None);
        }
    }

    /// Waits until the page has settled again, for which its scripts get at most this time of its clock.
    async fn rest(&self, budget: Duration) {
        let (resting, rested) = oneshot::channel();
        self.send(Revealing::Rest(budget), Some(resting));
        let _ = rested.await;
    }
}

/// Opens the sections of a page, or starts its media. Returns remarks about it.
async fn open(
    world: &IsolatedWorld<'_>,
    details: bool,
    media: bool,
) -> Result<Vec<String>, CdpError> {
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
