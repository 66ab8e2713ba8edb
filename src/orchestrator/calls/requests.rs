//! Calls of users.

use crate::bus::call::{Answer, Reply};
use crate::calls::add;
use crate::calls::add::{Adding, Progress};
use crate::calls::foreground;
use crate::calls::pin;
use crate::calls::retry;
use crate::calls::retry::{Retried, Retrying};
use crate::database::Users;
use crate::engine::commands::RegisteredCommand;
use crate::fleet;
use crate::main_loop;
use crate::main_loop::action::{CallerAction, LoopAction};
use crate::main_loop::order::{Call, Order, UserCall};
use crate::main_loop::rooms::Which;
use crate::main_loop::turn::{Turn, TurnResult, invalid};
use crate::programs;
use crate::query;
use crate::work;
use crate::work::bounds::{check_depth_and_tags, check_tag};
use crate::work::ends::ABORTED;
use archivist_core::fleet::CommandVerb;
use archivist_core::model::{AnyId, CrawlId, Owner, RETRY_HOOK, RunId};
use archivist_core::plan::cancel;
use archivist_plugin::{Catalogue, Selection, knows};
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::documents::report::{AddOptions, Registration};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CANCELLED: &str = "cancelled by request";

/// A call of a user about the queue.
pub(crate) enum Request {
    /// Queue a crawl, or the next part of a long list.
    /// Gets the JSON of [`Added`](archivist_shared::bus::documents::report::Added).
    Add {
        /// The list, one URL or JSON object per line.
        lines: Arc<Vec<u8>>,
        /// Depth, tags, plugins and settings of the crawl.
        options: AddOptions,
        user: u32,
        /// Whether the caller works in the foreground: it joins an open crawl of another such caller
        /// with the same list, options and user.
        joins: bool,
        /// Progress of a long list, which is processed in parts.
        so_far: Option<Box<Adding>>,
    },
    /// Cancel a crawl or snapshot, and stop its units.
    Cancel { id: Owner },
    /// Keep a crawl or snapshot from deletion, or no longer.
    /// Gets 1 if this is a change, otherwise 0.
    Pin {
        id: Owner,
        /// Whether it is kept from now on.
        pinned: bool,
        /// Whether nothing is changed, and the answer says what would be.
        dry_run: bool,
        user: u32,
    },
    /// Gets those of these settings that no plugin has, as a JSON list.
    UnknownSettings { names: Vec<String> },
    /// Answers when the crawl or snapshot is final and none of its units runs, or the run has ended.
    AwaitUnits { id: AnyId },
    /// End the hook of this run; its page continues.
    CancelRun { id: RunId },
    /// Cancel the open pages of a crawl, then run its last hooks.
    Abort { id: CrawlId },
    /// Pause a crawl or snapshot, and freeze its hooks.
    Pause { id: Owner },
    /// Resume a paused crawl or snapshot.
    Resume { id: Owner },
    /// Replace settings of a crawl, or of a page alone.
    Amend {
        id: Owner,
        /// New values; other settings stay.
        config: BTreeMap<String, String>,
        user: u32,
    },
    /// Without an id: the whole archive; of its failures, those of sealed pages.
    /// Gets the number of queued results.
    Retry {
        id: Option<Owner>,
        which: Which,
        user: u32,
        /// Progress of a retry of many pages, which is processed in parts.
        so_far: Option<Box<Retrying>>,
    },
    /// Keep a crawl for a command in the foreground.
    /// Gets a descriptor that closes when the crawl has ended and none of its units runs.
    Hold {
        crawl: CrawlId,
        /// Cancel the crawl when the caller disconnects.
        cancel: bool,
        /// Counts for the caller while the descriptor is open.
        claim: Claim,
    },
    /// Register a command in the foreground, for `Status`.
    /// Gets a descriptor that is open on both sides while the command is registered.
    Register {
        /// What the command says about itself.
        command: Registration,
        /// Its process, as the bus reports it.
        pid: Option<u32>,
        /// Its user, as the bus reports it.
        user: Option<u32>,
        /// Counts for the caller while the descriptor is open.
        claim: Claim,
    },
    /// Interrupt the hooks that a held crawl or its snapshot waits for.
    /// Gets the JSON of [`Interrupted`](archivist_shared::bus::documents::report::Interrupted).
    Interrupt { id: Owner },
    /// Continue after an interruption.
    /// Gets the number of interrupted hooks.
    Proceed {
        crawl: CrawlId,
        /// Whether the interrupted hooks run again instead of being skipped.
        again: bool,
    },
    /// Describe what `Add` with these options would do.
    /// Gets the JSON of [`Draft`](archivist_shared::bus::documents::report::Draft).
    Draft { options: AddOptions, user: u32 },
    /// Read configuration and plugins again.
    /// Answered in the turn that uses the files.
    Reload { user: u32 },
}

