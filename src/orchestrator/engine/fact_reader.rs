//! Reading facts for turns, between two transactions. See [`crate::engine::facts`].

use crate::engine::directories::Directories;
use crate::engine::facts::{FactAnswer, Question};
use crate::engine::index::SEARCH;
use crate::engine::persona_files;
use crate::engine::state::Engine;
use crate::engine::way_out::MachineAddresses;
use crate::machine::inspect;
use crate::machine::notify;
use crate::machine::store_ids;
use crate::machine::token::token;
use crate::runner::locks::Lock;
use archivist_config::network;
use archivist_core::model::IdMarks;
use archivist_core::store::Location;
use archivist_plugin::programs::binary;
use archivist_shared::{id_marks, installation};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Logs why ids cannot be compared.
fn unread(what: &str, path: &Path, error: &std::io::Error) -> IdMarks {
    let path = path.display();
    tracing::warn!("failed to read the ids of the {what} '{path}': {error}, ignoring");
    IdMarks::default()
}

/// Whether there is certainly no such file.
fn is_gone(path: &Path) -> bool {
    let missing = [ErrorKind::NotFound, ErrorKind::NotADirectory];
    path.symlink_metadata().is_err_and(|error| missing.contains(&error.kind()))
}

impl Engine {
    /// Reads the facts that nearly every start needs.
    pub fn read_start_facts(&mut self) {
        let data = self.scope.data_dir();
        let directories = Directories { data: &data, of_user: self.scope.user };
        let mut indexes = self.sharing_plugins();
        indexes.retain(|name| directories.make_index(name));
        let has_search = directories.make_index(SEARCH);
        let has_library = directories.make_library();
        let facts = &mut self.start_facts;
        facts.indexes = indexes;
        facts.has_search = has_search;
        facts.addresses = MachineAddresses::read(&self.scope);
        facts.network_lack = network::lack(&self.scope);
        facts.has_library = has_library;
    }

    /// Answers the questions of the events that the last turn left.
    pub fn read_facts(&mut self) {
        let mut facts = std::mem::take(&mut self.facts);
        facts.read(|question| self.answer(question));
        self.facts = facts;
    }

    /// Returns the highest ids of the archive and of a store that is a directory, if they have not
    /// been compared with those of the database since the start, since the archive could not be
    /// used, or since a directory was found taken. Otherwise it reads no file.
    pub fn unknown_ids(&self) -> Option<IdMarks> {
        if self.load.outage.is_some() {
            self.are_ids_known.set(false);
            return None;
        }
        if self.are_ids_known.replace(true) {
            return None;
        }
        let archive = self.archive();
        self.settle_installation(&archive);
        let of_archive = id_marks::read(&archive, notify::beat);
        let marks = of_archive.unwrap_or_else(|error| unread("archive", &archive, &error));
        // Nodes of a fleet share a store, and their ids come from its database.
        let store = self.settings.store.as_ref();
        let store = store.filter(|_| !self.settings.is_in_fleet());
        let store = store.and_then(Location::directory);
        let of_store = store.map(|store| {
            let read = store_ids::read(store);
            read.unwrap_or_else(|error| unread("store", store, &error))
        });
        Some(marks.or_higher(of_store.unwrap_or_default()))
    }

    /// Reads the identity of the installation, and writes it at first.
    fn settle_installation(&self, archive: &Path) {
        let new = token();
        let settled = new.and_then(|new| installation::settle(&self.scope, archive, new));
        match settled {
            Ok(identity) => *self.installation.borrow_mut() = Some(identity),
            Err(error) => tracing::warn!(
                "failed to read or write '{}': {error}, ignoring",
                installation::path(&self.scope).display()
            ),
        }
    }

    fn answer(&self, question: &Question) -> FactAnswer {
        match question {
            Question::Program(name) => FactAnswer::Program(self.search(name)),
            Question::Exists(path) => FactAnswer::Exists(path.exists()),
            Question::Gone(paths) => FactAnswer::Gone(paths.iter().all(|path| is_gone(path))),
            Question::Stamp(path) => FactAnswer::Stamp(inspect::stamp(path)),
            Question::Persona(name) => {
                FactAnswer::Persona(persona_files::read(&self.personas(), name))
            }
            Question::User(uid) => FactAnswer::User(persona_files::account(*uid)),
            Question::Runner(rank) => {
                let me = self.me.as_ref();
                FactAnswer::Runner(me.is_some_and(|me| me.locks.is_held(Lock::Rank(*rank))))
            }
        }
    }

    /// Searches for a program in the system, then in the library. An absolute path is only checked.
    fn search(&self, name: &str) -> Option<PathBuf> {
        let library = self.scope.data_dir().join("lib");
        binary::hook_lookup(Some(&library), name)
    }

    /// Calls `ask` with all the facts that it asks for.
    #[cfg(test)]
    pub fn with_facts<T>(&mut self, ask: impl Fn(&Engine) -> T) -> T {
        self.read_facts();
        loop {
            self.facts.begin();
            let answer = ask(self);
            if self.facts.are_complete() {
                return answer;
            }
            self.facts.leave();
            self.read_facts();
        }
    }
}
