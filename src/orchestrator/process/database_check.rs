//! The check of the whole database: normal work would find a damaged page late, and a damaged index
//! never. No work is done before it has ended, because each write would make the damage worse, unless
//! the file is as an orchestrator of this boot left it, which had checked it and exited normally. The
//! check runs next to the work then: a restart or an upgrade does not pause the archive.
//!
//! What it costs: the database of 10,000 pages with 7 hooks each has 61 MiB. `PRAGMA integrity_check`
//! takes 0.32 s of CPU time for it, `quick_check` 0.16 s. So work begins a third of a second later after
//! a boot or a crash, and half a minute later with a million pages (6 GB). The quick check would save half
//! of that and not find an index that differs from its table, which makes rows vanish from answers.

use crate::database::damage::{FileCheck, check};
use crate::machine::notify;
use crate::main_loop::event::Event;
use crate::process::error::OrchestratorError;
use crate::process::setup;
use archivist_config::Scope;
use archivist_core::text::human_span;
use archivist_shared::database::{self, Finding};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Interval of notifying systemd that the start takes longer.
const BEAT_INTERVAL: Duration = Duration::from_secs(5);
/// Shortest check before work that is logged.
const LOGGED_MIN: Duration = Duration::from_secs(1);

/// Whether a check of this process found the database whole.
#[derive(Clone, Default)]
pub struct Checked(Arc<AtomicBool>);

impl Checked {
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Records the state of the file after the last connection was closed, for the next orchestrator
    /// and for commands. `damage`: the message, if it is damaged.
    pub fn record(&self, scope: &Scope, damage: Option<String>) {
        let finding = match damage {
            Some(why) => Finding::Damaged(why),
            None if self.0.load(Ordering::Relaxed) => Finding::Whole,
            None => return,
        };
        if let Err(error) = database::record(scope, finding) {
            tracing::warn!("failed to record the state of the database: {error}, ignoring");
        }
    }
}

/// Checks the database before it is used, if that is necessary. Returns false if this process received
/// SIGTERM meanwhile; other events stay queued.
///
/// # Errors
/// If it is damaged. Nothing was written then.
pub async fn before_work(
    scope: &Scope,
    checked: &Checked,
    queue: &mpsc::UnboundedSender<Event>,
    events: &mut mpsc::UnboundedReceiver<Event>,
) -> Result<bool, OrchestratorError> {
    if checked.0.load(Ordering::Relaxed) || database::known(scope) == Some(Finding::Whole) {
        return Ok(true);
    }
    let path = database::path(scope);
    let size = std::fs::metadata(&path).map_or(0, |found| found.len());
    let line =
        format!("checking the database '{}' ({} MiB) before work", path.display(), size >> 20);
    let began = Instant::now();
    let mut check = tokio::task::spawn_blocking(move || check(&path));
    let mut beats = tokio::time::interval(BEAT_INTERVAL);
    let mut others = Vec::new();
    notify::status(&line);
    let found = loop {
        tokio::select! {
            found = &mut check => break found.unwrap_or(FileCheck::Unknown),
            _ = beats.tick() => {
                notify::starting(BEAT_INTERVAL * 3);
                notify::beat();
            }
            Some(event) = events.recv() => match event {
                Event::Terminate => return Ok(false),
                other => others.push(other),
            },
        }
    };
    for event in others {
        let _ = queue.send(event);
    }
    if began.elapsed() >= LOGGED_MIN {
        tracing::info!("{line} took {}", human_span(began.elapsed()));
    }
    match found {
        FileCheck::Damaged(what) => return Err(setup::damaged(scope, &what)),
        FileCheck::Whole => checked.set(),
        // The file does not exist yet, or the open finds out why it cannot be used.
        FileCheck::Unknown => {}
    }
    Ok(true)
}

