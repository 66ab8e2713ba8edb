//! Visits of pages: their rules, and what follows from the answers of servers.

use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{HttpAnswer, Owner, SnapshotId};
use archivist_core::plan::{
    Treatment, Visit, VisitRules, WorkerEnd, became_error, is_last_visit, is_lost, kept_note,
};

pub(super) fn visit_rules(turn: &Turn<'_>, id: SnapshotId) -> TurnResult<VisitRules> {
    let (visit, settings) = (turn.tx.visit(id)?, &turn.engine.settings);
    Ok(VisitRules {
        number: visit.number,
        errors: settings.http_errors,
        is_last: is_last_visit(visit.refused, settings.http_attempts),
        is_whole: turn.tx.is_whole_visit(id)?,
    })
}

/// Records an answer that a hook reported, if it counts.
pub(super) fn take_answer(turn: &Turn<'_>, id: SnapshotId, answer: HttpAnswer) -> TurnResult<()> {
    let known = turn.tx.visit(id)?.answer;
    let answer = visit_rules(turn, id)?.newer(known, answer);
    Ok(turn.tx.set_answer(id, &answer)?)
}

/// The visit of a page, if the server answered it, and how many the server refused before.
pub(super) fn visit_of(turn: &Turn<'_>, owner: Owner) -> TurnResult<(Option<Visit>, u32)> {
    let Owner::Snapshot(id) = owner else {
        return Ok((None, 0));
    };
    let row = turn.tx.visit(id)?;
    let (rules, refused) = (visit_rules(turn, id)?, row.refused);
    let visit = row.answer.map(|answer| Visit {
        rules,
        answer,
        refused,
        asked: row.asked,
        backoff: turn.engine.visit_backoff(),
    });
    Ok((visit, refused))
}

/// Applies to the results of a page what follows from the answer of its server.
pub(super) fn end_visit(turn: &Turn<'_>, id: SnapshotId, end: &WorkerEnd) -> TurnResult<()> {
    let reason = end.visit.as_ref().map(Visit::reason).unwrap_or_default();
    match end.treatment() {
        Treatment::Keep => {}
        Treatment::Wait => turn.tx.discard_visit(id)?,
        Treatment::Fail | Treatment::GiveUp => turn.tx.fail_document(id, &reason)?,
    }
    Ok(())
}

/// Ends a retry, if this is one, whose worker has completed its work: if a result was lost, the
/// results before the retry return. The worker has restored their files by the same rule.
/// Returns whether they do.
pub(super) fn end_retry(turn: &Turn<'_>, id: SnapshotId) -> TurnResult<bool> {
    let earlier = turn.tx.earlier_results(id)?;
    if earlier.is_empty() {
        return Ok(false);
    }
    let (before, after) = (turn.tx.earlier_answer(id)?, turn.tx.visit(id)?.answer);
    if let Some(after) = after.filter(|after| became_error(before.as_ref(), Some(after))) {
        turn.tx.fail_document(id, &after.reason())?;
    }
    let now = turn.tx.results(Owner::Snapshot(id))?;
    let mut lost = Vec::new();
    for before in earlier {
        let mut now = now.iter();
        let after = now.find(|after| after.id == before.id);
        if let Some(after) = after.filter(|after| is_lost(before.status, after.status)) {
            lost.push((after, kept_note(after.error.as_deref())));
        }
    }
    let returns = !lost.is_empty();
    turn.tx.end_retry(id, returns)?;
    for (result, note) in lost {
        turn.tx.set_note(result, &note)?;
    }
    Ok(returns)
}
