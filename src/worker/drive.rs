//! Carries out what the sequence says: thin I/O around it.

use super::WorkerError;
use super::link::Link;
use super::sequence::{Action, Input, Purpose, Sequence};
use crate::files::directory;
use crate::files::leftover::Units;
use crate::output::claims::Claims;
use crate::output::growth::Growth;
use crate::output::read;
use crate::output::room;
use crate::output::stdout;
use crate::page::index::Index;
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

/// What a worker has for its hooks.
pub struct Work<'a> {
    pub assignment: &'a Assignment,
    /// The owner's directory.
    pub directory: &'a Arc<Directory>,
    pub link: &'a Rc<Link>,
    pub index: &'a Rc<Index>,
    pub units: &'a Units,
}

/// What the tasks of one sequence share.
struct Shared {
    assignment: Assignment,
    directory: Arc<Directory>,
    units: Units,
    link: Rc<Link>,
    index: Rc<Index>,
    inputs: mpsc::UnboundedSender<Result<Input, ClientError>>,
    /// Hooks that others asked for, to be appended.
    wanted: RefCell<Vec<HookTask>>,
    claims: Arc<Mutex<Claims>>,
    growth: Growth,
}

/// Only the grace at its end is reckoned from it: the unit's limit is the orchestrator's.
const WANTED_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

impl Work<'_> {
    /// Runs `hooks` to their end, the daemons among them for `purpose`.
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
        wanted: RefCell::default(),
        claims: Arc::default(),
        growth: Growth::new(),
    });
    let begin = Instant::now();
    let (ready_limit, stop_limit) = (assignment.ready_limit, assignment.stop_limit);
    let mut sequence = Sequence::new(hooks.clone(), &done, purpose, ready_limit, stop_limit);
    let mut actions = sequence.handle(Input::Begin, begin.elapsed());
    loop {
        for action in actions {
            match action {
                Action::Start(place) => {
                    let (shared, hook) = (shared.clone(), hooks[place].clone());
                    if std::mem::replace(&mut started[place], true) {
                        tracing::info!("{} is started once more", hook.key);
                    }
                    // What a worker before us left is joined once, whatever follows is new.
                    let join = std::mem::take(&mut join[place]);
                    tokio::task::spawn_local(run_hook(shared, hook, place, join));
                }
                Action::Stop(place) | Action::Kill(place) => {
                    let force = matches!(action, Action::Kill(_));
                    let (shared, key) = (shared.clone(), hooks[place].key.clone());
                    tokio::task::spawn_local(async move {
                        if let Err(error) = shared.link.stop(&key, force).await {
                            let _ = shared.inputs.send(Err(error));
                        }
                    });
                }
                Action::Forwarded if purpose == Purpose::Pages => {
                    let shared = shared.clone();
                    tokio::task::spawn_local(async move {
                        let released = shared.link.snapshots_done().await;
                        let _ = shared.inputs.send(released.map(|()| Input::Release));
                    });
                }
                Action::Forwarded => {}
                Action::Done => return Ok(()),
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
            () = wake => Input::Deadline,
        };
        for hook in shared.wanted.take() {
            if sequence.add(hook.clone()) {
                hooks.push(hook);
                join.push(false);
                started.push(false);
            }
        }
        actions = sequence.handle(input, begin.elapsed());
    }
}

/// Which hooks have had their turn. A daemon of an earlier attempt is gone, and what it was to
/// the hooks beside it: while one of these is open it is started again, and with it what its plugin
/// did in the foreground after that. So the new tab of a browser has the page in it once more.
fn done(hooks: &[HookTask], standing: &Standing) -> Vec<bool> {
    let known = |hook: &HookTask| standing.hooks.iter().find(|known| known.key == hook.key);
    let is_final = |hook: &HookTask| known(hook).is_some_and(|known| known.state.is_final());
    let is_daemon = |hook: &HookTask| hook.mode == HookMode::Daemon;
    let some_open = hooks.iter().any(|hook| !is_daemon(hook) && !is_final(hook));
    let is_new = |daemon: &HookTask| !known(daemon).is_some_and(|known| known.joinable);
    let completes = |place: usize| {
        let before = hooks[..place].iter();
        let mut daemons = before.filter(|other| is_daemon(other) && is_new(other));
        hooks[place].mode == HookMode::Foreground
            && daemons.any(|daemon| daemon.plugin == hooks[place].plugin)
    };
    let again = |place: usize| some_open && (is_daemon(&hooks[place]) || completes(place));
    (0..hooks.len())
        .map(|place| is_final(&hooks[place]) && !again(place))
        .collect()
}

