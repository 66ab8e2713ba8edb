//! Which checks to start now, and when to clean up.

use super::blocker::{Blocker, Limits};
use crate::model::{CheckKind, CheckRecord, Outcome, Pool, RunId, Time};
use std::time::Duration;

/// One pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckPool {
    /// Checks that have a unit.
    pub running: u32,
    /// The oldest of those that wait.
    pub due: Vec<RunId>,
}

/// All pools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Status checks.
    pub fast: CheckPool,
    /// Lighthouse and crawl checks, and watches that archive.
    pub slow: CheckPool,
    /// Commands that report a site that goes down or comes back.
    pub alerts: CheckPool,
}

/// Alerts that run concurrently: enough for a few that hang until they reach their limit.
const ALERTS_MAX: u32 = 4;
/// How long expired results stay: those of a day are deleted together.
const PRUNE_EVERY: Duration = Duration::from_secs(86_400);
/// How much longer the newest result of a kind and URL stays: longer than any sensible schedule, so
/// that it lasts until the next result, and limited, so that results of removed watches expire.
const NEWEST_STAYS: Duration = Duration::from_secs(366 * 86_400);

impl Checks {
    /// Whether something runs or waits.
    pub fn is_busy(&self) -> bool {
        [&self.fast, &self.slow, &self.alerts]
            .into_iter()
            .any(|pool| pool.running > 0 || !pool.due.is_empty())
    }
}

/// The checks to start, limited by the free slots of each pool. Slow checks wait while disk space
/// or memory is short; fast checks and alerts do not.
pub fn decide_checks(checks: &Checks, fast: u32, slow: u32, pressure: bool) -> Vec<RunId> {
    let free = |pool: &CheckPool, places: u32| {
        let free = places.saturating_sub(pool.running) as usize;
        pool.due.iter().take(free).copied().collect::<Vec<_>>()
    };
    let slow = if pressure { 0 } else { slow };
    let mut starts = free(&checks.alerts, ALERTS_MAX);
    starts.extend(free(&checks.fast, fast));
    starts.extend(free(&checks.slow, slow));
    starts
}

/// What blocks another check of a pool, by the rules of `decide_checks`.
pub fn against_check(
    checks: &Checks,
    pool: Pool,
    limits: &Limits,
    pressure: Option<&str>,
) -> Option<Blocker> {
    let (slots, places) = match pool {
        Pool::Fast => (&checks.fast, limits.fast_checks),
        Pool::Slow => (&checks.slow, limits.slow_checks),
        Pool::Alerts => (&checks.alerts, ALERTS_MAX),
    };
    match pressure {
        Some(why) if pool == Pool::Slow => Some(Blocker::Pressure(why.to_owned())),
        _ => (slots.running >= places).then_some(Blocker::PoolFull(pool, places)),
    }
}

/// What the end of a check's unit means: whether the site is up, if that is known, and the record
/// to keep. A crashed program or a lost unit proves nothing about a site; a check that reaches its
/// time limit does.
pub fn conclude(
    kind: CheckKind,
    outcome: &Outcome,
    record: Option<CheckRecord>,
) -> (Option<bool>, CheckRecord) {
    let whole = matches!(outcome, Outcome::Exit(_));
    match (record.filter(|_| whole), outcome) {
        (Some(record), _) => (Some(record.ok).filter(|_| !record.skipped), record),
        (None, Outcome::TimeLimit) => (Some(false), CheckRecord::failed(kind, outcome.to_string())),
        (None, Outcome::Exit(0)) if kind == CheckKind::Alert => {
            let record = CheckRecord {
                ok: true,
                ..CheckRecord::default()
            };
            (Some(true), record)
        }
        (None, Outcome::Exit(0)) => {
            let error = "the check ended without a record".to_owned();
            (None, CheckRecord::failed(kind, error))
        }
        (None, _) => (None, CheckRecord::failed(kind, outcome.to_string())),
    }
}

/// Whether a check whose unit is gone starts again. An alert does if systemd never confirmed its
/// start: the orchestrator was killed after it had recorded the start. A check would be out of date,
/// and so would an alert of another boot.
pub fn starts_again(kind: CheckKind, outcome: &Outcome, is_confirmed: bool) -> bool {
    kind == CheckKind::Alert && *outcome == Outcome::Lost && !is_confirmed
}

/// Returns until when to keep the result of a check that ended at `ended`: for the retention `keep`
/// of its kind, and longer while no newer result of its watch, kind and URL exists.
pub fn keep_until(ended: Time, keep: Duration, is_newest: bool) -> Time {
    let until = ended.after(keep);
    if is_newest {
        until.after(NEWEST_STAYS)
    } else {
        until
    }
}

