//! `Retention=` (`core/plan/expiry.rs`): pages that are due by a rule are deleted as by `archivist
//! delete`, some before the events of a turn. Nothing is read until the first page is due: the table
//! `retention_queue` has the time at which each page is, unless it is the newest version of its URL and
//! stays. Triggers add what must be looked at, because its crawl ended, or it was unpinned, tagged or
//! copied; at the end of a crawl, older versions of its pages are looked at, too. After a change of the
//! rules, all pages are looked at in pieces, twice: first to count what would go, because more than a
//! tenth waits for an administrator (`RetentionReview`). The clock is looked at in each turn
//! (`core/plan/clock.rs`): while it contradicts the last reading that was believed, nothing is deleted,
//! and what ends has no date.

pub mod bus;
mod rows;

use crate::alert::occasion;
use crate::bus::call::{Answer, Reply};
use crate::clock;
use crate::database::rows::ended::EndedPage;
use crate::deletion;
use crate::deletion::{DELETED_PER_TURN, log_deleted};
use crate::main_loop::action::{CallerAction, LoopAction, UnitAction};
use crate::main_loop::order::{Order, UserCall};
use crate::main_loop::saved;
use crate::main_loop::turn::{Turn, TurnError, TurnResult};
use archivist_core::model::{Owner, SnapshotId, Time};
use archivist_core::plan::{RetentionReview, RetentionRule, expiry, rules_for};
use archivist_shared::bus::documents::report::{Expired, Filter, Reason, Status};
use archivist_shared::journal::message;
use archivist_shared::systemd::Release;
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const PAGES_PER_TURN: u32 = 100;
/// Entries that one turn removes from the queue when there are no rules any more.
const CLEARED_PER_TURN: u32 = 1_000;
const PAGES_PER_CALL: u32 = 500;
/// Unit that fails when the rules wait for an administrator.
const HELD_UNIT: &str = "archivist-retention-held.service";
/// When a page is tried again that a unit still uses.
const RETRY: Duration = Duration::from_secs(300);

/// The rules that are in effect: none on a node of a fleet, where no page can be deleted.
fn rules<'a>(turn: &Turn<'a>) -> &'a [RetentionRule] {
    let settings = &turn.engine.settings;
    if settings.is_in_fleet() { &[] } else { &settings.retention }
}

/// The texts of the rules, to notice a change.
fn texts(rules: &[RetentionRule]) -> String {
    let texts: Vec<_> = rules.iter().map(|rule| rule.text.as_str()).collect();
    texts.join("\n")
}

/// Time until a clock that is not believed is read again.
const DOUBT_INTERVAL: Duration = Duration::from_secs(3600);
/// Time after which a turn takes place although nothing is due, so that the last reading of the clock is
/// less than a day old.
const IDLE_INTERVAL: Duration = Duration::from_secs(12 * 3600);

pub(crate) fn status(turn: &Turn<'_>, status: &mut Status) -> TurnResult<()> {
    status.retention_held = held(turn)?;
    Ok(())
}

/// Why the rules delete nothing although pages are due; `None` if they do.
fn held(turn: &Turn<'_>) -> TurnResult<Option<String>> {
    if rules(turn).is_empty() {
        return Ok(None);
    }
    let doubt = turn.tx.clock_state()?.doubt;
    let rule = turn.tx.retention_review()?.and_then(|review| review.held);
    Ok(doubt.map(|doubt| doubt.why).or(rule))
}

/// Returns when pages must be looked at next; `None` for not until something changes.
fn next(turn: &Turn<'_>) -> TurnResult<Option<Time>> {
    let rules = rules(turn);
    let state = turn.tx.retention_state()?;
    if !rules.is_empty() && state.rules == texts(rules) {
        let clock = turn.tx.clock_state()?;
        if clock.doubt.is_some() {
            return Ok(Some(turn.now.after(DOUBT_INTERVAL)));
        }
        if let Some(review) = turn.tx.retention_review()? {
            let idle = review.held.map(|_| IDLE_INTERVAL);
            return Ok(Some(turn.now.after(idle.unwrap_or_default())));
        }
    }
    if state.swept_to.is_some() || state.rules != texts(rules) {
        return Ok(Some(turn.now));
    }
    if rules.is_empty() {
        return Ok(None);
    }
    Ok(match turn.tx.aging_crawl()? {
        Some(_) => Some(turn.now),
        // A clock that nothing reads for a day is a gap, after which all that is due is counted.
        None => turn.tx.next_expiry()?.map(|due| due.min(turn.now.after(IDLE_INTERVAL))),
    })
}

