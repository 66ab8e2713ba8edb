//! `archivist heartbeat`: any program of a pool says that it is alive (sd_notify(3)).

use crate::client::exit::{Exit, Failure};
use libsystemd::daemon::{NotifyState, notify, notify_with_fds};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd, AsRawFd};

/// What a pool gives its workers: the longest time between two beats, in microseconds.
const LIMIT: &str = "ARCHIVIST_HEARTBEAT_USEC";

/// How long systemd may take to hear it, in milliseconds.
const PATIENCE: u16 = 5_000;

pub fn run() -> Result<Exit, Failure> {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return Err(Failure::failed(
            "nobody listens to a heartbeat: there is no NOTIFY_SOCKET in the environment; run this in a worker of a \
             pool that has HeartbeatSec=, see archivist.pool(5)",
        ));
    }
    let mut states = Vec::new();
    // The limit comes with the beat: so nobody is watched who has never beaten.
    if let Ok(limit) = std::env::var(LIMIT) {
        let beat = limit.parse::<u64>().ok().filter(|usec| *usec > 0);
        let Some(usec) = beat else {
            let what = format!("{LIMIT} is '{limit}' and not a number of microseconds");
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

/// Waits until systemd has read what was sent: it finds out whose beat it is by the process that
/// sent it, and that has to be there still (sd_notify_barrier(3)).
fn heard() -> Result<(), String> {
    let (ours, theirs) = nix::unistd::pipe().map_err(|error| error.to_string())?;
    let barrier = [NotifyState::Other("BARRIER=1".to_owned())];
    notify_with_fds(false, &barrier, &[theirs.as_raw_fd()]).map_err(|error| error.to_string())?;
    drop(theirs);
    let mut waiting = [PollFd::new(ours.as_fd(), PollFlags::empty())];
    match poll(&mut waiting, PollTimeout::from(PATIENCE)) {
        Ok(0) => Err(format!("it did not answer within {} s", PATIENCE / 1000)),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
