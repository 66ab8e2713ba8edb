//! Calls of workers. A worker may only report about its own crawl or snapshot.

use crate::bus::call::{Answer, Refusal, Reply};
use crate::database::{CrawlWork, Durability, Finished, RunRow};
use crate::main_loop;
use crate::main_loop::action::{Awaited, LoopAction, ReplyAction, UnitAction};
use crate::main_loop::order::{Call, Order, UserCall};
use crate::main_loop::turn::{Change, Turn, TurnError, TurnResult, invalid, parts};
use crate::notices;
use crate::programs;
use crate::work::begin;
use crate::work::children;
use crate::work::children::is_short;
use crate::work::ends::end_of_pages;
use crate::work::host_delay;
use crate::work::limits;
use crate::work::network;
use crate::work::pause;
use crate::work::run_result;
use crate::work::visit;
use archivist_core::model::{
    EXIT_SKIPPED, Outcome, Owner, ResultState, RunId, SnapshotId, Verdict,
};
use archivist_core::plan::{
    LastRun, Reporter, RunCall, RunFacts, admits_worker, is_joinable, run_call,
};
use archivist_plugin::HookFamily;
use archivist_shared::bus::documents::work::{Earlier, Ended, Known, Report, Standing};
use std::os::fd::OwnedFd;
use std::sync::Arc;

fn denied(what: &str) -> TurnError {
    TurnError::Refused(Refusal::Denied(what.to_owned()))
}

/// A call of a worker.
#[derive(Clone, Debug)]
pub enum WorkerCall {
    /// Start or continue the work of a worker.
    /// Gets the JSON of [`Standing`](archivist_shared::bus::documents::work::Standing).
    Attach { token: String },
    /// Run a hook, or join its run.
    /// Gets the JSON of [`Ended`](archivist_shared::bus::documents::work::Ended) when the hook has ended.
    Run {
        /// Token of the worker's assignment.
        token: String,
        /// `PLUGIN/HOOK`.
        hook: String,
        /// File for standard output of the hook.
        stdout: Arc<OwnedFd>,
    },
    /// Answered after the call to systemd.
    Stop {
        /// Token of the worker's assignment.
        token: String,
        /// `PLUGIN/HOOK`.
        hook: String,
        /// Kill it instead of sending SIGTERM.
        force: bool,
    },
    /// The recorded verdict.
    Report {
        /// Token of the worker's assignment.
        token: String,
        report: Arc<Report>,
        /// Number of child pages that are queued already; a long report is processed in parts.
        done: usize,
    },
    /// The InvocationID of the newest run of this hook.
    /// Gets 32 hexadecimal digits, or an empty text if the run has not ended.
    Invocation {
        /// Token of the worker's assignment.
        token: String,
        /// `PLUGIN/HOOK`.
        hook: String,
    },
    /// Wait until no snapshot of the crawl is open.
    /// Answered when the last snapshot is sealed or cancelled.
    SnapshotsDone {
        /// Token of the crawl worker's assignment.
        token: String,
    },
}

impl Order for WorkerCall {
    fn carry_out(&self, turn: &mut Turn<'_>, reply: &Reply) -> TurnResult<Option<Answer>> {
        work(turn, self, reply)
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        None
    }

    fn durability(&self) -> Durability {
        match self {
            WorkerCall::Run { .. } | WorkerCall::Attach { .. } | WorkerCall::Stop { .. } => {
                Durability::ProcessCrash
            }
            _ => Durability::PowerLoss,
        }
    }

    fn is_heavy(&self) -> bool {
        matches!(self, WorkerCall::Report { .. })
    }
}

