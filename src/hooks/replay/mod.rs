//! Replays recordings: a browser with an empty profile and without a network gets all its answers
//! from a recording.
//!
//! Every request of its pages, frames and workers is stopped before it is sent and answered over the
//! pipe that controls the browser. What is not recorded fails, and is counted. Since the browser has
//! no network (see [`Wall`]), a request that chromium does not stop, such as that of a WebSocket,
//! fails, too.

mod answer;
mod interception;
mod jsonp;
mod page;
pub mod proof;
mod range;
mod set_cookie;
mod tally;

pub use crate::chromium::seed::Seed;
pub use crate::chromium::wall::{Home, Wall};
pub use page::{Loaded, load, show};
pub use tally::{Listed, Requests};

use archivist_core::model::is_web;
use archivist_warc::WarcError;
use archivist_warc::lookup::{Index, Match, Wanted};
use archivist_warc::wacz::StoredAnswer;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

/// Finds recorded answers.
pub trait Answers: Send + Sync {
    /// Finds the record that answers a request, and opens it.
    fn find(&self, wanted: &Wanted<'_>) -> Option<Answer>;
}

/// A record that answers a request.
pub struct Answer {
    /// URL of the record.
    pub url: String,
    /// How it fits the request.
    pub fit: Match,
    /// The open record, or why it cannot be read.
    pub stored: Result<StoredAnswer, WarcError>,
}

impl Answers for Index {
    fn find(&self, wanted: &Wanted<'_>) -> Option<Answer> {
        let found = Index::find(self, wanted)?;
        Some(Answer { stored: found.wacz.read(&found.entry), fit: found.fit, url: found.entry.url })
    }
}

/// An http or https URL, as a recording has it: nothing else is opened. A recording may name files of this
/// machine, and pages of the browser about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebUrl(String);

impl WebUrl {
    /// Returns the URL if its scheme is http or https. The text is not changed: records are found by it.
    pub fn of(text: &str) -> Option<WebUrl> {
        is_web(text).then(|| WebUrl(text.to_owned()))
    }
}

impl Deref for WebUrl {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Which page of a recording is replayed, and how.
#[derive(Clone, Debug)]
pub struct Replay {
    /// URL of the page.
    pub url: WebUrl,
    /// When the page was recorded.
    pub time: Timestamp,
    /// Seed of the page when it was recorded, if it had one.
    pub seed: Option<Seed>,
    /// What keeps the browser from the network.
    pub wall: Wall,
    /// Width and height of the viewport in pixels; `None` for that of recordings.
    pub viewport: Option<(u32, u32)>,
    /// Time limit for the start of the browser and the page; without effect on a window.
    pub limit: Duration,
    /// Settings of the plugin `chromium`, as hooks get them.
    pub settings: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests;
