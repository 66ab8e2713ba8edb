//! The identity of this orchestrator, for the others: process, place, unit, and the rank that it
//! keeps while it lives.

use crate::machine::clock::now;
use crate::runner::locks::{Lock, RunnerLocks};
use archivist_config::Scope;
use archivist_core::model::{ProcessLocation, Runner};
use archivist_core::unit::Names;
use archivist_shared::systemd::{Restarting, enter_scope, restarting};
use libsystemd::id128;
use std::collections::BTreeSet;
use std::time::Duration;

/// Time limit of optional questions to systemd.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

pub struct Identity {
    pub row: Runner,
    pub locks: RunnerLocks,
    /// systemd restarted the unit: this process takes the rank of the one before.
    pub heir: bool,
    /// Ranks of orchestrators that were logged.
    pub named: BTreeSet<i64>,
}

impl Identity {
    pub async fn new(scope: &Scope) -> Result<Identity, String> {
        let data = scope.data_dir();
        let locks = RunnerLocks::open(&data).map_err(|error| {
            format!("failed to open the lock file in '{}': {error}", data.display())
        })?;
        let (unit, restarting) = match own_unit().filter(|unit| unit.ends_with(".service")) {
            Some(unit) => {
                let asked =
                    tokio::time::timeout(REPLY_TIMEOUT, restarting(scope.user, &unit)).await;
                let restarting = match asked {
                    Ok(Ok(restarting)) => restarting,
                    Ok(Err(error)) => {
                        tracing::debug!("{error}, ignoring");
                        Restarting::default()
                    }
                    Err(_) => Restarting::default(),
                };
                (unit, restarting)
            }
            None => (own_scope(scope).await, Restarting::default()),
        };
        let row = Runner {
            unit,
            pid: std::process::id(),
            place: place()?,
            components: format!("orchestrator, database, bus name {}", scope.bus_name()),
            restarts: restarting.will,
            since: now(),
            ..Runner::default()
        };
        Ok(Identity { row, locks, heir: restarting.will && restarting.did, named: BTreeSet::new() })
    }

    pub fn hold_rank(&self, rank: i64) -> bool {
        self.locks.hold(Lock::Rank(rank))
    }

    /// Releases the lock for working, after all work has ended.
    pub fn stop_working(&self) {
        self.locks.release(Lock::Work(self.row.rank));
    }
}

fn place() -> Result<ProcessLocation, String> {
    let id = |what: &str, id: Result<id128::Id128, _>| {
        id.map(|id| id.lower_hex()).map_err(|error: libsystemd::errors::SdError| {
            format!("failed to read the {what} id: {error}")
        })
    };
    let namespace = std::fs::read_link("/proc/self/ns/pid")
        .map_err(|error| format!("failed to read /proc/self/ns/pid: {error}"))?;
    Ok(ProcessLocation {
        machine: id("machine", id128::get_machine())?,
        boot: id("boot", id128::get_boot())?,
        namespace: namespace.to_string_lossy().into_owned(),
    })
}

/// The innermost service or scope of the process's cgroup (cgroups(7)).
pub fn own_unit() -> Option<String> {
    unit_of(&std::fs::read_to_string("/proc/self/cgroup").ok()?)
}

fn unit_of(cgroups: &str) -> Option<String> {
    let unified = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut parts = unified.rsplit('/');
    let unit = parts.find(|part| part.ends_with(".service") || part.ends_with(".scope"))?;
    Some(unit.to_owned())
}

/// Moves a process that was started by hand into a scope, so that it can be ended without the shell
/// that started it. Empty if that fails.
async fn own_scope(scope: &Scope) -> String {
    let names = Names::new(scope.unit_prefix());
    let mut bytes = [0; 4];
    let _ = getrandom::fill(&mut bytes);
    let name = names.run_scope(std::process::id(), u32::from_ne_bytes(bytes));
    let slice = names.top_slice();
    let entering = enter_scope(scope.user, &name, "archivist orchestrator", &slice, 0);
    match tokio::time::timeout(REPLY_TIMEOUT, entering).await {
        Ok(Ok(())) => name,
        Ok(Err(error)) => {
            tracing::debug!("{error}, continuing without a scope");
            String::new()
        }
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_is_found_in_cgroup() {
        let found = |path: &str| unit_of(&format!("1:name=systemd:/x.service\n0::{path}\n"));
        let service = "archivist-orchestrator.service";
        assert_eq!(found(&format!("/archivist.slice/{service}")).unwrap(), service);
        let user = "/user.slice/user-0.slice/user@0.service/app.slice/run-u3.service/sub";
        assert_eq!(found(user).unwrap(), "run-u3.service");
        assert_eq!(found("/user.slice/user-0.slice/session-1.scope").unwrap(), "session-1.scope");
        assert_eq!(found("/"), None);
    }
}
