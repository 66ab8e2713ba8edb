//! Crawls, pages and results as they cross the wire.

use super::value::{HostKey, maybe_millis, millis};
use crate::model::{CrawlId, ResultState, SnapshotId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A crawl as every node has to know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlSpec {
    /// Links to follow from the given pages. Deeper pages are left out.
    pub max_depth: u32,
    /// Most pages; `None` without a limit. Further pages are left out.
    pub urls_max: Option<u64>,
    /// Pages that another crawl has archived completely, or is going to, are left out.
    #[serde(default)]
    pub only_new: bool,
    /// The rest as JSON, which only orchestrators read: URL, plugins, settings, user, tags.
    pub document: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewPage {
    /// Address of the page, unique in its crawl.
    pub url: String,
    pub host: HostKey,
    /// Number of links from a page that the user added.
    pub depth: u32,
    /// Whether a user gave the page. Hooks of its crawl reach the networks of such pages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
    /// Title in the list or link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Time as in the list of bookmarks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bookmarked_at: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeasedPage {
    /// Number of the page, the same on every node.
    pub id: SnapshotId,
    pub crawl: CrawlId,
    /// The page with the link; `None` for a page that a user added.
    pub parent: Option<SnapshotId>,
    /// Address, host, depth, title and tags.
    pub page: NewPage,
    /// Claims so far that were not given back, this one included.
    pub attempts: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageEnd {
    /// Done, with success or not.
    Sealed,
    /// Cancelled by a user, or left out by a limit.
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookResult {
    pub plugin: String,
    pub hook: String,
    pub state: ResultState,
    /// Output of the hook, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Why it failed or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bytes of its files.
    pub size: u64,
    pub attempts: u32,
    /// From the start to the end of its last run.
    #[serde(default, with = "maybe_millis")]
    pub took: Option<Duration>,
}

/// When a page was worked on, for display. It has no influence on later starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageTimes {
    /// Time since the end of the page.
    #[serde(with = "millis")]
    pub ended_ago: Duration,
    #[serde(with = "millis")]
    pub took: Duration,
}
