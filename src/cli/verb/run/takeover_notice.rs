//! Notices of a takeover: each orchestrator that takes over is reported once.

use archivist_core::text::clean;
use archivist_shared::bus::documents::report::Runner;
use std::collections::BTreeSet;

#[derive(Default)]
pub struct TakeoverNotice {
    /// Identified by unit, because a restarted service is the same orchestrator; without a unit, by
    /// pid.
    known: BTreeSet<String>,
}

fn key(runner: &Runner) -> String {
    match runner.unit.as_str() {
        "" => runner.pid.to_string(),
        unit => unit.to_owned(),
    }
}

impl TakeoverNotice {
    /// Returns the notice for the active runner if it was never active before.
    pub fn newer(&mut self, runners: &[Runner]) -> Option<String> {
        let active = runners.iter().find(|runner| runner.state == "active")?;
        let first = self.known.is_empty();
        if !self.known.insert(key(active)) || first {
            return None;
        }
        let unit = match active.unit.as_str() {
            "" => String::new(),
            unit => format!(", {}", clean(unit)),
        };
        Some(format!(
            "a newer process took over {} (pid={}{unit}); work will continue there and will resume here if that process exits and work remains",
            clean(&active.components),
            active.pid,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;

    fn runner(state: &str, unit: &str, pid: u32) -> Runner {
        Runner {
            state: state.into(),
            pid,
            unit: unit.into(),
            components: "orchestrator".into(),
            since: Time(0),
            epoch: 1,
            place: None,
            directory: None,
        }
    }

    #[test]
    fn a_takeover_is_reported_once_and_a_restart_is_not() {
        let service = |pid| runner("active", "archivist-orchestrator.service", pid);
        let mut notice = TakeoverNotice::default();
        assert_eq!(notice.newer(&[service(1)]), None);
        assert_eq!(notice.newer(&[service(2)]), None);
        let waiting = runner("waiting", "archivist-orchestrator.service", 2);
        let scope = [waiting, runner("active", "archivist-run-9-0.scope", 9)];
        let message = notice.newer(&scope).unwrap();
        assert!(
            message.contains("took over orchestrator (pid=9, archivist-run-9-0.scope)"),
            "{message}"
        );
        assert_eq!(notice.newer(&scope), None);
        // It ended, and the first one has the work again.
        assert_eq!(notice.newer(&[service(2)]), None);
        assert_eq!(notice.newer(&scope), None);
        assert!(notice.newer(&[runner("active", "", 7)]).unwrap().contains("(pid=7)"));
        assert_eq!(notice.newer(&[]), None);
    }
}
