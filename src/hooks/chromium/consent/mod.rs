//! Removes walls that cover a page or lock its scrolling: consent for cookies, newsletters.
//!
//! `walls.js` finds them by their position, words (`phrases.json`) and known markup, rejects them by
//! their own buttons, and hides those that remain. It runs in a world of its own in the page, and in
//! frames of other sites, in which many consent managers live. A page without walls is not changed.

use super::cdp::{CdpError, Session};
use super::reveal::World;
use crate::process::invocation::Invocation;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Walls that appear one after the other, such as a newsletter after the consent.
const ROUNDS_MAX: usize = 4;
/// Frames of a page that are searched for the buttons of a wall.
const FRAMES_MAX: usize = 20;
const SCRIPT: &str = include_str!("walls.js");

/// Words of buttons and walls by language, and known consent managers.
static PHRASES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("phrases.json")).unwrap_or_default());

/// `CHROMIUM_CONSENT=`: what to do about walls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Click what rejects or closes them; hide those that remain.
    Reject,
    /// Hide them without a click.
    Hide,
    /// Leave them.
    Keep,
}

/// Result of the step `act`: what was found.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Found {
    /// Number of walls.
    walls: usize,
    /// Whether a wall is a frame that the script cannot read.
    frames: bool,
    /// Remarks for the case that a click leads to another document.
    notes: Vec<String>,
}

/// Result of the step `wait`: what was done.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Done {
    notes: Vec<String>,
}

/// Result of the step `frame`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct InFrame {
    /// Whether the frame asks for consent.
    is_consent: bool,
    /// Label of the button that was clicked; empty if none was.
    label: String,
}

impl InFrame {
    fn to_json(&self) -> Value {
        json!({"isConsent": self.is_consent, "label": self.label})
    }
}

impl Consent {
    /// Reads the setting. Unknown values are the default.
    pub fn of(invocation: &Invocation) -> Consent {
        match invocation.settings.text("CHROMIUM_CONSENT").trim() {
            "hide" => Consent::Hide,
            "no" => Consent::Keep,
            _ => Consent::Reject,
        }
    }

    /// Removes the walls of a page, whose main frame is `frame`. Returns a remark for each. Errors are
    /// only logged.
    pub async fn clear(self, world: &World<'_>, frame: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if self == Consent::Keep {
            return notes;
        }
        for _ in 0..ROUNDS_MAX {
            match self.round(world, frame, &mut notes).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    eprintln!("failed to remove what covers the page: {error}, ignoring");
                    break;
                }
            }
        }
        notes
    }

    /// Removes the walls that are there now. Returns whether there were any. Fails if a click led to
    /// another document while this waited; the remarks are complete then.
    async fn round(
        self,
        world: &World<'_>,
        frame: &str,
        notes: &mut Vec<String>,
    ) -> Result<bool, CdpError> {
        let found: Found = self.step(world, "act", &Value::Null).await?;
        if found.walls == 0 {
            return Ok(false);
        }
        let in_frame = if found.frames {
            self.reject_in_frames(world.session, frame).await?
        } else {
            InFrame::default()
        };
        let done = self.step::<Done>(world, "wait", &in_frame.to_json()).await;
        match done {
            Ok(done) => notes.extend(done.notes),
            // The click led to another document.
            Err(error) => {
                notes.extend(found.notes);
                return Err(error);
            }
        }
        Ok(true)
    }

    async fn step<T: DeserializeOwned + Default>(
        self,
        world: &World<'_>,
        step: &str,
        framed: &Value,
    ) -> Result<T, CdpError> {
        let mode = if self == Consent::Hide {
            "hide"
        } else {
            "reject"
        };
        let arguments = [json!(mode), json!(step), PHRASES.clone(), framed.clone()];
        let value = world.evaluate(SCRIPT, &arguments).await?;
        Ok(serde_json::from_value(value).unwrap_or_default())
    }

    /// Clicks what rejects consent in a frame.
    async fn reject_in_frame(self, session: &Session, frame: &str) -> Result<InFrame, CdpError> {
        let world = World::of(session, frame).await?;
        self.step(&world, "frame", &Value::Null).await
    }

    /// Clicks what rejects consent in the first frame that asks for it.
    async fn reject_in_frames(self, session: &Session, main: &str) -> Result<InFrame, CdpError> {
        let mut asked = InFrame::default();
        for frame in same_process(session, main).await? {
            let in_frame = self.reject_in_frame(session, &frame).await?;
            if in_frame.is_consent {
                asked = in_frame;
            }
            if !asked.label.is_empty() {
                return Ok(asked);
            }
        }
        for target in other_processes(session, main).await? {
            let child = session.connection().attach(&target).await?;
            let in_frame = self.reject_in_frame(&child, &target).await;
            // The target has gone if the wall is removed with its frame.
            let _ = child.detach().await;
            match in_frame {
                Ok(in_frame) if in_frame.is_consent => asked = in_frame,
                Ok(_) => {}
                // A frame may go while it is searched.
                Err(error) => eprintln!("failed to search a frame for a wall: {error}, ignoring"),
            }
            if !asked.label.is_empty() {
                return Ok(asked);
            }
        }
        Ok(asked)
    }
}

