//! Calls of users.

use crate::crawl::add;
use crate::crawl::add::Progress;
use crate::crawl::follow;
use crate::crawl::foreground;
use crate::crawl::limits;
use crate::crawl::pause;
use crate::crawl::retry;
use crate::crawl::retry::Retried;
use crate::fleet;
use crate::main_loop;
use crate::main_loop::action::{Answer, CallerAction, FileAction, LoopAction, ReplyAction};
use crate::main_loop::commands::RegisteredCommand;
use crate::main_loop::event::Event;
use crate::main_loop::turn::{Turn, TurnResult, failed, invalid};
use crate::programs;
use crate::query;
use crate::store::Users;
use crate::transfer;
use crate::watch::files;
use crate::work;
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

pub(crate) fn request(turn: &mut Turn<'_>, request: &Request) -> TurnResult<()> {
    match request {
        Request::Add {
            lines,
            options,
            user,
            joins,
            so_far,
            reply,
        } => match add::add_some(turn, lines, options, *user, *joins, so_far.as_deref())? {
            Progress::Done(added) => turn.answer_text(reply, serde_json::to_string(&added)?),
            Progress::More(adding) => {
                let (lines, options) = (lines.clone(), options.clone());
                turn.act(LoopAction::Again(Event::Request(Request::Add {
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
            let added = programs::install(turn, names, *user)?;
            turn.answer_text(reply, serde_json::to_string(&added)?);
        }
        Request::Cancel { id, reply } => {
            if fleet::send_command(turn, CommandVerb::Cancel, *id)? {
                cancel_owner(turn, *id)?;
            }
            turn.answer(reply);
        }
        Request::UnknownSettings { names, reply } => {
            let known = turn.engine.catalogue.known_keys();
            let is_unknown = |name: &&String| !known.contains(*name);
            let unknown: Vec<&String> = names.iter().filter(is_unknown).collect();
            turn.answer_text(reply, serde_json::to_string(&unknown)?);
        }
        Request::AwaitUnits { id, reply } => work::await_units(turn, *id, reply)?,
        Request::CancelRun { id, reply } => {
            foreground::cancel_run(turn, *id)?;
            turn.answer(reply);
        }
        Request::Abort { id, reply } => {
            foreground::proceed(turn, *id, false)?;
            work::abort_crawl(turn, *id, ABORTED)?;
            turn.answer(reply);
        }
        Request::Pause { id, reply } => {
            if fleet::send_command(turn, CommandVerb::Pause, *id)? {
                pause::pause_owner(turn, *id)?;
            }
            turn.answer(reply);
        }
        Request::Resume { id, reply } => {
            if fleet::send_command(turn, CommandVerb::Resume, *id)? {
                pause::resume_owner(turn, *id)?;
            }
            turn.answer(reply);
        }
        Request::Amend {
            id,
            config,
            user,
            reply,
        } => {
            limits::amend(turn, *id, config, *user)?;
            turn.answer(reply);
        }
        Request::Retry {
            id,
            which,
            so_far,
            reply,
        } => {
            let (which, reply) = (which.clone(), reply.clone());
            if so_far.is_none()
                && let Some(count) = fleet::retry_in_fleet(turn, *id, &which)?
            {
                let answer = Answer::Number(reply, Ok(count));
                turn.act(ReplyAction::Answer(answer));
                return Ok(());
            }
            let next = match retry::retry_some(turn, *id, &which, so_far.as_deref())? {
                Retried::All(count) => ReplyAction::Answer(Answer::Number(reply, Ok(count))).into(),
                Retried::Some(so_far) => LoopAction::Again(Event::Request(Request::Retry {
                    id: *id,
                    which,
                    so_far: Some(so_far),
                    reply,
                }))
                .into(),
            };
            turn.actions.push(next);
        }
        Request::Status { reply } => {
            let status = query::status(turn)?;
            turn.answer_text(reply, serde_json::to_string(&status)?);
        }
        Request::List {
            what,
            filter,
            reply,
        } => {
            if what == "binaries" && query::inspect_first(turn, request)? {
                return Ok(());
            }
            let text = query::list(turn, what, filter)?;
            turn.answer_text(reply, text);
        }
        Request::Show { id, reply } => {
            let details = query::details(turn, *id)?;
            turn.answer_text(reply, serde_json::to_string(&details)?);
        }
        Request::ShowRun { id, reply } => {
            let details = query::details_of_run(turn, *id)?;
            turn.answer_text(reply, serde_json::to_string(&details)?);
        }
        Request::Why { id, reply } => {
            let why = match id {
                AnyId::Owner(id) => serde_json::to_string(&query::why(turn, *id)?)?,
                AnyId::Run(id) => serde_json::to_string(&query::why_run(turn, *id)?)?,
            };
            turn.answer_text(reply, why);
        }
        Request::Fetch { id, reply } => transfer::fetch(turn, *id, reply)?,
        Request::TestStore { reply } => transfer::test_store(turn, reply)?,
        Request::Plugins { reply } => {
            let plugins = query::plugins(turn)?;
            turn.answer_text(reply, serde_json::to_string(&plugins)?);
        }
        Request::Watch {
            crawl,
            claim,
            reply,
        } => follow::follow(turn, *crawl, claim, reply)?,
        Request::WatchStatus { claim, reply } => turn.act(CallerAction::FollowStatus {
            claim: claim.clone(),
            reply: reply.clone(),
        }),
        Request::Hold {
            crawl,
            cancel,
            claim,
            reply,
        } => foreground::hold(turn, *crawl, *cancel, claim, reply)?,
        Request::Register {
            command,
            pid,
            user,
            claim,
            reply,
        } => {
            turn.act(CallerAction::Register {
                command: RegisteredCommand {
                    since: command.since.unwrap_or(turn.now).min(turn.now),
                    registration: command.clone(),
                    pid: *pid,
                    user: *user,
                },
                claim: claim.clone(),
                reply: reply.clone(),
            });
            turn.act(CallerAction::StatusChanged);
        }
        Request::Interrupt { id, reply } => {
            let interrupted = foreground::interrupt(turn, *id)?;
            turn.answer_text(reply, serde_json::to_string(&interrupted)?);
        }
        Request::Proceed {
            crawl,
            again,
            reply,
        } => {
            let count = foreground::proceed(turn, *crawl, *again)?;
            turn.act(ReplyAction::Answer(Answer::Number(
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
            check_options(turn, options, &users)?;
            let draft = query::draft(turn, options, &users)?;
            turn.answer_text(reply, serde_json::to_string(&draft)?);
        }
        Request::Watches { call, reply } => {
            let job = files::with_watches(call.clone(), reply.clone());
            turn.act(FileAction::Run(job));
        }
        Request::Reload { reply } => {
            turn.act(LoopAction::Again(Event::FillStore(0)));
            turn.answer(reply);
        }
    }
    Ok(())
}

/// Refuses unknown settings and plugins before anything is queued.
pub(super) fn check_options(
    turn: &Turn<'_>,
    options: &AddOptions,
    users: &Users,
) -> TurnResult<()> {
    check_depth_and_tags(options.depth, &options.tags).map_err(invalid)?;
    check_settings(turn, &options.plugins, &options.config, users)
}

pub(super) fn check_settings(
    turn: &Turn<'_>,
    plugins: &[String],
    config: &BTreeMap<String, String>,
    users: &Users,
) -> TurnResult<()> {
    check_size(plugins, config).map_err(invalid)?;
    let engine = &turn.engine;
    if let Some(error) = check(&engine.catalogue, config).into_iter().next() {
        return Err(invalid(format!("{error}; see: archivist plugins")));
    }
    let chosen = engine.persona(config, users).map_err(invalid)?;
    let persona = chosen.as_deref();
    engine.select(plugins, config, persona).map_err(invalid)?;
    let own = engine.persona_settings(persona).map_err(invalid)?;
    turn.require_facts()?;
    engine.url_filter(config, &own).map_err(invalid)?;
    engine.crawl_limits(config, &own).map_err(invalid)?;
    engine.check_network().map_err(failed)
}

fn cancel_owner(turn: &mut Turn<'_>, id: Owner) -> TurnResult<()> {
    if !is_wanted(turn, id, "cancel", cancel)? {
        return Ok(());
    }
    match id {
        Owner::Crawl(id) => {
            foreground::proceed(turn, id, false)?;
            work::cancel_crawl(turn, id, CANCELLED)
        }
        Owner::Snapshot(id) => {
            let snapshot = main_loop::snapshot_of(turn, id)?;
            work::cancel_snapshot(turn, snapshot.crawl, id, CANCELLED)?;
            work::tidy_crawl(turn, snapshot.crawl)
        }
    }
}

/// Whether a request of a user has to be carried out.
///
/// # Errors
/// If its crawl or snapshot is final.
pub(super) fn is_wanted(
    turn: &Turn<'_>,
    id: Owner,
    verb: &str,
    decide: fn(Lifecycle) -> Wanted,
) -> TurnResult<bool> {
    let status = turn.tx.status_of(id)?;
    match decide(status) {
        Wanted::Go => Ok(true),
        Wanted::Already => Ok(false),
        Wanted::Final => Err(invalid(format!(
            "{id} is {status}, there is nothing to {verb}"
        ))),
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
