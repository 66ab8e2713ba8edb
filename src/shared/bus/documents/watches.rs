//! What the orchestrator tells of watches: the documents behind `archivist watch … --json`.
//! Additions are fine, changes of a name or type are not.

use archivist_core::model::{CheckKind, CheckRecord, CrawlId, Outcome, RunId, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What became of a wish for checks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Queued {
    pub watch: String,
    /// The checks that were queued.
    pub queued: Vec<RunId>,
    /// Those that wait or run already: nothing is queued twice.
    pub open: u32,
    /// The crawl that archives.
    pub crawl: Option<CrawlId>,
}

/// One check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    pub id: RunId,
    pub watch: String,
    pub kind: CheckKind,
    pub url: String,
    /// queued, starting, running, done
    pub state: String,
    pub queued_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub unit: Option<String>,
    /// How its unit ended.
    pub outcome: Option<Outcome>,
    /// None where nothing is known: it was lost, or could not be made.
    pub ok: Option<bool>,
    #[serde(flatten)]
    pub record: CheckRecord,
}

/// One URL of a watch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Site {
    pub url: String,
    pub down_since: Option<Time>,
    /// Status checks in a row that were not good.
    pub failures: u32,
    /// Percent of the status checks at hand that were good.
    pub uptime: Option<f64>,
    /// How many these are.
    pub status_checks: u64,
    /// The newest result of each kind, without findings and headers.
    pub last: Vec<Check>,
    /// What waits or runs.
    pub open: Vec<Check>,
}

/// One watch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Watch {
    pub name: String,
    pub file: String,
    /// What is wrong with the file.
    pub problems: Vec<String>,
    /// In the words of the file, by kind.
    pub schedules: BTreeMap<CheckKind, String>,
    /// Seconds for which results are kept.
    pub retention_s: u64,
    pub sites: Vec<Site>,
}

/// Which checks of a watch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryFilter {
    pub kind: Option<CheckKind>,
    pub url: Option<String>,
    /// The newest so many; 0 means all.
    pub limit: u32,
    /// Only checks before this one: the next piece of a long list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RunId>,
    /// With findings and headers, which may be long.
    pub full: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_and_its_record_are_one_document() {
        let check = Check {
            id: RunId(12),
            watch: "site".into(),
            kind: CheckKind::Status,
            url: "http://a.example/".into(),
            state: "done".into(),
            queued_at: Time(0),
            started_at: None,
            ended_at: None,
            unit: None,
            outcome: Some(Outcome::Exit(0)),
            ok: Some(false),
            record: CheckRecord {
                status_code: Some(500),
                ..CheckRecord::default()
            },
        };
        let text = serde_json::to_string(&check).unwrap();
        assert_eq!(text.matches("\"ok\":").count(), 1, "{text}");
        let read: Check = serde_json::from_str(&text).unwrap();
        assert_eq!((read.ok, read.record.status_code), (Some(false), Some(500)));
    }
}
