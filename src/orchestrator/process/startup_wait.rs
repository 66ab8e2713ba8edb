//! Waiting at the start, when nothing can be written or no bus is there: another start at once
//! would not help. STATUS= shows the reason.

use crate::machine::notify;
use crate::machine::pressure;
use crate::main_loop::event::Event;
use crate::process::event_sources;
use archivist_config::Scope;
use archivist_shared::bus::socket;
use archivist_shared::outage;
use futures_util::StreamExt;
use inotify::{EventStream, Inotify, WatchMask};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Interval of checking the file system: the kernel has no event for free space.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How long one process waits. systemd starts the next one half a second later, which is far from
/// StartLimitBurst=.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// What prevents any work.
enum Obstacle {
    Data(String),
    /// No bus listens on its socket.
    Bus(PathBuf),
}

impl Obstacle {
    async fn find(scope: &Scope) -> Option<Obstacle> {
        if let Some(why) = data_obstacle(scope) {
            return Some(Obstacle::Data(why));
        }
        let socket = socket::path(scope.user)?;
        let silent = socket::is_silent(&socket).await;
        silent.then_some(Obstacle::Bus(socket))
    }

    /// Events after which the obstacle may be gone, if there are any.
    fn news(&self) -> Option<EventStream<[u8; 4096]>> {
        match self {
            Obstacle::Data(_) => None,
            Obstacle::Bus(socket) => arrivals(socket.parent()?).ok(),
        }
    }
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Obstacle::Data(why) => f.write_str(why),
            Obstacle::Bus(socket) => write!(f, "no message bus listens on '{}'", socket.display()),
        }
    }
}

fn arrivals(directory: &Path) -> io::Result<EventStream<[u8; 4096]>> {
    let inotify = Inotify::init()?;
    let arrival = WatchMask::CREATE | WatchMask::MOVED_TO;
    inotify.watches().add(directory, arrival)?;
    inotify.into_event_stream([0; 4096])
}

/// Why no write to the data directory can succeed, if so.
pub fn data_obstacle(scope: &Scope) -> Option<String> {
    if let Some(outage) = outage::data_directory(scope) {
        return Some(outage.what);
    }
    let mut machine = pressure::Machine::new(vec![scope.data_dir()]);
    machine.look().stuck().map(|stuck| stuck.why)
}

pub enum Wait {
    /// There is no obstacle: the failure had another cause.
    Nothing,
    Over,
    /// This process received SIGTERM.
    Told,
    /// The obstacle may be gone for another process only: what was mounted read-only when systemd
    /// made this process's view stays so, and the address of a user's bus is in the environment.
    Elsewhere,
}

/// After a failure, waits until its cause is gone.
pub async fn wait(scope: &Scope, error: &str) -> Wait {
    let Some(mut obstacle) = Obstacle::find(scope).await else {
        return Wait::Nothing;
    };
    let (sender, mut events) = mpsc::unbounded_channel();
    if let Err(error) = event_sources::signals(&sender) {
        tracing::error!("signals: {error}");
        return Wait::Elsewhere;
    }
    let mut told = String::new();
    let patience = Instant::now() + WAIT_TIMEOUT;
    loop {
        // Subscribe first, then check: no change is missed.
        let mut news = obstacle.news();
        match Obstacle::find(scope).await {
            Some(next) => obstacle = next,
            None => break,
        }
        // A user's service manager makes no mounts for this process.
        let elsewhere = !scope.user || matches!(obstacle, Obstacle::Bus(_));
        if Instant::now() >= patience && elsewhere {
            return Wait::Elsewhere;
        }
        let what = obstacle.to_string();
        if told != what {
            tracing::error!("{error}; waiting: {what}");
            notify::status(&format!("waiting: {what}"));
            told = what;
        }
        notify::starting(CHECK_INTERVAL * 3);
        notify::beat();
        let heard = async {
            match &mut news {
                Some(news) => news.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = heard => {}
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
            event = events.recv() => if matches!(event, Some(Event::Terminate)) {
                return Wait::Told;
            },
        }
    }
    tracing::info!("the problem is solved, continuing");
    Wait::Over
}
