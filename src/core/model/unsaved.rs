//! Why a page that has ended is not a saved one.

use serde::{Deserialize, Serialize};

crate::text::named! {
    /// What a page lacks that was not saved.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Unsaved {
        /// Its document: the browser did not open the page, or no server answered.
        Document = "document",
        /// A document that is no error: the server answered with a status from 400.
        Error = "error",
        /// Files: the server answered, and no plugin kept anything of the answer, or what was kept was removed.
        Files = "files",
        /// Work that a limit ended, or attempts that failed: some of its files may be missing.
        Work = "work",
        /// A visit: an entry of a list that was kept without one.
        Visit = "visit",
    }
}

impl Unsaved {
    /// Whether nothing of the page is worth to be found: its files show an error, or there are none. An
    /// entry of a list is worth its title and notes.
    pub fn is_failure(self) -> bool {
        matches!(self, Unsaved::Document | Unsaved::Error | Unsaved::Files)
    }

    /// Returns what the page lacks, for users.
    pub fn text(self) -> &'static str {
        match self {
            Unsaved::Document => "the page did not load",
            Unsaved::Error => "the server answered with an error",
            Unsaved::Files => "the archive has none of its files",
            Unsaved::Work => "the work for the page ended early",
            Unsaved::Visit => "the page was not visited",
        }
    }
}