/// When to delete results next; `oldest_until` is the time until which the oldest is kept.
pub fn prune_at(oldest_until: Option<Time>) -> Option<Time> {
    oldest_until.map(|time| time.after(PRUNE_EVERY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pool(running: u32, due: std::ops::Range<i64>) -> CheckPool {
        CheckPool {
            running,
            due: due.map(RunId).collect(),
        }
    }

    #[test]
    fn slow_checks_use_no_slot_of_fast_checks() {
        let checks = Checks {
            fast: pool(0, 10..13),
            slow: pool(2, 20..90),
            alerts: CheckPool::default(),
        };
        assert_eq!(decide_checks(&checks, 2, 2, false), [RunId(10), RunId(11)]);
        let checks = Checks {
            fast: pool(2, 10..13),
            slow: pool(1, 20..90),
            alerts: pool(4, 1..2),
        };
        assert_eq!(decide_checks(&checks, 2, 2, false), [RunId(20)]);
    }

    #[test]
    fn slow_checks_wait_under_pressure() {
        let checks = Checks {
            fast: pool(0, 10..11),
            slow: pool(0, 20..21),
            alerts: pool(0, 1..2),
        };
        assert_eq!(decide_checks(&checks, 2, 2, true), [RunId(1), RunId(10)]);
    }

    #[test]
    fn only_a_record_or_time_limit_proves_a_site_down() {
        let good = CheckRecord {
            ok: true,
            ..CheckRecord::default()
        };
        let skipped = CheckRecord {
            skipped: true,
            ..CheckRecord::default()
        };
        let table = [
            (Outcome::Exit(0), Some(good.clone()), Some(true)),
            (Outcome::Exit(1), Some(CheckRecord::default()), Some(false)),
            (Outcome::Exit(0), Some(skipped), None),
            (Outcome::Exit(0), None, None),
            (Outcome::TimeLimit, None, Some(false)),
            // What it wrote before it was ended is not its last word.
            (Outcome::TimeLimit, Some(good.clone()), Some(false)),
            (Outcome::Lost, Some(good), None),
            (Outcome::OutOfMemory, None, None),
            (Outcome::NotStarted("x".into()), None, None),
        ];
        for (outcome, record, want) in table {
            let (ok, kept) = conclude(CheckKind::Status, &outcome, record);
            assert_eq!(ok, want, "{outcome}");
            assert!(ok == Some(true) || !kept.ok, "{outcome}");
        }
        let (ok, _) = conclude(CheckKind::Alert, &Outcome::Exit(0), None);
        assert_eq!(ok, Some(true));
    }

    #[test]
    fn only_an_alert_that_never_started_starts_again() {
        let kinds = CheckKind::SCHEDULED.into_iter().chain([CheckKind::Alert]);
        for kind in kinds {
            let again = starts_again(kind, &Outcome::Lost, false);
            assert_eq!(again, kind == CheckKind::Alert, "{kind}");
            assert!(!starts_again(kind, &Outcome::Lost, true), "{kind}");
            for outcome in [Outcome::Exit(0), Outcome::Signal(15), Outcome::TimeLimit] {
                assert!(!starts_again(kind, &outcome, false), "{kind} {outcome}");
            }
        }
    }

    #[test]
    fn newest_result_outlasts_its_retention() {
        let keep = Duration::from_secs(1);
        assert_eq!(keep_until(Time(5), keep, false), Time(1005));
        let week = Duration::from_secs(7 * 86_400);
        assert!(keep_until(Time(5), keep, true) > Time(5).after(week));
        let forever = Duration::MAX;
        assert_eq!(keep_until(Time(5), forever, true), Time(i64::MAX));
    }

    #[test]
    fn pruning_is_due_a_day_after_expiry() {
        assert_eq!(prune_at(None), None);
        assert_eq!(prune_at(Some(Time(5))), Some(Time(86_400_005)));
    }

    proptest! {
        #[test]
        fn pools_never_exceed_their_size(
            running in prop::array::uniform3(0u32..6), waiting in prop::array::uniform3(0i64..6),
            fast in 1u32..5, slow in 1u32..5, pressure: bool,
        ) {
            let checks = Checks {
                fast: pool(running[0], 0..waiting[0]),
                slow: pool(running[1], 100..100 + waiting[1]),
                alerts: pool(running[2], 200..200 + waiting[2]),
            };
            let starts = decide_checks(&checks, fast, slow, pressure);
            let of = |at: i64| starts.iter().filter(|id| id.0 / 100 == at).count() as u32;
            for (at, size) in [(0, fast), (1, slow), (2, ALERTS_MAX)] {
                let running = running[at as usize];
                prop_assert!(of(at) == 0 || running + of(at) <= size);
                let waits = waiting[at as usize] as u32 > of(at);
                let held = at == 1 && pressure;
                prop_assert!(!waits || held || running + of(at) >= size, "a place is left empty");
                let limits = Limits {
                    workers_per_kind: 1,
                    workers_max: 1,
                    snapshots_per_crawl: 1,
                    snapshots_per_host: 1,
                    fast_checks: fast,
                    slow_checks: slow,
                };
                let why = pressure.then_some("short of memory");
                let blocker = against_check(&checks, Pool::ALL[at as usize], &limits, why);
                prop_assert!(waiting[at as usize] == 0 || blocker.is_some() == (of(at) == 0));
            }
        }
    }
}