/// Checks the database in a thread, next to the work, unless a check of this process did.
pub fn next_to_work(scope: &Scope, checked: &Checked, events: mpsc::UnboundedSender<Event>) {
    if checked.0.load(Ordering::Relaxed) {
        return;
    }
    let (path, checked) = (database::path(scope), checked.clone());
    std::thread::spawn(move || match check(&path) {
        FileCheck::Damaged(what) => drop(events.send(Event::Damaged(what))),
        FileCheck::Whole => checked.set(),
        FileCheck::Unknown => {}
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use std::path::PathBuf;

    /// A data directory with a database, as a normal exit leaves it.
    fn installed(root: &tempfile::TempDir) -> (Scope, PathBuf) {
        let scope = Scope::system(root.path());
        std::fs::create_dir_all(scope.data_dir()).unwrap();
        let path = database::path(&scope);
        drop(Database::open(&path).unwrap());
        (scope, path)
    }

    /// Overwrites a page in the middle, as a disk may.
    fn damage(path: &PathBuf) -> Vec<u8> {
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 8192 * 4096;
        bytes[middle..middle + 4096].fill(0xa5);
        std::fs::write(path, &bytes).unwrap();
        bytes
    }

    async fn checked_before(scope: &Scope, checked: &Checked) -> Result<bool, OrchestratorError> {
        let (sender, mut events) = mpsc::unbounded_channel();
        before_work(scope, checked, &sender, &mut events).await
    }

    #[tokio::test]
    async fn damaged_database_is_refused_unchanged_before_work() {
        let root = tempfile::tempdir().unwrap();
        let (scope, path) = installed(&root);
        let bytes = damage(&path);
        let checked = Checked::default();
        let refused = checked_before(&scope, &checked).await.unwrap_err();
        let OrchestratorError::DatabaseDamaged(why) = refused else {
            panic!("{refused}");
        };
        assert!(why.contains(&format!("'{}' is damaged", path.display())), "{why}");
        assert!(why.contains("restore"), "{why}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        let log = std::fs::metadata(database::log_of(&path));
        assert_eq!(log.map_or(0, |log| log.len()), 0, "nothing in a log");
        // Commands know it until the file has changed.
        checked.record(&scope, Some(why.clone()));
        assert_eq!(database::known(&scope), Some(Finding::Damaged(why)));
        std::fs::remove_file(&path).unwrap();
        drop(Database::open(&path).unwrap());
        assert_eq!(database::known(&scope), None);
        assert!(checked_before(&scope, &checked).await.unwrap());
    }

    #[tokio::test]
    async fn database_is_checked_before_work_unless_it_was_left_whole() {
        let root = tempfile::tempdir().unwrap();
        let (scope, path) = installed(&root);
        let first = Checked::default();
        assert!(checked_before(&scope, &first).await.unwrap());
        assert!(first.0.load(Ordering::Relaxed), "it was checked");
        first.record(&scope, None);
        let next = Checked::default();
        assert!(checked_before(&scope, &next).await.unwrap());
        assert!(!next.0.load(Ordering::Relaxed), "it was not checked again");
        let (sender, mut events) = mpsc::unbounded_channel();
        next_to_work(&scope, &next, sender);
        assert!(events.recv().await.is_none(), "no damage");
        assert!(next.0.load(Ordering::Relaxed), "but next to the work");
        // An orchestrator that is killed leaves no record of what it wrote.
        let mut database = Database::open(&path).unwrap();
        database.take_over("killed", "boot", archivist_core::model::Time(1)).unwrap();
        let third = Checked::default();
        assert!(checked_before(&scope, &third).await.unwrap());
        assert!(third.0.load(Ordering::Relaxed), "it was checked");
    }

    #[tokio::test]
    async fn termination_ends_the_check() {
        let root = tempfile::tempdir().unwrap();
        let (scope, _) = installed(&root);
        let (sender, mut events) = mpsc::unbounded_channel();
        sender.send(Event::Terminate).unwrap();
        let checked = Checked::default();
        // Whichever is first.
        let ended = before_work(&scope, &checked, &sender, &mut events).await;
        assert_eq!(ended.unwrap(), checked.0.load(Ordering::Relaxed));
    }
}
