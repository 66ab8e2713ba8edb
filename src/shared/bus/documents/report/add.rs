//! Documents of `add` and `draft`.

use archivist_core::model::{CrawlId, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Answer of `draft`: what a crawl would do with a page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Draft {
    /// Hooks in the order of their start: before the first page, for each page, after the last
    /// page.
    pub setup: Vec<DraftHook>,
    /// For each page.
    pub page: Vec<DraftHook>,
    /// After the last page.
    pub end: Vec<DraftHook>,
    /// Plugins whose hooks would not run, and why.
    pub skipped: Vec<DraftSkip>,
}

/// A hook that would run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DraftHook {
    /// Name of its plugin.
    pub plugin: String,
    /// Name of the hook.
    pub hook: String,
    /// `foreground`, `finite` (in the background, ends by itself) or `daemon`.
    pub mode: String,
    /// Time limit in seconds.
    pub limit: u64,
}

/// A plugin whose hooks would not run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DraftSkip {
    /// Name of the plugin.
    pub plugin: String,
    /// Reason.
    pub why: String,
    /// Program that is missing or too old, if that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// Answer of `add`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Added {
    /// The queued crawl.
    pub crawl: CrawlId,
    /// Number of queued snapshots.
    pub accepted: u64,
    /// Refused lines, with the reason.
    pub refused: Vec<Refused>,
    /// With `only_new`: number of pages that are left out because the archive has them. If all are,
    /// `crawl` is the one that has the first of them.
    #[serde(default)]
    pub known: u64,
    /// Number of those that got tags, a title or a date from their lines.
    #[serde(default)]
    pub completed: u64,
    /// Of `Run`: when another command in the foreground added this crawl with the same list and
    /// options. The caller joined it, and nothing was queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<Time>,
}

/// A line of a list that is no page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// Counts from 1.
    pub line: u64,
    /// Text of the line, shortened.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

/// Options of `add`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AddOptions {
    /// Links to follow from the given pages; 0 archives only these.
    pub depth: u32,
    /// Tags of all pages.
    pub tags: Vec<String>,
    /// Plugins that run; empty means all.
    pub plugins: Vec<String>,
    /// Settings of the crawl.
    pub config: BTreeMap<String, String>,
    /// Leave out pages that another crawl has archived or is going to.
    pub only_new: bool,
}
