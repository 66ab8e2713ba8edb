//! Carries out the actions of a [`Sequence`]: starts and stops hooks, and reports their results.

use super::WorkerError;
use super::link::Link;
use super::sequence::{HookAction, HookEvent, Purpose, Sequence};
use crate::files::directory;
use crate::files::leftover::EndedUnits;
use crate::output::claims::Claims;
use crate::output::disk;
use crate::output::growth::GrowthMonitor;
use crate::output::report;
use crate::output::stdout;
use crate::page::snapshot_index::SnapshotIndex;
use archivist_core::model::{Outcome, Owner, ResultState, Time, Verdict};
use archivist_plugin::Directory;
use archivist_plugin::files::output::Listing;
use archivist_shared::bus::client::ClientError;
use archivist_shared::bus::documents::work::{
    Assignment, Ended, HookMode, HookTask, Report, Standing,
};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

/// What a worker needs to run hooks.
pub struct Work<'a> {
    pub assignment: &'a Assignment,
    /// Directory of the crawl or snapshot.
    pub directory: &'a Arc<Directory>,
    pub link: &'a Rc<Link>,
    pub index: &'a Rc<SnapshotIndex>,
    pub units: &'a EndedUnits,
}

/// State that the tasks of one sequence share.
struct Shared {
    assignment: Assignment,
    directory: Arc<Directory>,
    units: EndedUnits,
    link: Rc<Link>,
    index: Rc<SnapshotIndex>,
    inputs: mpsc::UnboundedSender<Result<HookEvent, ClientError>>,
    /// Hooks that other hooks requested and that the sequence has not taken yet.
    requested: RefCell<Vec<HookTask>>,
    claims: Arc<Mutex<Claims>>,
    growth: GrowthMonitor,
}

