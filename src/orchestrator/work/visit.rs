//! Visits of pages: their rules, and what follows from the answers of servers.

use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{Answer, Owner, SnapshotId};
use archivist_core::plan::{
    Treatment, Visit, VisitRules, WorkerEnd, became_error, is_last_visit, is_lost, kept_note,
};

impl Turn<'_> {
    /// The rules of the present visit of a page.
    pub(crate) fn visit_rules(&self, id: SnapshotId) -> TurnResult<VisitRules> {
        let (visit, settings) = (self.tx.visit(id)?, &self.engine.settings);
        Ok(VisitRules {
            number: visit.number,
            errors: settings.http_errors,
            is_last: is_last_visit(visit.refused, settings.http_attempts),
            is_whole: self.tx.is_whole_visit(id)?,
        })
    }

    /// Records an answer that a hook reported, if it counts.
    pub(crate) fn take_answer(&self, id: SnapshotId, answer: Answer) -> TurnResult<()> {
        let known = self.tx.visit(id)?.answer;
        let answer = self.visit_rules(id)?.newer(known, answer);
        Ok(self.tx.set_answer(id, &answer)?)
    }

    /// The visit of a page, if the server answered it, and how many the server refused before.
    pub(crate) fn visit_of(&self, owner: Owner) -> TurnResult<(Option<Visit>, u32)> {
        let Owner::Snapshot(id) = owner else {
            return Ok((None, 0));
        };
        let row = self.tx.visit(id)?;
        let (rules, refused) = (self.visit_rules(id)?, row.refused);
        let visit = row.answer.map(|answer| Visit {
            rules,
            answer,
            refused,
            asked: row.asked,
            backoff: self.engine.visit_backoff(),
        });
        Ok((visit, refused))
    }

    /// Applies to the results of a page what follows from the answer of its server.
    pub(crate) fn end_visit(&self, id: SnapshotId, end: &WorkerEnd) -> TurnResult<()> {
        let reason = end.visit.as_ref().map(Visit::reason).unwrap_or_default();
        match end.treatment() {
            Treatment::Keep => {}
            Treatment::Wait => self.tx.discard_visit(id)?,
            Treatment::Fail | Treatment::GiveUp => self.tx.fail_document(id, &reason)?,
        }
        Ok(())
    }

    /// Ends a retry, if this is one, whose worker has completed its work: if a result was lost, the
    /// results before the retry return. The worker has restored their files by the same rule.
    /// Returns whether they do.
    pub(crate) fn end_retry(&self, id: SnapshotId) -> TurnResult<bool> {
        let earlier = self.tx.earlier_results(id)?;
        if earlier.is_empty() {
            return Ok(false);
        }
        let (before, after) = (self.tx.earlier_answer(id)?, self.tx.visit(id)?.answer);
        if let Some(after) = after.filter(|after| became_error(before.as_ref(), Some(after))) {
            self.tx.fail_document(id, &after.reason())?;
        }
        let now = self.tx.results(Owner::Snapshot(id))?;
        let mut lost = Vec::new();
        for before in earlier {
            let mut now = now.iter();
            let after = now.find(|after| after.id == before.id);
            if let Some(after) = after.filter(|after| is_lost(before.status, after.status)) {
                lost.push((after.id, kept_note(after.error.as_deref())));
            }
        }
        let returns = !lost.is_empty();
        self.tx.end_retry(id, returns)?;
        for (result, note) in lost {
            self.tx.set_note(result, &note)?;
        }
        Ok(returns)
    }
}
