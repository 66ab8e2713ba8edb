//! Calls of workers. A worker may only report about its own crawl or snapshot.

use crate::crawl::children::is_short;
use crate::main_loop::action::{LoopAction, ReplyAction, UnitAction};
use crate::main_loop::event::Event;
use crate::main_loop::log::HookLog;
use crate::main_loop::turn::{Change, Turn, TurnError, TurnResult, invalid, parts};
use crate::store::{CrawlWork, Finished, RunRow};
use archivist_core::model::{EXIT_SKIPPED, Outcome, Owner, ResultState, SnapshotId, Verdict};
use archivist_core::plan::{
    LastRun, Reporter, RunCall, RunFacts, admits_worker, is_joinable, run_call,
};
use archivist_plugin::HookFamily;
use archivist_shared::bus::call::{Refusal, Work};
use archivist_shared::bus::documents::work::{Earlier, Ended, Known, Report, Standing};

fn denied(what: &str) -> TurnError {
    TurnError::Refused(Refusal::Denied(what.to_owned()))
}

impl Turn<'_> {
    pub(crate) fn work(&mut self, work: &Work) -> TurnResult<()> {
        match work {
            Work::Attach { token, reply } => {
                let owner = self.authenticate(token)?;
                let standing = self.standing(owner)?;
                self.answer_text(reply, serde_json::to_string(&standing)?);
                Ok(())
            }
            Work::Run { .. } => self.run(work),
            Work::Stop {
                token,
                hook,
                force,
                reply,
            } => {
                let owner = self.authenticate(token)?;
                match self.last_run(owner, hook)? {
                    Some(run) if run.outcome.is_none() => {
                        self.thaw(&run);
                        let (unit, force, reply) = (run.unit, *force, reply.clone());
                        self.act(UnitAction::End { unit, force, reply });
                    }
                    _ => self.answer(reply),
                }
                Ok(())
            }
            Work::Report {
                token,
                report,
                done,
                reply,
            } => {
                let owner = self.authenticate(token)?;
                if let Some(done) = self.add_some_children(owner, report, *done)? {
                    self.act(LoopAction::Again(Event::Work(Work::Report {
                        token: token.clone(),
                        report: report.clone(),
                        done,
                        reply: reply.clone(),
                    })));
                    return Ok(());
                }
                let verdict = self.report(owner, report)?;
                self.answer_text(reply, serde_json::to_string(&verdict)?);
                Ok(())
            }
            Work::Invocation { token, hook, reply } => {
                let owner = self.authenticate(token)?;
                let run = self.last_run(owner, hook)?;
                let invocation = match run.filter(|run| run.outcome.is_some()) {
                    Some(run) => self.tx.ended_invocation(&run.unit)?,
                    None => None,
                };
                match invocation {
                    Some(invocation) => self.act(ReplyAction::SyncJournal {
                        invocation,
                        reply: reply.clone(),
                    }),
                    None => self.answer_text(reply, String::new()),
                }
                Ok(())
            }
            Work::SnapshotsDone { token, reply } => {
                let Owner::Crawl(crawl) = self.authenticate(token)? else {
                    return Err(denied(
                        "only the worker of a crawl may wait for its snapshots",
                    ));
                };
                self.tx.set_crawl_ready(crawl)?;
                if self.tx.awaits_pages(crawl)? {
                    let reply = reply.clone();
                    self.act(ReplyAction::AwaitSnapshots { crawl, reply });
                } else {
                    self.tx.release_crawl(crawl)?;
                    self.answer(reply);
                }
                Ok(())
            }
        }
    }

    /// A worker wants a hook to be run.
    fn run(&mut self, work: &Work) -> TurnResult<()> {
        let Work::Run {
            token,
            hook,
            stdout,
            reply,
        } = work
        else {
            return Ok(());
        };
        let owner = self.authenticate(token)?;
        let crawl = self.crawl_for(owner)?;
        let plan = self.engine.plan(&crawl).map_err(invalid)?;
        let planned = plan
            .hook(owner, hook)
            .ok_or_else(|| invalid(format!("{owner} has no hook '{hook}'")))?;
        let (plugin, id) = (&planned.task.plugin, &planned.task.hook);
        let last = self.tx.last_hook_run(owner, plugin, id)?;
        let too_large = self.too_large(&crawl, owner)?;
        let facts = RunFacts {
            installed: self.is_brought(&crawl, planned)?,
            last: match &last {
                Some(run) => Some(LastRun {
                    outcome: run.outcome.as_ref(),
                    awaits_decision: self.awaits_decision(run)?,
                }),
                None => None,
            },
            result: self.result_state(owner, plugin, id)?,
            paused: self.tx.is_paused(owner)?,
            is_cleanup: planned.hook.name.family == HookFamily::SnapshotCleanup,
            is_too_large: too_large.is_some(),
        };
        let ended = match (run_call(&facts), last) {
            (RunCall::SkipInstalled, _) => Ended::without_run(Outcome::Exit(EXIT_SKIPPED)),
            (RunCall::Answer, Some(run)) => self.run_result(&run)?,
            (RunCall::Join, Some(run)) => {
                let (run, reply) = (run.id, reply.clone());
                self.act(ReplyAction::Join { run, reply });
                return Ok(());
            }
            (RunCall::Park, _) => {
                self.act(ReplyAction::Park(work.clone()));
                return Ok(());
            }
            (RunCall::SkipTooLarge, _) => {
                let why = too_large.unwrap_or_default();
                let verdict = Verdict {
                    state: ResultState::Skipped,
                    error: Some(why.clone()),
                };
                self.tx
                    .note_result(owner, crawl.id, plugin, id, &verdict, self.now)?;
                Ended {
                    verdict: Some(verdict),
                    ..Ended::without_run(Outcome::NotStarted(why))
                }
            }
            (RunCall::Begin | RunCall::Answer | RunCall::Join, _) => {
                let run = self.begin_hook(owner, &crawl, planned, stdout.clone())?;
                let reply = reply.clone();
                self.act(ReplyAction::Join { run, reply });
                return Ok(());
            }
        };
        self.answer_text(reply, serde_json::to_string(&ended)?);
        Ok(())
    }

    /// The owner that this token belongs to.
    ///
    /// # Errors
    /// If it is the token of no worker, or of one whose crawl or snapshot is not started.
    fn authenticate(&self, token: &str) -> TurnResult<Owner> {
        let unknown = || denied("this token belongs to no worker");
        let owner = *self.engine.tokens.get(token).ok_or_else(unknown)?;
        if admits_worker(self.tx.status_of(owner)?) {
            Ok(owner)
        } else {
            Err(unknown())
        }
    }

    /// The newest run of the hook with this key.
    fn last_run(&self, owner: Owner, key: &str) -> TurnResult<Option<RunRow>> {
        let (plugin, hook) = parts(key)?;
        Ok(self.tx.last_hook_run(owner, plugin, hook)?)
    }

    /// The results of `owner`, and which of their runs the worker can join.
    fn standing(&self, owner: Owner) -> TurnResult<Standing> {
        let mut hooks = Vec::new();
        for result in self.tx.results(owner)? {
            let run = self.tx.last_hook_run(owner, &result.plugin, &result.hook)?;
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
            Owner::Snapshot(id) => self.earlier(id)?,
        };
        Ok(Standing { hooks, earlier })
    }

    /// What a retry of a page must not lose, if the page is retried.
    fn earlier(&self, id: SnapshotId) -> TurnResult<Option<Earlier>> {
        let results = self.tx.earlier_results(id)?;
        if results.is_empty() {
            return Ok(None);
        }
        let answer = self.tx.earlier_answer(id)?;
        let results = results.into_iter().map(Into::into).collect();
        Ok(Some(Earlier { results, answer }))
    }

    /// Records what a worker reports, and returns the verdict that is on record then.
    fn report(&mut self, owner: Owner, report: &Report) -> TurnResult<Verdict> {
        let (plugin, hook) = parts(&report.key)?;
        let crawl = self.crawl_of_owner(owner)?;
        let verdict = self
            .take_binary(&crawl, plugin, report)?
            .unwrap_or_else(|| report.verdict.clone());
        self.record_result(owner, crawl, report, &verdict)?;
        // An earlier verdict stays.
        let recorded = self.tx.result(owner, plugin, hook)?;
        Ok(recorded.map_or(verdict, |result| Verdict {
            state: result.status,
            error: result.error,
        }))
    }

    fn record_result(
        &mut self,
        owner: Owner,
        mut crawl: CrawlWork,
        report: &Report,
        verdict: &Verdict,
    ) -> TurnResult<()> {
        let (plugin, hook) = parts(&report.key)?;
        if self.tx.result(owner, plugin, hook)?.is_none() {
            // The start was refused; the attempt is recorded nevertheless.
            self.tx
                .start_result(owner, crawl.id, plugin, hook, self.now)?;
        }
        let finished = Finished {
            verdict,
            output: report.output.as_deref(),
            files: &report.files,
            size: report.size,
        };
        let key = (plugin, hook);
        self.tx.count_bytes(crawl.id, owner, key, report.size)?;
        if !self
            .tx
            .finish_result(owner, plugin, hook, &finished, self.now)?
        {
            return Ok(());
        }
        if let Some(at) = report.ready_at {
            self.tx.set_run_ready(owner, plugin, hook, at)?;
        }
        let (plugin, hook) = (plugin.to_owned(), hook.to_owned());
        let log = HookLog::Result {
            owner,
            plugin: plugin.clone(),
            hook: hook.clone(),
            verdict: verdict.clone(),
        };
        self.log_hook(crawl.id, log);
        self.changes.insert(Change::Hook {
            crawl: crawl.id,
            owner,
            plugin,
            hook,
        });
        self.take_programs(&report.derived.programs)?;
        self.take_requests(&mut crawl, &report.key, &report.derived.wanted)?;
        let takes_children =
            Reporter::of(owner, crawl.ready).takes_children() && is_short(&report.children);
        let Owner::Snapshot(id) = owner else {
            // A hook of a crawl gets the first page as its snapshot.
            if let Some(first) = self.tx.first_snapshot(crawl.id)? {
                for tag in &report.tags {
                    self.tx.tag_snapshot(first, tag)?;
                }
            }
            if takes_children {
                self.add_children(&crawl, None, &report.children)?;
            }
            return self.take_derived(crawl, &report.key, &report.derived);
        };
        if let Some(answer) = report.answer() {
            self.take_answer(id, answer)?;
        }
        self.apply_host_limits(id, report)?;
        if let Some(title) = &report.title {
            self.tx.set_title(id, title)?;
        }
        for tag in &report.tags {
            self.tx.tag_snapshot(id, tag)?;
        }
        if takes_children {
            self.add_children(&crawl, Some(id), &report.children)
        } else {
            Ok(())
        }
    }
}
