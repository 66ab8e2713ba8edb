//! Runs one hook: opens its output, has the orchestrator start it, and reports its result.

use crate::WorkerError;
use crate::files::directory;
use crate::files::leftover::{self, EndedUnits};
use crate::files::overflow::{self, Reach};
use crate::link::Link;
use crate::output::claims::Claims;
use crate::output::disk;
use crate::output::growth::GrowthMonitor;
use crate::output::navigation;
use crate::output::report;
use crate::output::stderr;
use crate::output::stdout;
use crate::page::snapshot_index::SnapshotIndex;
use crate::sequence::HookEvent;
use crate::share;
use archivist_core::model::{
    HttpAnswer, Outcome, Owner, RECORDER, ResultState, Time, Verdict, cut, stderr_file,
};
use archivist_core::plan::skipped_with_visit;
use archivist_core::text::exact_span;
use archivist_plugin::Directory;
use archivist_plugin::files::output;
use archivist_plugin::files::output::Listing;
use archivist_shared::bus::client::ClientError;
use archivist_shared::bus::documents::work::{Assignment, Ended, HookMode, HookTask, Report};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

/// Time limit of requested hooks. Only the grace at their end depends on it: the orchestrator sets
/// the limit of their unit.
const REQUESTED_HOOK_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Files are marked by the kernel's coarse clock, which is at most a tick (10 ms at 100 Hz) behind that
/// of the start.
const FILE_CLOCK_SLACK: Duration = Duration::from_millis(10);

/// Runs the hooks of one sequence, several at a time.
pub struct HookRunner {
    pub assignment: Assignment,
    /// Directory of the crawl or snapshot.
    pub directory: Arc<Directory>,
    pub units: EndedUnits,
    pub link: Rc<Link>,
    pub index: Rc<SnapshotIndex>,
    pub events: mpsc::UnboundedSender<Result<HookEvent, ClientError>>,
    /// Hooks that other hooks requested and that the sequence has not taken yet.
    pub requested: RefCell<Vec<HookTask>>,
    /// Plugins of the hooks that run, one entry for each hook.
    pub running: RefCell<Vec<String>>,
    pub claims: Arc<Mutex<Claims>>,
    pub growth: GrowthMonitor,
    /// Why hooks were killed, by key.
    pub killed: RefCell<BTreeMap<String, String>>,
}

impl HookRunner {
    /// Runs the hook at this position until its result is recorded, and sends how it ended. `join`
    /// means that an earlier worker has started it.
    pub async fn run(self: Rc<Self>, hook: HookTask, position: usize, join: bool) {
        self.running.borrow_mut().push(hook.plugin.clone());
        let mut done = self.try_hook(&hook, position, join).await;
        while let Ok(Next::Repeat) = done {
            done = self.try_hook(&hook, position, false).await;
        }
        self.has_ended(&hook.plugin);
        let event = done.map(|next| match next {
            Next::RetryLater => HookEvent::FoundNothing(position),
            Next::LeftFiles(changed) => HookEvent::LeftFiles {
                position,
                age: Time::from(jiff::Timestamp::now()).until(changed),
            },
            Next::RestartDaemon => HookEvent::DaemonFailed(position),
            Next::Repeat | Next::Recorded => HookEvent::Ended(position),
        });
        let _ = self.events.send(event);
    }

