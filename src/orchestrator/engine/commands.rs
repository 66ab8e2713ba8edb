//! Commands that registered themselves, for `archivist status`: which command works on what, from
//! which directory, in which process. Nothing depends on them, so they are not in the database; a
//! command registers again with the next orchestrator.

use archivist_core::model::Time;
use archivist_shared::bus::documents::report::Registration;
use std::collections::BTreeMap;

#[derive(Clone)]
pub struct RegisteredCommand {
    pub registration: Registration,
    pub pid: Option<u32>,
    pub user: Option<u32>,
    /// When it started, or else registered.
    pub since: Time,
}

/// The registered commands, in the order of their registration.
#[derive(Default)]
pub struct Commands {
    last: u64,
    all: BTreeMap<u64, RegisteredCommand>,
}

impl Commands {
    /// Adds a command and returns its number.
    pub fn add(&mut self, command: RegisteredCommand) -> u64 {
        self.last += 1;
        self.all.insert(self.last, command);
        self.last
    }

    /// The registered commands, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &RegisteredCommand> {
        self.all.values()
    }

    /// Removes the command of this number, if it is still there.
    pub fn remove(&mut self, number: u64) {
        self.all.remove(&number);
    }
}
