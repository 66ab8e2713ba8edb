//! Facts about files, programs and users, as values for turns. A turn runs within a transaction and
//! reads no file. It asks [`Facts`] instead:
//!
//! 1. If the answer was read before the turn, the turn uses it.
//! 2. Otherwise the question is noted, and the turn gets a preliminary answer. At the end of the
//!    event, all that the event has changed is rolled back, and the event is left for the next
//!    turn, which follows at once. A start that the plan decides on is left in the same way.
//! 3. Before the next turn, `Engine::read_facts` answers the questions of all events that were
//!    left.
//!
//! So only the files that an event needs are read. Each answer counts for one turn, and was read
//! after its event arrived. A file that vanishes later is missing when the unit starts, which
//! systemd or the hook reports.

use crate::engine::way_out::MachineAddresses;
use archivist_core::model::{Audience, PersonaName, PersonaSettings};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Facts that nearly every start needs. They are read before each turn that may start something.
#[derive(Default)]
pub struct StartFacts {
    pub addresses: MachineAddresses,
    /// What prevents private networks, and how to fix it.
    pub network_lack: Option<(String, String)>,
    /// Whether the directory of installed programs exists.
    pub has_library: bool,
    /// Plugins with a directory of the archive that exists.
    pub indexes: Vec<String>,
    /// Whether the directory of the index of full text search exists.
    pub has_search: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// The path of the program with this name; of an absolute path, whether it is a program.
    Program(String),
    /// Whether there is a file of any type.
    Exists(PathBuf),
    /// Whether certainly none of these files of any type is there.
    Gone(Vec<PathBuf>),
    /// The stamp of a file, see `inspect::stamp`.
    Stamp(PathBuf),
    Persona(PersonaName),
    User(u32),
    /// Whether the process of the runner with this rank is alive.
    Runner(i64),
}

/// The answer to the [`Question`] of the same name.
#[derive(Clone, Debug)]
pub enum FactAnswer {
    Program(Option<PathBuf>),
    Exists(bool),
    Gone(bool),
    Stamp(String),
    Persona(PersonaFiles),
    User(UserAccount),
    Runner(bool),
}

#[derive(Clone, Debug)]
pub struct PersonaFiles {
    /// Its directory exists, and is no link.
    pub is_directory: bool,
    pub has_cookies: bool,
    /// The users that may have it in their crawls, or why its list cannot be read.
    pub audience: Result<Audience, String>,
    /// Its settings, or why they cannot be read.
    pub settings: Result<PersonaSettings, String>,
}

#[derive(Clone, Debug, Default)]
pub struct UserAccount {
    /// The number if the user has no name.
    pub name: String,
    /// Ids of all groups; none if the user is unknown.
    pub groups: Vec<u32>,
}

#[derive(Default)]
pub struct Facts {
    known: BTreeMap<Question, FactAnswer>,
    asked: RefCell<BTreeSet<Question>>,
    /// Questions of the events that are left for the next turn.
    open: RefCell<BTreeSet<Question>>,
}

impl Facts {
    fn ask(&self, question: Question) -> Option<&FactAnswer> {
        let answer = self.known.get(&question);
        self.asked.borrow_mut().insert(question);
        answer
    }

    /// The path of a program, as hooks find it.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        match self.ask(Question::Program(name.to_owned())) {
            Some(FactAnswer::Program(path)) => path.clone(),
            _ => None,
        }
    }

    /// Whether there is a file of any type.
    pub fn has_file(&self, path: &Path) -> bool {
        let answer = self.ask(Question::Exists(path.to_owned()));
        matches!(answer, Some(FactAnswer::Exists(true)))
    }

    /// Whether none of these files is there. What cannot be read counts as there.
    pub fn are_gone(&self, paths: Vec<PathBuf>) -> bool {
        matches!(self.ask(Question::Gone(paths)), Some(FactAnswer::Gone(true)))
    }

    /// The stamp of a file; empty if it is missing.
    pub fn stamp(&self, path: &Path) -> String {
        match self.ask(Question::Stamp(path.to_owned())) {
            Some(FactAnswer::Stamp(stamp)) => stamp.clone(),
            _ => String::new(),
        }
    }

    pub fn persona(&self, name: &PersonaName) -> PersonaFiles {
        match self.ask(Question::Persona(name.clone())) {
            Some(FactAnswer::Persona(files)) => files.clone(),
            _ => PersonaFiles {
                is_directory: false,
                has_cookies: false,
                audience: Ok(Audience::default()),
                settings: Ok(PersonaSettings::default()),
            },
        }
    }

    pub fn user(&self, uid: u32) -> UserAccount {
        match self.ask(Question::User(uid)) {
            Some(FactAnswer::User(account)) => account.clone(),
            _ => UserAccount::default(),
        }
    }

    /// Whether the process of the runner with this rank is alive.
    pub fn is_running(&self, rank: i64) -> bool {
        let answer = self.ask(Question::Runner(rank));
        matches!(answer, Some(FactAnswer::Runner(true)))
    }

    /// Begins an event, or a start that the plan decides on.
    pub fn begin(&self) {
        self.asked.borrow_mut().clear();
    }

    /// Whether all questions of the current event have been answered.
    pub fn are_complete(&self) -> bool {
        let asked = self.asked.borrow();
        asked.iter().all(|question| self.known.contains_key(question))
    }

    /// Leaves the current event for the next turn, with its questions.
    pub fn leave(&self) {
        self.open.borrow_mut().append(&mut self.asked.borrow_mut());
    }

    /// Whether the next turn has to follow at once.
    pub fn are_awaited(&self) -> bool {
        !self.open.borrow().is_empty()
    }

    /// Replaces the answers by those to the open questions.
    pub fn read(&mut self, answer: impl Fn(&Question) -> FactAnswer) {
        let open = std::mem::take(self.open.get_mut()).into_iter();
        self.known = open
            .map(|question| {
                let answer = answer(&question);
                (question, answer)
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn question_is_answered_in_the_next_turn_only() {
        let mut facts = Facts::default();
        let read = Cell::new(0);
        let answer = |question: &Question| {
            read.set(read.get() + 1);
            match question {
                Question::Program(name) => FactAnswer::Program(Some(Path::new("/bin").join(name))),
                _ => FactAnswer::Exists(true),
            }
        };
        facts.begin();
        assert_eq!(facts.program("sh"), None);
        assert!(!facts.are_complete());
        facts.leave();

        // Another event of the same turn, which asks for nothing.
        facts.begin();
        assert!(facts.are_complete() && facts.are_awaited());

        facts.read(answer);
        facts.begin();
        assert_eq!(facts.program("sh"), Some("/bin/sh".into()));
        assert!(facts.are_complete() && !facts.are_awaited());
        // The answer leads to another question: the event is left with both.
        assert!(!facts.has_file(Path::new("/bin/sh")));
        facts.leave();
        facts.read(answer);
        facts.begin();
        assert!(facts.program("sh").is_some() && facts.has_file(Path::new("/bin/sh")));
        assert!(facts.are_complete());
        assert_eq!(read.get(), 3);

        facts.read(answer);
        facts.begin();
        assert_eq!(facts.program("sh"), None, "an answer of the last turn");
        assert_eq!(read.get(), 3, "nothing is read that no event needs");
    }
}