/// Time limit of requested hooks. Only the grace at their end depends on it: the orchestrator sets
/// the limit of their unit.
const REQUESTED_HOOK_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

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
    let mut join: Vec<bool> = hooks
        .iter()
        .map(|hook| known(hook).is_some_and(|known| known.joinable))
        .collect();
    let mut started = vec![false; hooks.len()];
    let (inputs, mut arriving) = mpsc::unbounded_channel();
    let shared = Rc::new(Shared {
        assignment: assignment.clone(),
        directory: work.directory.clone(),
        units: work.units.clone(),
        link: work.link.clone(),
        index: work.index.clone(),
        inputs,
        requested: RefCell::default(),
        claims: Arc::default(),
        growth: GrowthMonitor::new(),
    });
    let begin = Instant::now();
    let (ready_limit, stop_limit) = (assignment.ready_limit, assignment.stop_limit);
    let mut sequence = Sequence::new(hooks.clone(), &done, purpose, ready_limit, stop_limit);
    let mut actions = sequence.handle(HookEvent::Begin, begin.elapsed());
    loop {
        for action in actions {
            match action {
                HookAction::Start(position) => {
                    let (shared, hook) = (shared.clone(), hooks[position].clone());
                    if std::mem::replace(&mut started[position], true) {
                        tracing::info!("{}: restarting the hook", hook.key);
                    }
                    // Joins a run that an earlier worker left once; later starts are new runs.
                    let join = std::mem::take(&mut join[position]);
                    tokio::task::spawn_local(run_hook(shared, hook, position, join));
                }
                HookAction::Stop(position) | HookAction::Kill(position) => {
                    let force = matches!(action, HookAction::Kill(_));
                    let (shared, key) = (shared.clone(), hooks[position].key.clone());
                    tokio::task::spawn_local(async move {
                        if let Err(error) = shared.link.stop(&key, force).await {
                            let _ = shared.inputs.send(Err(error));
                        }
                    });
                }
                HookAction::AllStarted if purpose == Purpose::CrawlPages => {
                    let shared = shared.clone();
                    tokio::task::spawn_local(async move {
                        let released = shared.link.snapshots_done().await;
                        let _ = shared.inputs.send(released.map(|()| HookEvent::Release));
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
        for hook in shared.requested.take() {
            if sequence.add(hook.clone()) {
                hooks.push(hook);
                join.push(false);
                started.push(false);
            }
        }
        actions = sequence.handle(input, begin.elapsed());
    }
}

/// Which hooks need no run, because an earlier attempt has their final result.
///
/// Daemons of an earlier attempt have ended. While a hook that may use them is open, they run
/// again, and so do later foreground hooks of the same plugin: this loads the page in the new tab
/// of a browser.
fn done(hooks: &[HookTask], standing: &Standing) -> Vec<bool> {
    let known = |hook: &HookTask| standing.hooks.iter().find(|known| known.key == hook.key);
    let is_final = |hook: &HookTask| known(hook).is_some_and(|known| known.state.is_final());
    let is_daemon = |hook: &HookTask| hook.mode == HookMode::Daemon;
    let some_open = hooks.iter().any(|hook| !is_daemon(hook) && !is_final(hook));
    let is_new = |daemon: &HookTask| !known(daemon).is_some_and(|known| known.joinable);
    let completes = |position: usize| {
        let before = hooks[..position].iter();
        let mut daemons = before.filter(|other| is_daemon(other) && is_new(other));
        hooks[position].mode == HookMode::Foreground
            && daemons.any(|daemon| daemon.plugin == hooks[position].plugin)
    };
    let again = |position: usize| some_open && (is_daemon(&hooks[position]) || completes(position));
    (0..hooks.len())
        .map(|position| is_final(&hooks[position]) && !again(position))
        .collect()
}

/// Name of the file with a hook's standard output. If a plugin has several hooks, each has its own
/// file, and `stdout.log`, which other plugins read, links to the newest one.
fn stdout_name(assignment: &Assignment, hook: &HookTask) -> String {
    let all = assignment.hooks.iter().chain(&assignment.last_hooks);
    let siblings = all
        .filter(|other| other.plugin == hook.plugin && other.key != hook.key)
        .count();
    if siblings > 0 {
        format!("{}.{}", hook.hook, stdout::NAME)
    } else {
        stdout::NAME.to_owned()
    }
}

async fn run_hook(shared: Rc<Shared>, hook: HookTask, position: usize, join: bool) {
    let mut done = try_hook(&shared, &hook, position, join).await;
    while let Ok(Next::Repeat) = done {
        done = try_hook(&shared, &hook, position, false).await;
    }
    let input = done.map(|next| match next {
        Next::RetryLater => HookEvent::FailedEmpty(position),
        Next::RestartDaemon => HookEvent::DaemonFailed(position),
        Next::Repeat | Next::Recorded => HookEvent::Ended(position),
    });
    let _ = shared.inputs.send(input);
}

/// What follows a run of a hook.
enum Next {
    /// The run was interrupted in order to repeat it.
    Repeat,
    /// The result is recorded.
    Recorded,
    /// The result is recorded, and a retry after the other hooks may succeed.
    RetryLater,
    /// The result is recorded. The hook was a daemon of the crawl and failed.
    RestartDaemon,
}

fn next(owner: Owner, mode: HookMode, outcome: &Outcome, report: &Report) -> Next {
    let failed = report.verdict.state == ResultState::Failed;
    let refused = matches!(outcome, Outcome::NotStarted(_));
    match (owner, mode) {
        _ if failed_without_files(owner, outcome, report) => Next::RetryLater,
        (Owner::Crawl(_), HookMode::Daemon) if failed && !refused => Next::RestartDaemon,
        _ => Next::Recorded,
    }
}

/// Whether a hook of a page failed by itself and left no files. A hook that reached its time limit
/// needs no retry, and skipped hooks depend on settings.
fn failed_without_files(owner: Owner, outcome: &Outcome, report: &Report) -> bool {
    matches!((owner, outcome), (Owner::Snapshot(_), Outcome::Exit(_)))
        && report.verdict.state == ResultState::Failed
        && report.files.is_empty()
}

/// Whether a hook failed by itself, and its outcome is all that is known about the failure.
fn has_no_reason(verdict: &Verdict, outcome: &Outcome) -> bool {
    let by_itself = matches!(outcome, Outcome::Exit(_) | Outcome::Signal(_));
    let reason = verdict.error.as_deref();
    verdict.state == ResultState::Failed
        && by_itself
        && reason.is_none_or(|reason| reason == outcome.to_string())
}

/// Observes a hook's output while the hook runs.
struct OutputWatch {
    too_large: Rc<Cell<bool>>,
    ready_at: Rc<Cell<Option<Time>>>,
    task: tokio::task::JoinHandle<()>,
}

impl OutputWatch {
    /// `fresh`: the output belongs to this run alone. The first line of a joined run's output may
    /// be old.
    fn begin(
        shared: &Rc<Shared>,
        hook: &HookTask,
        position: usize,
        file: &File,
        path: &Path,
        fresh: bool,
    ) -> Result<OutputWatch, WorkerError> {
        let growth = shared.growth.follow(file, path);
        let file = file.try_clone().map_err(|source| WorkerError::File {
            verb: "duplicate",
            path: path.to_owned(),
            source,
        })?;
        let too_large = Rc::new(Cell::new(false));
        let ready_at = Rc::new(Cell::new(None));
        let reports_ready = fresh && hook.mode != HookMode::Foreground;
        let (flag, ready) = (too_large.clone(), ready_at.clone());
        let (worker, key) = (shared.clone(), hook.key.clone());
        let on_event = move |event| match event {
            stdout::OutputEvent::FirstLine => {
                ready.set(reports_ready.then(|| jiff::Timestamp::now().into()));
                let _ = worker.inputs.send(Ok(HookEvent::Ready(position)));
            }
            stdout::OutputEvent::TooLarge => {
                flag.set(true);
                let (worker, key) = (worker.clone(), key.clone());
                tokio::task::spawn_local(async move { worker.link.stop(&key, true).await });
            }
        };
        let (name, limit) = (hook.key.clone(), shared.assignment.output_limit);
        let task = tokio::task::spawn_local(async move {
            if let Err(error) = stdout::watch(file, growth, limit, on_event).await {
                tracing::warn!("failed to watch the output of {name}: {error}, ignoring");
            }
        });
        Ok(OutputWatch {
            too_large,
            ready_at,
            task,
        })
    }
}

/// Whether hooks caused an error by changing a directory. Unlike other errors, a retry would not
/// help.
fn is_caused_by_hooks(error: &WorkerError) -> bool {
    match error {
        WorkerError::Replaced(_) => true,
        WorkerError::File { source, .. } => source.kind() == ErrorKind::PermissionDenied,
        _ => false,
    }
}

/// Records that a hook failed before its start. Later hooks run.
async fn refuse(
    shared: &Shared,
    hook: &HookTask,
    error: &WorkerError,
    join: bool,
) -> Result<Next, ClientError> {
    let why = error.to_string();
    tracing::error!("{}: {why}", hook.key);
    if join {
        shared.link.stop(&hook.key, true).await?;
    }
    let mut report = report::not_started(&hook.key, why.clone());
    report.verdict = shared.link.report(&report).await?;
    let ended = Ended::without_run(Outcome::NotStarted(why));
    if let Err(error) = shared.index.result(hook, &report, &ended) {
        tracing::warn!("{error}, ignoring");
    }
    Ok(Next::Recorded)
}

async fn try_hook(
    shared: &Rc<Shared>,
    hook: &HookTask,
    position: usize,
    join: bool,
) -> Result<Next, ClientError> {
    let assignment = &shared.assignment;
    let refused = |error: WorkerError| ClientError::Refused(error.to_string());
    let own = match directory::enter(&shared.directory, &hook.plugin) {
        Ok(own) => Arc::new(own),
        Err(error) if is_caused_by_hooks(&error) => {
            return refuse(shared, hook, &error, join).await;
        }
        Err(error) => return Err(refused(error)),
    };
    let name = stdout_name(assignment, hook);
    let listed = own.clone();
    let before = if join {
        None
    } else {
        spawn_blocking(move || Listing::of(&listed)).await.ok()
    };
    let file = match stdout::open(&own, &name, join) {
        Ok(file) => file,
        Err(error) if is_caused_by_hooks(&error) => {
            return refuse(shared, hook, &error, join).await;
        }
        Err(error) => return Err(refused(error)),
    };
    if !join {
        stdout::link_newest(&own, &name);
    }

    let path = own.path().join(&name);
    let watch = OutputWatch::begin(shared, hook, position, &file, &path, !join).map_err(refused)?;
    let ended = match shared.link.run(&hook.key, &file).await {
        // A refusal by the orchestrator is also a result.
        Err(ClientError::Refused(why)) => Ended::without_run(Outcome::NotStarted(why)),
        other => other?,
    };
    watch.task.abort();
    shared.units.add(ended.unit.as_deref());
    if let Err(error) = shared.index.process(hook, &ended) {
        tracing::warn!("{error}, ignoring");
    }
    if ended.again {
        return Ok(Next::Repeat);
    }

    let remark = watch.too_large.get().then(|| {
        format!(
            "it printed more than {} bytes and was killed",
            assignment.output_limit
        )
    });
    // A daemon has no output of its own.
    let lack = match hook.mode {
        HookMode::Daemon => None,
        _ => disk::lack(&own).map(str::to_owned).or(ended.lack.clone()),
    };
    let (key, plugin, outcome) = (hook.key.clone(), hook.plugin.clone(), ended.outcome.clone());
    let context = report::RunContext {
        directory: own.clone(),
        before,
        of_crawl: matches!(assignment.owner, Owner::Crawl(_)),
        claims: shared.claims.clone(),
    };
    let reading =
        spawn_blocking(move || report::build(&key, &plugin, &outcome, &file, &context, remark));
    let mut report = reading
        .await
        .map_err(|error| ClientError::Refused(error.to_string()))?;
    report.ready_at = watch.ready_at.get();
    report.verdict = match ended.verdict.clone() {
        Some(recorded) => recorded,
        None => disk::retry_if_lacking(report.verdict, &ended.outcome, lack),
    };
    if has_no_reason(&report.verdict, &ended.outcome) {
        let words = shared.link.last_words(&hook.key).await?;
        let known = report.verdict.error.take();
        let both = known
            .into_iter()
            .chain((!words.is_empty()).then_some(words));
        report.verdict.error = both.reduce(|known, words| format!("{known}: {words}"));
    }
    report.verdict = shared.link.report(&report).await?;
    if report.verdict.state != ResultState::Failed {
        stdout::remove_earlier(&own, &name);
    }
    if report.derived.sonic.is_some() && matches!(assignment.owner, Owner::Crawl(_)) {
        let task = HookTask::sonic(&hook.plugin, REQUESTED_HOOK_LIMIT);
        shared.requested.borrow_mut().push(task);
    }
    if let Err(error) = shared.index.result(hook, &report, &ended) {
        tracing::warn!("{error}, ignoring");
    }
    let next = next(assignment.owner, hook.mode, &ended.outcome, &report);
    if matches!(next, Next::RestartDaemon) {
        let why = report.verdict.error.as_deref().unwrap_or("no reason given");
        tracing::warn!("{}: the daemon failed: {why}", hook.key);
    }
    Ok(next)
}

#[cfg(test)]
mod tests;
