//! Which checks to start now, and when to clean up.

use super::Outlook;
use super::blocker::{Blocker, Limits};
use super::pressure::Allowance;
use crate::model::{CheckKind, CheckRecord, Outcome, Pool, RunId, Time};
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckPool {
    /// Checks that have a unit.
    pub running: u32,
    /// The oldest of those that wait.
    pub due: Vec<RunId>,
}

/// Alerts that run concurrently: enough for a few that hang until they reach their limit.
const ALERTS_MAX: u32 = 4;
/// How long expired results stay: those of a day are deleted together.
const PRUNE_EVERY: Duration = Duration::from_secs(86_400);
/// How much longer the newest result of a kind and URL stays: longer than any sensible schedule, so
/// that it lasts until the next result, and limited, so that results of removed watches expire.
const NEWEST_STAYS: Duration = Duration::from_secs(366 * 86_400);

impl CheckPool {
    /// Returns what is left to do in the pool `pool`. Fast checks and alerts wait for no resources.
    pub fn outlook(&self, pool: Pool, allowance: &Allowance) -> Outlook {
        let pressure = allowance.pressure.clone();
        Outlook {
            is_busy: self.running > 0 || !self.due.is_empty(),
            blocked: pressure.filter(|_| pool == Pool::Slow && !self.due.is_empty()),
            next: None,
        }
    }
}

fn slots(pool: Pool, limits: &Limits) -> u32 {
    match pool {
        Pool::Fast => limits.fast_checks,
        Pool::Slow => limits.slow_checks,
        Pool::Alerts => ALERTS_MAX,
    }
}

/// The checks of a pool to start, limited by its free slots. Slow checks wait while disk space or
/// memory is short; fast checks and alerts do not.
pub fn due_checks(
    pool: Pool,
    checks: &CheckPool,
    limits: &Limits,
    allowance: &Allowance,
) -> Vec<RunId> {
    let waits = pool == Pool::Slow && allowance.pressure.is_some();
    let slots = if waits { 0 } else { slots(pool, limits) };
    let free = slots.saturating_sub(checks.running) as usize;
    checks.due.iter().take(free).copied().collect()
}

/// What blocks another check of a pool, by the rules of `due_checks`.
pub fn against_check(
    pool: Pool,
    checks: &CheckPool,
    limits: &Limits,
    allowance: &Allowance,
) -> Option<Blocker> {
    let slots = slots(pool, limits);
    match &allowance.pressure {
        Some(why) if pool == Pool::Slow => Some(Blocker::Pressure(why.clone())),
        _ => (checks.running >= slots).then_some(Blocker::PoolFull(pool, slots)),
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
            let record = CheckRecord { ok: true, ..CheckRecord::default() };
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
    if is_newest { until.after(NEWEST_STAYS) } else { until }
}

/// When to delete results next; `oldest_until` is the time until which the oldest is kept.
pub fn prune_at(oldest_until: Option<Time>) -> Option<Time> {
    oldest_until.map(|time| time.after(PRUNE_EVERY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        workers_per_kind: 1,
        workers_max: 1,
        snapshots_per_crawl: 1,
        snapshots_per_host: 1,
        fast_checks: 2,
        slow_checks: 2,
    };

    fn waiting(running: u32, due: std::ops::Range<i64>) -> CheckPool {
        CheckPool { running, due: due.map(RunId).collect() }
    }

    fn short_of(what: Option<&str>) -> Allowance {
        Allowance { pressure: what.map(str::to_owned), is_outage: false }
    }

    #[test]
    fn slow_checks_wait_under_pressure() {
        let pool = waiting(0, 10..11);
        let short = short_of(Some("no space"));
        for of in Pool::ALL {
            let starts = due_checks(of, &pool, &LIMITS, &short);
            let outlook = pool.outlook(of, &short);
            assert!(outlook.is_busy, "{of:?}");
            assert_eq!(starts.is_empty(), of == Pool::Slow, "{of:?}");
            assert_eq!(outlook.blocked.is_some(), of == Pool::Slow, "{of:?}");
        }
        let none = CheckPool::default().outlook(Pool::Slow, &short);
        assert_eq!(none, Outlook::default(), "nothing waits");
    }

    #[test]
    fn only_a_record_or_time_limit_proves_a_site_down() {
        let good = CheckRecord { ok: true, ..CheckRecord::default() };
        let skipped = CheckRecord { skipped: true, ..CheckRecord::default() };
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
            at in 0usize..3, running in 0u32..6, queued in 0i64..6, fast in 1u32..5, slow in 1u32..5,
            is_short: bool,
        ) {
            let (pool, limits) = (Pool::ALL[at], Limits { fast_checks: fast, slow_checks: slow, ..LIMITS });
            let (checks, allowance) = (waiting(running, 0..queued), short_of(is_short.then_some("memory")));
            let starts = due_checks(pool, &checks, &limits, &allowance).len() as u32;
            let slots = slots(pool, &limits);
            let is_held = pool == Pool::Slow && is_short;
            prop_assert!(starts == 0 || !is_held && running + starts <= slots);
            let waits = queued as u32 > starts;
            prop_assert!(!waits || is_held || running + starts >= slots, "a slot is left empty");
            let blocker = against_check(pool, &checks, &limits, &allowance);
            prop_assert!(queued == 0 || blocker.is_some() == (starts == 0));
        }
    }
}