/// Has the loop wake up when pages must be looked at.
pub(crate) fn schedule(turn: &mut Turn<'_>) -> TurnResult<()> {
    if let Some(due) = next(turn)? {
        turn.act(LoopAction::WakeAt(due));
    }
    Ok(())
}

/// Looks at the next pages, and deletes those that are due: as many as a short transaction can.
pub(crate) fn expire_some(turn: &mut Turn<'_>) -> TurnResult<()> {
    if next(turn)?.is_none_or(|due| due > turn.now) {
        return Ok(());
    }
    let rules = rules(turn);
    let texts = texts(rules);
    if turn.tx.retention_state()?.rules != texts {
        turn.tx.set_retention(&texts)?;
        turn.tx.set_retention_review(Some(&RetentionReview::default()))?;
    }
    if rules.is_empty() {
        turn.tx.set_retention_review(None)?;
        let cleared = turn.tx.clear_retention_queue(CLEARED_PER_TURN)?;
        if cleared < CLEARED_PER_TURN as usize {
            turn.tx.set_swept_to(None)?;
        }
        return Ok(());
    }
    if turn.tx.clock_state()?.doubt.is_some() {
        return Ok(());
    }
    if let Some(review) = turn.tx.retention_review()? {
        return count_some(turn, review, rules);
    }
    let mut piece = Piece::default();
    for page in turn.tx.due_expiries(turn.now, DELETED_PER_TURN as u32)? {
        piece.look_at(turn, page, rules)?;
    }
    if let Some((crawl, after)) = turn.tx.aging_crawl()? {
        let pages = turn.tx.pages_after(Some(crawl), after, PAGES_PER_TURN)?;
        let last = piece.sweep(turn, &pages, rules, true)?;
        turn.tx.set_crawl_swept_to(crawl, last)?;
    }
    if let Some(after) = turn.tx.retention_state()?.swept_to {
        let pages = turn.tx.pages_after(None, after, PAGES_PER_TURN)?;
        let last = piece.sweep(turn, &pages, rules, false)?;
        turn.tx.set_swept_to(last)?;
    }
    piece.log(turn);
    Ok(())
}

/// Counts the next pages, and what the rules delete of them. Once all are counted, the rules delete pages, or
/// wait for an administrator.
fn count_some(
    turn: &mut Turn<'_>,
    mut review: RetentionReview,
    rules: &[RetentionRule],
) -> TurnResult<()> {
    if review.held.is_some() {
        return Ok(());
    }
    let pages = turn.tx.pages_after(None, review.after, PAGES_PER_TURN)?;
    for id in &pages {
        review.after = id.0;
        let Some(page) = turn.tx.ended_page(*id, turn.now)? else {
            continue;
        };
        let aging = turn.tx.aging_page(&page)?;
        let due = due_by_rules(turn, &page, rules)?.filter(|(due, _)| *due <= turn.now);
        let deletes = due.filter(|_| page.may_be_deleted());
        let of_page = rules_for(rules, &aging.tags);
        review.count(&of_page, deletes.map(|(_, rule)| rule));
    }
    if pages.len() == PAGES_PER_TURN as usize {
        return Ok(turn.tx.set_retention_review(Some(&review))?);
    }
    review.held = review.excess();
    match &review.held {
        Some(what) => {
            let what = what.clone();
            turn.log(move || {
                tracing::warn!(
                    message_id = message::RETENTION_HELD,
                    "{what}: nothing is deleted until an administrator confirms it: archivist delete --by-retention"
                )
            });
            occasion::queue_unit(turn, HELD_UNIT)?;
            turn.act(CallerAction::StatusChanged);
            turn.tx.set_retention_review(Some(&review))?;
        }
        None => turn.tx.set_retention_review(None)?,
    }
    Ok(())
}

/// A call about the rules of `Retention=`.
pub(crate) enum RetentionCall {
    /// List pages that rules delete now.
    /// Gets the JSON of [`Expired`].
    Expired {
        /// The rules; empty means the configured ones.
        rules: Vec<RetentionRule>,
        /// Only pages with ids above this one.
        after: i64,
    },
    /// Let the rules delete what is due, and believe the clock.
    Confirm { user: u32 },
}

