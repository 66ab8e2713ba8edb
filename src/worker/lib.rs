//! The worker: runs the hooks of ONE crawl or snapshot as an unprivileged process in its own unit.
//! It decides on the order of hooks and reads their output. The orchestrator starts the hooks.

pub mod delete;
mod drive;
pub mod entries;
mod files;
mod link;
pub mod lists;
mod output;
mod page;
mod run;
mod sequence;
mod share;
mod staged;
mod visit;

pub use sequence::{HookAction, HookEvent, Sequence};

use archivist_core::model::{IdMarks, Owner, without_userinfo};
use archivist_core::plan::Treatment;
use archivist_shared::bus::client::{Address, ClientError};
use archivist_shared::bus::documents::work::{
    Assignment, DIRECTORY_TAKEN, HookMode, HookTask, NO_NETWORK,
};
use archivist_shared::{id_marks, installation};
use drive::Work;
use files::leftover::EndedUnits;
use files::{directory, heartbeat, identity, leftover};
use link::Link;
use page::pages;
use page::snapshot_index::SnapshotIndex;
use sequence::Purpose;
use std::io::Read;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Largest assignment in bytes.
const ASSIGNMENT_MAX: u64 = 16 << 20;

/// Why a worker stops before its work is complete. systemd reports a failed unit, and the
/// orchestrator retries.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(
        "failed to read the assignment from standard input: {0}\nthe orchestrator starts workers; they cannot be started by hand"
    )]
    Assignment(String),
    #[error(transparent)]
    Client(#[from] archivist_shared::bus::client::ClientError),
    /// A file or directory that cannot be read or written.
    #[error("failed to {verb} '{path}': {source}")]
    File {
        /// What failed, such as `create`.
        verb: &'static str,
        /// The file or directory.
        path: std::path::PathBuf,
        source: std::io::Error,
    },
    /// A hook replaced the directory of a plugin by something else.
    #[error("failed to enter plugin directory '{}': a hook replaced it", .0.display())]
    Replaced(std::path::PathBuf),
    /// The directory of the assignment exists and is that of another crawl or snapshot: what its
    /// identity says, or that it has none.
    #[error("failed to use directory '{}': {belongs}", .path.display())]
    Taken {
        path: std::path::PathBuf,
        /// What is known about its owner.
        belongs: String,
    },
    /// The machine does not reach the Internet, for this reason.
    #[error("the page waits for the network: {0}")]
    NoNetwork(String),
    #[error("failed to use the archive '{}': it belongs to another installation", .0.display())]
    Foreign(std::path::PathBuf),
}

