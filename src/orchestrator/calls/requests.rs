//! Calls of users.

use crate::calls::access;
use crate::calls::add;
use crate::calls::add::Progress;
use crate::calls::foreground;
use crate::calls::pin;
use crate::calls::retry;
use crate::calls::retry::Retried;
use crate::deletion;
use crate::engine::commands::RegisteredCommand;
use crate::expiry;
use crate::fleet;
use crate::indexing;
use crate::main_loop;
use crate::main_loop::action::{CallerAction, CallerAnswer, FileAction, LoopAction, ReplyAction};
use crate::main_loop::event::Event;
use crate::main_loop::turn::{Turn, TurnResult, invalid};
use crate::notices;
use crate::programs;
use crate::query;
use crate::search;
use crate::store::Users;
use crate::transfer;
use crate::watch::files;
use crate::work;
use crate::work::bounds::check_depth_and_tags;
use crate::work::ends::ABORTED;
use archivist_core::fleet::CommandVerb;
use archivist_core::model::{Act, AnyId, Owner};
use archivist_core::plan::cancel;
use archivist_shared::bus::call::Request;
use archivist_shared::bus::documents::report::AddOptions;
use std::collections::BTreeSet;

/// Reason for cancelling by a user.
const CANCELLED: &str = "cancelled by request";

pub(crate) fn request(turn: &mut Turn<'_>, request: &Request) -> TurnResult<()> {
    access::check(turn, request)?;
    match request {
        Request::Add { lines, options, user, joins, so_far, reply } => {
            match add::add_some(turn, lines, options, *user, *joins, so_far.as_deref())? {
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
            }
        }
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
        Request::Delete { ids, dry_run, user, reply } => {
            let may = |turn: &Turn<'_>, id| access::check_one(turn, Act::Delete, id, *user);
            let deleted = deletion::delete(turn, ids, *dry_run, may)?;
            turn.answer_text(reply, serde_json::to_string(&deleted)?);
        }
        Request::Expired { rules, after, reply } => {
            let expired = expiry::expired(turn, rules, *after)?;
            turn.answer_text(reply, serde_json::to_string(&expired)?);
        }
        Request::Pin { id, pinned, dry_run, user, reply } => {
            let pinned_by = pinned.then_some(*user);
            let is_change = pin::pin(turn, *id, pinned_by, *dry_run)?;
            turn.act(ReplyAction::Answer(CallerAnswer::Number(
                reply.clone(),
                Ok(is_change.into()),
            )));
        }
        Request::Search { question, reply } => search::ask(turn, question, reply)?,
        Request::RebuildSearch { reply, .. } => {
            indexing::rebuild(turn)?;
            turn.answer(reply);
        }
        Request::ConfirmRetention { reply, .. } => {
            expiry::confirm(turn)?;
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
                work::pause_owner(turn, *id)?;
            }
            turn.answer(reply);
        }
        Request::Resume { id, reply } => {
            if fleet::send_command(turn, CommandVerb::Resume, *id)? {
                work::resume_owner(turn, *id)?;
            }
            turn.answer(reply);
        }
        Request::Amend { id, config, user, reply } => {
            work::amend(turn, *id, config, *user)?;
            turn.answer(reply);
        }
        Request::Retry { id, which, user, so_far, reply } => {
            let (which, reply) = (which.clone(), reply.clone());
            if so_far.is_none()
                && let Some(count) = fleet::retry_in_fleet(turn, *id, &which)?
            {
                let answer = CallerAnswer::Number(reply, Ok(count));
                turn.act(ReplyAction::Answer(answer));
                return Ok(());
            }
            let next = match retry::retry_some(turn, *id, &which, so_far.as_deref())? {
                Retried::All(count) => {
                    ReplyAction::Answer(CallerAnswer::Number(reply, Ok(count))).into()
                }
                Retried::Some(so_far) => LoopAction::Again(Event::Request(Request::Retry {
                    id: *id,
                    which,
                    user: *user,
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
        Request::Metrics { reply } => {
            let metrics = query::metrics(turn)?;
            turn.answer_text(reply, serde_json::to_string(&metrics)?);
        }
        Request::List { what, filter, reply } => {
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
        Request::TestStore { reply, .. } => transfer::test_store(turn, reply)?,
        Request::Plugins { reply } => {
            let plugins = query::plugins(turn)?;
            turn.answer_text(reply, serde_json::to_string(&plugins)?);
        }
        Request::Watch { crawl, claim, reply } => notices::follow(turn, *crawl, claim, reply)?,
        Request::WatchStatus { claim, reply } => {
            turn.act(CallerAction::FollowStatus { claim: claim.clone(), reply: reply.clone() })
        }
        Request::Hold { crawl, cancel, claim, reply } => {
            foreground::hold(turn, *crawl, *cancel, claim, reply)?
        }
        Request::Register { command, pid, user, claim, reply } => {
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
        Request::Proceed { crawl, again, reply } => {
            let count = foreground::proceed(turn, *crawl, *again)?;
            turn.act(ReplyAction::Answer(CallerAnswer::Number(reply.clone(), Ok(count))));
        }
        Request::Draft { options, user, reply } => {
            let users = BTreeSet::from([*user]);
            check_options(turn, options, &users)?;
            let draft = query::draft(turn, options, &users)?;
            turn.answer_text(reply, serde_json::to_string(&draft)?);
        }
        Request::Watches { call, reply } => {
            let job = files::with_watches(call.clone(), reply.clone());
            turn.act(FileAction::Run(job));
        }
        Request::Reload { reply, .. } => {
            turn.act(LoopAction::Again(Event::FillStore(0)));
            turn.answer(reply);
        }
    }
    Ok(())
}

/// Refuses unknown settings and plugins before anything is queued.
pub(crate) fn check_options(
    turn: &Turn<'_>,
    options: &AddOptions,
    users: &Users,
) -> TurnResult<()> {
    check_depth_and_tags(options.depth, &options.tags).map_err(invalid)?;
    work::check_settings(turn, &options.plugins, &options.config, users)
}

fn cancel_owner(turn: &mut Turn<'_>, id: Owner) -> TurnResult<()> {
    if !work::is_wanted(turn, id, "cancel", cancel)? {
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
