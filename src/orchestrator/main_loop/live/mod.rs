//! The collaborators of the loop as they are: systemd, threads, and callers on the bus.

mod background;
mod callers;
mod disk_watch;
pub mod followers;
mod freezer;
pub mod hold;
mod registered;
mod systemd;

use crate::bus::announcer::Announcer;
use crate::machine::notify;
use crate::main_loop::event::Event;
use archivist_shared::bus::signals::Signal;
use archivist_shared::systemd::Manager;
use disk_watch::DiskWatch;
use followers::Followers;
use freezer::Freezer;
use hold::Holds;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long an orchestrator that exits waits for the bus to take its signals.
const SIGNALS_TIMEOUT: Duration = Duration::from_secs(1);

/// systemd, threads and callers. Calls run in tasks of their own; their results are events.
pub struct Live {
    manager: Manager,
    events: mpsc::UnboundedSender<Event>,
    freezer: Freezer,
    disk: DiskWatch,
    followers: Followers,
    holds: Holds,
    status: notify::Status,
    /// None after the end of the loop.
    announcer: Option<Announcer>,
    /// Work before the process exits.
    pub farewell: Option<tokio::task::JoinHandle<()>>,
}

impl Live {
    pub fn new(
        manager: Manager,
        events: mpsc::UnboundedSender<Event>,
        announcer: Announcer,
    ) -> Live {
        Live {
            manager,
            events,
            freezer: Freezer::default(),
            disk: DiskWatch::default(),
            followers: Followers::default(),
            holds: Holds::default(),
            status: notify::Status::default(),
            announcer: Some(announcer),
            farewell: None,
        }
    }

    /// Reports that the orchestrator exits, and waits until the signals are sent.
    pub async fn finish_signals(&mut self) {
        if let Some(mut announcer) = self.announcer.take() {
            announcer.announce(Signal::Stopping);
            announcer.finish(SIGNALS_TIMEOUT).await;
        }
    }
}
