//! One check of `archivist doctor` with its result. A check that is not good has a fix, because it
//! cannot be made in another way.

use archivist_core::text::clean;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// The check cannot run here; the text has the reason.
    Skipped,
    /// Something works, but not as well as it could.
    Warn,
    /// Archiving does not work.
    Fail,
}

/// A command that fixes a problem, or shows more about it. It is never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Fix(String);

/// For a problem whose message should have had a fix.
const SEE_JOURNAL: &str = "see: journalctl -u archivist-orchestrator.service";

impl Fix {
    fn new(text: impl Into<String>) -> Fix {
        let text = text.into();
        if text.trim().is_empty() { Fix(SEE_JOURNAL.to_owned()) } else { Fix(text) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    verdict: Verdict,
    pub what: String,
    fix: Option<Fix>,
}

impl Check {
    pub fn ok(name: &'static str, what: impl Into<String>) -> Check {
        Check { name, verdict: Verdict::Ok, what: what.into(), fix: None }
    }

    /// A check that cannot run here. `why` says what it needs.
    pub fn skipped(name: &'static str, why: impl Into<String>) -> Check {
        Check { verdict: Verdict::Skipped, ..Check::ok(name, why) }
    }

    pub fn warn(name: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { verdict: Verdict::Warn, fix: Some(Fix::new(fix)), ..Check::ok(name, what) }
    }

    pub fn fail(name: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { verdict: Verdict::Fail, ..Check::warn(name, what, fix) }
    }

    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Returns what fixes the problem; `None` if there is no problem.
    pub fn fix(&self) -> Option<&str> {
        self.fix.as_ref().map(|fix| fix.0.as_str())
    }

    /// Returns the check with its fix rewritten by `edit`.
    pub fn with_fix(mut self, edit: impl Fn(&str) -> String) -> Check {
        self.fix = self.fix.map(|fix| Fix::new(edit(&fix.0)));
        self
    }

    /// Returns the line of the check after its verdict, in columns, and that of the fix.
    pub fn lines(&self, widest: usize) -> String {
        let mut lines = format!("{:<widest$}  {}\n", self.name, clean(&self.what));
        if let Some(fix) = self.fix() {
            lines.push_str(&format!("      {:<widest$}  → {}\n", "", clean(fix)));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_without_a_fix_cannot_be_made() {
        for fix in ["", " \n"] {
            let check = Check::fail("orchestrator", "disk I/O error", fix);
            assert_eq!(check.fix(), Some(SEE_JOURNAL));
            let edited = Check::warn("x", "y", "z").with_fix(|_| fix.to_owned());
            assert_eq!(edited.fix(), Some(SEE_JOURNAL));
        }
        assert_eq!(Check::ok("x", "y").fix(), None);
    }
}