/// Frames of the page in its own process, without the main frame.
async fn same_process(session: &Session, main: &str) -> Result<Vec<String>, CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        frame_tree: Tree,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Tree {
        frame: Frame,
        #[serde(default)]
        child_frames: Vec<Tree>,
    }
    #[derive(Deserialize)]
    struct Frame {
        id: String,
    }
    let answer: Answer = session.call("Page.getFrameTree", json!({})).await?;
    let mut trees = vec![answer.frame_tree];
    let mut frames = Vec::new();
    while let Some(tree) = trees.pop() {
        trees.extend(tree.child_frames);
        if tree.frame.id != main {
            frames.push(tree.frame.id);
        }
    }
    frames.truncate(FRAMES_MAX);
    Ok(frames)
}

/// Target ids of the page's frames that are in other processes. They are found by the browser
/// context, which contains no other page.
async fn other_processes(session: &Session, main: &str) -> Result<Vec<String>, CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Targets {
        target_infos: Vec<Target>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Target {
        target_id: String,
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        browser_context_id: String,
    }
    let filter = json!({"filter": [{"type": "iframe"}, {"type": "page"}]});
    let browser = session.connection().browser();
    let known: Targets = browser.call("Target.getTargets", filter).await?;
    let targets = known.target_infos;
    let own = targets.iter().find(|target| target.target_id == main);
    let context = own.map(|target| target.browser_context_id.clone());
    Ok(targets
        .into_iter()
        .filter(|target| target.kind == "iframe")
        .filter(|target| Some(&target.browser_context_id) == context.as_ref())
        .map(|target| target.target_id)
        .take(FRAMES_MAX)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::RegexBuilder;

    /// Whether a phrase of this kind matches, as in `walls.js`.
    fn matches(kind: &str, text: &str) -> bool {
        let list = PHRASES[kind].as_array().unwrap();
        list.iter().any(|phrase| {
            let phrase = phrase.as_str().unwrap();
            let phrase = match kind {
                "reject" | "close" => format!("^(?:{phrase})$"),
                // The only phrase with a condition that this engine lacks.
                _ => phrase.replace("(?!ed)", ""),
            };
            let pattern = RegexBuilder::new(&phrase).case_insensitive(true).build();
            pattern.unwrap().is_match(text)
        })
    }

    fn rejects(label: &str) -> bool {
        (matches("reject", label) || matches("rejectPart", label)) && !matches("rejectNever", label)
    }

    #[test]
    fn labels_that_reject_are_known_in_many_languages() {
        for label in [
            "Reject all",
            "Continue without accepting",
            "Only necessary cookies",
            "Alle ablehnen",
            "Nur technisch notwendige Cookies zulassen",
            "Tout refuser",
            "Rechazar todas",
            "Rifiuta tutti",
            "Rejeitar tudo",
            "Alles weigeren",
            "Neka alla",
            "Kun nødvendige",
            "Vain välttämättömät evästeet",
            "Odrzuć wszystkie",
            "Odmítnout vše",
            "Отклонить все",
            "すべて拒否する",
            "拒绝",
            "모두 거부",
        ] {
            assert!(rejects(label), "{label}");
        }
    }

    #[test]
    fn labels_that_accept_pay_or_lead_on_do_not_reject() {
        for label in [
            "Accept all",
            "Alle akzeptieren",
            "Necessary",
            "Settings",
            "Reject and subscribe",
            "Refuser et s\u{2019}abonner",
            "Rechazar y pagar",
            "Ablehnen und Abo kaufen",
            "Einstellungen oder ablehnen",
        ] {
            assert!(!rejects(label), "{label}");
        }
    }

    #[test]
    fn managers_have_a_name_and_selectors() {
        for manager in PHRASES["managers"].as_array().unwrap() {
            for field in ["name", "wall", "reject"] {
                let text = manager[field].as_str().unwrap_or_default();
                assert!(!text.is_empty(), "{manager}");
            }
        }
    }
}
