//! Checks of watched sites: kinds, pools, and results.

use super::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

crate::text::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum CheckKind {
        /// One request: whether the site answers, and how fast.
        Status = "status",
        /// Four scores by npm's lighthouse.
        Lighthouse = "lighthouse",
        /// Pages of one site: broken links, titles, redirects.
        Crawl = "crawl",
        /// A crawl of archivist, without its own unit.
        Archive = "archive",
        /// The command of `OnDown=` or `OnRecovery=`; it has no schedule.
        Alert = "alert",
    }
}

crate::text::named! {
    /// Pool of concurrent checks. Slow checks of one pool do not take slots of another.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Pool {
        /// Status checks: one request each.
        Fast = "fast",
        /// Lighthouse and crawl checks, and watches that archive: minutes each.
        Slow = "slow",
        /// Commands that report a change.
        Alerts = "alerts",
    }
}

impl CheckKind {
    pub const SCHEDULED: [CheckKind; 4] =
        [CheckKind::Status, CheckKind::Lighthouse, CheckKind::Crawl, CheckKind::Archive];

    /// Returns the pool whose slots a check of this kind occupies.
    pub fn pool(self) -> Pool {
        match self {
            CheckKind::Status => Pool::Fast,
            CheckKind::Lighthouse | CheckKind::Crawl | CheckKind::Archive => Pool::Slow,
            CheckKind::Alert => Pool::Alerts,
        }
    }

    /// Returns `RuntimeMaxSec=` of the unit. The check itself has shorter limits.
    pub fn limit(self) -> Duration {
        Duration::from_secs(match self {
            CheckKind::Status => 60,
            CheckKind::Lighthouse => 180,
            CheckKind::Crawl => 540,
            CheckKind::Archive | CheckKind::Alert => 60,
        })
    }
}

/// HTTP status that is recorded when a site does not answer (408 Request Timeout).
pub const NO_ANSWER: u16 = 408;

/// Record of a check: printed by its program, or made in its place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckRecord {
    /// Success as the program reports it; also stored in its own column, where it may be unknown.
    #[serde(skip_serializing)]
    pub ok: bool,
    /// HTTP status; 526 for an invalid certificate, 408 for no answer.
    pub status_code: Option<u16>,
    /// Milliseconds from the last request to the headers of its answer; 10000 without an answer.
    pub response_ms: Option<u64>,
    /// Headers of the last answer by name in lower case; several values of a name are on separate
    /// lines.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Scores of lighthouse, 0 to 100.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<String, Option<f64>>,
    /// Findings of a crawl, one object each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<serde_json::Value>,
    /// Reason if the check could not be done or the site is down.
    pub error: Option<String>,
    /// URL after redirects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// When the first of the certificates of the site expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_expires: Option<Time>,
    /// Whole days from the check until then; negative after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_days: Option<i64>,
    /// `CertificateWarnDays=` at the time of the check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_warn_days: Option<u32>,
    /// A problem that will make the check fail, such as a certificate that expires soon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Number of pages that a crawl read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// The check ended early, with the findings so far.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The check cannot run here: a program is missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// Crawl that an archive check queued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crawl: Option<super::CrawlId>,
}

impl CheckRecord {
    /// Returns the record of a check that ended without one.
    pub fn failed(kind: CheckKind, error: String) -> CheckRecord {
        CheckRecord {
            status_code: (kind == CheckKind::Status).then_some(NO_ANSWER),
            error: Some(error),
            ..CheckRecord::default()
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub failures: u32,
    /// When the site went down: the time of the first of these checks.
    pub down_since: Option<Time>,
    /// Time of the first failure in the current row.
    pub failing_since: Option<Time>,
}

crate::text::named! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Flip {
        Down = "down",
        Up = "up",
    }
}

impl Health {
    /// Returns the health after a status check at `now`: down after `limit` failures in a row, up
    /// with the first success.
    pub fn after(self, ok: bool, limit: u32, now: Time) -> (Health, Option<Flip>) {
        if ok {
            return (Health::default(), self.down_since.map(|_| Flip::Up));
        }
        let failing_since = self.failing_since.unwrap_or(now);
        let failures = self.failures.saturating_add(1);
        let falls = self.down_since.is_none() && failures >= limit.max(1);
        let health = Health {
            failures,
            down_since: self.down_since.or(falls.then_some(failing_since)),
            failing_since: Some(failing_since),
        };
        (health, falls.then_some(Flip::Down))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_round_trip() {
        for kind in CheckKind::SCHEDULED {
            assert_eq!(CheckKind::parse(kind.as_str()), Some(kind));
        }
        assert_eq!(CheckKind::parse("Status"), None);
    }

    /// Two failures in a row are down, one success is up.
    #[test]
    fn down_after_two_and_up_with_the_first() {
        let story = [
            (false, None, None),
            (true, None, None),
            (false, None, None),
            (false, Some(Flip::Down), Some(Time(2))),
            (false, None, Some(Time(2))),
            (true, Some(Flip::Up), None),
            (true, None, None),
        ];
        let mut health = Health::default();
        for (at, (ok, flip, down)) in story.into_iter().enumerate() {
            let (next, flipped) = health.after(ok, 2, Time(at as i64));
            assert_eq!((flipped, next.down_since), (flip, down), "check {at}");
            health = next;
        }
        let (_, flip) = Health::default().after(false, 1, Time(0));
        assert_eq!(flip, Some(Flip::Down));
    }

    #[test]
    fn what_a_record_leaves_out_has_a_default() {
        let record: CheckRecord =
            serde_json::from_str(r#"{"type":"CheckResult","kind":"status","ok":true,"new":1}"#)
                .unwrap();
        assert!(record.ok && record.status_code.is_none());
        let lost = CheckRecord::failed(CheckKind::Status, "time limit reached".into());
        assert_eq!((lost.ok, lost.status_code), (false, Some(408)));
    }
}
