//! Rules of autoconsent, for walls that `walls.js` does not reject.
//!
//! The library and its rules are files of a release of autoconsent, which the package contains if
//! the build had it. `rules.js` drives the library in a world of its own. Some rules ask for the state of
//! a consent manager, or call it. The world of the page evaluates these expressions, which are part of
//! the library, and answers with true or false.

use crate::chromium::cdp::isolated_world::IsolatedWorld;
use crate::chromium::cdp::{CdpError, Session};
use crate::process::invocation::Invocation;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Name of the setting, whose value is the directory of a release or `off`.
pub const SETTING: &str = "CHROMIUM_CONSENT_RULES";
/// Default of the setting: the directory of the package.
const PACKAGED: &str = "/usr/share/archivist/autoconsent";
/// The library in a release, as a CommonJS module.
const LIBRARY: &str = "dist/autoconsent.cjs.js";
/// The rules in a release.
const RULES: &str = "rules/compact-rules.json";
const DRIVER: &str = include_str!("rules.js");
/// Version of the compact form of the rules that the library reads.
const VERSION: u64 = 1;
/// Size limit of each file. The larger of the packaged ones has 257 kB.
const BYTES_MAX: u64 = 8 << 20;
/// Steps of a run in a document. Rules ask for few expressions.
const STEPS_MAX: usize = 100;

/// A release of autoconsent.
#[derive(Debug)]
pub struct Rules {
    library: String,
    /// Rules in the compact form, as JSON.
    compact: Box<RawValue>,
}

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

#[derive(Default, Deserialize)]
#[serde(default)]
struct Step {
    /// Expressions for the world of the page.
    asks: Option<Vec<String>>,
    /// Name of the rule that clicks after this step.
    opens: Option<String>,
    done: Option<Done>,
}

/// Whether the directory of a release has all files that are used.
pub fn is_release(directory: &Path) -> bool {
    [LIBRARY, RULES].iter().all(|file| directory.join(file).is_file())
}

impl Rules {
    /// Reads the release that the setting names. Returns `None` without one; errors are only logged. A
    /// program that is not installed has none, and neither has a package that was built without.
    pub fn of(invocation: &Invocation) -> Option<Arc<Rules>> {
        let path = invocation.settings.text(SETTING);
        let path = path.trim();
        let is_missing = path == PACKAGED && !Path::new(path).exists();
        if path.is_empty() || path == "off" || is_missing {
            return None;
        }
        let rules = Rules::read(Path::new(path));
        let logged = rules.inspect_err(|error| {
            eprintln!("failed to read autoconsent in '{path}' ({SETTING}): {error}, ignoring");
        });
        logged.ok().map(Arc::new)
    }

    fn read(directory: &Path) -> io::Result<Rules> {
        let text = |file| {
            let path = directory.join(file);
            if path.metadata()?.len() > BYTES_MAX {
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
            std::fs::read_to_string(path)
        };
        Ok(Rules { library: text(LIBRARY)?, compact: parse(&text(RULES)?)? })
    }

    /// Carries out the rule whose popup is open in the main frame of a page.
    pub async fn apply(&self, world: &IsolatedWorld<'_>) -> Result<Done, CdpError> {
        self.run(world, self.compact.get(), Page::OfSession).await
    }

    /// Carries out the rule whose popup is open in a frame. `rules` are those of [`Done::frames`].
    pub async fn apply_in_frame(
        &self,
        session: &Session,
        frame: &str,
        rules: &Value,
    ) -> Result<Done, CdpError> {
        let world = IsolatedWorld::of(session, frame).await?;
        self.run(&world, &rules.to_string(), Page::OfDocument(None)).await
    }

    /// Runs the driver with these rules, in JSON. An error after a rule began to click means that the
    /// click removed the frame or led to another document.
    async fn run(
        &self,
        world: &IsolatedWorld<'_>,
        rules: &str,
        mut page: Page,
    ) -> Result<Done, CdpError> {
        let mut step = world.evaluate(&self.script(rules), &[]).await?;
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

    /// The function that loads library and driver in a world that does not have them, and begins a run. The
    /// console of the page, of which the browser keeps 1,000 messages, is not for the library: it writes
    /// hundreds.
    fn script(&self, rules: &str) -> String {
        let Rules { library, .. } = self;
        format!(
            "() => {{ const console = new Proxy({{}}, {{ get: () => () => {{}} }});\n\
             const load = (module) => {{ {library}\nreturn module.exports; }};\n\
             globalThis.archivistRules ??= {DRIVER}(load({{ exports: {{}} }}));\n\
             return archivistRules.begin({rules}); }}"
        )
    }
}

fn parse(text: &str) -> io::Result<Box<RawValue>> {
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
        Ok(serde_json::from_str(text)?)
    } else {
        let reason = format!("version {} is not supported", compact.v);
        Err(io::Error::new(io::ErrorKind::InvalidData, reason))
    }
}

/// The world of the page in which expressions of rules are evaluated.
enum Page {
    /// That of the frame at the root of the session.
    OfSession,
    /// That of the document with this id, which is found when it is needed.
    OfDocument(Option<String>),
}

/// Evaluates expressions in the world of the page. Those that fail are false.
async fn ask(world: &IsolatedWorld<'_>, page: &mut Page, expressions: &[String]) -> Vec<bool> {
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

    pub fn is_change(&self) -> bool {
        !self.name.is_empty()
    }

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

    const EMPTY: &str = r#"{"v":1,"s":[],"r":[],"index":{}}"#;

    #[test]
    fn release_is_read_whole_or_not_at_all() {
        let release = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = release.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(RULES, EMPTY);
        assert!(!is_release(release.path()));
        let error = Rules::read(release.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        write(LIBRARY, "module.exports = {};");
        assert!(is_release(release.path()));
        assert_eq!(Rules::read(release.path()).unwrap().compact.get(), EMPTY);
    }

    #[test]
    fn rules_of_another_form_are_refused() {
        assert!(parse(EMPTY).is_ok());
        let error = parse(&EMPTY.replacen("1", "2", 1)).unwrap_err().to_string();
        assert_eq!(error, "version 2 is not supported");
        for other in ["", "{\"autoconsent\":[]}", "{\"v\":1,\"s\":[],\"r\":[]}", "{}; alert()"] {
            assert!(parse(other).is_err(), "{other}");
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
