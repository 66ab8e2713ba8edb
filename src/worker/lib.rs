//! The worker: the inside of ONE crawl or snapshot, as an unprivileged process in a unit of its
//! own. It decides on the order of hooks and reads what they say; it starts nothing itself.

mod drive;
mod files;
mod link;
mod output;
mod page;
mod sequence;

pub use sequence::{Action, Input, Sequence};

use archivist_core::model::{Owner, without_userinfo};
use archivist_shared::bus::client::{Address, ClientError};
use archivist_shared::bus::documents::work::{Assignment, HookMode, HookTask};
use drive::Work;
use files::leftover::Units;
use files::{directory, heartbeat, leftover};
use link::Link;
use page::index::Index;
use page::pages;
use sequence::Purpose;
use std::io::Read;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Largest assignment that is read.
const ASSIGNMENT_MAX: u64 = 16 << 20;

/// Why a worker gives up. systemd reports it as a failed unit, the orchestrator tries again.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(
        "cannot read the assignment from standard input: {0}\nworkers are started by the orchestrator, not by hand"
    )]
    Assignment(String),
    #[error(transparent)]
    Client(#[from] archivist_shared::bus::client::ClientError),
    #[error("cannot {verb} '{path}': {source}")]
    File {
        verb: &'static str,
        path: std::path::PathBuf,
        source: std::io::Error,
    },
    #[error("plugin directory '{}' is not a directory of its own: a hook replaced it", .0.display())]
    Replaced(std::path::PathBuf),
}

/// `archivist-orchestrator worker`: exit status 0 when the work is complete and recorded.
pub fn main() -> ExitCode {
    archivist_shared::journal::init(None);
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("archivist-orchestrator: failed to create an event loop: {error}");
            return ExitCode::FAILURE;
        }
    };
    let work = tokio::task::LocalSet::new();
    let done = work.block_on(&runtime, run());
    // A thread may still be waiting for the lists of the archive.
    runtime.shutdown_background();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Its page was given up, or another worker has it by now.
        Err(error @ WorkerError::Client(ClientError::Denied(_))) => {
            tracing::warn!("{error}; this worker ends");
            ExitCode::FAILURE
        }
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
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
    let address = Address {
        user: assignment.user_scope,
        name: assignment.bus_name.clone(),
    };
    let is_crawl = matches!(assignment.owner, Owner::Crawl(_));
    let link = Rc::new(Link::connect(address, assignment.token.clone()).await?);
    let standing = link.attach().await?;
    beat();
    let of_crawl = Rc::new(directory::make(&assignment.crawl_directory)?);
    let own = Arc::new(directory::make(&assignment.directory)?);
    directory::make_plugins(&own, &assignment)?;
    if let Some(shared) = assignment.shared_tmp.as_deref().filter(|_| is_crawl) {
        directory::make_shared(shared)?;
    }
    if !is_crawl {
        heartbeat::follow(&of_crawl, &own);
    }
    let index = Rc::new(Index::open(&assignment, &own)?);
    tracing::info!(
        "working on {} {}: {} hooks, {} of them done before",
        assignment.owner,
        without_userinfo(&assignment.url),
        assignment.hooks.len() + assignment.last_hooks.len(),
        standing
            .hooks
            .iter()
            .filter(|hook| hook.state.is_final())
            .count()
    );

    let work = Work {
        assignment: &assignment,
        directory: &own,
        link: &link,
        index: &index,
        units: &Units::default(),
    };
    let hooks = assignment.hooks.clone();
    work.drive(hooks, &standing, purpose(&assignment)).await?;
    let last = assignment.last_hooks.clone();
    work.drive(last, &standing, Purpose::Beside).await?;
    if !is_crawl {
        heartbeat::end(&own);
    }
    if let Some(shared) = assignment.shared_tmp.as_deref().filter(|_| is_crawl) {
        directory::remove(shared);
    }
    leftover::end(&own, work.units).await;
    pages::publish(&assignment, &own, &index).await;
    // No STOPPING=1: systemd takes it for a stop of the unit, which is then gone with its exit, and whoever was not
    // listening at that moment never learns how it ended.
    Ok(())
}

/// What the daemons of an assignment are there for. Where a hook is left out, nobody knows what it would
/// have been about.
fn purpose(assignment: &Assignment) -> Purpose {
    let in_foreground = |hook: &HookTask| hook.mode == HookMode::Foreground;
    let all_there = assignment.about.skipped.is_empty();
    match assignment.owner {
        Owner::Crawl(_) => Purpose::Pages,
        Owner::Snapshot(_) if all_there && !assignment.hooks.iter().any(in_foreground) => {
            Purpose::Own
        }
        Owner::Snapshot(_) => Purpose::Beside,
    }
}

/// Tells systemd that the worker is up, and from then on that its loop turns.
fn beat() {
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let Some(every) = sd_notify::watchdog_enabled().map(|limit| limit / 2) else {
        return;
    };
    let every = every.max(Duration::from_millis(100));
    tokio::task::spawn_local(async move {
        let mut ticks = tokio::time::interval(every);
        loop {
            ticks.tick().await;
            let _ = sd_notify::notify(&[sd_notify::NotifyState::Watchdog]);
        }
    });
}
