//! Full text search: what the index gets, what it is asked, and what it answers. The index itself is in
//! the program `archivist-search`.

use crate::model::web::pattern::UrlPattern;
use crate::model::{Lifecycle, SnapshotId, Time};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A snapshot that the index has or gets. Its text is in its directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchEntry {
    pub id: SnapshotId,
    pub url: String,
    /// Title that a hook or the list gave.
    pub title: Option<String>,
    /// When it was sealed, or queued if that is not known.
    pub time: Time,
    /// Tags of the page and of its crawl.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Sealed or cancelled.
    pub status: Lifecycle,
    /// Whether it shows an error, or nothing was saved.
    #[serde(default)]
    pub is_failure: bool,
    pub directory: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchChange {
    /// The snapshot is new, or has changed.
    Put(SearchEntry),
    Delete(SnapshotId),
}

/// What the unit that changes the index reads from standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchWork {
    pub index: PathBuf,
    /// The build to which the changes belong; `None` for the index that is read.
    pub build: Option<SearchBuild>,
    /// The changes, all or none of which are made.
    pub changes: Vec<SearchChange>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchBuild {
    pub number: u64,
    pub is_first: bool,
    /// Whether the build is complete with these changes, and replaces the index that is read.
    pub is_last: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchQuestion {
    /// Words, phrases, exclusions and tags as the user wrote them.
    #[serde(default)]
    pub words: String,
    /// Tags, all of which a page must have.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Host; its subdomains belong to it.
    #[serde(default)]
    pub site: Option<String>,
    /// Page, prefix or host.
    #[serde(default)]
    pub url: Option<UrlPattern>,
    /// Pages from this time on.
    #[serde(default)]
    pub since: Option<Time>,
    /// Pages before this time.
    #[serde(default)]
    pub until: Option<Time>,
    /// Plugins, all of which must have kept files of the page.
    #[serde(default)]
    pub plugins: Vec<String>,
    /// State of the snapshot. Without it, no snapshot is found that shows an error, or of which nothing
    /// was saved.
    #[serde(default)]
    pub status: Option<SearchState>,
    #[serde(default = "usual_limit")]
    pub limit: u32,
    /// Whether each snapshot is a hit, instead of each URL.
    #[serde(default)]
    pub all: bool,
    /// Snapshots that are no hits: the index still has those that were deleted a moment ago.
    #[serde(default)]
    pub without: Vec<SnapshotId>,
}

crate::text::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SearchState {
        /// Sealed, whether saved or not.
        Sealed = "sealed",
        Cancelled = "cancelled",
        /// Sealed, and it shows an error, or nothing was saved.
        Unsaved = "unsaved",
    }
}

impl SearchQuestion {
    pub fn is_asked(&self) -> bool {
        let has_condition = self.site.is_some() || self.url.is_some() || self.status.is_some();
        let has_time = self.since.is_some() || self.until.is_some();
        let has_list = !self.tags.is_empty() || !self.plugins.is_empty();
        !self.words.trim().is_empty() || has_condition || has_time || has_list
    }
}

pub const HITS_MAX: u32 = 10_000;
/// Most snapshots that a question leaves out.
pub const WITHOUT_MAX: usize = 10_000;
/// Most hits of an answer if the user does not say how many.
pub const HITS_USUAL: u32 = 20;

fn usual_limit() -> u32 {
    HITS_USUAL
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SearchAnswer {
    /// The best hits, best first.
    pub hits: Vec<SearchHit>,
    /// Number of all hits.
    pub total: u64,
    /// The words with those of the index that resemble them most, if nothing was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meant: Option<String>,
    /// Whether only the beginning of the words was used, because there are too many.
    #[serde(default)]
    pub is_cut: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchHit {
    /// The newest snapshot of the page that was found.
    pub id: SnapshotId,
    pub title: Option<String>,
    pub url: String,
    /// When it was archived.
    pub time: Time,
    /// Tags of the page and of its crawl.
    pub tags: Vec<String>,
    /// Number of snapshots of the page in the index.
    pub versions: u64,
    /// The part of the text that has most of the words.
    pub snippet: Vec<SnippetPart>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnippetPart {
    /// Its text, on one line.
    pub text: String,
    /// Whether it is one of the words that were looked for.
    pub marked: bool,
}

/// Exit status of `archivist-search` if there is no index that it can read, and a new one must be built.
pub const REBUILD: u8 = 75;
