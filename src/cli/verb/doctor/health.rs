//! How often hooks fail on this machine, and for which web hosts.

use super::Check;
use crate::display::text;
use archivist_core::plan::incomplete_text;
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{Host, Status, Uses};
use std::path::PathBuf;

/// Results below which failures are no sign of anything.
const RESULTS_MIN: u64 = 20;
/// Share of success below which more than single pages are at fault, in percent.
const HEALTH_MIN: u64 = 50;
/// Hosts that are listed individually.
const HOSTS_SHOWN: usize = 5;

/// What to do about pages that ended early.
const INCOMPLETE_FIX: &str =
    "see 'archivist list snapshots --status incomplete'; to retry them: archivist retry --failed";

fn is_poor(uses: Uses) -> bool {
    uses.all() >= RESULTS_MIN && uses.health().is_some_and(|percent| percent < HEALTH_MIN)
}

const REMOVAL_FIX: &str = "for the error: journalctl --unit='archivist-delete-*'";
const HELD_FIX: &str =
    "see 'archivist delete --by-retention --dry-run'; to let it: archivist delete --by-retention";
const UNDATED_FIX: &str = "no rule of Retention= deletes them: to archive them again: archivist add; then: archivist delete";

const UNKNOWN_FIX: &str = "if the database is an older copy, restore a newer one: archivist restore; or to import the recordings of these pages as new ones: archivist fsck --repair. It leaves their directories, which can be removed then, and names those without a recording";

/// Returns a check that names the directories of pages without a row, if there are any.
pub fn unknown_pages(directories: &[PathBuf]) -> Option<Check> {
    let first = directories.first()?.to_string_lossy();
    let first = clean(&first);
    let what = match directories.len() {
        1 => format!("the database does not know the page in '{first}'"),
        n => {
            format!("the database does not know {n} pages of the archive ('{first}' is the first)")
        }
    };
    Some(Check::warn("unknown", what, UNKNOWN_FIX))
}

/// Returns a check of the machine, unless no hook ran, and one of each host with many failures.
pub fn checks(status: &Status, hosts: &[Host]) -> Vec<Check> {
    const NAME: &str = "health";
    const FIX: &str = "see 'archivist plugins', and 'archivist list results --status failed'";
    let mut checks = Vec::new();
    let machine = text::health(status.uses);
    if is_poor(status.uses) {
        checks.push(Check::warn(NAME, format!("hooks: {machine}"), FIX));
    } else if !machine.is_empty() {
        checks.push(Check::ok(NAME, format!("hooks: {machine}")));
    }
    if let Some(text) = incomplete_text(status.incomplete) {
        checks.push(Check::warn("pages", text, INCOMPLETE_FIX));
    }
    if let Some((count, first)) = status.failing_removals {
        let what = match count {
            1 => format!("the files of {first}, which was deleted, could not be removed"),
            n => format!(
                "the files of {n} deleted pages ({first} is the first) could not be removed"
            ),
        };
        checks.push(Check::fail("removal", what, REMOVAL_FIX));
    }
    if let Some(why) = &status.retention_held {
        let what = format!("held: {}", clean(why));
        checks.push(Check::fail("retention", what, HELD_FIX));
    }
    if let Some((count, first)) = status.undated {
        let pages = match count {
            1 => format!("1 page ({first}) has"),
            n => format!("{n} pages ({first} is the first) have"),
        };
        let what = format!("{pages} times of a wrong clock");
        checks.push(Check::warn("dates", what, UNDATED_FIX));
    }
    let poor = hosts.iter().filter(|host| is_poor(host.uses));
    checks.extend(poor.take(HOSTS_SHOWN).map(|host| {
        let what = format!("{}: {}", host.name, text::health(host.uses));
        Check::warn(NAME, what, "see 'archivist list hosts'")
    }));
    checks
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    fn uses(succeeded: u64, failed: u64) -> Uses {
        Uses { succeeded, failed }
    }

    #[test]
    fn pages_that_the_database_does_not_know_are_named() {
        let path = |id: u32| PathBuf::from(format!("/archive/20261124/a.test/s{id}"));
        assert!(unknown_pages(&[]).is_none());
        let one = unknown_pages(&[path(7)]).unwrap();
        assert_eq!(
            one.what,
            "the database does not know the page in '/archive/20261124/a.test/s7'"
        );
        let two = unknown_pages(&[path(7), path(8)]).unwrap();
        assert!(two.what.contains("2 pages of the archive ('/archive/20261124/a.test/s7'"));
        assert_eq!(two.verdict(), Verdict::Warn);
    }

    #[test]
    fn removals_and_rules_that_wait_are_failures() {
        let status = Status {
            failing_removals: Some((2, "s42".parse().unwrap())),
            retention_held: Some("Retention=age=1d would delete 9 of 9 pages at once".to_owned()),
            undated: Some((1, "s7".parse().unwrap())),
            ..Status::default()
        };
        let found = checks(&status, &[]);
        let verdicts: Vec<_> = found.iter().map(|check| check.verdict()).collect();
        assert_eq!(verdicts, [Verdict::Fail, Verdict::Fail, Verdict::Warn]);
    }

    #[test]
    fn many_failures_are_a_warning() {
        let status = |uses| Status { uses, ..Status::default() };
        let host = |name: &str, uses| Host {
            name: name.into(),
            pages: 1,
            uses,
            used_at: None,
            last_result: 1,
            delay_ms: 0,
            asked: None,
            open: None,
            node: None,
            leased_until: None,
        };
        assert!(checks(&status(uses(0, 0)), &[]).is_empty());
        let few = [host("a.example", uses(0, 19)), host("b.example", uses(10, 10))];
        let good = Check::ok("health", "hooks: 90%: 10 of 100 failed");
        assert_eq!(checks(&status(uses(90, 10)), &few), [good]);
        let many = checks(&status(uses(1, 19)), &[host("a.example", uses(9, 11))]);
        let words: Vec<&str> = many.iter().map(|check| check.what.as_str()).collect();
        assert_eq!(words, ["hooks: 5%: 19 of 20 failed", "a.example: 45%: 11 of 20 failed"]);
        assert!(many.iter().all(|check| check.fix().is_some()));
        let status = Status { incomplete: 21, ..Status::default() };
        let early = Check::warn("pages", "21 pages are incomplete", INCOMPLETE_FIX);
        assert_eq!(checks(&status, &[]), [early]);
    }
}
