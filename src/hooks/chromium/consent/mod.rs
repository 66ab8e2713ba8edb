//! Removes walls that cover a page or lock its scrolling: consent for cookies, newsletters.
//!
//! `walls.js` finds them by their position, words (`phrases.json`) and known markup, rejects them by
//! their own buttons, and hides those that remain. It runs in a world of its own in the page, and in
//! frames, in which many consent managers live: `frames.rs` says which may be clicked. If it finds no button, the rules of
//! autoconsent get a try (`rules.rs`), before it hides anything. A page without walls is not changed.

mod frames;
mod rules;

use crate::chromium::cdp::isolated_world::IsolatedWorld;
use crate::chromium::cdp::{CdpError, Session};
use crate::process::invocation::Invocation;
use scraper::Selector;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use frames::{Frame, Frames};
use rules::Done as RuleDone;
pub use rules::{Rules, SETTING as RULES_SETTING, is_release};

/// Walls that appear one after the other, such as a newsletter after the consent.
const ROUNDS_MAX: usize = 4;
/// Real time for the rules of autoconsent in a page.
const RULES_MAX: Duration = Duration::from_secs(8);
const SCRIPT: &str = include_str!("walls.js");
/// Mode of the script without a click.
const HIDE: &str = "hide";

/// Words of buttons and walls by language, and known consent managers.
static PHRASES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("phrases.json")).unwrap_or_default());

/// Returns a selector of the walls of known consent managers, and of their settings. `None` if the list of
/// managers cannot be read.
pub fn consent_managers() -> Option<Selector> {
    let managers = PHRASES["managers"].as_array()?.iter();
    let walls: Vec<&str> = managers.filter_map(|one| one["wall"].as_str()).collect();
    Selector::parse(&walls.join(", ")).ok()
}

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
#[serde(default, rename_all = "camelCase")]
struct Found {
    walls: usize,
    /// Number of walls without a known button.
    open: usize,
    /// Whether a wall is a frame that the script cannot read.
    frames: bool,
    /// Whether consent was rejected in this document.
    is_settled: bool,
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
    is_consent: bool,
    /// Label of the button that was clicked; empty if none was.
    label: String,
}

impl InFrame {
    /// Argument of the step `wait`. `is_ruled` is whether a rule of autoconsent acted.
    fn to_json(&self, is_ruled: bool) -> Value {
        json!({"isConsent": self.is_consent, "label": self.label, "isRuled": is_ruled})
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

    /// Reads the rules, if this carries them out.
    pub fn rules(self, invocation: &Invocation) -> Option<Arc<Rules>> {
        match self {
            Consent::Reject => Rules::of(invocation),
            Consent::Hide | Consent::Keep => None,
        }
    }
}

pub struct Walls<'a> {
    consent: Consent,
    rules: Option<&'a Rules>,
    /// `CHROMIUM_CONSENT_HOSTS=`: hosts of consent platforms, in addition to those that are known.
    hosts: &'a [String],
    /// Time that is left for the rules.
    patience: Duration,
    /// Whether the rules were tried on a page without a wall.
    are_rules_tried: bool,
}

