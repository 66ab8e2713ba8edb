//! Whether a user may make a request. It is decided in one place: each call of the interfaces for users
//! is a kind of act ([`Act`]), whose rule gets what the rows say about crawl and caller. The users of a
//! crawl are the one who added it, and root after a change of its settings. Commands of a fleet, and the
//! rules of root that delete, do not come from a user and are not asked.
//!
//! The policy of the bus decides who may call a method at all. It does not know whose page is meant.

use crate::bus::call::Refusal;
use crate::main_loop;
use crate::main_loop::order::UserCall;
use crate::main_loop::turn::{Turn, TurnError, TurnResult};
use archivist_core::model::{Act, FLEET, Owner, Standing};

/// Refuses a request that its caller may not make. A deletion is refused for each crawl and page by itself,
/// see [`check_one`].
///
/// # Errors
/// AccessDenied, with what the caller can do instead.
pub(crate) fn check(turn: &Turn<'_>, call: &UserCall<'_>) -> TurnResult<()> {
    let UserCall { name: call, user, about } = *call;
    let act = Act::of(call);
    if act.is_for_all() || act == Act::Delete {
        return Ok(());
    }
    let Some(user) = user else {
        return Err(denied(format!("{call} has no rule for its callers")));
    };
    if about.is_empty() {
        return check_machine(turn, act, call, user);
    }
    about.iter().try_for_each(|id| check_one(turn, act, *id, user))
}

/// Refuses an act on a crawl or page that the user of this id may not do.
///
/// # Errors
/// AccessDenied, with what the caller can do instead, or if there is no such crawl or page.
pub(crate) fn check_one(turn: &Turn<'_>, act: Act, id: Owner, user: u32) -> TurnResult<()> {
    if is_unrestricted(turn, user) {
        return Ok(());
    }
    let crawl = main_loop::crawl_of_owner(turn, id)?;
    let pinned_by = turn.tx.pinned_by(id)?;
    // Without a pin there is nothing to remove, and the call says so.
    let has_pinned = pinned_by.is_none_or(|pinned_by| pinned_by == user);
    let standing =
        Standing { is_own: crawl.users.contains(&user), has_pinned, ..of_settings(turn) };
    if act.admits(standing) {
        return Ok(());
    }
    let owners: Vec<String> = match (act, pinned_by) {
        (Act::Unpin, Some(pinned_by)) => vec![name(turn, pinned_by)],
        _ => crawl.users.iter().map(|user| name(turn, *user)).collect(),
    };
    let owners = owners.join(" and ");
    let whose = match act {
        Act::Unpin => format!("{id} was pinned by {owners}"),
        _ => format!("{id} was added by {owners}"),
    };
    let what = match act {
        Act::Delete => "delete it",
        Act::Pin => "pin it",
        Act::Unpin => "unpin it",
        _ => "change its settings or tags, or run all its hooks again",
    };
    let or = match act {
        Act::Delete | Act::Pin => ", or have root set MembersDelete=yes in archivist.conf(5)",
        Act::Change => "; what failed can be retried by all: archivist retry",
        _ => "",
    };
    Err(denied(format!("{whose}; to {what}, run this as that user or as root{or}")))
}

fn check_machine(turn: &Turn<'_>, act: Act, call: &str, user: u32) -> TurnResult<()> {
    if is_unrestricted(turn, user) || act.admits(of_settings(turn)) {
        return Ok(());
    }
    Err(denied(match act {
        Act::Install => {
            "only root installs programs here (MembersInstall=no in archivist.conf(5)); run this as root"
                .to_owned()
        }
        _ => format!("{call} is for root alone, because it is work for the whole machine; run this as root"),
    }))
}

/// Whether the caller is root, or the only user of an archive of its own.
fn is_unrestricted(turn: &Turn<'_>, user: u32) -> bool {
    user == 0 || turn.engine.scope.user
}

fn of_settings(turn: &Turn<'_>) -> Standing {
    let settings = &turn.engine.settings;
    Standing {
        members_install: settings.members_install,
        members_delete: settings.members_delete,
        ..Standing::default()
    }
}

fn name(turn: &Turn<'_>, user: u32) -> String {
    if user == FLEET {
        return "another node of the fleet".to_owned();
    }
    let name = turn.engine.facts.user(user).name;
    format!("user {name}")
}

fn denied(why: String) -> TurnError {
    TurnError::Refused(Refusal::Denied(why))
}
