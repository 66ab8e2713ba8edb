//! Checks of the fleet, if this machine is in one.

use super::Check;
use crate::client::fleet_service;
use archivist_config::programs::{FLEET, FLEET_FIX, FLEET_MISSING};
use archivist_config::{Scope, load};
use archivist_core::text::human_span;
use archivist_shared::bus::documents::fleet::{Fleet, NodeState};
use std::time::Duration;

const NAME: &str = "fleet";
/// Difference of two clocks above which certificates and times of pages are doubtful.
const CLOCK_MAX: Duration = Duration::from_secs(60);
/// Dead rows that make statements slow.
const DEAD_ROWS_MAX: u64 = 1_000_000;
/// Age of a transaction that keeps dead rows from being removed.
const TRANSACTION_MAX: Duration = Duration::from_secs(600);

/// Returns the checks; none without a fleet.
pub(super) async fn checks(scope: &Scope) -> Vec<Check> {
    let settings = load(scope).map(|(settings, _)| settings);
    if scope.user || scope.instance.is_some() || !settings.is_ok_and(|it| it.is_in_fleet()) {
        return Vec::new();
    }
    if !FLEET.is_installed() {
        return vec![Check::fail(NAME, FLEET_MISSING, FLEET_FIX)];
    }
    let state = match fleet_service::state().await {
        Ok(state) => state,
        Err(failure) => {
            return vec![absent(failure.message(), &fleet_service::unit_state())];
        }
    };
    let mut checks = vec![node(&state)];
    match fleet_service::fleet().await {
        Ok(fleet) => checks.extend(of_fleet(&fleet, &state.name)),
        // The state says the same, unless the service has not noticed it yet.
        Err(failure) if state.fault.is_none() => {
            checks.push(Check::fail(NAME, failure.message(), SEE));
        }
        Err(_) => {}
    }
    checks
}

/// Returns the check for a service that does not answer. `state` has lines of systemctl(1) show.
fn absent(message: &str, state: &str) -> Check {
    let has = |line: &str| state.lines().any(|shown| shown == line);
    let begins = ["ActiveState=activating", "ActiveState=deactivating", "ActiveState=reloading"];
    let has_job = state
        .lines()
        .any(|line| line.strip_prefix("Job=").is_some_and(|job| !job.is_empty() && job != "0"));
    if has_job || begins.into_iter().any(has) {
        return Check::warn(
            NAME,
            "archivist-fleet.service is starting",
            "repeat 'archivist doctor' when it has started",
        );
    }
    let fix = if has("UnitFileState=enabled") {
        "systemctl restart archivist-fleet.service; journalctl -u archivist-fleet.service"
    } else {
        "systemctl enable --now archivist-fleet.service; journalctl -u archivist-fleet.service"
    };
    Check::fail(NAME, message, fix)
}

const SEE: &str = "see: systemctl status archivist-fleet.service, and archivist-fleet(8)";

fn node(state: &NodeState) -> Check {
    match &state.fault {
        None if state.works => {
            Check::ok(NAME, format!("node '{}' is connected to {}", state.name, state.database))
        }
        None => Check::warn(NAME, format!("node '{}' is connecting", state.name), SEE),
        Some(fault) => {
            let (what, fix) = fault.rsplit_once("; ").unwrap_or((fault, SEE));
            Check::fail(NAME, format!("node '{}': {what}", state.name), fix)
        }
    }
}

