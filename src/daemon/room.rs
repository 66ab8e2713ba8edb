//! An orchestrator that cannot work because nothing can be written: it waits, since another start at
//! once would not help. In its STATUS= is what for.

use super::event::Event;
use super::{notify, pressure, signals};
use crate::config::Scope;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Between one look at the file system and the next: the kernel tells nobody when there is room.
const EVERY: Duration = Duration::from_secs(5);

/// How long one process waits. systemd starts the next one half a second later, which is far from its StartLimitBurst=.
const PATIENCE: Duration = Duration::from_secs(20);

/// What stands against any write to the data directory.
pub fn lack(scope: &Scope) -> Option<&'static str> {
    let mut machine = pressure::Machine::new(vec![scope.data_dir()]);
    machine.look().stuck()
}

/// How it ended.
pub enum Wait {
    /// There is room.
    Over,
    /// This process was told to end.
    Told,
    /// It may be over elsewhere and not here: what was mounted read-only when systemd made our own
    /// view of it stays so. Another process will see.
    Elsewhere,
}

/// Waits for room.
pub async fn wait(scope: &Scope, error: &str) -> std::io::Result<Wait> {
    let (sender, mut events) = mpsc::unbounded_channel();
    signals::listen(&sender)?;
    let mut told = None;
    let patience = Instant::now() + PATIENCE;
    while let Some(lack) = lack(scope) {
        if told != Some(lack) {
            tracing::error!("{error}; {lack}, waiting until that is over");
            notify::status(&format!("waiting: {lack}"));
            told = Some(lack);
        }
        notify::starting(EVERY * 3);
        notify::beat();
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            event = events.recv() => if matches!(event, Some(Event::Terminate)) {
                return Ok(Wait::Told);
            },
        }
        if Instant::now() >= patience && !scope.user {
            return Ok(Wait::Elsewhere);
        }
    }
    tracing::info!("there is room again, going on");
    Ok(Wait::Over)
}
