//! `Quota=`: if the archive, a tag or a user has more bytes, pages are deleted, or new ones refused. Pages that
//! were not saved go first, then the oldest, and the newest saved version of a page last. Triggers keep the
//! sums of bytes in the table `stored`, which also has the round, and the page up to which none can be deleted.

pub(crate) mod rows;

use crate::deletion;
use crate::deletion::{DELETED_PER_TURN, log_deleted};
use crate::main_loop::action::LoopAction;
use crate::main_loop::saved;
use crate::main_loop::turn::{Turn, TurnError, TurnResult, invalid};
use crate::quota::rows::{QuotaPlace, Stored};
use archivist_core::model::{Owner, SnapshotId};
use archivist_core::plan::{Quota, QuotaOf, QuotaRound};
use archivist_core::text::human_size;
use archivist_shared::bus::documents::report::Reason;

/// Ids of pages that one turn looks through.
const IDS_PER_TURN: i64 = 5_000;

/// The quotas that are in effect: none on a node of a fleet, where no page can be deleted.
fn quotas<'a>(turn: &Turn<'a>) -> &'a [Quota] {
    let settings = &turn.engine.settings;
    if settings.is_in_fleet() { &[] } else { &settings.quotas }
}

fn exceeded(turn: &Turn<'_>, quota: &Quota) -> TurnResult<Vec<Stored>> {
    let of = match &quota.of {
        QuotaOf::All => Stored::All,
        QuotaOf::Tag(name) => Stored::Tag(name.clone()),
        QuotaOf::User { uid: Some(uid), .. } => Stored::User(*uid),
        QuotaOf::User { uid: None, .. } => return Ok(Vec::new()),
        QuotaOf::EachUser => {
            let users = turn.tx.users_with_more_than(quota.bytes)?.into_iter();
            let users = users.filter(|user| !has_own(quotas(turn), *user));
            return Ok(users.map(Stored::User).collect());
        }
    };
    let is_over = turn.tx.stored(&of)? > quota.bytes;
    Ok(is_over.then_some(of).into_iter().collect())
}

fn has_own(quotas: &[Quota], user: u32) -> bool {
    let is_own = |of: &QuotaOf| matches!(of, QuotaOf::User { uid, .. } if *uid == Some(user));
    quotas.iter().any(|quota| is_own(&quota.of))
}

/// A quota that deletes pages now, whose pages, and where it looks for them.
type Excess<'a> = (&'a Quota, Stored, QuotaPlace);

fn excess<'a>(turn: &Turn<'a>) -> TurnResult<Option<Excess<'a>>> {
    for quota in quotas(turn).iter().filter(|quota| quota.deletes) {
        for of in exceeded(turn, quota)? {
            if let Some(place) = turn.tx.quota_place(&of)? {
                return Ok(Some((quota, of, place)));
            }
        }
    }
    Ok(None)
}

/// Has the loop wake up at once if pages must be deleted.
pub(crate) fn schedule(turn: &mut Turn<'_>) -> TurnResult<()> {
    if excess(turn)?.is_some() {
        turn.act(LoopAction::WakeAt(turn.now));
    }
    Ok(())
}

/// Deletes pages that are over a quota, in the order of [`QuotaRound`]: as many as a short transaction can.
pub(crate) fn delete_some(turn: &mut Turn<'_>) -> TurnResult<()> {
    let Some((quota, of, place)) = excess(turn)? else {
        return Ok(());
    };
    let to = place.after.saturating_add(IDS_PER_TURN);
    let is_last = to >= turn.tx.snapshot_range(None)?.1;
    let mut next = match place.round.next() {
        Some(round) if is_last => Some(QuotaPlace { round, after: 0 }),
        None if is_last => None,
        _ => Some(QuotaPlace { after: to, ..place }),
    };
    let mut deleted = Vec::new();
    for page in turn.tx.quota_pages(place, to, turn.now)? {
        if deleted.len() >= DELETED_PER_TURN || turn.tx.stored(&of)? <= quota.bytes {
            next = Some(QuotaPlace { after: page.0 - 1, ..place });
            break;
        }
        if place.round == QuotaRound::Replaced && !is_replaced(turn, page)? {
            // The version that counted as newer was not saved: it goes first.
            next = Some(QuotaPlace { round: QuotaRound::Unsaved, after: 0 });
            break;
        }
        if delete(turn, page, &of)? {
            deleted.push(page);
        }
    }
    turn.tx.set_quota_place(&of, next)?;
    if !deleted.is_empty() {
        log_deleted(turn, format!("Quota={}", quota.text), deleted);
    }
    Ok(())
}

