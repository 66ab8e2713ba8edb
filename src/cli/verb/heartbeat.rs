//! `archivist heartbeat`: a heartbeat from any program of a pool (sd_notify(3)).
//!
//! By libsystemd, not by sd-notify as in the services: sd-notify passes the descriptor of the barrier
//! only with one more crate, and cannot reach an abstract socket.

use crate::client::exit::{Exit, Failure};
use libsystemd::daemon::{NotifyState, notify, notify_with_fds};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd, AsRawFd};

/// Environment variable in which a pool passes the longest time between two heartbeats, in
/// microseconds.
const LIMIT: &str = "ARCHIVIST_HEARTBEAT_USEC";

/// Deadline for systemd to read the heartbeat, in milliseconds.
const PATIENCE: u16 = 5_000;

pub fn run() -> Result<Exit, Failure> {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return Err(Failure::failed(
            "no receiver for a heartbeat: NOTIFY_SOCKET is not set; run this in a worker of a \
             pool that has HeartbeatSec=, see archivist.pool(5)",
        ));
    }
    let mut states = Vec::new();
    // The heartbeat carries the limit, so systemd does not watch a worker that never sends one.
    if let Ok(limit) = std::env::var(LIMIT) {
        let beat = limit.parse::<u64>().ok().filter(|usec| *usec > 0);
        let Some(usec) = beat else {
            let what = format!("{LIMIT} is '{limit}', not a number of microseconds");
            return Err(Failure::failed(what));
        };
        states.push(NotifyState::WatchdogUsec(usec));
    }
    states.push(NotifyState::Watchdog);
    let failed = |why: String| Failure::failed(format!("failed to notify systemd: {why}"));
    notify(false, &states).map_err(|error| failed(error.to_string()))?;
    heard().map_err(failed)?;
    Ok(Exit::Done)
}

/// Waits until systemd has read the heartbeat: systemd identifies the unit by the sending process,
/// which must still exist then (sd_notify_barrier(3)).
fn heard() -> Result<(), String> {
    let (ours, theirs) = nix::unistd::pipe().map_err(|error| error.to_string())?;
    let barrier = [NotifyState::Other("BARRIER=1".to_owned())];
    notify_with_fds(false, &barrier, &[theirs.as_raw_fd()]).map_err(|error| error.to_string())?;
    drop(theirs);
    let mut waiting = [PollFd::new(ours.as_fd(), PollFlags::empty())];
    match poll(&mut waiting, PollTimeout::from(PATIENCE)) {
        Ok(0) => Err(format!("no answer within {} s", PATIENCE / 1000)),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