    async fn try_hook(
        self: &Rc<Self>,
        hook: &HookTask,
        position: usize,
        join: bool,
    ) -> Result<Next, ClientError> {
        if !join && let Some((verdict, output)) = self.verdict_without_page(hook) {
            let report = report::not_started(&hook.key, verdict, output);
            return self.record_unstarted(hook, report).await;
        }
        let output = match self.prepare(hook, join).await {
            Ok(output) => output,
            Err(error) if is_caused_by_hooks(&error) => {
                return self.record_refusal(hook, &error, join).await;
            }
            Err(error) => return Err(ClientError::Refused(error.to_string())),
        };
        let path = output.directory.path().join(&output.name);
        let watch = OutputWatch::begin(self, hook, position, &output.stdout, &path, !join)
            .map_err(|error| ClientError::Refused(error.to_string()))?;
        let ended = match self.link.run(&hook.key, &output.stdout).await {
            // A refusal by the orchestrator is also a result.
            Err(ClientError::Refused(why)) => Ended::without_run(Outcome::NotStarted(why)),
            other => other?,
        };
        watch.task.abort();
        self.units.add(ended.unit.as_deref());
        warn(self.index.process(hook, &ended));
        if ended.again {
            return Ok(Next::Repeat);
        }
        let removed = match (&ended.outcome, &ended.verdict) {
            (Outcome::DiskLimit, None) => self.make_space(hook, &ended, &output).await,
            _ => None,
        };
        if hook.plugin == RECORDER && ended.outcome == Outcome::Exit(0) {
            // Before the report lists the files, with which fsck compares, and a later hook hashes them.
            share::share(&self.assignment, &self.directory).await;
        }
        let (directory, name) = (output.directory.clone(), output.name.clone());
        // Before the report makes the files harmless, which changes them.
        let changed = match hook.mode {
            HookMode::Finite => last_change(&directory).await,
            HookMode::Foreground | HookMode::Daemon => None,
        };
        let mut report = self.report(hook, &ended, &watch, output).await?;
        let killed = self.killed.borrow_mut().remove(&hook.key);
        report.verdict = report.verdict.with_remark(removed).with_remark(killed);
        if let Some(why) = &report.network_fault {
            warn(self.index.lacks_network(why));
        }
        let is_refused = self.assignment.visit.ends_early(self.answer_with(&report).as_ref())
            || report.network_fault.is_some();
        if is_refused {
            // What an error page links to or is called is not about the page.
            report.children.clear();
            report.tags.clear();
            (report.title, report.output) = (None, None);
        }
        report.verdict = self.link.report(&report).await?;
        if is_refused {
            let _ = self.events.send(Ok(HookEvent::EndVisit));
        }
        if report.verdict.state != ResultState::Failed {
            stdout::remove_earlier(&directory, &name);
            stderr::remove(&directory, &stderr_file(&hook.hook));
        }
        let next = self.conclude(hook, &ended, &report);
        Ok(changed.map_or(next, Next::LeftFiles))
    }

    fn has_ended(&self, plugin: &str) {
        let mut running = self.running.borrow_mut();
        if let Some(position) = running.iter().position(|other| other == plugin) {
            running.swap_remove(position);
        }
    }

    /// The plugins of which a hook has ended since this time.
    fn plugins_that_ended(&self, since: Time) -> Vec<String> {
        let known = self.index.known();
        let results = known.results.iter();
        let ended = results.filter(|result| result.ended_at.is_some_and(|end| end >= since));
        ended.map(|result| result.plugin.clone()).collect()
    }

    /// Removes what a hook wrote that was ended for lack of disk space, and says so.
    async fn make_space(
        &self,
        hook: &HookTask,
        ended: &Ended,
        output: &HookOutput,
    ) -> Option<String> {
        let since = ended.started_at?.before(FILE_CLOCK_SLACK);
        if let Some(unit) = &ended.unit {
            leftover::unit_end(unit).await;
        }
        let mut busy: BTreeSet<String> = self.running.borrow().iter().cloned().collect();
        busy.extend(self.plugins_that_ended(since));
        let of_crawl = match self.assignment.owner {
            Owner::Crawl(_) => None,
            Owner::Snapshot(_) => Some(self.assignment.crawl_directory.clone()),
        };
        let reach = Reach {
            own: output.directory.clone(),
            before: output.before.clone(),
            since,
            of_owner: self.directory.clone(),
            busy,
            shared: of_crawl.into_iter().chain(self.assignment.shared_tmp.clone()).collect(),
        };
        let removed = spawn_blocking(move || reach.clear()).await.ok()?;
        let said = overflow::describe(removed);
        tracing::warn!("{}: {said}", hook.key);
        Some(said)
    }