impl Order for RetentionCall {
    fn carry_out(&self, turn: &mut Turn<'_>, _reply: &Reply) -> TurnResult<Option<Answer>> {
        Ok(Some(match self {
            RetentionCall::Expired { rules, after } => {
                Answer::json(&expired(turn, rules, *after)?)?
            }
            RetentionCall::Confirm { .. } => {
                confirm(turn)?;
                Answer::Done
            }
        }))
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        match self {
            RetentionCall::Expired { .. } => UserCall::of_all("Retention.Expired"),
            RetentionCall::Confirm { user } => UserCall::of("Retention.Confirm", *user),
        }
    }
}

/// Has the rules count first what they delete, because much may have become due at once.
pub(crate) fn review(turn: &mut Turn<'_>) -> TurnResult<()> {
    if turn.tx.retention_review()?.is_none_or(|review| review.held.is_none()) {
        turn.tx.set_retention_review(Some(&RetentionReview::default()))?;
    }
    Ok(())
}

/// An administrator lets the rules delete what is due, and confirms the clock.
fn confirm(turn: &mut Turn<'_>) -> TurnResult<()> {
    clock::confirm(turn)?;
    turn.tx.set_retention_review(None)?;
    turn.act(UnitAction::Release { unit: HELD_UNIT.to_owned(), how: Release::Reset });
    turn.act(CallerAction::StatusChanged);
    Ok(())
}

#[derive(Default)]
struct Piece {
    deleted: BTreeMap<String, Vec<SnapshotId>>,
    count: usize,
}

impl Piece {
    /// Looks at `pages` until enough were deleted. Returns the last one that was looked at; `None` if these are
    /// the last pages.
    fn sweep(
        &mut self,
        turn: &mut Turn<'_>,
        pages: &[SnapshotId],
        rules: &[RetentionRule],
        are_new: bool,
    ) -> TurnResult<Option<i64>> {
        for page in pages {
            if self.count >= DELETED_PER_TURN {
                return Ok(Some(page.0 - 1));
            }
            if are_new && let Some(page) = turn.tx.ended_page(*page, turn.now)? {
                turn.tx.look_at_older_versions(&page, rules)?;
            }
            self.look_at(turn, *page, rules)?;
        }
        let is_last = pages.len() < PAGES_PER_TURN as usize;
        Ok(pages.last().filter(|_| !is_last).map(|page| page.0))
    }

    /// Deletes a page that is due, or records when it will be.
    fn look_at(
        &mut self,
        turn: &mut Turn<'_>,
        id: SnapshotId,
        rules: &[RetentionRule],
    ) -> TurnResult<()> {
        let Some((due, rule)) = due(turn, id, rules)? else {
            return Ok(turn.tx.set_expiry(id, None)?);
        };
        if due > turn.now {
            return Ok(turn.tx.set_expiry(id, Some(due))?);
        }
        match deletion::delete_one(turn, Owner::Snapshot(id), false) {
            Ok(_) => {
                self.count += 1;
                let deleted = self.deleted.entry(rule.text.clone()).or_default();
                deleted.push(id);
                Ok(())
            }
            // A unit of its crawl has not ended yet.
            Err(TurnError::Refused(_)) => {
                Ok(turn.tx.set_expiry(id, Some(turn.now.after(RETRY)))?)
            }
            Err(other) => Err(other),
        }
    }

    fn log(self, turn: &mut Turn<'_>) {
        for (rule, pages) in self.deleted {
            log_deleted(turn, format!("Retention={rule}"), pages);
        }
    }
}

/// Returns when a page is deleted, and by which rule. `None` for a page that no rule deletes, or none until
/// something changes: its crawl ends, it is unpinned, or its copy is complete. Newer versions whose files were
/// removed by hand replace no page.
fn due<'a>(
    turn: &mut Turn<'_>,
    id: SnapshotId,
    rules: &'a [RetentionRule],
) -> TurnResult<Option<(Time, &'a RetentionRule)>> {
    loop {
        let Some(page) = turn.tx.ended_page(id, turn.now)? else {
            return Ok(None);
        };
        if !page.may_be_deleted() {
            return Ok(None);
        }
        let Some((due, rule)) = due_by_rules(turn, &page, rules)? else {
            return Ok(None);
        };
        if due > turn.now || !page.is_saved() || are_newer_there(turn, &page, rule)? {
            return Ok(Some((due, rule)));
        }
    }
}