fn work(turn: &mut Turn<'_>, work: &WorkerCall, reply: &Reply) -> TurnResult<Option<Answer>> {
    match work {
        WorkerCall::Attach { token } => {
            let owner = authenticate(turn, token)?;
            Ok(Some(Answer::json(&standing(turn, owner)?)?))
        }
        WorkerCall::Run { token, hook, stdout } => match run(turn, token, hook, stdout)? {
            Running::Over(ended) => Ok(Some(Answer::json(&ended)?)),
            Running::Joined(run) => {
                turn.act(ReplyAction::Await(Awaited::end_of(run), reply.clone()));
                Ok(None)
            }
            Running::Later => {
                turn.act(ReplyAction::Park(Call::new(work.clone(), reply)));
                Ok(None)
            }
        },
        WorkerCall::Stop { token, hook, force } => {
            let owner = authenticate(turn, token)?;
            match last_run(turn, owner, hook)? {
                Some(run) if run.outcome.is_none() => {
                    pause::thaw(turn, &run);
                    let (unit, force, reply) = (run.unit, *force, reply.clone());
                    turn.act(UnitAction::End { unit, force, reply });
                    Ok(None)
                }
                _ => Ok(Some(Answer::Done)),
            }
        }
        WorkerCall::Report { token, report, done } => {
            let owner = authenticate(turn, token)?;
            if let Some(done) = children::add_some_children(turn, owner, report, *done)? {
                let (token, report) = (token.clone(), report.clone());
                turn.act(LoopAction::again(WorkerCall::Report { token, report, done }, reply));
                return Ok(None);
            }
            Ok(Some(Answer::json(&take_report(turn, owner, report)?)?))
        }
        WorkerCall::Invocation { token, hook } => {
            let owner = authenticate(turn, token)?;
            let run = last_run(turn, owner, hook)?;
            let invocation = match run.filter(|run| run.outcome.is_some()) {
                Some(run) => turn.tx.ended_invocation(&run.unit)?,
                None => None,
            };
            let Some(invocation) = invocation else {
                return Ok(Some(Answer::Text(String::new())));
            };
            turn.act(ReplyAction::SyncJournal { invocation, reply: reply.clone() });
            Ok(None)
        }
        WorkerCall::SnapshotsDone { token } => {
            let Owner::Crawl(crawl) = authenticate(turn, token)? else {
                return Err(denied("only the worker of a crawl may wait for its snapshots"));
            };
            turn.tx.set_crawl_ready(crawl)?;
            if turn.tx.awaits_pages(crawl)? {
                turn.act(ReplyAction::Await(end_of_pages(crawl), reply.clone()));
                return Ok(None);
            }
            turn.tx.release_crawl(crawl)?;
            Ok(Some(Answer::Done))
        }
    }
}

/// What becomes of a worker's call to run a hook.
enum Running {
    Over(Ended),
    /// The caller waits for this run.
    Joined(RunId),
    /// The call is made again later.
    Later,
}

fn run(turn: &mut Turn<'_>, token: &str, hook: &str, stdout: &Arc<OwnedFd>) -> TurnResult<Running> {
    let owner = authenticate(turn, token)?;
    let crawl = main_loop::crawl_for(turn, owner)?;
    let plan = turn.engine.plan(&crawl).map_err(invalid)?;
    let planned =
        plan.hook(owner, hook).ok_or_else(|| invalid(format!("{owner} has no hook '{hook}'")))?;
    let (plugin, id) = (&planned.task.plugin, &planned.task.hook);
    let last = turn.tx.last_hook_run(owner, plugin, id)?;
    let too_large = limits::too_large(turn, &crawl, owner)?;
    let facts = RunFacts {
        installed: programs::is_brought(turn, &crawl, planned)?,
        last: match &last {
            Some(run) => Some(LastRun {
                outcome: run.outcome.as_ref(),
                awaits_decision: run_result::is_undecided(turn, run)?,
            }),
            None => None,
        },
        result: main_loop::result_state(turn, owner, plugin, id)?,
        paused: turn.tx.is_paused(owner)?,
        is_cleanup: planned.hook.name.family == HookFamily::SnapshotCleanup,
        is_too_large: too_large.is_some(),
    };
    let ended = match (run_call(&facts), last) {
        (RunCall::SkipInstalled, _) => Ended::without_run(Outcome::Exit(EXIT_SKIPPED)),
        (RunCall::Answer, Some(run)) => run_result::run_result(turn, &run)?,
        (RunCall::Join, Some(run)) => return Ok(Running::Joined(run.id)),
        (RunCall::Park, _) => return Ok(Running::Later),
        (RunCall::SkipTooLarge, _) => {
            let why = too_large.unwrap_or_default();
            let verdict = Verdict { state: ResultState::Skipped, error: Some(why.clone()) };
            turn.tx.note_result(owner, crawl.id, plugin, id, &verdict, turn.now)?;
            Ended { verdict: Some(verdict), ..Ended::without_run(Outcome::NotStarted(why)) }
        }
        (RunCall::Begin | RunCall::Answer | RunCall::Join, _) => {
            let run = begin::begin_hook(turn, owner, &crawl, planned, stdout.clone())?;
            return Ok(Running::Joined(run));
        }
    };
    Ok(Running::Over(ended))
}

/// The owner that this token belongs to.
///
/// # Errors
/// If it is the token of no worker, or of one whose crawl or snapshot is not started.
fn authenticate(turn: &Turn<'_>, token: &str) -> TurnResult<Owner> {
    let unknown = || denied("this token belongs to no worker");
    let owner = *turn.engine.tokens.get(token).ok_or_else(unknown)?;
    if admits_worker(turn.tx.status_of(owner)?) { Ok(owner) } else { Err(unknown()) }
}

/// The newest run of the hook with this key.
fn last_run(turn: &Turn<'_>, owner: Owner, key: &str) -> TurnResult<Option<RunRow>> {
    let (plugin, hook) = parts(key)?;
    Ok(turn.tx.last_hook_run(owner, plugin, hook)?)
}