    async fn prepare(&self, hook: &HookTask, join: bool) -> Result<HookOutput, WorkerError> {
        let directory = Arc::new(directory::enter(&self.directory, &hook.plugin)?);
        let name = stdout_name(&self.assignment, hook);
        let before = if join {
            None
        } else {
            let listed = directory.clone();
            spawn_blocking(move || Listing::of(&listed)).await.ok()
        };
        let stdout = stdout::open(&directory, &name, join)?;
        if !join {
            stdout::link_newest(&directory, &name);
        }
        Ok(HookOutput { directory, name, stdout, before })
    }

    /// Builds the report about a run from its outcome, its output and its files.
    async fn report(
        &self,
        hook: &HookTask,
        ended: &Ended,
        watch: &OutputWatch,
        output: HookOutput,
    ) -> Result<Report, ClientError> {
        let remark = watch.too_large.get().then(|| {
            format!("it printed more than {} bytes and was killed", self.assignment.output_limit)
        });
        // A daemon has no output of its own.
        let lack = match hook.mode {
            HookMode::Daemon => None,
            _ => {
                let lack = disk::lack(&output.directory).map(str::to_owned);
                lack.or(ended.lack.clone())
            }
        };
        let (key, plugin, outcome) = (hook.key.clone(), hook.plugin.clone(), ended.outcome.clone());
        let directory = output.directory.clone();
        let context = report::RunContext {
            directory: output.directory,
            owner: self.directory.clone(),
            before: output.before,
            of_crawl: matches!(self.assignment.owner, Owner::Crawl(_)),
            claims: self.claims.clone(),
        };
        let stdout = output.stdout;
        let building = spawn_blocking(move || {
            report::build(&key, &plugin, &outcome, &stdout, &context, remark)
        });
        let mut report = building.await.map_err(|error| ClientError::Refused(error.to_string()))?;
        report.ready_at = watch.ready_at.get();
        self.add_answer(hook, &mut report);
        report.verdict = match ended.verdict.clone() {
            Some(recorded) => recorded,
            None => disk::retry_if_lacking(report.verdict, &ended.outcome, lack)
                .with_remark(limit_reached(hook, ended)),
        };
        report.verdict = self.verdict_of_visit(&report, &ended.outcome);
        if report.verdict.state == ResultState::Failed && ended.unit.is_some() {
            let end = self.end_of_stderr(hook, ended).await?;
            stderr::keep(&directory, &stderr_file(&hook.hook), &end);
            if has_no_reason(&report.verdict, &ended.outcome) {
                let lines = stderr::last_lines(&end);
                let known = report.verdict.error.take();
                let both = known.into_iter().chain((!lines.is_empty()).then_some(lines));
                report.verdict.error = both.reduce(|known, lines| format!("{known}: {lines}"));
            }
        }
        Ok(report)
    }

    /// Reads the end of what a run wrote to standard error.
    async fn end_of_stderr(&self, hook: &HookTask, ended: &Ended) -> Result<Vec<u8>, ClientError> {
        // The last lines may still be on their way through the relay of the unit's log.
        if let Some(unit) = &ended.unit {
            leftover::unit_end(unit).await;
        }
        let invocation = self.link.invocation(&hook.key).await?;
        // The unit of a user manager may have the name of one of the machine.
        let unit = ended.unit.as_deref().zip(ended.started_at);
        let unit = unit.filter(|_| !self.assignment.user_scope);
        Ok(stderr::read(&invocation, unit).await)
    }

    /// The answer of the server that counts, with the one in this report or before.
    fn answer_with(&self, report: &Report) -> Option<HttpAnswer> {
        let known = self.index.known().answer.clone();
        match report.answer() {
            Some(answer) => Some(self.assignment.visit.newer(known, answer)),
            None => known,
        }
    }

    /// The verdict of this report, if the visit counts.
    fn verdict_of_visit(&self, report: &Report, outcome: &Outcome) -> Verdict {
        let verdict = report.verdict.clone();
        let known = self.index.known().network_fault.clone();
        match report.network_fault.as_ref().or(known.as_ref()) {
            Some(why) => skipped_with_visit(verdict, why),
            None => {
                let answer = self.answer_with(report);
                self.assignment.visit.verdict(verdict, outcome, answer.as_ref())
            }
        }
    }