impl<'a> Walls<'a> {
    /// Nothing of the page was removed so far.
    pub fn new(consent: Consent, rules: Option<&'a Rules>, hosts: &'a [String]) -> Walls<'a> {
        Walls { consent, rules, hosts, patience: RULES_MAX, are_rules_tried: false }
    }

    /// Removes the walls that are there now, one after the other. `frame` is the main frame. Returns
    /// a remark for each. Errors are only logged.
    pub async fn clear(&mut self, world: &IsolatedWorld<'_>, frame: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if self.consent == Consent::Keep {
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
        &mut self,
        world: &IsolatedWorld<'_>,
        frame: &str,
        notes: &mut Vec<String>,
    ) -> Result<bool, CdpError> {
        let mode = self.mode();
        let found: Found = step(world, mode, "act", &Value::Null).await?;
        let in_frame = if found.frames {
            self.reject_in_frames(world.session, frame).await?
        } else {
            InFrame::default()
        };
        let is_open = if found.walls == 0 {
            !found.is_settled && !self.are_rules_tried
        } else {
            found.open > 0 || found.frames && in_frame.label.is_empty()
        };
        let mut is_ruled = false;
        if is_open {
            let note = self.apply_rules(world, frame).await;
            is_ruled = note.is_some();
            self.are_rules_tried = true;
            notes.extend(note);
        }
        if found.walls == 0 && !is_ruled {
            return Ok(false);
        }
        let framed = in_frame.to_json(is_ruled);
        match step::<Done>(world, mode, "wait", &framed).await {
            Ok(done) => notes.extend(done.notes),
            // The click led to another document.
            Err(error) => {
                notes.extend(found.notes);
                return Err(error);
            }
        }
        Ok(true)
    }

    /// The first argument of the script.
    fn mode(&self) -> &'static str {
        if self.consent == Consent::Hide { HIDE } else { "reject" }
    }

    /// Clicks what rejects consent in a frame that may be clicked, and in others only finds out whether they
    /// ask for it.
    async fn reject_in_frame(&self, session: &Session, frame: &Frame) -> Result<InFrame, CdpError> {
        let world = IsolatedWorld::of(session, &frame.id).await?;
        let mode = if frame.may_click { self.mode() } else { HIDE };
        step(&world, mode, "frame", &json!({"host": frame.host})).await
    }

    /// Clicks what rejects consent in the first frame that asks for it.
    async fn reject_in_frames(&self, session: &Session, main: &str) -> Result<InFrame, CdpError> {
        let mut asked = InFrame::default();
        let frames = Frames::of(session, main, self.hosts).await?;
        for frame in &frames.same_process {
            let in_frame = self.reject_in_frame(session, frame).await?;
            if in_frame.is_consent {
                asked = in_frame;
            }
            if !asked.label.is_empty() {
                return Ok(asked);
            }
        }
        for frame in &frames.other_processes {
            let child = session.connection().attach(&frame.id).await?;
            let in_frame = self.reject_in_frame(&child, frame).await;
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

    /// Carries out the rule whose popup is open in the page or one of its frames. Returns the remark
    /// about it. Errors are only logged.
    async fn apply_rules(&mut self, world: &IsolatedWorld<'_>, main: &str) -> Option<String> {
        let rules = self.rules?;
        let begin = Instant::now();
        let done = tokio::time::timeout(self.patience, apply(rules, world, main, self.hosts)).await;
        self.patience = self.patience.saturating_sub(begin.elapsed());
        match done {
            Ok(Ok(done)) => done.is_change().then(|| done.note()),
            Ok(Err(error)) => {
                eprintln!("failed to apply the rules for consent: {error}, ignoring");
                None
            }
            Err(_) => {
                eprintln!("the rules for consent did not end in time, ignoring");
                None
            }
        }
    }
}

async fn step<T: DeserializeOwned + Default>(
    world: &IsolatedWorld<'_>,
    mode: &str,
    step: &str,
    framed: &Value,
) -> Result<T, CdpError> {
    let arguments = [json!(mode), json!(step), PHRASES.clone(), framed.clone()];
    let value = world.evaluate(SCRIPT, &arguments).await?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Carries out the rule whose popup is open in the page, else in the first of its frames that may be clicked.
async fn apply(
    library: &Rules,
    world: &IsolatedWorld<'_>,
    main: &str,
    hosts: &[String],
) -> Result<RuleDone, CdpError> {
    let done = library.apply(world).await?;
    let Some(rules) = &done.frames else {
        return Ok(done);
    };
    let session = world.session;
    let frames = Frames::of(session, main, hosts).await?;
    for frame in frames.same_process.iter().filter(|frame| frame.may_click) {
        if let Some(done) = changed(library.apply_in_frame(session, &frame.id, rules).await) {
            return Ok(done);
        }
    }
    for frame in frames.other_processes.iter().filter(|frame| frame.may_click) {
        let child = session.connection().attach(&frame.id).await?;
        let done = library.apply_in_frame(&child, &frame.id, rules).await;
        let _ = child.detach().await;
        if let Some(done) = changed(done) {
            return Ok(done);
        }
    }
    Ok(RuleDone::default())
}

/// What a rule did to a frame, if it did anything. A frame may go while it is searched.
fn changed(done: Result<RuleDone, CdpError>) -> Option<RuleDone> {
    let logged = done.inspect_err(|error| {
        eprintln!("failed to apply rules to a frame: {error}, ignoring");
    });
    logged.ok().filter(RuleDone::is_change)
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