/// Returns what is wrong with the fleet as a whole.
fn of_fleet(fleet: &Fleet, own: &str) -> Vec<Check> {
    let mut checks = Vec::new();
    let ahead = Duration::from_millis(fleet.clock_ahead_ms.unsigned_abs());
    if ahead > CLOCK_MAX {
        checks.push(Check::warn(
            NAME,
            format!(
                "the clocks of this machine and of the database differ by {}",
                human_span(ahead)
            ),
            "the delays of hosts hold nevertheless; systemctl enable --now systemd-timesyncd",
        ));
    }
    let oldest = Duration::from_millis(fleet.oldest_transaction_ms);
    if fleet.dead_rows > DEAD_ROWS_MAX.max(fleet.live_rows) || oldest > TRANSACTION_MAX {
        checks.push(Check::warn(
            NAME,
            format!(
                "the database has {} dead rows, and its oldest transaction is open for {}",
                fleet.dead_rows,
                human_span(oldest)
            ),
            "end that transaction (pg_stat_activity, pg_terminate_backend), and do not switch off autovacuum",
        ));
    }
    for node in &fleet.nodes {
        if node.name == own && node.draining {
            let fix = format!("archivist fleet drain --undo {}", node.name);
            checks.push(Check::warn(NAME, "this node is draining: it gets no hosts", fix));
        }
        if !node.is_connected && !node.has_ended {
            let seen = human_span(Duration::from_millis(node.seen_ms));
            let what = if node.is_lost {
                format!(
                    "node '{}' is lost: it was not seen for {seen}, and other nodes take its hosts over",
                    node.name
                )
            } else {
                format!("node '{}' was not seen for {seen}", node.name)
            };
            checks.push(Check::warn(
                NAME,
                what,
                format!("start it; if it is gone for good: archivist fleet leave {}", node.name),
            ));
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::doctor::Verdict;
    use archivist_shared::bus::documents::fleet::Member;

    fn state(fault: Option<&str>) -> NodeState {
        NodeState {
            name: "web1".to_owned(),
            works: fault.is_none(),
            fault: fault.map(str::to_owned),
            ..NodeState::default()
        }
    }

    #[test]
    fn a_starting_service_is_not_called_missing() {
        let verdict = |state: &str| absent("does not run", state).verdict();
        assert_eq!(verdict("ActiveState=activating\nJob=0"), Verdict::Warn);
        assert_eq!(verdict("ActiveState=inactive\nJob=12"), Verdict::Warn);
        assert_eq!(verdict("ActiveState=inactive\nJob="), Verdict::Fail);
        let fix = |state: &str| absent("does not run", state).fix().unwrap().to_owned();
        let enabled = fix("ActiveState=failed\nUnitFileState=enabled");
        assert!(enabled.starts_with("systemctl restart"), "{enabled}");
        let disabled = fix("ActiveState=inactive\nUnitFileState=disabled");
        assert!(disabled.starts_with("systemctl enable --now"), "{disabled}");
    }

    #[test]
    fn faults_of_the_connection_have_their_fix() {
        assert_eq!(node(&state(None)).verdict(), Verdict::Ok);
        let check = node(&state(Some(
            "failed to verify db: its certificate has expired; renew it on the server",
        )));
        assert_eq!(check.verdict(), Verdict::Fail);
        assert!(check.what.ends_with("has expired"), "{}", check.what);
        assert_eq!(check.fix(), Some("renew it on the server"));
    }

    #[test]
    fn lost_nodes_clocks_and_dead_rows_are_reported() {
        assert!(of_fleet(&Fleet::default(), "web1").is_empty());
        let member = |name: &str, is_connected, draining| Member {
            name: name.to_owned(),
            is_connected,
            draining,
            ..Member::default()
        };
        let fleet = Fleet {
            clock_ahead_ms: -3_600_000,
            dead_rows: 2_000_000,
            live_rows: 1_000,
            nodes: vec![
                member("web1", true, true),
                member("web2", false, false),
                Member { is_lost: true, ..member("web3", false, false) },
            ],
            ..Fleet::default()
        };
        let checks = of_fleet(&fleet, "web1");
        let whats: Vec<&str> = checks.iter().map(|check| check.what.as_str()).collect();
        for words in
            ["clocks", "2000000 dead rows", "draining", "'web2' was not seen", "'web3' is lost"]
        {
            assert!(whats.iter().any(|what| what.contains(words)), "{words}: {whats:?}");
        }
        assert_eq!(checks.len(), 5);
    }
}