    /// Adds the answer that a browser's tab got to the report about a foreground hook without one of
    /// its own.
    fn add_answer(&self, hook: &HookTask, report: &mut Report) {
        let is_of_page = matches!(self.assignment.owner, Owner::Snapshot(_));
        if !is_of_page || hook.mode != HookMode::Foreground || report.http_status.is_some() {
            return;
        }
        let answer = self
            .daemons_before(hook)
            .find_map(|(daemon, directory)| Some((daemon, navigation::read(&directory)?)));
        if let Some((daemon, answer)) = answer {
            report.http_status = Some(answer.status);
            report.http_plugin = Some(daemon.plugin.clone());
            report.retry_after = report.retry_after.or(answer.retry_after);
        }
    }

    /// The daemons that start before a hook, with the directories of their plugins. A tab has removed
    /// the files of an earlier visit before such a hook starts.
    fn daemons_before(&self, hook: &HookTask) -> impl Iterator<Item = (&HookTask, Directory)> {
        let earlier = self.assignment.hooks.iter();
        let earlier = earlier.take_while(|other| other.key != hook.key);
        let daemons = earlier.filter(|other| other.mode == HookMode::Daemon);
        daemons.filter_map(|daemon| Some((daemon, self.directory.enter(&daemon.plugin).ok()?)))
    }

    /// The verdict on a hook that needs a page or site which the tab of the browser has found absent,
    /// and its output.
    fn verdict_without_page(&self, hook: &HookTask) -> Option<(Verdict, Option<String>)> {
        let need = hook.needs?;
        let absence =
            self.daemons_before(hook).find_map(|(_, directory)| navigation::absence(&directory))?;
        absence.judge(need)
    }

    /// Processes a recorded result: requested hooks, the index, and what follows.
    fn conclude(&self, hook: &HookTask, ended: &Ended, report: &Report) -> Next {
        let owner = self.assignment.owner;
        if report.derived.sonic.is_some() && matches!(owner, Owner::Crawl(_)) {
            let task = HookTask::sonic(&hook.plugin, REQUESTED_HOOK_LIMIT);
            self.requested.borrow_mut().push(task);
        }
        warn(self.index.result(hook, report, ended));
        let next = next(owner, hook.mode, &ended.outcome, report);
        if matches!(next, Next::RestartDaemon) {
            let why = report.verdict.error.as_deref().unwrap_or("no reason given");
            tracing::warn!("{}: the daemon failed: {why}", hook.key);
        }
        next
    }

    /// Records that a hook failed before its start. Later hooks run.
    async fn record_refusal(
        &self,
        hook: &HookTask,
        error: &WorkerError,
        join: bool,
    ) -> Result<Next, ClientError> {
        let why = error.to_string();
        tracing::error!("{}: {why}", hook.key);
        if join {
            self.link.stop(&hook.key, true).await?;
        }
        let verdict = Verdict { state: ResultState::Failed, error: Some(cut(why)) };
        let report = report::not_started(&hook.key, verdict, None);
        self.record_unstarted(hook, report).await
    }

    /// Records the result of a hook without a unit.
    async fn record_unstarted(
        &self,
        hook: &HookTask,
        mut report: Report,
    ) -> Result<Next, ClientError> {
        report.verdict = self.link.report(&report).await?;
        let why = report.verdict.error.clone().unwrap_or_default();
        let ended = Ended::without_run(Outcome::NotStarted(why));
        warn(self.index.result(hook, &report, &ended));
        Ok(Next::Recorded)
    }
}

struct HookOutput {
    /// Directory of its plugin.
    directory: Arc<Directory>,
    /// Name of the file with its standard output.
    name: String,
    stdout: File,
    /// Content of the directory before the run. `None` if the run is joined.
    before: Option<Listing>,
}

/// Time of the last change of a hook's output; None if the hook left no file.
async fn last_change(directory: &Arc<Directory>) -> Option<Time> {
    let directory = directory.clone();
    let change = spawn_blocking(move || output::last_change(&directory)).await;
    change.ok().flatten()
}

/// Logs an error of the index, which is not needed for the work to continue.
fn warn(result: Result<(), WorkerError>) {
    if let Err(error) = result {
        tracing::warn!("{error}, ignoring");
    }
}