/// Name of the file with a hook's standard output. Other plugins look for `stdout.log`, which is
/// that of the newest hook where a plugin has several.
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

async fn run_hook(shared: Rc<Shared>, hook: HookTask, place: usize, join: bool) {
    let mut done = try_hook(&shared, &hook, place, join).await;
    while let Ok(Next::Again) = done {
        done = try_hook(&shared, &hook, place, false).await;
    }
    let input = done.map(|next| match next {
        Next::Missed => Input::Missed(place),
        Next::Died => Input::Died(place),
        Next::Again | Next::Recorded => Input::Ended(place),
    });
    let _ = shared.inputs.send(input);
}

/// What follows a run of a hook.
enum Next {
    /// Somebody interrupted it to have it run once more.
    Again,
    /// Its result is recorded.
    Recorded,
    /// The same, and another try may help when there is more for it to work with.
    Missed,
    /// The same, and it was a daemon of the crawl.
    Died,
}

fn next(owner: Owner, mode: HookMode, outcome: &Outcome, report: &Report) -> Next {
    let failed = report.verdict.state == ResultState::Failed;
    let refused = matches!(outcome, Outcome::NotStarted(_));
    match (owner, mode) {
        _ if missed_something(owner, outcome, report) => Next::Missed,
        (Owner::Crawl(_), HookMode::Daemon) if failed && !refused => Next::Died,
        _ => Next::Recorded,
    }
}

/// Whether a hook failed by its own judgement and left nothing. One that was ended by force had
/// all its time, and to be skipped is a matter of settings.
fn missed_something(owner: Owner, outcome: &Outcome, report: &Report) -> bool {
    matches!((owner, outcome), (Owner::Snapshot(_), Outcome::Exit(_)))
        && report.verdict.state == ResultState::Failed
        && report.files.is_empty()
}

/// Whether a hook failed by itself and all that is known of it is how it ended.
fn says_nothing(verdict: &Verdict, outcome: &Outcome) -> bool {
    let by_itself = matches!(outcome, Outcome::Exit(_) | Outcome::Signal(_));
    let told = verdict.error.as_deref();
    verdict.state == ResultState::Failed
        && by_itself
        && told.is_none_or(|told| told == outcome.to_string())
}

