//! Units, whatever they do: the steps in the life of one ([`life`]), and the trait that each kind
//! implements. A kind is one file with its [`Kind`], in the room of its subject, and one line in the
//! table of kinds (`kinds.rs`).

pub(crate) mod life;

use crate::database::UnitRow;
use crate::main_loop::due::{Due, DueResult};
use crate::main_loop::event::{Contents, UnitEnd};
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_config::Scope;
use archivist_core::model::Outcome;
use archivist_core::plan::{Allowance, Started};
use archivist_core::unit::UnitKind;
use archivist_shared::systemd::LoadedUnit;

/// Reads the files of a unit that has ended. It is called outside of the turn, on a thread.
pub type ReadFiles = Box<dyn FnOnce(&Scope) -> Contents + Send>;

/// What a kind of unit adds to the steps in the life of one. The rows of runs, the calls to systemd
/// and the files of the orchestrator are the same for all kinds ([`life`]).
pub(crate) trait Kind: Sync {
    /// Returns which units of the kind may start now. None of a kind whose units start because
    /// another unit asks for them.
    fn due(&self, _turn: &Turn<'_>, _allowance: &Allowance) -> DueResult {
        Ok(Due::default())
    }

    /// Whether the work of the unit continues after the next boot: what a shutdown ended has no
    /// outcome then.
    fn outlasts_shutdown(&self) -> bool {
        true
    }

    /// The outcome of a run whose unit systemd did not start, for this reason.
    fn not_started(&self, started: Started, why: String) -> Outcome {
        match started {
            Started::Failed => Outcome::NotStarted(why),
            Started::Unable => Outcome::unable_to_start(&why),
            Started::Running | Started::Waiting | Started::Reconcile | Started::Lost => {
                Outcome::Lost
            }
        }
    }

    /// The unit is gone with another boot.
    fn lost(&self, _turn: &mut Turn<'_>, _run: &UnitRow) -> TurnResult<()> {
        Ok(())
    }

    /// A job of the unit is done: systemd takes other calls for it now.
    fn came_up(&self, _turn: &mut Turn<'_>, _run: &UnitRow) -> TurnResult<()> {
        Ok(())
    }

    /// The unit runs: systemd has started it, or it was read.
    ///
    /// # Errors
    /// If the database fails, as for all steps.
    fn running(&self, _turn: &mut Turn<'_>, _run: &UnitRow) -> TurnResult<()> {
        Ok(())
    }

    /// Whether the run waits for another start instead of ending like this.
    fn starts_again(
        &self,
        _turn: &Turn<'_>,
        _run: &UnitRow,
        _outcome: &Outcome,
    ) -> TurnResult<bool> {
        Ok(false)
    }

    /// How to read what the unit left in files; none if it leaves nothing.
    fn files(&self, _turn: &Turn<'_>, _run: &UnitRow) -> TurnResult<Option<ReadFiles>> {
        Ok(None)
    }

    fn recorded(&self, _turn: &Turn<'_>, _run: &UnitRow, end: &UnitEnd) -> TurnResult<Outcome> {
        Ok(end.outcome.clone())
    }

    /// The end is recorded: what follows from it. `run` is the row before the end; `contents` is
    /// what [`Kind::files`] read, none if the unit never ran.
    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        contents: Option<&Contents>,
    ) -> TurnResult<()>;

    /// The runs were compared with these units that systemd has.
    fn reconciled(&self, _turn: &mut Turn<'_>, _listed: &[LoadedUnit]) -> TurnResult<()> {
        Ok(())
    }
}

/// All kinds, each once.
#[derive(Clone, Copy)]
pub(crate) struct Kinds(pub &'static [(UnitKind, &'static dyn Kind)]);

impl Kinds {
    fn all(self) -> impl Iterator<Item = &'static dyn Kind> {
        self.0.iter().map(|(_, kind)| *kind)
    }

    fn of(self, run: &UnitRow) -> &'static dyn Kind {
        let known = self.0.iter().find(|(kind, _)| *kind == run.kind);
        known.map_or(&Unknown, |(_, kind)| *kind)
    }
}

/// The kind of a unit that a build with more rooms has started: it ends, and nothing follows.
struct Unknown;

impl Kind for Unknown {
    fn ended(
        &self,
        _turn: &mut Turn<'_>,
        _run: &UnitRow,
        _end: &UnitEnd,
        _contents: Option<&Contents>,
    ) -> TurnResult<()> {
        Ok(())
    }
}
