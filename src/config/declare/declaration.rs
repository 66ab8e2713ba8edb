//! A declaration as it was read. Only its name has been checked.

use crate::ini::IniEntry;
use archivist_core::text::Problem;
use std::path::PathBuf;

archivist_core::text::named! {
    /// Kind of a declaration: the suffix of the file's name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Kind {
        /// Workers that systemd keeps running: archivist.pool(5).
        Pool = "pool",
        /// Regular checks of sites: archivist.watch(5).
        Watch = "watch",
    }
}

impl Kind {
    /// Returns the name of the section of this kind.
    pub fn section(self) -> &'static str {
        match self {
            Kind::Pool => "Pool",
            Kind::Watch => "Watch",
        }
    }

    /// Returns kind and name of the declaration in a file of this name.
    pub fn of_file(file: &str) -> Option<(Kind, &str)> {
        Kind::ALL.into_iter().find_map(|kind| {
            let name = file.strip_suffix(kind.as_str())?.strip_suffix('.')?;
            Some((kind, name))
        })
    }

    /// Returns whether a declaration of this kind can have this name ([`NAME_ALLOWED`]). The name
    /// becomes part of unit names: in the name of a slice, '-' would put one pool into another.
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

/// Allowed names, for messages.
pub const NAME_ALLOWED: &str = "letters, digits, '_' and '.', for watches also '-' (100 characters at most, the first a letter or \
     digit)";

/// A file with its drop-ins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Kind of the file.
    pub kind: Kind,
    /// Name of the file without its suffix.
    pub name: String,
    /// The main file.
    pub path: PathBuf,
    /// The assignments of all files, the weakest first.
    pub entries: Vec<IniEntry>,
    /// Lines that are neither section, assignment nor comment.
    pub malformed: Vec<Problem>,
}
