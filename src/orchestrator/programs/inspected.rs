//! Programs of plugins that have to be inspected, and those that were.

use crate::database::BinaryRow;
use crate::machine::inspect::InspectedProgram;
use crate::machine::library::HERE;
use crate::main_loop::action::{FileAction, LoopAction};
use crate::main_loop::event::Event;
use crate::main_loop::order::Call;
use crate::main_loop::rooms::Which;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_plugin::{Skip, Values};
use std::path::PathBuf;

/// Requests the inspection of programs that are unknown or have changed, and returns whether
/// there are any.
pub(crate) fn inspect(
    turn: &mut Turn<'_>,
    programs: &[(String, PathBuf)],
    then: Option<Call>,
) -> TurnResult<bool> {
    let known = turn.tx.binaries()?;
    let is_fresh = |name: &String, path: &PathBuf| {
        let mut rows = known.iter();
        let row = rows.find(|row| row.name == *name);
        let stamp = turn.engine.facts.stamp(path);
        row.is_some_and(|row| row.is_fresh(&path.to_string_lossy(), &stamp, turn.now))
    };
    let stale = programs.iter().filter(|(name, path)| !is_fresh(name, path));
    let programs: Vec<_> = stale.cloned().collect();
    let any = !programs.is_empty();
    if any {
        turn.act(inspection(programs, then));
    }
    Ok(any)
}

/// Inspects programs, then makes the call that waits for it.
pub(crate) fn inspection(programs: Vec<(String, PathBuf)>, then: Option<Call>) -> FileAction {
    FileAction::Inspect(programs, Box::new(|found| seen(found, then)))
}

/// The event of inspected programs.
pub(crate) fn seen(found: Vec<InspectedProgram>, then: Option<Call>) -> Event {
    Event::of(move |turn| {
        inspected(turn, &found)?;
        if let Some(call) = &then {
            turn.act(LoopAction::Again(Event::Call(call.clone())));
        }
        Ok(())
    })
}

/// Requests the inspection of the programs of all plugins that are unknown or have changed.
pub(crate) fn inspect_all(turn: &mut Turn<'_>, then: Option<Call>) -> TurnResult<bool> {
    let none = Values::new();
    let layers = turn.engine.layers(&none, &none);
    let plugins = turn.engine.catalogue.plugins.iter();
    let programs = turn.engine.programs(plugins, &layers);
    inspect(turn, &programs, then)
}

/// Records inspected programs; the version that a provider reported for the same file stays.
fn inspected(turn: &mut Turn<'_>, seen: &[InspectedProgram]) -> TurnResult<()> {
    for seen in seen {
        let abspath = seen.path.to_string_lossy().into_owned();
        let old = turn.tx.binary(&seen.name)?.filter(|row| row.abspath == abspath);
        let said = old.as_ref().filter(|row| row.provider != HERE);
        let row = BinaryRow {
            name: seen.name.clone(),
            version: said.map_or_else(|| seen.version.clone(), |row| row.version.clone()),
            sha256: seen.sha256.clone(),
            provider: said.map_or_else(|| HERE.to_owned(), |row| row.provider.clone()),
            env: old.as_ref().map(|row| row.env.clone()).unwrap_or_default(),
            stamp: Some(seen.stamp.clone()),
            found_at: turn.now,
            abspath,
        };
        let is_new = old.as_ref().and_then(|row| row.stamp.as_ref()) != row.stamp.as_ref();
        turn.tx.record_binary(&row)?;
        if is_new {
            run_what_waited(turn, &row.name)?;
        }
        let (path, version) = (seen.path.clone(), row.version);
        turn.remember(move |engine| engine.set_version(path, version));
    }
    Ok(())
}

/// Queues the hooks of this machine that were skipped because this program, which has appeared, was missing. A fleet
/// runs no single hook of a page that has ended, see [`crate::query::why`]: any node may have to visit it again.
fn run_what_waited(turn: &mut Turn<'_>, program: &str) -> TurnResult<()> {
    let all = (0, i64::MAX);
    let begin = Skip::begin_for(program);
    let is_fleet = turn.engine.settings.is_in_fleet();
    if is_fleet || turn.tx.snapshots_skipped_for(&begin, all, 1)?.is_empty() {
        return Ok(());
    }
    let which = Which::Waiting(program.to_owned());
    turn.act(LoopAction::Again(Event::Call(turn.rooms.retry(None, which))));
    Ok(())
}
