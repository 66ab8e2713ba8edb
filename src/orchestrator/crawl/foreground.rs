//! Commands in the foreground: they hold their crawl, interrupt its hooks, and say what next.
//!
//! That a run was interrupted is in its row, and the word that was given is in its result:
//! `backoff` to be run again, `skipped` to go on. Between the two the worker of a held crawl is
//! not told of the end of the run, so that it waits.

use crate::main_loop::action::Action;
use crate::main_loop::event::Event;
use crate::main_loop::turn::{Change, Turn, TurnResult, failed};
use crate::store::{Finished, RunRow, Users};
use crate::work::ends::LEFT;
use archivist_core::model::{CrawlId, Lifecycle, Outcome, Owner, ResultState, Verdict};
use archivist_core::unit::UnitKind;
use archivist_shared::bus::call::Reply;
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::documents::report::{
    AddOptions, Draft, DraftHook, DraftSkip, HookName, Interrupted,
};
use archivist_shared::bus::documents::work::{Ended, HookMode};
use archivist_shared::systemd::Release;
use std::os::fd::OwnedFd;

impl Turn<'_> {
    pub(crate) fn hold(
        &mut self,
        crawl: CrawlId,
        cancel: bool,
        claim: &Claim,
        reply: &Reply<OwnedFd>,
    ) -> TurnResult<()> {
        let status = self.crawl_of(crawl)?.status;
        self.actions.push(Action::Hold {
            crawl,
            cancel,
            claim: claim.clone(),
            reply: reply.clone(),
        });
        if status.is_final() && !self.tx.has_open_runs(crawl)? {
            self.actions.push(Action::LetGo(crawl));
        }
        Ok(())
    }

    /// A command that held a crawl is gone, before its end.
    pub(crate) fn abandoned(&mut self, crawl: CrawlId, cancel: bool) -> TurnResult<()> {
        if cancel && self.cancel_piece(crawl, LEFT, Event::Abandoned { crawl, cancel })? {
            return Ok(());
        }
        self.actions.push(Action::Unhold(crawl));
        self.proceed(crawl, false)?;
        let status = self.crawl_of(crawl)?.status;
        if cancel && status.apply(archivist_core::model::Step::Cancel).is_ok() {
            self.abort(crawl, LEFT)?;
        }
        Ok(())
    }

    fn is_held(&self, crawl: CrawlId) -> bool {
        self.engine.held.contains_key(&crawl)
    }

    /// Ends the hooks that the crawl waits for: those in the foreground, and without any those in
    /// the background that end by themselves.
    pub(crate) fn interrupt(&mut self, of: Owner) -> TurnResult<Interrupted> {
        let crawl = self.crawl_of_owner(of)?;
        let id = crawl.id;
        let asked = |owner| of == Owner::Crawl(id) || of == owner;
        if crawl.status != Lifecycle::Started {
            return Ok(Interrupted::default());
        }
        let plan = self.engine.plan(&crawl).map_err(failed)?;
        let mut waited_for = [Vec::new(), Vec::new()];
        for run in self.tx.open_runs()? {
            let (Some(plugin), Some(hook)) = (run.plugin.clone(), run.hook.clone()) else {
                continue;
            };
            if run.crawl != id || run.kind != UnitKind::Hook || !asked(run.owner) {
                continue;
            }
            let key = format!("{plugin}/{hook}");
            let place = match plan.hook(run.owner, &key).map(|hook| hook.task.mode) {
                Some(HookMode::Foreground) => 0,
                Some(HookMode::Finite) => 1,
                _ => continue,
            };
            let owner = run.owner;
            waited_for[place].push((
                run,
                HookName {
                    owner,
                    plugin,
                    hook,
                },
            ));
        }
        let [foreground, finite] = waited_for;
        let chosen = if foreground.is_empty() {
            finite
        } else {
            foreground
        };
        let mut hooks = Vec::new();
        for (run, name) in chosen {
            self.tx.interrupt_run(run.id)?;
            self.thaw(&run);
            let (unit, how) = (run.unit, Release::Stop);
            self.actions.push(Action::Release { unit, how });
            hooks.push(name);
        }
        let waits = !hooks.is_empty() && self.is_held(id);
        Ok(Interrupted { hooks, waits })
    }

    /// Gives the word on the hooks of a crawl that were interrupted; how many there were.
    pub(crate) fn proceed(&mut self, crawl: CrawlId, again: bool) -> TurnResult<u32> {
        let started = archivist_shared::bus::documents::report::Filter {
            status: Some(ResultState::Started.as_str().to_owned()),
            owner: Some(Owner::Crawl(crawl)),
            limit: 0,
            ..archivist_shared::bus::documents::report::Filter::default()
        };
        self.crawl_of(crawl)?;
        let mut count = 0;
        for result in self.tx.list_results(&started)? {
            let (owner, plugin, hook) = (result.owner, result.plugin, result.hook);
            let run = self.tx.last_hook_run(owner, &plugin, &hook)?;
            let Some(run) = run.filter(|run| run.interrupted) else {
                continue;
            };
            if again {
                self.tx.put_off_result(owner, &plugin, &hook)?
            } else {
                self.skip_interrupted(owner, &plugin, &hook)?
            }
            self.changes.insert(Change::Hook {
                crawl,
                owner,
                plugin,
                hook,
            });
            if run.outcome.is_some() {
                self.settle(&run)?;
            }
            count += 1;
        }
        Ok(count)
    }

    fn skip_interrupted(&self, owner: Owner, plugin: &str, hook: &str) -> TurnResult<()> {
        let verdict = Verdict::of(&Outcome::Interrupted, None, false);
        let finished = Finished {
            verdict: &verdict,
            output: None,
            files: &[],
            size: 0,
        };
        self.tx
            .finish_result(owner, plugin, hook, &finished, self.now)?;
        Ok(())
    }

    /// Whether what follows the end of this run is up to somebody who has not said so yet.
    pub(crate) fn awaits_word(&self, run: &RunRow) -> TurnResult<bool> {
        if !run.interrupted || !self.is_held(run.crawl) {
            return Ok(false);
        }
        Ok(self.status_of_result(run)? == Some(ResultState::Started))
    }

    fn status_of_result(&self, run: &RunRow) -> TurnResult<Option<ResultState>> {
        let (Some(plugin), Some(hook)) = (&run.plugin, &run.hook) else {
            return Ok(None);
        };
        let result = self.tx.result(run.owner, plugin, hook)?;
        Ok(result.map(|result| result.status))
    }

    /// Tells whoever waits for a run that has ended, unless a word on it is awaited.
    pub(crate) fn settle(&mut self, run: &RunRow) -> TurnResult<()> {
        let action = if self.awaits_word(run)? {
            Action::Withhold(run.id)
        } else {
            Action::Settle {
                run: run.id,
                ended: self.how_it_ended(run)?,
            }
        };
        self.actions.push(action);
        Ok(())
    }

    /// What a worker is told of a run that has ended.
    pub(crate) fn how_it_ended(&self, run: &RunRow) -> TurnResult<Ended> {
        let put_off = self.status_of_result(run)? == Some(ResultState::Backoff);
        // Of a start that nobody confirmed, and no unit: it was never made.
        let never_started = run.starting && run.outcome == Some(Outcome::Lost);
        let shortage = &self.engine.shortage;
        Ok(Ended {
            run: Some(run.id),
            unit: Some(run.unit.clone()),
            argv: run.argv.clone(),
            outcome: run.outcome.clone().unwrap_or(Outcome::Lost),
            again: ((run.interrupted || run.frozen) && put_off) || never_started,
            lack: shortage
                .met(run.started_at, run.ended_at)
                .map(str::to_owned),
            verdict: None,
            started_at: run.started_at,
            ended_at: run.ended_at,
        })
    }

    /// What a crawl with these options would do.
    pub(crate) fn draft(&self, options: &AddOptions, users: &Users) -> TurnResult<Draft> {
        let (plugins, config) = (&options.plugins, &options.config);
        let tmp = self.engine.archive();
        let persona = self.engine.persona(config, users).map_err(failed)?;
        let has_persona = persona.is_some();
        let plan = self
            .engine
            .page_plan(plugins, config, persona, &tmp)
            .map_err(failed)?;
        let selected = self
            .engine
            .select(plugins, config, has_persona)
            .map_err(failed)?;
        let hooks = |hooks: &mut dyn Iterator<Item = &crate::main_loop::engine::PlannedHook>| {
            let hooks = hooks.map(|hook| DraftHook {
                plugin: hook.task.plugin.clone(),
                hook: hook.task.hook.clone(),
                mode: match hook.task.mode {
                    HookMode::Foreground => "foreground",
                    HookMode::Finite => "finite",
                    HookMode::Daemon => "daemon",
                }
                .to_owned(),
                limit: hook.task.limit.as_secs(),
            });
            hooks.collect()
        };
        let skipped = selected.skipped.iter().map(|(plugin, why)| DraftSkip {
            plugin: plugin.name.clone(),
            why: why.to_string(),
        });
        Ok(Draft {
            setup: hooks(&mut plan.setup.iter()),
            page: hooks(&mut plan.snapshot.iter().chain(&plan.snapshot_end)),
            end: hooks(&mut plan.end.iter()),
            skipped: skipped.collect(),
        })
    }
}
