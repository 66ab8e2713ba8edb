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
pub use crate::chromium::wall::Wall;
pub use page::{Loaded, load, show};
pub use tally::{Listed, Requests};

use archivist_warc::WarcError;
use archivist_warc::lookup::{Index, Match, Wanted};
use archivist_warc::wacz::StoredAnswer;
use jiff::Timestamp;
use std::collections::BTreeMap;
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
        Some(Answer {
            stored: found.wacz.read(&found.entry),
            fit: found.fit,
            url: found.entry.url,
        })
    }
}

/// Which page of a recording is replayed, and how.
#[derive(Clone, Debug)]
pub struct Replay {
    /// URL of the page.
    pub url: String,
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
