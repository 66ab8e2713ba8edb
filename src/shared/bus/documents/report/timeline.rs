//! Documents of the time line, `archivist plot`.

use archivist_core::model::{Outcome, Owner, ResultState, RunId, Time};
use serde::{Deserialize, Serialize};

/// One unit on the time line of a crawl or page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Span {
    /// Its id, such as `r678`.
    pub id: RunId,
    /// Name of the unit.
    pub unit: String,
    /// `crawl`, `snapshot` (workers) or `hook`.
    pub kind: String,
    /// Crawl or snapshot that it works on.
    pub owner: Owner,
    /// Plugin of a hook; `None` for workers.
    pub plugin: Option<String>,
    /// Name of a hook; `None` for workers.
    pub hook: Option<String>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// `starting`, `running` or `ended`.
    pub status: String,
    /// How the unit ended; `None` before.
    pub outcome: Option<Outcome>,
    /// Status of the hook's result, if this is its last run.
    pub verdict: Option<ResultState>,
    /// When its start was decided.
    pub recorded_at: Option<Time>,
    /// When its main process started.
    pub started_at: Option<Time>,
    /// When a background hook printed its first line; known after its end.
    pub ready_at: Option<Time>,
    /// When its main process ended.
    pub ended_at: Option<Time>,
    /// Microseconds.
    pub cpu_usec: Option<u64>,
    /// Bytes.
    pub memory_peak: Option<u64>,
    /// Page of a worker.
    pub page: Option<SpanPage>,
}

/// The page of a span.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpanPage {
    /// Address of the page.
    pub url: String,
    /// Its title, if known.
    pub title: Option<String>,
    /// Number of links from a page that the user added.
    pub depth: u32,
    /// When the page was first queued.
    pub created_at: Time,
}