/// The results of `owner`, and which of their runs the worker can join.
fn standing(turn: &Turn<'_>, owner: Owner) -> TurnResult<Standing> {
    let mut hooks = Vec::new();
    for result in turn.tx.results(owner)? {
        let run = turn.tx.last_hook_run(owner, &result.plugin, &result.hook)?;
        let joinable =
            run.is_some_and(|run| is_joinable(run.outcome.as_ref(), Some(result.status)));
        hooks.push(Known {
            key: format!("{}/{}", result.plugin, result.hook),
            state: result.status,
            joinable,
        });
    }
    let earlier = match owner {
        Owner::Crawl(_) => None,
        Owner::Snapshot(id) => earlier(turn, id)?,
    };
    Ok(Standing { hooks, earlier })
}

/// What a retry of a page must not lose, if the page is retried.
fn earlier(turn: &Turn<'_>, id: SnapshotId) -> TurnResult<Option<Earlier>> {
    let results = turn.tx.earlier_results(id)?;
    if results.is_empty() {
        return Ok(None);
    }
    let answer = turn.tx.earlier_answer(id)?;
    Ok(Some(Earlier { results, answer }))
}

/// Records what a worker reports, and returns the verdict that is on record then.
fn take_report(turn: &mut Turn<'_>, owner: Owner, report: &Report) -> TurnResult<Verdict> {
    let (plugin, hook) = parts(&report.key)?;
    let crawl = main_loop::crawl_of_owner(turn, owner)?;
    let verdict = programs::take_binary(turn, &crawl, plugin, report)?
        .unwrap_or_else(|| report.verdict.clone());
    record_result(turn, owner, crawl, report, &verdict)?;
    // An earlier verdict stays.
    let recorded = turn.tx.result(owner, plugin, hook)?;
    Ok(recorded.map_or(verdict, |result| Verdict { state: result.status, error: result.error }))
}

fn record_result(
    turn: &mut Turn<'_>,
    owner: Owner,
    mut crawl: CrawlWork,
    report: &Report,
    verdict: &Verdict,
) -> TurnResult<()> {
    let (plugin, hook) = parts(&report.key)?;
    let known = turn.tx.result(owner, plugin, hook)?;
    if known.is_none_or(|known| known.status == ResultState::Queued) {
        // The hook was not started; the attempt is recorded nevertheless.
        let started_at = report.recorded.map_or(turn.now, |(start, _)| start);
        turn.tx.start_result(owner, crawl.id, plugin, hook, started_at)?;
    }
    let finished = Finished {
        verdict,
        output: report.output.as_deref(),
        files: &report.files,
        size: report.size,
        figures: &report.figures,
    };
    let key = (plugin, hook);
    turn.tx.count_bytes(crawl.id, owner, key, report.size)?;
    let ended_at = report.recorded.map_or(turn.now, |(_, end)| end);
    if !turn.tx.finish_result(owner, plugin, hook, &finished, ended_at)? {
        return Ok(());
    }
    if let Some(at) = report.ready_at {
        turn.tx.set_run_ready(owner, plugin, hook, at)?;
    }
    let (plugin, hook) = (plugin.to_owned(), hook.to_owned());
    turn.changes.insert(Change::Hook {
        crawl: crawl.id,
        owner,
        plugin: plugin.clone(),
        hook: hook.clone(),
    });
    // The end of the page logs what was skipped.
    let result = turn.tx.result(owner, &plugin, &hook)?;
    if let Some(result) = result.filter(|result| result.status != ResultState::Skipped) {
        notices::log_result(turn, crawl.id, &result);
    }
    programs::take_programs(turn, &report.derived.programs)?;
    programs::take_requests(turn, &mut crawl, &report.key, &report.derived.wanted)?;
    let takes_children =
        Reporter::of(owner, crawl.ready).takes_children() && is_short(&report.children);
    let Owner::Snapshot(id) = owner else {
        // A hook of a crawl gets the first page as its snapshot.
        if let Some(first) = turn.tx.first_snapshot(crawl.id)? {
            for tag in &report.tags {
                turn.tx.tag_snapshot(first, tag)?;
            }
        }
        if takes_children {
            children::add_children(turn, &crawl, None, &report.children)?;
        }
        return programs::take_derived(turn, crawl, &report.key, &report.derived);
    };
    if let Some(answer) = report.answer() {
        visit::take_answer(turn, id, answer)?;
    }
    let page = main_loop::snapshot_of(turn, id)?;
    network::take_report(turn, &page, report)?;
    host_delay::apply_host_limits(turn, id, report)?;
    if let Some(title) = &report.title {
        turn.tx.set_title(id, title)?;
    }
    for tag in &report.tags {
        turn.tx.tag_snapshot(id, tag)?;
    }
    if takes_children {
        children::add_children(turn, &crawl, Some(id), &report.children)
    } else {
        Ok(())
    }
}