/// The newer versions of a page because of which a rule deletes it.
fn newer_versions(
    turn: &Turn<'_>,
    page: &EndedPage,
    rule: &RetentionRule,
) -> TurnResult<Vec<SnapshotId>> {
    let count = rule.versions.unwrap_or(0);
    Ok(turn.tx.newer_versions(page, rule.tag.as_deref(), count)?)
}

/// Whether the files are there of the newer versions that a rule keeps instead of a saved page.
fn are_newer_there(
    turn: &mut Turn<'_>,
    page: &EndedPage,
    rule: &RetentionRule,
) -> TurnResult<bool> {
    let mut kept = newer_versions(turn, page, rule)?;
    kept.extend(turn.tx.newer_versions(page, None, 1)?);
    let mut are_there = true;
    for id in kept {
        are_there &= saved::is_still_saved(turn, id)?;
    }
    Ok(are_there)
}

/// As [`due`], but for a page that something else keeps, too, and whatever became of files.
fn due_by_rules<'a>(
    turn: &Turn<'_>,
    page: &EndedPage,
    rules: &'a [RetentionRule],
) -> TurnResult<Option<(Time, &'a RetentionRule)>> {
    if !page.is_dated() {
        return Ok(None);
    }
    let aging = turn.tx.aging_page(page)?;
    let rules = rules_for(rules, &aging.tags).into_iter();
    let counted: Vec<_> = rules
        .map(|rule| {
            let newer = newer_versions(turn, page, rule)?;
            Ok((rule, newer.len() as u32))
        })
        .collect::<TurnResult<_>>()?;
    Ok(expiry(&aging, &counted))
}

/// Returns the next pages after this one that the configured rules, or these, delete now.
fn expired(turn: &mut Turn<'_>, others: &[RetentionRule], after: i64) -> TurnResult<Expired> {
    let rules = if others.is_empty() { rules(turn) } else { others };
    let pages = turn.tx.pages_after(None, after, PAGES_PER_CALL)?;
    let is_last = rules.is_empty() || pages.len() < PAGES_PER_CALL as usize;
    let next = pages.last().filter(|_| !is_last).map(|page| page.0);
    let mut found = Vec::new();
    for page in pages {
        match due(turn, page, rules)? {
            Some((due, _)) if due <= turn.now => {
                found.extend(turn.tx.list_snapshots(&Filter::of(Owner::Snapshot(page)))?);
            }
            _ => {}
        }
    }
    Ok(Expired { pages: found, next })
}

/// Adds when the rules delete a page, or what keeps it from that.
pub(crate) fn why(turn: &Turn<'_>, id: SnapshotId, to: &mut Vec<Reason>) -> TurnResult<()> {
    let Some(page) = turn.tx.ended_page(id, turn.now)? else {
        return Ok(());
    };
    let end = due_by_rules(turn, &page, rules(turn))?;
    let rule = end.map(|(_, rule)| rule.text.as_str()).unwrap_or_default();
    let (code, text, until) = match end {
        None if !page.is_dated() => (
            "retention",
            "no rule of Retention= deletes it: its times cannot be believed".to_owned(),
            None,
        ),
        None if page.pinned => ("pinned", "it is pinned".to_owned(), None),
        None => return Ok(()),
        Some(_) if page.pinned => {
            let text = format!("it is pinned, otherwise Retention={rule} would delete it");
            ("pinned", text, None)
        }
        Some(_) if !page.is_over => {
            let text = format!("Retention={rule} deletes it after the end of {}", page.crawl);
            ("retention", text, None)
        }
        Some(_) if !page.has_no_transfer => {
            let text =
                format!("Retention={rule} deletes it once its copy to the store is complete");
            ("retention", text, None)
        }
        Some((due, _)) if due <= turn.now => {
            ("retention", format!("Retention={rule} deletes it now"), None)
        }
        Some((due, _)) => {
            let text = format!("Retention={rule} deletes it after {due}");
            ("retention", text, Some(due))
        }
    };
    to.push(Reason { code: code.to_owned(), text, until });
    Ok(())
}