/// Runs `archivist worker`. The exit status is 0 when the work is complete and recorded.
pub fn main() -> ExitCode {
    archivist_shared::journal::init(None);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("archivist worker: failed to create an event loop: {error}");
            return ExitCode::FAILURE;
        }
    };
    let work = tokio::task::LocalSet::new();
    let done = work.block_on(&runtime, run());
    // A thread may still wait for the lock of the archive's index.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The page was cancelled, or another worker has it by now.
        Err(error @ WorkerError::Client(ClientError::Denied(_))) => {
            tracing::warn!("{error}; this worker exits");
            ExitCode::FAILURE
        }
        Err(error @ WorkerError::NoNetwork(_)) => {
            tracing::info!("{error}");
            ExitCode::from(NO_NETWORK as u8)
        }
        Err(error) => {
            tracing::error!("{error}");
            match error {
                WorkerError::Taken { .. } => ExitCode::from(DIRECTORY_TAKEN as u8),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn read_assignment() -> Result<Assignment, WorkerError> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(ASSIGNMENT_MAX)
        .read_to_string(&mut text)
        .map_err(|error| WorkerError::Assignment(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| WorkerError::Assignment(error.to_string()))
}

async fn run() -> Result<(), WorkerError> {
    let assignment = read_assignment()?;
    let address = Address { user: assignment.user_scope, name: assignment.bus_name.clone() };
    let is_crawl = matches!(assignment.owner, Owner::Crawl(_));
    let link = Rc::new(Link::connect(address, assignment.token.clone()).await?);
    let standing = link.attach().await?;
    notify_systemd();
    mark_archive(&assignment)?;
    note_ids(&assignment);
    let own = Arc::new(identity::open_own(&assignment)?);
    let of_crawl = Rc::new(identity::open_crawl(&assignment)?);
    visit::begin(&assignment, &own, &standing).await?;
    directory::make_plugins(&own, &assignment)?;
    if let Some(shared) = assignment.shared_tmp.as_deref().filter(|_| is_crawl) {
        directory::make_shared(shared)?;
    }
    if !is_crawl {
        heartbeat::follow(&of_crawl, &own);
    }
    let index = Rc::new(SnapshotIndex::open(&assignment, &own)?);
    staged::take(&assignment, &own, &link, &index).await?;
    tracing::info!(
        "working on {} {}: {} hooks, {} of them have final results",
        assignment.owner,
        without_userinfo(&assignment.url),
        assignment.hooks.len() + assignment.last_hooks.len(),
        standing.hooks.iter().filter(|hook| hook.state.is_final()).count()
    );

    let work = Work {
        assignment: &assignment,
        directory: &own,
        link: &link,
        index: &index,
        units: &EndedUnits::default(),
    };
    let hooks = assignment.hooks.clone();
    work.drive(hooks, &standing, purpose(&assignment)).await?;
    let last = assignment.last_hooks.clone();
    work.drive(last, &standing, Purpose::OtherHooks).await?;
    if !is_crawl {
        heartbeat::end(&own);
    }
    if let Some(shared) = assignment.shared_tmp.as_deref().filter(|_| is_crawl) {
        directory::remove(shared);
    }
    leftover::end(&own, work.units).await;
    let network_fault = index.known().network_fault.clone();
    if let Some(why) = network_fault {
        visit::discard(&assignment, &own, &index).await?;
        return Err(WorkerError::NoNetwork(why));
    }
    match index.treatment() {
        Treatment::Keep => {}
        Treatment::Wait => return visit::discard(&assignment, &own, &index).await,
        Treatment::Fail | Treatment::GiveUp => index.failed()?,
    }
    visit::end_retry(&own, &index, &standing).await?;
    pages::publish(&assignment, &own, &index).await;
    // Send no STOPPING=1: systemd takes it for a stop of the unit and forgets the unit at its exit,
    // so a client that did not listen at that moment never learns the exit status.
    Ok(())
}

/// Notes in the archive which ids were handed out. Without the note, directories still cannot be mixed up
/// ([`identity`]).
fn note_ids(assignment: &Assignment) {
    let archive = &assignment.about.archive;
    // Without the archive's directory there is no note.
    if !archive.is_absolute() {
        return;
    }
    if let Err(error) = id_marks::raise(archive, assignment.ids) {
        let directory = archive.join(IdMarks::DIRECTORY);
        tracing::warn!("failed to write '{}': {error}, ignoring", directory.display());
    }
}

/// Leaves the identity of the installation in the archive.
///
/// # Errors
/// If the archive belongs to another installation: its file system was mounted after the orchestrator
/// looked.
fn mark_archive(assignment: &Assignment) -> Result<(), WorkerError> {
    let archive = &assignment.about.archive;
    let Some(own) = assignment.installation.as_deref().filter(|_| archive.is_absolute()) else {
        return Ok(());
    };
    match installation::mark(archive, own) {
        Ok(true) => Ok(()),
        Ok(false) => Err(WorkerError::Foreign(archive.clone())),
        Err(error) => {
            let directory = archive.join(IdMarks::DIRECTORY);
            tracing::warn!("failed to write '{}': {error}, ignoring", directory.display());
            Ok(())
        }
    }
}

/// Purpose of an assignment's daemons. If a hook is skipped, its relation to the daemons is
/// unknown, so they count as services for other hooks.
fn purpose(assignment: &Assignment) -> Purpose {
    let in_foreground = |hook: &HookTask| hook.mode == HookMode::Foreground;
    let all_there = assignment.about.skipped.is_empty();
    match assignment.owner {
        Owner::Crawl(_) => Purpose::CrawlPages,
        Owner::Snapshot(_) if all_there && !assignment.hooks.iter().any(in_foreground) => {
            Purpose::OwnWork
        }
        Owner::Snapshot(_) => Purpose::OtherHooks,
    }
}

/// Notifies systemd that the worker is ready, and resets its watchdog periodically from then on.
fn notify_systemd() {
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let Some(half) = sd_notify::watchdog_enabled().map(|limit| limit / 2) else {
        return;
    };
    let every = half.max(Duration::from_millis(100));
    tokio::task::spawn_local(async move {
        let mut ticks = tokio::time::interval(every);
        loop {
            ticks.tick().await;
            let _ = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
        }
    });
}
