//! The highest id in the store, as an empty file with its name, as in the archive. A new database finds
//! there which ids it must not hand out again, also if the archive is new as well. Concurrent transfers
//! need no lock: each adds its mark and removes lower ones.

use crate::backend::{Store, StoredEntry, split};
use crate::failure::Result;
use archivist_core::model::{IdMarks, Owner};

/// Writes the id of the page at `path` if it is higher than what the store has. Other hosts get none: the
/// orchestrator, which reads marks, has no network.
///
/// # Errors
/// If the store cannot be written.
pub fn raise(store: &dyn Store, path: &str) -> Result<()> {
    let Some(owner) = Owner::of_directory(split(path).1).filter(|_| store.is_mounted()) else {
        return Ok(());
    };
    let entries = store.list(IdMarks::DIRECTORY)?;
    let there = entries.iter().map(|entry| entry.name.as_str());
    let wanted = IdMarks::of_names(there.clone()).or_higher(IdMarks::of_owner(owner));
    let wanted = wanted.names();
    let name = |file: &str| format!("{}/{file}", IdMarks::DIRECTORY);
    for file in &wanted {
        if !there.clone().any(|there| there == file) {
            store.write(&name(file), 0, &mut |_| Ok(()))?;
        }
    }
    let is_lower = |entry: &&StoredEntry| {
        let mark = IdMarks::of_names([entry.name.as_str()]);
        mark != IdMarks::default() && !wanted.contains(&entry.name)
    };
    for lower in entries.iter().filter(is_lower) {
        store.remove(&name(&lower.name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend;
    use std::fs;

    #[test]
    fn marks_of_a_store_only_rise() {
        let place = tempfile::tempdir().unwrap();
        let store = backend::open(place.path().to_str().unwrap()).unwrap();
        let marks = || {
            let list = fs::read_dir(place.path().join(".ids")).unwrap();
            let names = list.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        for (path, wanted) in [
            ("20261123/a.test/s7", "s7"),
            ("20261123/a.test/s12-1f0c9a3e", "s12"),
            ("20261124/b.test/s9", "s12"),
            ("20261124/b.test/notes", "s12"),
        ] {
            raise(store.as_ref(), path).unwrap();
            assert_eq!(marks(), [wanted], "{path}");
        }
        fs::write(place.path().join(".ids/README"), "of an operator").unwrap();
        raise(store.as_ref(), "20261124/b.test/s13").unwrap();
        assert_eq!(marks(), ["README", "s13"]);
    }
}
