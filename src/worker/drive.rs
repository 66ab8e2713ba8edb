//! Carries out the actions of a [`Sequence`]: starts and stops hooks, and reports their results.

use crate::WorkerError;
use crate::files::leftover::EndedUnits;
use crate::link::Link;
use crate::output::growth::GrowthMonitor;
use crate::page::snapshot_index::SnapshotIndex;
use crate::run::HookRunner;
use crate::sequence::{EarlierRuns, HookAction, HookEvent, Purpose, Sequence};
use archivist_core::model::ResultState;
use archivist_core::text::exact_span;
use archivist_plugin::Directory;
use archivist_shared::bus::documents::report::HookResult;
use archivist_shared::bus::documents::work::{Assignment, HookMode, HookTask, Standing};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

pub struct Work<'a> {
    pub assignment: &'a Assignment,
    /// Directory of the crawl or snapshot.
    pub directory: &'a Arc<Directory>,
    pub link: &'a Rc<Link>,
    pub index: &'a Rc<SnapshotIndex>,
    pub units: &'a EndedUnits,
}

impl Work<'_> {
    /// Runs `hooks` until they have ended. `purpose` decides how long daemons run.
    pub async fn drive(
        &self,
        hooks: Vec<HookTask>,
        standing: &Standing,
        purpose: Purpose,
    ) -> Result<(), WorkerError> {
        drive(self, hooks, standing, purpose).await
    }
}

async fn drive(
    work: &Work<'_>,
    mut hooks: Vec<HookTask>,
    standing: &Standing,
    purpose: Purpose,
) -> Result<(), WorkerError> {
    let assignment = work.assignment;
    let known = |hook: &HookTask| standing.hooks.iter().find(|known| known.key == hook.key);
    let done = done(&hooks, standing);
    let mut join: Vec<bool> =
        hooks.iter().map(|hook| known(hook).is_some_and(|known| known.joinable)).collect();
    let mut started = vec![false; hooks.len()];
    let (events, mut arriving) = mpsc::unbounded_channel();
    let runner = Rc::new(HookRunner {
        assignment: assignment.clone(),
        directory: work.directory.clone(),
        units: work.units.clone(),
        link: work.link.clone(),
        index: work.index.clone(),
        events,
        requested: RefCell::default(),
        running: RefCell::default(),
        claims: Arc::default(),
        growth: GrowthMonitor::new(),
        killed: RefCell::default(),
    });
    let begin = Instant::now();
    let (ready_limit, grace_max) = (assignment.ready_limit, assignment.stop_limit);
    let mut sequence = Sequence::new(hooks.clone(), &done, purpose, ready_limit, grace_max);
    sequence.continue_retries(&earlier_runs(&hooks, &done, &work.index.known().results));
    let mut actions = sequence.handle(HookEvent::Begin, begin.elapsed());
    loop {
        for action in actions {
            match action {
                HookAction::Start(position) => {
                    let (runner, hook) = (runner.clone(), hooks[position].clone());
                    if std::mem::replace(&mut started[position], true) {
                        tracing::info!("{}: restarting the hook", hook.key);
                    }
                    // Joins a run that an earlier worker left once; later starts are new runs.
                    let join = std::mem::take(&mut join[position]);
                    tokio::task::spawn_local(runner.run(hook, position, join));
                }
                HookAction::Stop(position) | HookAction::Kill(position, _) => {
                    let (runner, key) = (runner.clone(), hooks[position].key.clone());
                    let force = match action {
                        HookAction::Kill(_, grace) => {
                            let why = why_killed(&hooks[position], grace, grace_max);
                            runner.killed.borrow_mut().insert(key.clone(), why);
                            true
                        }
                        _ => false,
                    };
                    tokio::task::spawn_local(async move {
                        if let Err(error) = runner.link.stop(&key, force).await {
                            let _ = runner.events.send(Err(error));
                        }
                    });
                }
                HookAction::AllStarted if purpose == Purpose::CrawlPages => {
                    let runner = runner.clone();
                    tokio::task::spawn_local(async move {
                        let released = runner.link.snapshots_done().await;
                        let _ = runner.events.send(released.map(|()| HookEvent::Release));
                    });
                }
                HookAction::AllStarted => {}
                HookAction::Done => return Ok(()),
            }
        }
        let deadline = sequence.deadline().map(|deadline| begin + deadline);
        let wake = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let input = tokio::select! {
            input = arriving.recv() => match input {
                Some(input) => input?,
                None => return Ok(()),
            },
            () = wake => HookEvent::Deadline,
        };
        for hook in runner.requested.take() {
            if sequence.add(hook.clone()) {
                hooks.push(hook);
                join.push(false);
                started.push(false);
            }
        }
        actions = sequence.handle(input, begin.elapsed());
    }
}

