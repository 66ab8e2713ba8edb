//! Calls of people.

use crate::crawl::add::Progress;
use crate::crawl::retry::Retried;
use crate::main_loop::action::{Action, Answer};
use crate::main_loop::event::Event;
use crate::main_loop::turn::{Turn, TurnError, TurnResult, failed, invalid};
use crate::query::documents::documents;
use crate::runner::gate;
use crate::store::Users;
use crate::work::ends::ABORTED;
use archivist_core::model::{CrawlId, Lifecycle, Owner, ResultState, TAG_MAX, TAGS_MAX};
use archivist_plugin::{Skip, Values};
use archivist_shared::bus::call::{Refusal, Reply, Request};
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::report::{AddOptions, Details, Filter, ROWS_MAX};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

/// Why something is cancelled.
const CANCELLED: &str = "cancelled by request";
/// Deepest crawl that can be asked for.
const DEPTH_MAX: u32 = 4;
/// Bytes of all settings of a crawl: they are read for each of its hooks.
const SETTINGS_MAX: usize = 256 << 10;
/// Plugins that one crawl may name.
const PLUGINS_MAX: usize = 1000;

impl Turn<'_> {
    pub(crate) fn request(&mut self, request: &Request) -> TurnResult<()> {
        match request {
            Request::Add {
                lines,
                options,
                user,
                so_far,
                reply,
            } => match self.add_some(lines, options, *user, so_far.as_deref())? {
                Progress::Done(added) => self.answer_text(reply, serde_json::to_string(&added)?),
                Progress::More(adding) => {
                    let (lines, options) = (lines.clone(), options.clone());
                    self.actions
                        .push(Action::Again(Event::Request(Request::Add {
                            lines,
                            options,
                            user: *user,
                            so_far: Some(adding),
                            reply: reply.clone(),
                        })));
                }
            },
            Request::Install { names, user, reply } => {
                let added = self.install(names, *user)?;
                self.answer_text(reply, serde_json::to_string(&added)?);
            }
            Request::Cancel { id, reply } => {
                if let Owner::Crawl(crawl) = id
                    && self.cancel_piece(*crawl, CANCELLED, Event::Request(request.clone()))?
                {
                    return Ok(());
                }
                self.cancel(*id)?;
                self.answer(reply);
            }
            Request::Abort { id, reply } => {
                if self.cancel_piece(*id, ABORTED, Event::Request(request.clone()))? {
                    return Ok(());
                }
                self.proceed(*id, false)?;
                self.abort(*id, ABORTED)?;
                self.answer(reply);
            }
            Request::Pause { id, reply } => {
                self.pause(*id)?;
                self.answer(reply);
            }
            Request::Resume { id, reply } => {
                self.resume(*id)?;
                self.answer(reply);
            }
            Request::Amend {
                id,
                config,
                user,
                reply,
            } => {
                self.amend(*id, config, *user)?;
                self.answer(reply);
            }
            Request::Retry {
                id,
                hook,
                so_far,
                reply,
            } => {
                let (hook, reply) = (hook.clone(), reply.clone());
                let next = match self.retry_some(*id, hook.as_deref(), so_far.as_deref())? {
                    Retried::All(count) => Action::Answer(Answer::Number(reply, Ok(count))),
                    Retried::Some(so_far) => Action::Again(Event::Request(Request::Retry {
                        id: *id,
                        hook,
                        so_far: Some(so_far),
                        reply,
                    })),
                };
                self.actions.push(next);
            }
            Request::Status { reply } => {
                let status = self.status()?;
                self.answer_text(reply, serde_json::to_string(&status)?);
            }
            Request::List {
                what,
                filter,
                reply,
            } => {
                if what == "binaries" && self.looks_first(request)? {
                    return Ok(());
                }
                let text = self.list(what, filter)?;
                self.answer_text(reply, text);
            }
            Request::Show { id, reply } => {
                let details = self.details(*id)?;
                self.answer_text(reply, serde_json::to_string(&details)?);
            }
            Request::Why { id, reply } => {
                let why = self.why(*id)?;
                self.answer_text(reply, serde_json::to_string(&why)?);
            }
            Request::Plugins { reply } => {
                let plugins = self.plugins()?;
                self.answer_text(reply, serde_json::to_string(&plugins)?);
            }
            Request::Watch {
                crawl,
                claim,
                reply,
            } => self.watch(*crawl, claim, reply)?,
            Request::Hold {
                crawl,
                cancel,
                claim,
                reply,
            } => self.hold(*crawl, *cancel, claim, reply)?,
            Request::Interrupt { id, reply } => {
                let interrupted = self.interrupt(*id)?;
                self.answer_text(reply, serde_json::to_string(&interrupted)?);
            }
            Request::Proceed {
                crawl,
                again,
                reply,
            } => {
                let count = self.proceed(*crawl, *again)?;
                self.actions
                    .push(Action::Answer(Answer::Number(reply.clone(), Ok(count))));
            }
            Request::Draft {
                options,
                user,
                reply,
            } => {
                let users = BTreeSet::from([*user]);
                self.check_options(options, &users)?;
                let draft = self.draft(options, &users)?;
                self.answer_text(reply, serde_json::to_string(&draft)?);
            }
            Request::Watches { call, reply } => self.actions.push(Action::ReadWatches {
                call: call.clone(),
                reply: reply.clone(),
            }),
            Request::Reload { reply } => self.answer(reply),
        }
        Ok(())
    }

    /// Refuses settings that nothing would read, and plugins that there are not, before anything
    /// is queued.
    pub(crate) fn check_options(&self, options: &AddOptions, users: &Users) -> TurnResult<()> {
        let longest = options.tags.iter().map(String::len).max();
        if options.tags.len() > TAGS_MAX || longest > Some(TAG_MAX) {
            let why = format!("a crawl has at most {TAGS_MAX} tags of {TAG_MAX} bytes");
            return Err(invalid(why));
        }
        if options.depth > DEPTH_MAX {
            return Err(invalid(format!(
                "depth {} is not in 0..={DEPTH_MAX}",
                options.depth
            )));
        }
        self.check_settings(&options.plugins, &options.config, users)
    }

    pub(crate) fn check_settings(
        &self,
        plugins: &[String],
        config: &BTreeMap<String, String>,
        users: &Users,
    ) -> TurnResult<()> {
        let size: usize = config
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        if size > SETTINGS_MAX || plugins.len() > PLUGINS_MAX {
            return Err(invalid(format!(
                "settings of {size} bytes and {} plugins: a crawl has at most {SETTINGS_MAX} bytes and {PLUGINS_MAX} plugins",
                plugins.len()
            )));
        }
        let known = self.engine.catalogue.known_keys();
        if let Some(key) = config.keys().find(|key| !known.contains(*key)) {
            return Err(invalid(format!(
                "no plugin has a setting '{key}'; see: archivist plugins"
            )));
        }
        let persona = self.engine.persona(config, users).map_err(invalid)?;
        self.engine
            .select(plugins, config, persona.is_some())
            .map_err(invalid)?;
        self.engine.url_filter(config).map_err(invalid)?;
        self.engine.crawl_limits(config).map_err(invalid)?;
        self.engine.check_network().map_err(failed)
    }

    fn cancel(&mut self, id: Owner) -> TurnResult<()> {
        let reason = CANCELLED;
        if self.is_already(id, "cancel", |status| status == Lifecycle::Cancelled)? {
            return Ok(());
        }
        match id {
            Owner::Crawl(id) => {
                self.proceed(id, false)?;
                self.cancel_crawl(id, reason)
            }
            Owner::Snapshot(id) => {
                let snapshot = self.snapshot_of(id)?;
                self.cancel_snapshot(snapshot.crawl, id, reason)?;
                self.tidy_crawl(snapshot.crawl)
            }
        }
    }

    fn status(&self) -> TurnResult<report::Status> {
        let open = Filter {
            status: Some("open".into()),
            ..Filter::default()
        };
        let running: Vec<report::Run> = documents(self.tx.list_runs(&open)?);
        let (crawls, snapshots) = (
            self.tx.counts("crawl", None)?,
            self.tx.counts("snapshot", None)?,
        );
        let view = self.view(&self.engine.limits())?;
        Ok(report::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            systemd: self.engine.systemd.clone(),
            data: self.engine.scope.data_dir().to_string_lossy().into_owned(),
            line: crate::main_loop::notify::line(
                &crawls,
                &snapshots,
                &crate::main_loop::notify::units(&running),
                self.tx.check_counts()?,
            ),
            crawls,
            snapshots,
            running,
            next: view.next_due,
            runners: self.runners()?,
            blocked: crate::work::pressure::blocked(&view).map(str::to_owned),
            network: self.engine.network_line(),
            address_filter: self.engine.filter_holds,
        })
    }

    fn runners(&self) -> TurnResult<Vec<report::Runner>> {
        let Some(me) = &self.engine.me else {
            return Ok(Vec::new());
        };
        let runners = self.tx.runners()?;
        Ok(gate::reported(&runners, me.seat, &me.place, &me.seats))
    }

    fn list(&self, what: &str, filter: &Filter) -> TurnResult<String> {
        let known: Vec<&str> = match what {
            "crawls" | "snapshots" => Lifecycle::ALL.iter().map(|state| state.as_str()).collect(),
            "results" => ResultState::ALL
                .iter()
                .map(|state| state.as_str())
                .collect(),
            "runs" => vec!["starting", "running", "ended", "open"],
            "binaries" | "timeline" => Vec::new(),
            _ => {
                return Err(invalid(format!(
                    "'{what}' is none of crawls, snapshots, results, runs, timeline, binaries"
                )));
            }
        };
        if let Some(status) = &filter.status
            && !known.contains(&status.as_str())
        {
            let known = known.join(", ");
            return Err(invalid(format!(
                "'{status}' is no status of {what}: {known}"
            )));
        }
        let filter = filter.piece();
        Ok(match what {
            "crawls" => serde_json::to_string::<Vec<report::Crawl>>(&documents(
                self.tx.list_crawls(&filter)?,
            ))?,
            "snapshots" => serde_json::to_string(&self.snapshots(&filter)?)?,
            "binaries" => serde_json::to_string(&self.binaries()?)?,
            "results" => serde_json::to_string::<Vec<report::HookResult>>(&documents(
                self.tx.list_results(&filter)?,
            ))?,
            "timeline" => serde_json::to_string::<Vec<report::Span>>(&documents(
                self.tx.list_spans(&filter)?,
            ))?,
            _ => {
                serde_json::to_string::<Vec<report::Run>>(&documents(self.tx.list_runs(&filter)?))?
            }
        })
    }

    /// Programs are looked at before they are listed; the request comes again after that.
    fn looks_first(&mut self, request: &Request) -> TurnResult<bool> {
        let none = Values::new();
        let layers = self.engine.layers(&none, &none);
        let plugins = self.engine.catalogue.plugins.iter();
        let programs = self.engine.programs(plugins, &layers);
        self.inspect(&programs, Some(request.clone()))
    }

    fn details(&self, id: Owner) -> TurnResult<Details> {
        self.tx.status_of(id)?;
        let filter = Filter {
            owner: Some(id),
            limit: ROWS_MAX,
            ..Filter::default()
        };
        let none = || TurnError::Refused(Refusal::NoSuch(format!("there is no {id}")));
        let mut snapshots = self.snapshots(&filter)?;
        let mut results = documents(self.tx.list_results(&filter)?);
        let mut runs = documents(self.tx.list_runs(&filter)?);
        // One id is read like a story, from its beginning.
        snapshots.reverse();
        results.reverse();
        runs.reverse();
        Ok(match id {
            Owner::Crawl(_) => {
                let crawl = self
                    .tx
                    .list_crawls(&filter)?
                    .into_iter()
                    .next()
                    .ok_or_else(none)?;
                Details::Crawl {
                    crawl: crawl.into(),
                    snapshots,
                    results,
                    runs,
                }
            }
            Owner::Snapshot(_) => {
                let snapshot = snapshots.pop().ok_or_else(none)?;
                Details::Snapshot {
                    snapshot,
                    results,
                    runs,
                }
            }
        })
    }

    fn plugins(&self) -> TurnResult<report::Plugins> {
        let selected = self
            .engine
            .select(&[], &Default::default(), false)
            .map_err(invalid)?;
        let uses = self.tx.uses()?;
        let skip = |name: &str| {
            let mut pairs = selected.skipped.iter();
            let (_, skip) = pairs.find(|(plugin, _)| plugin.name == name)?;
            Some(skip)
        };
        let plugin = |plugin: &archivist_plugin::Plugin| report::Plugin {
            name: plugin.name.clone(),
            directory: plugin.dir.to_string_lossy().into_owned(),
            description: plugin.schema.description.clone(),
            hooks: plugin.hooks.iter().map(|hook| hook.id.clone()).collect(),
            skipped: skip(&plugin.name).map(ToString::to_string),
            by_choice: skip(&plugin.name).is_some_and(Skip::is_by_choice),
            fix: skip(&plugin.name).and_then(|skip| skip.fix().map(str::to_owned)),
            uses: uses.get(&plugin.name).copied().unwrap_or_default(),
        };
        let problem = |problem: &archivist_plugin::PathProblem| report::Problem {
            path: problem.path.to_string_lossy().into_owned(),
            what: problem.what.clone(),
        };
        let catalogue = &self.engine.catalogue;
        Ok(report::Plugins {
            plugins: catalogue.plugins.iter().map(plugin).collect(),
            problems: catalogue.problems.iter().map(problem).collect(),
        })
    }

    fn watch(&mut self, crawl: CrawlId, claim: &Claim, reply: &Reply<OwnedFd>) -> TurnResult<()> {
        self.crawl_of(crawl)?;
        let first = self.present_state(crawl)?;
        self.actions.push(Action::Follow {
            crawl,
            first,
            claim: claim.clone(),
            reply: reply.clone(),
        });
        Ok(())
    }
}
