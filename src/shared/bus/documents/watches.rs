//! Documents behind `archivist watch … --json`. Fields may be added; names and types do not change.

use archivist_core::model::{CheckKind, CheckRecord, CrawlId, Outcome, RunId, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Answer to a request for checks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Queued {
    /// Name of the watch.
    pub watch: String,
    /// Queued checks.
    pub queued: Vec<RunId>,
    /// Number of requested checks that already wait or run; they are not queued again.
    pub open: u32,
    /// Their ids; an archive has none.
    #[serde(default)]
    pub open_ids: Vec<RunId>,
    /// Crawl that archives the pages.
    pub crawl: Option<CrawlId>,
}

/// One check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    /// Its id, such as `r678`.
    pub id: RunId,
    /// Name of the watch.
    pub watch: String,
    /// What is checked.
    pub kind: CheckKind,
    /// Address of the site.
    pub url: String,
    /// queued, starting, running, ended
    pub state: String,
    /// When it was queued.
    pub queued_at: Time,
    /// When its unit started.
    pub started_at: Option<Time>,
    /// When its unit ended.
    pub ended_at: Option<Time>,
    /// Name of its unit; `None` before the start.
    pub unit: Option<String>,
    /// Outcome of the unit.
    pub outcome: Option<Outcome>,
    /// Success; `None` if unknown: the check was lost, or could not run.
    pub ok: Option<bool>,
    /// What the program of the check reported.
    #[serde(flatten)]
    pub record: CheckRecord,
}

/// One URL of a watch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Site {
    /// Address of the site.
    pub url: String,
    /// When it went down; `None` while it is up.
    pub down_since: Option<Time>,
    /// Failed status checks in a row.
    pub failures: u32,
    /// Percentage of successful status checks among the stored ones.
    pub uptime: Option<f64>,
    /// Number of stored status checks.
    pub status_checks: u64,
    /// Newest result of each kind, without findings and headers.
    pub last: Vec<Check>,
    /// Checks that wait or run.
    pub open: Vec<Check>,
}

/// One watch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Watch {
    /// Its name.
    pub name: String,
    /// Name for people; empty means the name of the file.
    #[serde(default)]
    pub label: String,
    /// Lines of text for people.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Path of its main file.
    pub file: String,
    /// Problems of the file.
    pub problems: Vec<String>,
    /// Headers of its requests; secrets are hidden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// What scheduled checks leave out of the file, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Schedule of each kind, as in the file.
    pub schedules: BTreeMap<CheckKind, String>,
    /// Seconds for which results of each kind are kept.
    pub retention_s: BTreeMap<CheckKind, u64>,
    /// Its URLs.
    pub sites: Vec<Site>,
}

/// A certificate that expires soon, or has expired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Name of the watch.
    pub watch: String,
    /// Address of the site.
    pub url: String,
    /// When it expires.
    pub expires: Time,
    /// Whole days until then; negative after it.
    pub days: i64,
}

/// Filter for checks of a watch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryFilter {
    /// Only checks of this kind.
    pub kind: Option<CheckKind>,
    /// Only checks of this site.
    pub url: Option<String>,
    /// Most checks, newest first; 0 means all.
    pub limit: u32,
    /// Only checks before this one: the next batch of a long list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RunId>,
    /// Include findings and headers, which may be long.
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
            state: "ended".into(),
            queued_at: Time(0),
            started_at: None,
            ended_at: None,
            unit: None,
            outcome: Some(Outcome::Exit(0)),
            ok: Some(false),
            record: CheckRecord { status_code: Some(500), ..CheckRecord::default() },
        };
        let text = serde_json::to_string(&check).unwrap();
        assert_eq!(text.matches("\"ok\":").count(), 1, "{text}");
        let read: Check = serde_json::from_str(&text).unwrap();
        assert_eq!((read.ok, read.record.status_code), (Some(false), Some(500)));
    }
}
