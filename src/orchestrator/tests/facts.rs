//! Facts about files: an event that lacks some is repeated with them.

use super::bed::Bed;
use crate::machine::library::Brought;
use crate::programs::Install;
use archivist_shared::bus::documents::report::{Added, Filter};
use std::fs;
use std::path::PathBuf;

impl Bed {
    /// Requests the installation of the program of `beta`. Returns the number of missing programs.
    fn missing(&mut self) -> u64 {
        let names = vec!["beta".to_owned()];
        let added: Added = self.document(Install { names, user: 0 });
        added.accepted
    }

    /// Installs the program of `beta`.
    fn bring(&mut self) -> PathBuf {
        let path = self.directory.path().join("tool");
        fs::write(&path, "").unwrap();
        let brought = Brought { path: path.clone(), at: self.now };
        self.engine.library.insert("tool".to_owned(), brought);
        path
    }
}

/// Each request sees the files of its time: no answer outlasts the turn that it was read for.
#[test]
fn request_sees_programs_that_appear_and_vanish() {
    let mut bed = Bed::new();
    assert_eq!(bed.missing(), 1);
    let program = bed.bring();
    assert_eq!(bed.missing(), 0);
    fs::remove_file(program).unwrap();
    assert_eq!(bed.missing(), 1);
}

/// The first attempt of an event that lacks facts is rolled back.
#[test]
fn event_that_lacks_facts_is_carried_out_once() {
    let mut bed = Bed::new();
    bed.bring();
    bed.missing();
    bed.add(2);
    let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
    assert_eq!(crawls.len(), 2);
    let snapshots = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    assert_eq!(snapshots.len(), 2);
    bed.come_to_an_end();
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    let workers = runs.iter().filter(|run| run.hook.is_none());
    assert_eq!(workers.count(), 4, "one of each crawl and snapshot");
}