/// Returns why a hook is killed that did not end within `grace` after it was stopped.
fn why_killed(hook: &HookTask, grace: Duration, grace_max: Duration) -> String {
    let limit = if grace == grace_max {
        format!("StopTimeoutSec={}", exact_span(grace))
    } else {
        format!("its time limit is {}", exact_span(hook.patience))
    };
    let seconds = Duration::from_secs(grace.as_secs_f64().round() as u64);
    format!("it did not end within {} after SIGTERM ({limit})", exact_span(seconds))
}

/// Returns the retries that an earlier worker did not come to, from the results in its index: those of
/// foreground hooks that ended within their limit without success and files, in their only run.
fn earlier_runs(hooks: &[HookTask], done: &[bool], results: &[HookResult]) -> EarlierRuns {
    let result = |hook: &HookTask| {
        let mut same = results.iter();
        same.find(|known| known.plugin == hook.plugin && known.hook == hook.hook)
    };
    let ended = |mode: HookMode| {
        let all = hooks.iter().enumerate();
        all.filter(move |(position, hook)| done[*position] && hook.mode == mode)
            .filter_map(move |(position, hook)| Some((position, hook, result(hook)?)))
    };
    let mut earlier = EarlierRuns::default();
    for (position, hook, known) in ended(HookMode::Foreground) {
        let (Some(start), Some(end)) = (known.started_at, known.ended_at) else {
            continue;
        };
        let has_nothing = known.status != ResultState::Succeeded && known.files.is_empty();
        if has_nothing && known.attempts == 1 && end.until(start) < hook.limit {
            earlier.found_nothing.push(position);
            let mut finite = ended(HookMode::Finite);
            earlier.left_files |= finite
                .any(|(_, _, it)| !it.files.is_empty() && it.ended_at.is_some_and(|at| at > start));
        }
    }
    earlier
}

/// Which hooks need no run, because an earlier attempt has their final result.
///
/// Daemons of an earlier attempt have ended. While a hook that may use them is open, they run
/// again, and so do later foreground hooks of the same plugin: this loads the page in the new tab
/// of a browser. A hook that runs once they are stopped uses none.
pub fn done(hooks: &[HookTask], standing: &Standing) -> Vec<bool> {
    let known = |hook: &HookTask| standing.hooks.iter().find(|known| known.key == hook.key);
    let is_final = |hook: &HookTask| known(hook).is_some_and(|known| known.state.is_final());
    let is_daemon = |hook: &HookTask| hook.mode == HookMode::Daemon;
    let may_use = |hook: &HookTask| !is_daemon(hook) && !hook.after_background;
    let some_open = hooks.iter().any(|hook| may_use(hook) && !is_final(hook));
    let is_new = |daemon: &HookTask| !known(daemon).is_some_and(|known| known.joinable);
    let completes = |position: usize| {
        let before = hooks[..position].iter();
        let mut daemons = before.filter(|other| is_daemon(other) && is_new(other));
        hooks[position].mode == HookMode::Foreground
            && daemons.any(|daemon| daemon.plugin == hooks[position].plugin)
    };
    let again = |position: usize| some_open && (is_daemon(&hooks[position]) || completes(position));
    (0..hooks.len()).map(|position| is_final(&hooks[position]) && !again(position)).collect()
}

#[cfg(test)]
mod tests;
