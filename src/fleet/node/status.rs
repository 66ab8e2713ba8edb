//! Notifications for systemd, and the log of faults: each once, until it is over.

use archivist_core::fleet::Holdings;
use archivist_shared::bus::documents::fleet::NodeState;
use sd_notify::NotifyState;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Interval, interval};

/// Interval of beats without a watchdog.
const NO_WATCHDOG: Duration = Duration::from_secs(3600);

pub(super) struct Status {
    state: watch::Sender<NodeState>,
    shown: String,
}

impl Status {
    pub fn new(name: &str, database: &str) -> Status {
        let state = NodeState {
            name: name.to_owned(),
            database: database.to_owned(),
            ..NodeState::default()
        };
        Status { state: watch::Sender::new(state), shown: String::new() }
    }

    pub fn states(&self) -> watch::Receiver<NodeState> {
        self.state.subscribe()
    }

    /// Shows what the node holds: everything works.
    pub fn holds(&mut self, holdings: &Holdings) {
        let mut state = self.state.borrow().clone();
        if !state.works {
            tracing::info!("connected to {} as node '{}'", state.database, state.name);
        }
        state.works = true;
        state.fault = None;
        state.hosts = holdings.leases.len() as u64;
        state.is_sending = !holdings.entries.is_empty();
        self.show(state);
    }

    /// Something does not work; the service tries again.
    pub fn failed(&mut self, fault: &str) {
        let mut state = self.state.borrow().clone();
        if state.fault.as_deref() != Some(fault) {
            tracing::warn!("{fault}; trying again");
        }
        state.works = false;
        state.fault = Some(fault.to_owned());
        self.show(state);
    }

    fn show(&mut self, state: NodeState) {
        let line = line(&state);
        if self.shown != line {
            send(&[NotifyState::Status(&line)]);
            self.shown = line;
        }
        self.state.send_if_modified(|known| {
            let is_new = *known != state;
            *known = state;
            is_new
        });
    }
}

fn line(state: &NodeState) -> String {
    let name = &state.name;
    if let Some(fault) = &state.fault {
        return format!("node '{name}': {fault}; trying again");
    }
    let hosts = match state.hosts {
        0 => "no host leased".to_owned(),
        1 => "1 host leased".to_owned(),
        hosts => format!("{hosts} hosts leased"),
    };
    let sending = if state.is_sending { ", sending" } else { "" };
    let database = &state.database;
    format!("node '{name}', connected to {database}: {hosts}{sending}")
}

/// Returns the interval of [`beat`].
pub(super) fn beats() -> Interval {
    let limit = sd_notify::watchdog_enabled();
    interval(limit.map_or(NO_WATCHDOG, |limit| limit / 3))
}

pub(super) fn beat() {
    send(&[NotifyState::Watchdog]);
}

pub(super) fn ready() {
    send(&[NotifyState::Ready]);
}

pub(super) fn stopping() {
    send(&[NotifyState::Stopping]);
}

pub fn show_failure(why: &str) {
    send(&[NotifyState::Status(why)]);
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("failed to notify systemd: {error}, ignoring");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_line_has_the_fault_until_it_is_over() {
        let mut status = Status::new("web2", "postgresql://db.example/archive");
        status.holds(&Holdings::default());
        let fine = "node 'web2', connected to postgresql://db.example/archive: no host leased";
        assert_eq!(status.shown, fine);
        status.failed("no reply");
        assert_eq!(status.shown, "node 'web2': no reply; trying again");
        status.holds(&Holdings::default());
        assert_eq!(status.shown, fine);
    }
}