/// Name of the file with a hook's standard output. If a plugin has several hooks, each has its own
/// file, and `stdout.log`, which other plugins read, links to the newest one.
fn stdout_name(assignment: &Assignment, hook: &HookTask) -> String {
    let all = assignment.hooks.iter().chain(&assignment.last_hooks);
    let siblings = all.filter(|other| other.plugin == hook.plugin && other.key != hook.key).count();
    if siblings > 0 { format!("{}.{}", hook.hook, stdout::NAME) } else { stdout::NAME.to_owned() }
}

enum Next {
    /// The run was interrupted in order to repeat it.
    Repeat,
    Recorded,
    /// The result is recorded, and a retry after the other hooks may succeed.
    RetryLater,
    /// The result of a finite hook is recorded, and its files changed last at this time.
    LeftFiles(Time),
    /// The result is recorded. The hook was a daemon of the crawl and failed.
    RestartDaemon,
}

fn next(owner: Owner, mode: HookMode, outcome: &Outcome, report: &Report) -> Next {
    let failed = report.verdict.state == ResultState::Failed;
    let refused = matches!(outcome, Outcome::NotStarted(_));
    match (owner, mode) {
        _ if found_nothing(owner, outcome, report) => Next::RetryLater,
        (Owner::Crawl(_), HookMode::Daemon) if failed && !refused => Next::RestartDaemon,
        _ => Next::Recorded,
    }
}

/// Whether a hook of a page ended by itself, without success and without files. Hooks report
/// `noresults`, and older ones exit with status 10, if the file of another hook is missing. The
/// record `skipped` means a setting, and a hook that reached its time limit needs no retry.
fn found_nothing(owner: Owner, outcome: &Outcome, report: &Report) -> bool {
    let state = report.verdict.state;
    let by_setting = state == ResultState::Skipped && *outcome == Outcome::Exit(0);
    matches!((owner, outcome), (Owner::Snapshot(_), Outcome::Exit(_)))
        && state != ResultState::Succeeded
        && !by_setting
        && report.files.is_empty()
}

/// Returns the time limit that ended a hook: its own, or another one of its unit.
fn limit_reached(hook: &HookTask, ended: &Ended) -> Option<String> {
    if ended.outcome != Outcome::TimeLimit {
        return None;
    }
    let lasted = ended.ended_at?.until(ended.started_at?);
    let limit = format!("the limit of the hook is {}", exact_span(hook.limit));
    Some(if lasted >= hook.limit {
        limit
    } else {
        format!("it is one of the unit, such as RuntimeMaxSec= in a drop-in; {limit}")
    })
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
        runner: &Rc<HookRunner>,
        hook: &HookTask,
        position: usize,
        file: &File,
        path: &Path,
        fresh: bool,
    ) -> Result<OutputWatch, WorkerError> {
        let growth = runner.growth.follow(file, path);
        let file = file.try_clone().map_err(|source| WorkerError::File {
            verb: "duplicate",
            path: path.to_owned(),
            source,
        })?;
        let too_large = Rc::new(Cell::new(false));
        let ready_at = Rc::new(Cell::new(None));
        let reports_ready = fresh && hook.mode != HookMode::Foreground;
        let (flag, ready) = (too_large.clone(), ready_at.clone());
        let (worker, key) = (runner.clone(), hook.key.clone());
        let on_event = move |event| match event {
            stdout::OutputEvent::FirstLine => {
                ready.set(reports_ready.then(|| jiff::Timestamp::now().into()));
                let _ = worker.events.send(Ok(HookEvent::Ready(position)));
            }
            stdout::OutputEvent::TooLarge => {
                flag.set(true);
                let (worker, key) = (worker.clone(), key.clone());
                tokio::task::spawn_local(async move { worker.link.stop(&key, true).await });
            }
        };
        let (name, limit) = (hook.key.clone(), runner.assignment.output_limit);
        let task = tokio::task::spawn_local(async move {
            if let Err(error) = stdout::watch(file, growth, limit, on_event).await {
                tracing::warn!("failed to watch the output of {name}: {error}, ignoring");
            }
        });
        Ok(OutputWatch { too_large, ready_at, task })
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

#[cfg(test)]
mod tests;