/// What is seen of a hook's output while it runs.
struct Watch {
    too_large: Rc<Cell<bool>>,
    ready_at: Rc<Cell<Option<Time>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Watch {
    /// `fresh`: the output is this run's alone. In that of a run that is joined, the first line may be old.
    fn begin(
        shared: &Rc<Shared>,
        hook: &HookTask,
        place: usize,
        file: &File,
        path: &Path,
        fresh: bool,
    ) -> Result<Watch, WorkerError> {
        let growth = shared.growth.follow(file, path);
        let file = file.try_clone().map_err(|source| WorkerError::File {
            verb: "share",
            path: path.to_owned(),
            source,
        })?;
        let too_large = Rc::new(Cell::new(false));
        let ready_at = Rc::new(Cell::new(None));
        let tells = fresh && hook.mode != HookMode::Foreground;
        let (flag, ready) = (too_large.clone(), ready_at.clone());
        let (worker, key) = (shared.clone(), hook.key.clone());
        let on_seen = move |seen| match seen {
            stdout::Seen::FirstLine => {
                ready.set(tells.then(|| jiff::Timestamp::now().into()));
                let _ = worker.inputs.send(Ok(Input::Ready(place)));
            }
            stdout::Seen::TooLarge => {
                flag.set(true);
                let (worker, key) = (worker.clone(), key.clone());
                tokio::task::spawn_local(async move { worker.link.stop(&key, true).await });
            }
        };
        let (name, limit) = (hook.key.clone(), shared.assignment.output_limit);
        let task = tokio::task::spawn_local(async move {
            if let Err(error) = stdout::watch(file, growth, limit, on_seen).await {
                tracing::warn!("cannot watch the output of {name}: {error}, ignoring");
            }
        });
        Ok(Watch {
            too_large,
            ready_at,
            task,
        })
    }
}

/// Whether an error comes of what hooks did to a directory, and not of the machine's state: another attempt would find the same.
fn is_of_hooks(error: &WorkerError) -> bool {
    match error {
        WorkerError::Replaced(_) => true,
        WorkerError::File { source, .. } => source.kind() == ErrorKind::PermissionDenied,
        _ => false,
    }
}

/// Records that a hook failed before its start; the hooks after it have their turn.
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
    let mut report = read::refused(&hook.key, why.clone());
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
    place: usize,
    join: bool,
) -> Result<Next, ClientError> {
    let assignment = &shared.assignment;
    let refused = |error: WorkerError| ClientError::Refused(error.to_string());
    let own = match directory::enter(&shared.directory, &hook.plugin) {
        Ok(own) => Arc::new(own),
        Err(error) if is_of_hooks(&error) => return refuse(shared, hook, &error, join).await,
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
        Err(error) if is_of_hooks(&error) => return refuse(shared, hook, &error, join).await,
        Err(error) => return Err(refused(error)),
    };
    if !join {
        stdout::show(&own, &name);
    }

    let path = own.path().join(&name);
    let watch = Watch::begin(shared, hook, place, &file, &path, !join).map_err(refused)?;
    let ended = match shared.link.run(&hook.key, &file).await {
        // What the orchestrator refuses to run is a result as well.
        Err(ClientError::Refused(why)) => Ended::without_run(Outcome::NotStarted(why)),
        other => other?,
    };
    watch.task.abort();
    shared.units.note(ended.unit.as_deref());
    if let Err(error) = shared.index.process(hook, &ended) {
        tracing::warn!("{error}, ignoring");
    }
    if ended.again {
        return Ok(Next::Again);
    }

    let remark = watch.too_large.get().then(|| {
        format!(
            "it printed more than {} bytes and was ended",
            assignment.output_limit
        )
    });
    // A daemon leaves nothing of its own.
    let lack = match hook.mode {
        HookMode::Daemon => None,
        _ => room::lack(&own).map(str::to_owned).or(ended.lack.clone()),
    };
    let (key, plugin, outcome) = (hook.key.clone(), hook.plugin.clone(), ended.outcome.clone());
    let place = read::Place {
        directory: own.clone(),
        before,
        of_crawl: matches!(assignment.owner, Owner::Crawl(_)),
        claims: shared.claims.clone(),
    };
    let reading =
        spawn_blocking(move || read::report(&key, &plugin, &outcome, &file, &place, remark));
    let mut report = reading
        .await
        .map_err(|error| ClientError::Refused(error.to_string()))?;
    report.ready_at = watch.ready_at.get();
    report.verdict = match ended.verdict.clone() {
        Some(recorded) => recorded,
        None => room::doubt(report.verdict, &ended.outcome, lack),
    };
    if says_nothing(&report.verdict, &ended.outcome) {
        let words = shared.link.last_words(&hook.key).await?;
        let known = report.verdict.error.take();
        let both = known
            .into_iter()
            .chain((!words.is_empty()).then_some(words));
        report.verdict.error = both.reduce(|known, words| format!("{known}: {words}"));
    }
    report.verdict = shared.link.report(&report).await?;
    if report.verdict.state != ResultState::Failed {
        stdout::forget(&own, &name);
    }
    if report.derived.sonic.is_some() && matches!(assignment.owner, Owner::Crawl(_)) {
        let task = HookTask::sonic(&hook.plugin, WANTED_LIMIT);
        shared.wanted.borrow_mut().push(task);
    }
    if let Err(error) = shared.index.result(hook, &report, &ended) {
        tracing::warn!("{error}, ignoring");
    }
    let next = next(assignment.owner, hook.mode, &ended.outcome, &report);
    if matches!(next, Next::Died) {
        let why = report.verdict.error.as_deref().unwrap_or("it failed");
        tracing::warn!("{} died: {why}", hook.key);
    }
    Ok(next)
}

#[cfg(test)]
mod tests;
