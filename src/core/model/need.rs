//! What the hooks of a plugin need of a page, and what becomes of them without it.

use super::{ResultState, Verdict};
use serde::{Deserialize, Serialize};

/// Plugin of the browser. Its tab requests the document that most hooks save.
pub const TAB: &str = "chromium";

crate::text::named! {
    /// `x-needs`: without which the hooks of a plugin are not started.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Need {
        /// A page in the tab of the browser.
        Page = "page",
        /// A site that can be reached.
        Site = "site",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    pub reason: String,
    /// Whether the URL leads to something other than a page, which is not a failure.
    pub is_no_page: bool,
    /// Whether the site could not be reached.
    pub is_unreachable: bool,
}

impl Absence {
    /// The verdict on a hook that needs what is absent, and its output; `None` if it may run.
    pub fn judge(&self, need: Need) -> Option<(Verdict, Option<String>)> {
        let reason = Some(self.reason.clone());
        let verdict = |state, error| Verdict { state, error };
        match need {
            Need::Page if self.is_no_page => Some((verdict(ResultState::NoResults, None), reason)),
            Need::Page => Some((verdict(ResultState::Skipped, reason), None)),
            Need::Site if self.is_unreachable => {
                Some((verdict(ResultState::Skipped, reason), None))
            }
            Need::Site => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_do_not_start_without_what_they_need() {
        let judged = |need, is_no_page, is_unreachable| {
            let absence = Absence { reason: "gone".to_owned(), is_no_page, is_unreachable };
            let judged = absence.judge(need);
            judged.map(|(verdict, output)| (verdict.state, verdict.error, output))
        };
        let gone = || Some("gone".to_owned());
        let skipped = Some((ResultState::Skipped, gone(), None));
        let nothing = Some((ResultState::NoResults, None, gone()));
        assert_eq!(judged(Need::Page, false, true), skipped);
        assert_eq!(judged(Need::Page, false, false), skipped);
        assert_eq!(judged(Need::Page, true, false), nothing);
        assert_eq!(judged(Need::Site, false, true), skipped);
        assert_eq!(judged(Need::Site, false, false), None);
        assert_eq!(judged(Need::Site, true, false), None);
    }
}