impl Order for Request {
    fn carry_out(&self, turn: &mut Turn<'_>, reply: &Reply) -> TurnResult<Option<Answer>> {
        request(turn, self, reply)
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        let name = match self {
            Request::Add { joins: false, .. } => "Add",
            Request::Add { joins: true, .. } => "Run",
            Request::Cancel { .. } | Request::CancelRun { .. } => "Cancel",
            Request::Pin { pinned: true, .. } => "Pin",
            Request::Pin { pinned: false, .. } => "Unpin",
            Request::UnknownSettings { .. } => "UnknownSettings",
            Request::AwaitUnits { .. } => "AwaitUnits",
            Request::Abort { .. } => "Abort",
            Request::Pause { .. } => "Pause",
            Request::Resume { .. } => "Resume",
            Request::Amend { .. } => "Amend",
            Request::Retry { id, which, .. } => match which {
                Which::Failed => "Retry",
                Which::Hook(_) if id.is_some() => RETRY_HOOK,
                Which::Hook(_) => "Retry",
                Which::All => "RetryAll",
                Which::Missing | Which::Waiting(_) => "Update",
            },
            Request::Hold { .. } => "Hold",
            Request::Register { .. } => "Register",
            Request::Interrupt { .. } => "Interrupt",
            Request::Proceed { .. } => "Proceed",
            Request::Draft { .. } => "Draft",
            Request::Reload { .. } => "Reload",
        };
        let (user, about): (_, &[Owner]) = match self {
            Request::Add { user, .. }
            | Request::Draft { user, .. }
            | Request::Reload { user, .. } => (Some(*user), &[]),
            Request::Pin { id, user, .. } | Request::Amend { id, user, .. } => {
                (Some(*user), std::slice::from_ref(id))
            }
            Request::Retry { id, user, .. } => (Some(*user), id.as_slice()),
            _ => (None, &[]),
        };
        Some(UserCall { name, user, about })
    }

    fn reloads(&self) -> bool {
        matches!(self, Request::Reload { .. })
    }

    fn names_unknown(&self, catalogue: &Catalogue) -> bool {
        match self {
            Request::Add { options, so_far: None, .. } | Request::Draft { options, .. } => {
                !knows_options(catalogue, options)
            }
            Request::Retry { which: Which::Hook(hook), so_far: None, .. } => {
                !knows_hook(catalogue, hook)
            }
            _ => false,
        }
    }
}

/// Whether `options` name only plugins and settings that `catalogue` has.
fn knows_options(catalogue: &Catalogue, options: &AddOptions) -> bool {
    let selection = Selection { plugins: options.plugins.clone(), companions: false };
    if !knows(catalogue, &selection) {
        return false;
    }
    let known = if options.config.is_empty() { BTreeSet::new() } else { catalogue.known_keys() };
    options.config.keys().all(|key| known.contains(key))
}

/// Whether `name` is a plugin or a hook.
fn knows_hook(catalogue: &Catalogue, name: &str) -> bool {
    catalogue.plugins.iter().any(|plugin| {
        let mut hooks = plugin.hooks.iter();
        plugin.name == name || hooks.any(|hook| hook.id == name)
    })
}

