//! An orchestrator that cannot work because nothing can be written, or because there is no bus: it
//! waits, since another start at once would not help. In its STATUS= is what for.

use crate::main_loop::event::Event;
use crate::main_loop::notify;
use crate::main_loop::signals;
use crate::work::pressure;
use archivist_shared::bus::socket;
use archivist_shared::config::Scope;
use futures_util::StreamExt;
use inotify::{EventStream, Inotify, WatchMask};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Between one look at the file system and the next: the kernel tells nobody when there is room.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How long one process waits. systemd starts the next one half a second later, which is far from its StartLimitBurst=.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// What stands against any work.
enum Obstacle {
    Room(&'static str),
    /// Nobody listens at its socket.
    Bus(PathBuf),
}

impl Obstacle {
    async fn find(scope: &Scope) -> Option<Obstacle> {
        if let Some(lack) = no_room(scope) {
            return Some(Obstacle::Room(lack));
        }
        let socket = socket::path(scope.user)?;
        let silent = socket::is_silent(&socket).await;
        silent.then_some(Obstacle::Bus(socket))
    }

    /// What happens when it may be over, as far as somebody tells.
    fn news(&self) -> Option<EventStream<[u8; 4096]>> {
        match self {
            Obstacle::Room(_) => None,
            Obstacle::Bus(socket) => arrivals(socket.parent()?).ok(),
        }
    }
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Obstacle::Room(lack) => f.write_str(lack),
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

/// What stands against any write to the data directory.
pub fn no_room(scope: &Scope) -> Option<&'static str> {
    let mut machine = pressure::Machine::new(vec![scope.data_dir()]);
    machine.look().stuck()
}

/// How it ended.
pub enum Wait {
    /// Nothing stood against it: the failure had another cause.
    Nothing,
    /// It can work now.
    Over,
    /// This process was told to end.
    Told,
    /// It may be over elsewhere and not here: what was mounted read-only when systemd made our own
    /// view of it stays so, and where a user's bus is, is in our environment. Another process will see.
    Elsewhere,
}

/// After a failure: waits for what may have been its cause to be over.
pub async fn wait(scope: &Scope, error: &str) -> Wait {
    let Some(mut obstacle) = Obstacle::find(scope).await else {
        return Wait::Nothing;
    };
    let (sender, mut events) = mpsc::unbounded_channel();
    if let Err(error) = signals::listen(&sender) {
        tracing::error!("signals: {error}");
        return Wait::Elsewhere;
    }
    let mut told = String::new();
    let patience = Instant::now() + WAIT_TIMEOUT;
    loop {
        // Listening before looking: nothing happens unheard in between.
        let mut news = obstacle.news();
        match Obstacle::find(scope).await {
            Some(next) => obstacle = next,
            None => break,
        }
        // A user's service manager mounts nothing for us.
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
