//! Calls of users.

use crate::crawl::add::Progress;
use crate::crawl::retry::Retried;
use crate::main_loop::action::{Answer, CallerAction, FileAction, LoopAction, ReplyAction};
use crate::main_loop::commands::RegisteredCommand;
use crate::main_loop::event::Event;
use crate::main_loop::turn::{Turn, TurnResult, failed, invalid};
use crate::store::Users;
use crate::watch::files;
use crate::work::ends::ABORTED;
use archivist_core::fleet::CommandVerb;
use archivist_core::model::{AnyId, Lifecycle, Owner, TAG_MAX, TAGS_MAX};
use archivist_core::plan::{Wanted, cancel};
use archivist_plugin::settings::check::check;
use archivist_shared::bus::call::Request;
use archivist_shared::bus::documents::report::AddOptions;
use std::collections::{BTreeMap, BTreeSet};

/// Reason for cancelling by a user.
const CANCELLED: &str = "cancelled by request";
/// Highest depth of a crawl.
const DEPTH_MAX: u32 = 4;
/// Largest settings of a crawl, in bytes: they are read for each of its hooks.
const SETTINGS_MAX: usize = 256 << 10;
/// Most plugins that a crawl may name.
const PLUGINS_MAX: usize = 1000;

impl Turn<'_> {
    pub(crate) fn request(&mut self, request: &Request) -> TurnResult<()> {
        match request {
            Request::Add {
                lines,
                options,
                user,
                joins,
                so_far,
                reply,
            } => match self.add_some(lines, options, *user, *joins, so_far.as_deref())? {
                Progress::Done(added) => self.answer_text(reply, serde_json::to_string(&added)?),
                Progress::More(adding) => {
                    let (lines, options) = (lines.clone(), options.clone());
                    self.act(LoopAction::Again(Event::Request(Request::Add {
                        lines,
                        options,
                        user: *user,
                        joins: *joins,
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
                if self.send_command(CommandVerb::Cancel, *id)? {
                    self.cancel(*id)?;
                }
                self.answer(reply);
            }
            Request::UnknownSettings { names, reply } => {
                let known = self.engine.catalogue.known_keys();
                let is_unknown = |name: &&String| !known.contains(*name);
                let unknown: Vec<&String> = names.iter().filter(is_unknown).collect();
                self.answer_text(reply, serde_json::to_string(&unknown)?);
            }
            Request::AwaitUnits { id, reply } => self.await_units(*id, reply)?,
            Request::CancelRun { id, reply } => {
                self.cancel_run(*id)?;
                self.answer(reply);
            }
            Request::Abort { id, reply } => {
                self.proceed(*id, false)?;
                self.abort(*id, ABORTED)?;
                self.answer(reply);
            }
            Request::Pause { id, reply } => {
                if self.send_command(CommandVerb::Pause, *id)? {
                    self.pause(*id)?;
                }
                self.answer(reply);
            }
            Request::Resume { id, reply } => {
                if self.send_command(CommandVerb::Resume, *id)? {
                    self.resume(*id)?;
                }
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
                which,
                so_far,
                reply,
            } => {
                let (which, reply) = (which.clone(), reply.clone());
                if so_far.is_none()
                    && let Some(count) = self.retry_in_fleet(*id, &which)?
                {
                    let answer = Answer::Number(reply, Ok(count));
                    self.act(ReplyAction::Answer(answer));
                    return Ok(());
                }
                let next = match self.retry_some(*id, &which, so_far.as_deref())? {
                    Retried::All(count) => {
                        ReplyAction::Answer(Answer::Number(reply, Ok(count))).into()
                    }
                    Retried::Some(so_far) => LoopAction::Again(Event::Request(Request::Retry {
                        id: *id,
                        which,
                        so_far: Some(so_far),
                        reply,
                    }))
                    .into(),
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
                if what == "binaries" && self.inspect_first(request)? {
                    return Ok(());
                }
                let text = self.list(what, filter)?;
                self.answer_text(reply, text);
            }
            Request::Show { id, reply } => {
                let details = self.details(*id)?;
                self.answer_text(reply, serde_json::to_string(&details)?);
            }
            Request::ShowRun { id, reply } => {
                let details = self.details_of_run(*id)?;
                self.answer_text(reply, serde_json::to_string(&details)?);
            }
            Request::Why { id, reply } => {
                let why = match id {
                    AnyId::Owner(id) => serde_json::to_string(&self.why(*id)?)?,
                    AnyId::Run(id) => serde_json::to_string(&self.why_run(*id)?)?,
                };
                self.answer_text(reply, why);
            }
            Request::Fetch { id, reply } => self.fetch(*id, reply)?,
            Request::TestStore { reply } => self.test_store(reply)?,
            Request::Plugins { reply } => {
                let plugins = self.plugins()?;
                self.answer_text(reply, serde_json::to_string(&plugins)?);
            }
            Request::Watch {
                crawl,
                claim,
                reply,
            } => self.follow(*crawl, claim, reply)?,
            Request::WatchStatus { claim, reply } => self.act(CallerAction::FollowStatus {
                claim: claim.clone(),
                reply: reply.clone(),
            }),
            Request::Hold {
                crawl,
                cancel,
                claim,
                reply,
            } => self.hold(*crawl, *cancel, claim, reply)?,
            Request::Register {
                command,
                pid,
                user,
                claim,
                reply,
            } => {
                self.act(CallerAction::Register {
                    command: RegisteredCommand {
                        since: command.since.unwrap_or(self.now).min(self.now),
                        registration: command.clone(),
                        pid: *pid,
                        user: *user,
                    },
                    claim: claim.clone(),
                    reply: reply.clone(),
                });
                self.act(CallerAction::StatusChanged);
            }
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
                self.act(ReplyAction::Answer(Answer::Number(
                    reply.clone(),
                    Ok(count),
                )));
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
            Request::Watches { call, reply } => {
                let job = files::with_watches(call.clone(), reply.clone());
                self.act(FileAction::Run(job));
            }
            Request::Reload { reply } => {
                self.act(LoopAction::Again(Event::FillStore(0)));
                self.answer(reply);
            }
        }
        Ok(())
    }

    /// Refuses unknown settings and plugins before anything is queued.
    pub(crate) fn check_options(&self, options: &AddOptions, users: &Users) -> TurnResult<()> {
        check_depth_and_tags(options.depth, &options.tags).map_err(invalid)?;
        self.check_settings(&options.plugins, &options.config, users)
    }

    pub(crate) fn check_settings(
        &self,
        plugins: &[String],
        config: &BTreeMap<String, String>,
        users: &Users,
    ) -> TurnResult<()> {
        check_size(plugins, config).map_err(invalid)?;
        let engine = &self.engine;
        if let Some(error) = check(&engine.catalogue, config).into_iter().next() {
            return Err(invalid(format!("{error}; see: archivist plugins")));
        }
        let chosen = engine.persona(config, users).map_err(invalid)?;
        let persona = chosen.as_deref();
        engine.select(plugins, config, persona).map_err(invalid)?;
        let own = engine.persona_settings(persona).map_err(invalid)?;
        self.require_facts()?;
        engine.url_filter(config, &own).map_err(invalid)?;
        engine.crawl_limits(config, &own).map_err(invalid)?;
        engine.check_network().map_err(failed)
    }

    fn cancel(&mut self, id: Owner) -> TurnResult<()> {
        if !self.is_wanted(id, "cancel", cancel)? {
            return Ok(());
        }
        match id {
            Owner::Crawl(id) => {
                self.proceed(id, false)?;
                self.cancel_crawl(id, CANCELLED)
            }
            Owner::Snapshot(id) => {
                let snapshot = self.snapshot_of(id)?;
                self.cancel_snapshot(snapshot.crawl, id, CANCELLED)?;
                self.tidy_crawl(snapshot.crawl)
            }
        }
    }

    /// Whether a request of a user has to be carried out.
    ///
    /// # Errors
    /// If its crawl or snapshot is final.
    pub(crate) fn is_wanted(
        &self,
        id: Owner,
        verb: &str,
        decide: fn(Lifecycle) -> Wanted,
    ) -> TurnResult<bool> {
        let status = self.tx.status_of(id)?;
        match decide(status) {
            Wanted::Go => Ok(true),
            Wanted::Already => Ok(false),
            Wanted::Final => Err(invalid(format!(
                "{id} is {status}, there is nothing to {verb}"
            ))),
        }
    }
}

/// Returns why a crawl or page cannot have this depth and these tags, if so.
pub(crate) fn check_depth_and_tags(depth: u32, tags: &[String]) -> Result<(), String> {
    let longest = tags.iter().map(String::len).max();
    if tags.len() > TAGS_MAX || longest > Some(TAG_MAX) {
        return Err(format!(
            "a crawl has at most {TAGS_MAX} tags of {TAG_MAX} bytes"
        ));
    }
    if depth > DEPTH_MAX {
        return Err(format!("depth {depth} is not in 0..={DEPTH_MAX}"));
    }
    Ok(())
}

/// Returns why a crawl cannot have so many plugins or settings, if so.
pub(crate) fn check_size(
    plugins: &[String],
    config: &BTreeMap<String, String>,
) -> Result<(), String> {
    let sizes = config.iter().map(|(key, value)| key.len() + value.len());
    let size: usize = sizes.sum();
    if size > SETTINGS_MAX || plugins.len() > PLUGINS_MAX {
        return Err(format!(
            "settings of {size} bytes and {} plugins: a crawl has at most {SETTINGS_MAX} bytes and {PLUGINS_MAX} plugins",
            plugins.len()
        ));
    }
    Ok(())
}
