//! Rules of autoconsent, for walls that `walls.js` does not reject.
//!
//! `autoconsent.js` carries the rules out in a world of its own; `packaging/autoconsent` has its
//! source and the rules. Some rules ask for the state of a consent manager, or call it. The world
//! of the page evaluates these expressions, which are part of the script, and answers with true or
//! false.

use crate::chromium::cdp::{CdpError, Session};
use crate::chromium::reveal::World;
use crate::process::invocation::Invocation;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::sync::Arc;

const SETTING: &str = "CHROMIUM_CONSENT_RULES";
/// Default of the setting: the file of the package.
const PACKAGED: &str = "/usr/share/archivist/autoconsent/compact-rules.json";
const ENGINE: &str = include_str!("autoconsent.js");
/// Version of the compact form of the rules that the script reads.
const VERSION: u64 = 1;
/// Size limit of the file. The packaged one has 257 kB.
const BYTES_MAX: u64 = 8 << 20;
/// Steps of a run in a document. Rules ask for few expressions.
const STEPS_MAX: usize = 100;

/// Rules in the compact form, as JSON.
#[derive(Debug)]
pub struct Rules(Box<RawValue>);

/// What a rule did to a document.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct Done {
    /// Name of the rule; empty if none has an open popup.
    pub name: String,
    /// Whether all its steps succeeded.
    pub is_rejected: bool,
    /// Whether its popup is gone.
    pub is_gone: bool,
    /// Whether the rule hides its popup without a click.
    pub is_cosmetic: bool,
    /// Rules for the frames of the page, if one of them may contain a popup.
    pub frames: Option<Value>,
}

/// Result of a step of the script.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Step {
    /// Expressions for the world of the page.
    asks: Option<Vec<String>>,
    /// Name of the rule that clicks after this step.
    opens: Option<String>,
    done: Option<Done>,
}

impl Rules {
    /// Reads the file that the setting names. Returns `None` without one; errors are only logged. A
    /// program that is not installed has no file of the package.
    pub fn of(invocation: &Invocation) -> Option<Arc<Rules>> {
        let path = invocation.settings.text(SETTING);
        let path = path.trim();
        let is_missing = path == PACKAGED && !Path::new(path).exists();
        if path.is_empty() || path == "off" || is_missing {
            return None;
        }
        let rules = Rules::read(Path::new(path));
        let logged = rules.inspect_err(|error| {
            eprintln!("failed to read the rules in '{path}' ({SETTING}): {error}, ignoring");
        });
        logged.ok().map(Arc::new)
    }

