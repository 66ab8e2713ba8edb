//! Programs of plugins that have to be inspected, and those that were.

use crate::machine::inspect::InspectedProgram;
use crate::machine::library::HERE;
use crate::main_loop::action::{EngineAction, FileAction};
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::BinaryRow;
use archivist_shared::bus::call::Request;
use std::path::PathBuf;

/// Requests the inspection of programs that are unknown or have changed, and returns whether
/// there are any.
pub(crate) fn inspect(
    turn: &mut Turn<'_>,
    programs: &[(String, PathBuf)],
    then: Option<Request>,
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
        turn.act(FileAction::Inspect { programs, then });
    }
    Ok(any)
}

/// Records inspected programs; the version that a provider reported for the same file stays.
pub(crate) fn inspected(turn: &mut Turn<'_>, seen: &[InspectedProgram]) -> TurnResult<()> {
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
        turn.tx.record_binary(&row)?;
        let (path, version) = (seen.path.clone(), row.version);
        turn.act(EngineAction::Version { path, version });
    }
    Ok(())
}
