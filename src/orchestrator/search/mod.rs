//! The index of full text search answers users of the bus. A unit reads it, because what is in it comes
//! from pages. `archivist search` asks it without the orchestrator.

pub mod bus;
pub mod files;

use crate::bus::call::{Answer, Refusal, Reply};
use crate::database::UnitRow;
use crate::engine::index::SEARCH;
use crate::indexing;
use crate::main_loop::action::{Awaited, FileAction, ReplyAction};
use crate::main_loop::event::{Contents, UnitEnd};
use crate::main_loop::order::{Order, UserCall};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Turn, TurnResult, failed};
use crate::search::files::{Found, answer_path};
use crate::units::{Kind, ReadFiles, life};
use archivist_core::model::search::{HITS_MAX, REBUILD, SearchQuestion, WITHOUT_MAX};
use archivist_core::model::{Outcome, RunId};
use archivist_core::unit::{UnitKind, UnitSpec};
use std::time::Duration;

/// `RuntimeMaxSec=` of the unit: a user waits for it.
const LIMIT: Duration = Duration::from_secs(60);
/// Units that may run at one time.
const UNITS_MAX: usize = 8;

pub(crate) struct Search;

impl Kind for Search {
    fn files(&self, _turn: &Turn<'_>, run: &UnitRow) -> TurnResult<Option<ReadFiles>> {
        Ok(Some(files::of_search(run.id)))
    }

    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        contents: Option<&Contents>,
    ) -> TurnResult<()> {
        let path = answer_path(&turn.engine.scope, run.id);
        turn.act(FileAction::Remove(path));
        turn.tx.forget_runs_before(run.id)?;
        let found = contents.and_then(|contents| contents.downcast_ref::<Found>());
        let answer = match (&end.outcome, found) {
            (Outcome::Exit(0), Some(found)) => found.clone(),
            (Outcome::Exit(status), _) if *status == i32::from(REBUILD) => {
                indexing::rebuild(turn)?;
                Err("the search index cannot be read; it is built again: repeat the search when archivist-index-pages.service has ended".to_owned())
            }
            (outcome, _) => Err(format!("{outcome}; see: journalctl -u {}", run.unit)),
        };
        let answer = answer.map(Some).map_err(Refusal::Failed);
        turn.act(ReplyAction::Settle(answer_of(run.id), answer));
        Ok(())
    }
}

/// A question to the index. Its caller gets the answer as JSON.
pub(crate) struct Ask {
    pub question: SearchQuestion,
}

impl Order for Ask {
    fn carry_out(&self, turn: &mut Turn<'_>, reply: &Reply) -> TurnResult<Option<Answer>> {
        ask(turn, &self.question, reply)?;
        Ok(None)
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        UserCall::of_all("Search.Search")
    }
}

/// The answer of a search, for which its caller waits.
fn answer_of(run: RunId) -> Awaited {
    Awaited::new("search", run)
}

fn ask(turn: &mut Turn<'_>, question: &SearchQuestion, reply: &Reply) -> TurnResult<()> {
    if !turn.engine.start_facts.has_search {
        return Err(failed("archivist-search is not installed".to_owned()));
    }
    let running = turn.tx.open_units()?;
    let running = running.iter().filter(|run| run.kind == UnitKind::Search);
    if running.count() >= UNITS_MAX {
        let why = format!("{UNITS_MAX} searches are running: ask again when one has ended");
        return Err(failed(why));
    }
    let mut question = question.clone();
    question.limit = question.limit.clamp(1, HITS_MAX);
    question.without.extend(turn.tx.deleted_but_found(WITHOUT_MAX)?);
    let (names, boot) = (&turn.engine.names, &turn.engine.boot);
    let run = turn.tx.queue_run(UnitKind::Search, turn.now)?;
    let directories = (turn.engine.indexes().join(SEARCH), turn.engine.archive());
    let program = &turn.engine.programs.search;
    let spec = UnitSpec::search(names, run, program, directories, LIMIT);
    turn.tx.start_queued(run, &spec.name, boot, turn.now)?;
    let stdin = Some(serde_json::to_vec(&question)?);
    let stdout = Output::Record(answer_path(&turn.engine.scope, run));
    life::start(turn, run, spec, stdin, stdout, None);
    turn.act(ReplyAction::Await(answer_of(run), reply.clone()));
    Ok(())
}