    fn read(path: &Path) -> io::Result<Rules> {
        if path.metadata()?.len() > BYTES_MAX {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        Rules::parse(&std::fs::read_to_string(path)?)
    }

    fn parse(text: &str) -> io::Result<Rules> {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only their presence is checked")]
        struct Compact {
            v: u64,
            s: Vec<IgnoredAny>,
            r: Vec<IgnoredAny>,
            index: IgnoredAny,
        }
        let compact: Compact = serde_json::from_str(text)?;
        if compact.v == VERSION {
            Ok(Rules(serde_json::from_str(text)?))
        } else {
            let reason = format!("version {} is not supported", compact.v);
            Err(io::Error::new(io::ErrorKind::InvalidData, reason))
        }
    }

    /// Carries out the rule whose popup is open in the main frame of a page.
    pub async fn apply(&self, world: &World<'_>) -> Result<Done, CdpError> {
        run(world, self.0.get(), Page::OfSession).await
    }
}

/// The world of the page in which expressions of rules are evaluated.
enum Page {
    /// That of the frame at the root of the session.
    OfSession,
    /// That of the document with this id, which is found when it is needed.
    OfDocument(Option<String>),
}

/// Carries out the rule whose popup is open in a frame. `rules` are those of [`Done::frames`].
pub async fn apply_in_frame(
    session: &Session,
    frame: &str,
    rules: &Value,
) -> Result<Done, CdpError> {
    let world = World::of(session, frame).await?;
    run(&world, &rules.to_string(), Page::OfDocument(None)).await
}

/// Runs the script with these rules, in JSON. An error after a rule began to click means that the
/// click removed the frame or led to another document.
async fn run(world: &World<'_>, rules: &str, mut page: Page) -> Result<Done, CdpError> {
    let load = format!("() => {{ {ENGINE}\nreturn archivistRules.begin({rules}); }}");
    let mut step = world.evaluate(&load, &[]).await?;
    let mut opened = None;
    for _ in 0..STEPS_MAX {
        let Step { asks, opens, done } = serde_json::from_value(step).unwrap_or_default();
        if let Some(done) = done {
            return Ok(done);
        }
        if asks.is_none() && opens.is_none() {
            // The script failed.
            break;
        }
        opened = opens.or(opened);
        let answers = match asks {
            Some(asks) => ask(world, &mut page, &asks).await,
            None => Vec::new(),
        };
        let next = "(answers) => archivistRules.next(answers)";
        let answer = world.evaluate(next, &[json!(answers)]).await;
        step = match (answer, &opened) {
            (Ok(step), _) => step,
            (Err(_), Some(name)) => return Ok(Done::departed(name)),
            (Err(error), None) => return Err(error),
        };
    }
    Ok(Done::default())
}

/// Evaluates expressions in the world of the page. Those that fail are false.
async fn ask(world: &World<'_>, page: &mut Page, expressions: &[String]) -> Vec<bool> {
    let guarded = |one: &String| {
        format!("(() => {{ try {{ return !!{one}; }} catch {{ return false; }} }})()")
    };
    let guarded: Vec<String> = expressions.iter().map(guarded).collect();
    let guarded = guarded.join(", ");
    let asked = async {
        let document = match page {
            Page::OfSession => return world.evaluate_in_page(&format!("[{guarded}]")).await,
            Page::OfDocument(Some(document)) => document,
            Page::OfDocument(none) => none.insert(world.document_of_page().await?),
        };
        let function = format!("function () {{ return [{guarded}]; }}");
        world.call_in_page(document, &function).await
    };
    let asked: Result<Value, CdpError> = asked.await;
    asked
        .ok()
        .and_then(|answers| serde_json::from_value(answers).ok())
        .unwrap_or_else(|| vec![false; expressions.len()])
}

impl Done {
    /// The document is gone after the click of this rule.
    fn departed(name: &str) -> Done {
        Done { name: name.to_owned(), is_rejected: true, is_gone: true, ..Done::default() }
    }

    /// Whether a rule changed the document.
    pub fn is_change(&self) -> bool {
        !self.name.is_empty()
    }

    /// The remark about what the rule did.
    pub fn note(&self) -> String {
        let name = &self.name;
        match (self.is_gone, self.is_rejected) {
            (true, _) if self.is_cosmetic => format!("hid a consent wall ({name})"),
            (true, _) => format!("closed a consent wall ({name})"),
            (false, true) => format!("rejected consent ({name})"),
            (false, false) => format!("tried to reject consent ({name})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packaged() -> String {
        let path = "packaging/autoconsent/rules/compact-rules.json";
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let found = root.map(|root| root.join(path)).find(|path| path.exists());
        std::fs::read_to_string(found.unwrap()).unwrap()
    }

    #[test]
    fn packaged_rules_are_read() {
        assert!(Rules::parse(&packaged()).is_ok());
    }

    #[test]
    fn rules_of_another_form_are_refused() {
        let newer = packaged().replacen("{\"v\":1,", "{\"v\":2,", 1);
        let error = Rules::parse(&newer).unwrap_err().to_string();
        assert_eq!(error, "version 2 is not supported");
        for other in ["", "{\"autoconsent\":[]}", "{\"v\":1,\"s\":[],\"r\":[]}", "{}; alert()"] {
            assert!(Rules::parse(other).is_err(), "{other}");
        }
    }

    #[test]
    fn remark_says_what_became_of_the_popup() {
        let done = |is_rejected, is_gone, is_cosmetic| Done {
            name: "X".to_owned(),
            is_rejected,
            is_gone,
            is_cosmetic,
            frames: None,
        };
        assert_eq!(done(true, true, false).note(), "closed a consent wall (X)");
        assert_eq!(done(true, true, true).note(), "hid a consent wall (X)");
        assert_eq!(done(true, false, false).note(), "rejected consent (X)");
        let failed = done(false, false, false).note();
        assert_eq!(failed, "tried to reject consent (X)");
    }
}
