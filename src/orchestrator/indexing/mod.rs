//! The index of full text search follows the rows: a queue, which triggers of the database fill, has the
//! snapshots that ended, changed or were deleted, and a unit takes them over into the index. A build adds
//! all snapshots to a new index, which replaces the other one.

mod rows;

use crate::bus::call::{Answer, Reply};
use crate::database::UnitRow;
use crate::engine::index::SEARCH;
use crate::main_loop::action::CallerAction;
use crate::main_loop::due::{Due, DueResult, DueUnit};
use crate::main_loop::event::{Contents, UnitEnd};
use crate::main_loop::order::{Order, UserCall};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::units::{Kind, life};
use archivist_core::model::Outcome;
use archivist_core::model::search::{REBUILD, SearchWork};
use archivist_core::plan::{Allowance, Outlook};
use archivist_core::unit::{UnitKind, UnitSpec};
use archivist_shared::bus::documents::report::{Metrics, SearchStatus, Status};
use std::time::Duration;

/// Snapshots of one unit. Each is read with its tags in the transaction that starts the unit.
const SNAPSHOTS_PER_UNIT: u32 = 500;
/// Time between two units that change the index: pages that end meanwhile share a unit and a commit.
const PAUSE: Duration = Duration::from_secs(1);
/// `RuntimeMaxSec=` of the unit.
const LIMIT: Duration = Duration::from_secs(3600);
/// Failed attempts in a row after which the index is built again.
const ATTEMPTS: u32 = 4;

pub(crate) struct Indexing;

impl Kind for Indexing {
    fn due(&self, turn: &Turn<'_>, allowance: &Allowance) -> DueResult {
        if !turn.engine.start_facts.has_search || !turn.tx.has_search_work()? {
            return Ok(Due::default());
        }
        let state = turn.tx.search_state()?;
        let may_start = !allowance.is_outage && allowance.pressure.is_none() && !state.is_running;
        let start = || DueUnit::of("the changes of the search index", (), begin);
        Ok(Due {
            starts: (may_start && state.due <= turn.now).then(start).into_iter().collect(),
            outlook: Outlook {
                is_busy: true,
                blocked: None,
                next: (state.due > turn.now).then_some(state.due),
            },
        })
    }

    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        _contents: Option<&Contents>,
    ) -> TurnResult<()> {
        turn.act(CallerAction::StatusChanged);
        let failed = turn.tx.search_state()?.attempts;
        match end.outcome {
            Outcome::Exit(0) => {
                let due = turn.now.after(PAUSE);
                return Ok(turn.tx.end_indexing(run.id, due)?);
            }
            Outcome::Lost | Outcome::Interrupted | Outcome::Stopped => {
                return Ok(turn.tx.repeat_indexing(run.id, failed, turn.now)?);
            }
            _ => {}
        }
        let attempts = failed.saturating_add(1);
        let retries = turn.retries();
        let retry_at = retries.at(attempts);
        turn.tx.repeat_indexing(run.id, attempts, retry_at)?;
        let is_unusable = end.outcome == Outcome::Exit(REBUILD.into());
        let is_complete = turn.tx.search_state()?.built_to.is_none();
        let rebuilds = is_unusable || attempts.is_multiple_of(ATTEMPTS);
        if is_unusable && is_complete {
            turn.tx.rebuild_search(0, turn.now)?;
        } else if rebuilds {
            turn.tx.rebuild_search(attempts, retry_at)?;
        }
        let next = if rebuilds {
            "it is built again".to_owned()
        } else {
            format!("next attempt after {retry_at}")
        };
        let (unit, reason) = (run.unit.clone(), end.outcome.clone());
        turn.log(move || {
            tracing::warn!(
                archivist_unit = unit.as_str(),
                "failed to change the search index: {reason}; {next}"
            )
        });
        Ok(())
    }
}

/// Builds the index again, next to the one that is there.
pub(crate) struct Rebuild {
    pub user: u32,
}

impl Order for Rebuild {
    fn carry_out(&self, turn: &mut Turn<'_>, _reply: &Reply) -> TurnResult<Option<Answer>> {
        rebuild(turn)?;
        Ok(Some(Answer::Done))
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        UserCall::of("Search.Rebuild", self.user)
    }
}

/// Begins another build of the index, unless one is in progress.
pub(crate) fn rebuild(turn: &mut Turn<'_>) -> TurnResult<()> {
    if turn.tx.search_state()?.built_to.is_some() {
        return Ok(());
    }
    turn.act(CallerAction::StatusChanged);
    Ok(turn.tx.rebuild_search(0, turn.now)?)
}

/// Adds how far the index is behind the archive.
pub(crate) fn status(turn: &Turn<'_>, status: &mut Status) -> TurnResult<()> {
    status.search = search_status(turn)?;
    Ok(())
}

pub(crate) fn metrics(turn: &Turn<'_>, metrics: &mut Metrics) -> TurnResult<()> {
    metrics.search = search_status(turn)?;
    Ok(())
}

/// `None` if the program of the index is not installed.
fn search_status(turn: &Turn<'_>) -> TurnResult<Option<SearchStatus>> {
    if !turn.engine.start_facts.has_search {
        return Ok(None);
    }
    let state = turn.tx.search_state()?;
    Ok(Some(SearchStatus {
        queued: turn.tx.search_queued()?,
        is_building: state.built_to.is_some(),
        failed: state.attempts,
    }))
}

fn begin(turn: &mut Turn<'_>, (): ()) -> TurnResult<()> {
    let (names, boot) = (&turn.engine.names, &turn.engine.boot);
    let name = names.index_pages();
    let run = turn.tx.start_run(UnitKind::Index, &name, boot, turn.now)?;
    let batch = turn.tx.begin_indexing(run, SNAPSHOTS_PER_UNIT)?;
    let index = turn.engine.indexes().join(SEARCH);
    let count = batch.changes.len();
    let program = &turn.engine.programs.search;
    let directories = (index.clone(), turn.engine.archive());
    let spec = UnitSpec::index(names, program, directories, count, LIMIT);
    let work = SearchWork { index, build: batch.build, changes: batch.changes };
    let stdin = Some(serde_json::to_vec(&work)?);
    life::start(turn, run, spec, stdin, Output::OfUnit, None);
    turn.act(CallerAction::StatusChanged);
    Ok(())
}
