//! A declaration as it was read: nothing is judged yet but its name.

use crate::config::ini::{Entry, Malformed, Place};
use archivist_core::text::clean;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a file declares; the end of its name says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Pool,
    Watch,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Pool, Kind::Watch];

    /// `pool` or `watch`: end of the file's name and part of the names of its units.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Pool => "pool",
            Kind::Watch => "watch",
        }
    }

    /// Name of its own section.
    pub fn section(self) -> &'static str {
        match self {
            Kind::Pool => "Pool",
            Kind::Watch => "Watch",
        }
    }

    /// Kind and name of what the file of this name declares.
    pub fn of_file(file: &str) -> Option<(Kind, &str)> {
        Kind::ALL.into_iter().find_map(|kind| {
            let name = file.strip_suffix(kind.as_str())?.strip_suffix('.')?;
            Some((kind, name))
        })
    }

    /// Whether something of this kind may be called `name` ([`NAME_ALLOWED`]). It becomes a part
    /// of unit names: in that of a slice, '-' would put one pool into another.
    pub fn allows(self, name: &str) -> bool {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.';
        let inner = |b: u8| plain(b) || (self == Kind::Watch && b == b'-');
        name.len() <= NAME_MAX
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.bytes().all(inner)
    }
}

/// Longest name, in characters.
const NAME_MAX: usize = 100;

/// What a declaration may be called, for messages.
pub const NAME_ALLOWED: &str = "letters, digits, '_' and '.', for watches also '-' (100 characters at most, the first a letter or \
     digit)";

/// A file with its drop-ins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    pub kind: Kind,
    pub name: String,
    /// The main file.
    pub path: PathBuf,
    /// The assignments of all files, the weakest first.
    pub entries: Vec<Entry>,
    pub malformed: Vec<Malformed>,
}

/// Something in a file, or about it, that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `file:line: what is wrong; what to do`, on one line.
    pub text: String,
    /// Nothing is made of the declaration. Otherwise the line is ignored.
    pub fatal: bool,
}

impl Problem {
    /// At a line.
    pub fn at(place: &Place, what: &str, fatal: bool) -> Problem {
        Problem::told(&format!("{place}: {what}"), fatal)
    }

    /// About a file as a whole.
    pub fn of(path: &Path, what: &str) -> Problem {
        Problem::told(&format!("{}: {what}", path.display()), true)
    }

    /// Text of files is in it: what would begin a line of its own in a log is taken out.
    pub fn told(text: &str, fatal: bool) -> Problem {
        Problem {
            text: clean(text),
            fatal,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fatal {
            f.write_str(&self.text)
        } else {
            write!(f, "{}, ignoring", self.text)
        }
    }
}