fn request(turn: &mut Turn<'_>, request: &Request, reply: &Reply) -> TurnResult<Option<Answer>> {
    Ok(Some(match request {
        Request::Add { lines, options, user, joins, so_far } => {
            match add::add_some(turn, lines, options, *user, *joins, so_far.as_deref())? {
                Progress::Done(added) => Answer::json(&added)?,
                Progress::More(adding) => {
                    let (lines, options) = (lines.clone(), options.clone());
                    let (user, joins, so_far) = (*user, *joins, Some(adding));
                    let rest = Request::Add { lines, options, user, joins, so_far };
                    turn.act(LoopAction::again(rest, reply));
                    return Ok(None);
                }
            }
        }
        Request::Cancel { id } => {
            if fleet::send_command(turn, CommandVerb::Cancel, *id)? {
                cancel_owner(turn, *id)?;
            }
            Answer::Done
        }
        Request::Pin { id, pinned, dry_run, user } => {
            let pinned_by = pinned.then_some(*user);
            Answer::Number(pin::pin(turn, *id, pinned_by, *dry_run)?.into())
        }
        Request::UnknownSettings { names } => {
            let known = turn.engine.catalogue.known_keys();
            let is_unknown = |name: &&String| !known.contains(*name);
            let unknown: Vec<&String> = names.iter().filter(is_unknown).collect();
            Answer::json(&unknown)?
        }
        Request::AwaitUnits { id } => return work::await_units(turn, *id, reply),
        Request::CancelRun { id } => {
            foreground::cancel_run(turn, *id)?;
            Answer::Done
        }
        Request::Abort { id } => {
            foreground::proceed(turn, *id, false)?;
            work::abort_crawl(turn, *id, ABORTED)?;
            Answer::Done
        }
        Request::Pause { id } => {
            if fleet::send_command(turn, CommandVerb::Pause, *id)? {
                work::pause_owner(turn, *id)?;
            }
            Answer::Done
        }
        Request::Resume { id } => {
            if fleet::send_command(turn, CommandVerb::Resume, *id)? {
                work::resume_owner(turn, *id)?;
            }
            Answer::Done
        }
        Request::Amend { id, config, user } => {
            work::amend(turn, *id, config, *user)?;
            Answer::Done
        }
        Request::Retry { id, which, user, so_far } => {
            if so_far.is_none()
                && let Some(count) = fleet::retry_in_fleet(turn, *id, which)?
            {
                return Ok(Some(Answer::Number(count)));
            }
            match retry::retry_some(turn, *id, which, so_far.as_deref())? {
                Retried::All(count) => Answer::Number(count),
                Retried::Some(so_far) => {
                    let (id, which, user) = (*id, which.clone(), *user);
                    let rest = Request::Retry { id, which, user, so_far: Some(so_far) };
                    turn.act(LoopAction::again(rest, reply));
                    return Ok(None);
                }
            }
        }
        Request::Hold { crawl, cancel, claim } => {
            foreground::hold(turn, *crawl, *cancel, claim, reply)?;
            return Ok(None);
        }
        Request::Register { command, pid, user, claim } => {
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
            return Ok(None);
        }
        Request::Interrupt { id } => Answer::json(&foreground::interrupt(turn, *id)?)?,
        Request::Proceed { crawl, again } => {
            Answer::Number(foreground::proceed(turn, *crawl, *again)?)
        }
        Request::Draft { options, user } => {
            let users = BTreeSet::from([*user]);
            check_options(turn, options, &users)?;
            Answer::json(&query::draft(turn, options, &users)?)?
        }
        Request::Reload { .. } => {
            reloaded(turn)?;
            Answer::Done
        }
    }))
}

/// A retry that the program requests itself.
pub(crate) fn retry_later(id: Option<Owner>, which: Which) -> Call {
    Call::own(Request::Retry { id, which, user: 0, so_far: None })
}

/// Settings, plugins and the table of runners were read again before the turn. The same for programs: hooks
/// may wait for one.
pub(crate) fn reloaded(turn: &mut Turn<'_>) -> TurnResult<()> {
    for event in turn.rooms.first() {
        turn.act(LoopAction::Again(event));
    }
    programs::inspect_all(turn, None)?;
    Ok(())
}

/// Refuses unknown settings and plugins before anything is queued.
pub(crate) fn check_options(
    turn: &Turn<'_>,
    options: &AddOptions,
    users: &Users,
) -> TurnResult<()> {
    check_depth_and_tags(options.depth, &options.tags).map_err(invalid)?;
    options.tags.iter().try_for_each(|name| check_tag(name)).map_err(invalid)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_plugin::sample;
    use serde_json::json;

    fn draft(plugins: &[&str], keys: &[&str]) -> Request {
        let setting = |key: &&str| ((*key).to_owned(), "1".to_owned());
        Request::Draft {
            options: AddOptions {
                plugins: plugins.iter().map(|name| (*name).to_owned()).collect(),
                config: keys.iter().map(setting).collect(),
                ..AddOptions::default()
            },
            user: 0,
        }
    }

    #[test]
    fn only_requests_with_unknown_names_read_the_plugins_again() {
        let catalogue = sample::catalogue([sample::plugin("wget", json!({}), &[])]);
        for (plugins, keys, unknown) in [
            (&[][..], &[][..], false),
            (&["wget"], &["WGET_ENABLED"], false),
            (&["wget", "newer"], &[], true),
            (&[], &["NEWER_ENABLED"], true),
        ] {
            let draft = draft(plugins, keys);
            assert_eq!(draft.names_unknown(&catalogue), unknown, "{plugins:?} {keys:?}");
        }
    }
}
