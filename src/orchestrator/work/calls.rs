//! Calls of workers. A worker is believed only about its own crawl or snapshot.

use crate::crawl::children::is_short;
use crate::main_loop::action::Action;
use crate::main_loop::event::Event;
use crate::main_loop::log::HookLog;
use crate::main_loop::turn::{Change, Turn, TurnError, TurnResult, invalid};
use crate::store::{CrawlWork, Finished, RunRow};
use archivist_core::model::{EXIT_SKIPPED, Lifecycle, Outcome, Owner, ResultState, Verdict};
use archivist_plugin::HookFamily;
use archivist_shared::bus::call::{Refusal, Work};
use archivist_shared::bus::documents::work::{Ended, Known, Report, Standing};

fn denied(what: &str) -> TurnError {
    TurnError::Refused(Refusal::Denied(what.to_owned()))
}

/// `PLUGIN/HOOK` in its two parts.
pub(crate) fn parts(key: &str) -> TurnResult<(&str, &str)> {
    key.split_once('/')
        .ok_or_else(|| invalid(format!("no hook is called '{key}'")))
}

impl Turn<'_> {
    pub(crate) fn work(&mut self, work: &Work) -> TurnResult<()> {
        match work {
            Work::Attach { token, reply } => {
                let owner = self.who(token)?;
                let standing = self.standing(owner)?;
                self.answer_text(reply, serde_json::to_string(&standing)?);
                Ok(())
            }
            Work::Run {
                token,
                hook,
                stdout,
                reply,
            } => {
                let owner = self.who(token)?;
                let crawl = self.crawl_of_owner(owner)?;
                let plan = self.engine.plan(&crawl).map_err(invalid)?;
                let planned = plan
                    .hook(owner, hook)
                    .ok_or_else(|| invalid(format!("{owner} has no hook '{hook}' (any more)")))?;
                if self.is_brought(&crawl, planned)? {
                    let ended = Ended::without_run(Outcome::Exit(EXIT_SKIPPED));
                    self.answer_text(reply, serde_json::to_string(&ended)?);
                    return Ok(());
                }
                let (plugin, id) = (&planned.task.plugin, &planned.task.hook);
                let is_cleanup = planned.hook.name.family == HookFamily::SnapshotCleanup;
                match self.joinable(owner, plugin, id)? {
                    Some(run) if run.outcome.is_some() && !self.awaits_word(&run)? => {
                        let ended = self.how_it_ended(&run)?;
                        self.answer_text(reply, serde_json::to_string(&ended)?);
                    }
                    Some(run) => {
                        self.actions.push(Action::Join {
                            run: run.id,
                            reply: reply.clone(),
                        });
                    }
                    None if self.tx.is_paused(owner)? => {
                        self.actions.push(Action::Park(work.clone()));
                    }
                    None if !is_cleanup && let Some(why) = self.too_much(&crawl, owner)? => {
                        let verdict = Verdict {
                            state: ResultState::Skipped,
                            error: Some(why.clone()),
                        };
                        self.tx
                            .note_result(owner, crawl.id, plugin, id, &verdict, self.now)?;
                        let ended = Ended {
                            verdict: Some(verdict),
                            ..Ended::without_run(Outcome::NotStarted(why))
                        };
                        self.answer_text(reply, serde_json::to_string(&ended)?);
                    }
                    None => {
                        let run = self.begin_hook(owner, &crawl, planned, stdout.clone())?;
                        self.actions.push(Action::Join {
                            run,
                            reply: reply.clone(),
                        });
                    }
                }
                Ok(())
            }
            Work::Stop {
                token,
                hook,
                force,
                reply,
            } => {
                let owner = self.who(token)?;
                if let Some(run) = self.last_run(owner, hook)?
                    && run.outcome.is_none()
                {
                    self.thaw(&run);
                    let unit = run.unit;
                    let (force, reply) = (*force, reply.clone());
                    self.actions.push(Action::End { unit, force, reply });
                } else {
                    self.answer(reply);
                }
                Ok(())
            }
            Work::Report {
                token,
                report,
                done,
                reply,
            } => {
                let owner = self.who(token)?;
                if let Some(done) = self.add_some_children(owner, report, *done)? {
                    self.actions.push(Action::Again(Event::Work(Work::Report {
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
                let owner = self.who(token)?;
                let run = self.last_run(owner, hook)?;
                let invocation = match run.filter(|run| run.outcome.is_some()) {
                    Some(run) => self.tx.ended_invocation(&run.unit)?,
                    None => None,
                };
                match invocation {
                    Some(invocation) => self.actions.push(Action::SyncJournal {
                        invocation,
                        reply: reply.clone(),
                    }),
                    None => self.answer_text(reply, String::new()),
                }
                Ok(())
            }
            Work::SnapshotsDone { token, reply } => {
                let Owner::Crawl(crawl) = self.who(token)? else {
                    return Err(denied(
                        "only the worker of a crawl may wait for its snapshots",
                    ));
                };
                self.tx.set_crawl_ready(crawl)?;
                if self.tx.has_open_snapshots(crawl)? {
                    let reply = reply.clone();
                    self.actions.push(Action::AwaitSnapshots { crawl, reply });
                } else {
                    self.tx.release_crawl(crawl)?;
                    self.answer(reply);
                }
                Ok(())
            }
        }
    }

    /// Whom this token proves to work for. What was cancelled in this very turn has no worker.
    fn who(&self, token: &str) -> TurnResult<Owner> {
        let stranger = || denied("this token belongs to no worker");
        let owner = *self.engine.tokens.get(token).ok_or_else(stranger)?;
        match self.tx.status_of(owner)? {
            Lifecycle::Started | Lifecycle::Paused => Ok(owner),
            _ => Err(stranger()),
        }
    }

    pub(crate) fn crawl_of_owner(&self, owner: Owner) -> TurnResult<CrawlWork> {
        match owner {
            Owner::Crawl(id) => self.crawl_of(id),
            Owner::Snapshot(id) => self.crawl_of(self.snapshot_of(id)?.crawl),
        }
    }

    /// The newest run of the hook with this key.
    fn last_run(&self, owner: Owner, key: &str) -> TurnResult<Option<RunRow>> {
        let (plugin, hook) = parts(key)?;
        Ok(self.tx.last_hook_run(owner, plugin, hook)?)
    }

    /// The run that a call of `Run` joins: one under way, or one whose end no worker has taken
    /// note of. A run that was lost is not one of them.
    fn joinable(&self, owner: Owner, plugin: &str, hook: &str) -> TurnResult<Option<RunRow>> {
        let run = self.tx.last_hook_run(owner, plugin, hook)?;
        let result = self.tx.result(owner, plugin, hook)?;
        let status = result.map(|result| result.status);
        let unreported = status == Some(ResultState::Started);
        Ok(run.filter(|run| match &run.outcome {
            None => true,
            // It was skipped for the worker, or is put off to another run.
            Some(Outcome::Interrupted) => status.is_some_and(|s| s.is_final()) || unreported,
            Some(outcome) => unreported && *outcome != Outcome::Lost,
        }))
    }

    fn standing(&self, owner: Owner) -> TurnResult<Standing> {
        let mut hooks = Vec::new();
        for result in self.tx.results(owner)? {
            let joinable = self
                .joinable(owner, &result.plugin, &result.hook)?
                .is_some();
            let key = format!("{}/{}", result.plugin, result.hook);
            hooks.push(Known {
                key,
                state: result.status,
                joinable,
            });
        }
        Ok(Standing { hooks })
    }

    /// Takes note of what a worker found, and says what it comes to.
    fn report(&mut self, owner: Owner, report: &Report) -> TurnResult<Verdict> {
        let (plugin, hook) = parts(&report.key)?;
        let crawl = self.crawl_of_owner(owner)?;
        let verdict = self.take_binary(&crawl, plugin, report)?;
        let verdict = verdict.unwrap_or_else(|| report.verdict.clone());
        self.record_result(owner, crawl, report, &verdict)?;
        // It may have had another one before.
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
            // The start was refused: the attempt is on record all the same.
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
        let Owner::Snapshot(id) = owner else {
            // Such a hook is told of the first page.
            if let Some(first) = self.tx.first_snapshot(crawl.id)? {
                for tag in &report.tags {
                    self.tx.tag_snapshot(first, tag)?;
                }
            }
            // Pages of the set-up; after it there is nobody left to work on more.
            if !crawl.ready && is_short(&report.children) {
                self.add_children(&crawl, None, &report.children)?;
            }
            return self.take_derived(crawl, &report.key, &report.derived);
        };
        self.apply_host_limits(id, report)?;
        if let Some(title) = &report.title {
            self.tx.set_title(id, title)?;
        }
        for tag in &report.tags {
            self.tx.tag_snapshot(id, tag)?;
        }
        if is_short(&report.children) {
            self.add_children(&crawl, Some(id), &report.children)
        } else {
            Ok(())
        }
    }
}