/// Whether the files of the newest version that was saved are there.
fn is_replaced(turn: &mut Turn<'_>, id: SnapshotId) -> TurnResult<bool> {
    let Some(page) = turn.tx.ended_page(id, turn.now)? else {
        return Ok(true);
    };
    match turn.tx.newer_versions(&page, None, 1)?.first() {
        Some(newer) => saved::is_still_saved(turn, *newer),
        None => Ok(false),
    }
}

/// Deletes a page if it counts and nothing keeps it. Returns whether it did.
fn delete(turn: &mut Turn<'_>, id: SnapshotId, of: &Stored) -> TurnResult<bool> {
    let Some(page) = turn.tx.ended_page(id, turn.now)? else {
        return Ok(false);
    };
    if !page.may_be_deleted() || !turn.tx.is_stored_in(id, of)? {
        return Ok(false);
    }
    match deletion::delete_one(turn, Owner::Snapshot(id), false) {
        Ok(_) => Ok(true),
        // A unit of its crawl has not ended yet.
        Err(TurnError::Refused(_)) => Ok(false),
        Err(other) => Err(other),
    }
}

fn described(turn: &Turn<'_>, quota: &Quota, of: &Stored) -> TurnResult<String> {
    let what = match (of, &quota.of) {
        (Stored::All, _) => "the archive has".to_owned(),
        (Stored::Tag(name), _) => format!("pages with the tag '{name}' have"),
        (Stored::User(_), QuotaOf::User { name, .. }) => format!("pages of user {name} have"),
        (Stored::User(user), _) => format!("pages of user {user} have"),
    };
    let bytes = human_size(turn.tx.stored(of)?);
    Ok(format!("{what} {bytes} of files, more than Quota={}", quota.text))
}

/// Refuses new pages of a user with these tags that are over a quota.
pub(crate) fn admit(turn: &Turn<'_>, tags: &[String], user: u32) -> TurnResult<()> {
    for quota in quotas(turn).iter().filter(|quota| !quota.deletes) {
        for of in exceeded(turn, quota)? {
            let concerns = match &of {
                Stored::All => true,
                Stored::Tag(name) => tags.contains(name),
                Stored::User(over) => *over == user,
            };
            if concerns {
                let what = described(turn, quota, &of)?;
                return Err(invalid(format!(
                    "no page is added: {what}; to make space: archivist delete"
                )));
            }
        }
    }
    Ok(())
}

/// Adds the quotas that delete a page, or would if it were not pinned.
pub(crate) fn why(turn: &Turn<'_>, id: SnapshotId, to: &mut Vec<Reason>) -> TurnResult<()> {
    let Some(page) = turn.tx.ended_page(id, turn.now)? else {
        return Ok(());
    };
    for quota in quotas(turn).iter().filter(|quota| quota.deletes) {
        for of in exceeded(turn, quota)? {
            if page.pinned || !turn.tx.is_stored_in(id, &of)? {
                continue;
            }
            let what = described(turn, quota, &of)?;
            to.push(Reason {
                code: "quota".to_owned(),
                text: format!(
                    "{what}: pages that were not saved are deleted, then the oldest of the others, and this page may be among them"
                ),
                until: None,
            });
        }
    }
    Ok(())
}
