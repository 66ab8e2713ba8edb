//! The object of a snapshot in a store, and the documents between the orchestrator and the program
//! that transfers it.

use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::PathBuf;

/// Name of the file that a snapshot's directory contains while its files are in the store alone.
pub const STORED_MARKER: &str = ".stored.json";
/// Plugin whose files are the pictures of a page, and how the name of the small one begins, which the
/// lists of the archive show. It stays when the files of the page are in the store alone.
pub const PICTURES: &str = "screenshot";
pub const SMALL_PICTURE: &str = "thumbnail.";
/// Name of the directory below a snapshot's directory that has restored files until all of them are
/// verified.
pub const RESTORING: &str = ".restoring";

/// Whether a name in a snapshot's directory is one of those that only transfers use. Archives have
/// none of these, and the end of a page removes those that a hook made.
pub fn is_reserved(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    name == STORED_MARKER
        || name == RESTORING
        || (bytes.starts_with(b".") && bytes.ends_with(b".part"))
}

crate::text::named! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Task {
        /// Copy the local files to the store, and read the copy back.
        #[default]
        Put = "put",
        /// Compare the local files with the copy, then remove them.
        Drop = "drop",
        /// Restore the local files from the copy.
        Get = "get",
        Delete = "delete",
        /// Write, read and remove a small object, without a snapshot.
        Test = "test",
    }
}

impl Task {
    /// Whether a user waits for it.
    pub fn is_urgent(self) -> bool {
        matches!(self, Task::Get | Task::Test)
    }

    /// Whether the unit changes the directory of the snapshot.
    pub fn writes_locally(self) -> bool {
        matches!(self, Task::Drop | Task::Get)
    }
}

/// A complete object in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredObject {
    /// The store, as [`super::Location`] displays it.
    pub store: String,
    /// Name below the location, with slashes.
    pub name: String,
    /// SHA-256 in hex.
    pub sha256: String,
    /// Size in bytes.
    pub size: u64,
}

/// What a transfer reads from its standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub task: Task,
    /// The store, as [`super::Location`] displays it.
    pub store: String,
    /// Directory of the snapshot; empty for [`Task::Test`].
    pub directory: PathBuf,
    /// Path of that directory below the archive, from which the name of the object is made.
    pub path: String,
    /// The object to compare with or to restore.
    pub object: Option<StoredObject>,
    /// Read the object before local files are removed, not only its size.
    pub reread: bool,
}

/// What a transfer writes to its standard output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    /// The verified object, after [`Task::Put`].
    pub object: Option<StoredObject>,
    pub error: Option<String>,
    /// The store has no intact copy, or the local files are no longer those of the copy: the local
    /// files have to be copied again.
    pub differs: bool,
}

/// Returns the name of the object for a directory with this path and the SHA-256 of its archive, in
/// hex. The same content has the same name, so a repeated transfer finds the complete object, another
/// content never replaces it, and sha256sum(1) shows whether an object is intact.
pub fn final_name(path: &str, sha256: &str) -> String {
    format!("{path}-{sha256}.tar")
}

/// Returns the name under which a transfer writes the object until it is verified. No two transfers
/// have the same name `writer`: a transfer never renames what another one is writing.
pub fn partial_name(name: &str, writer: &str) -> String {
    match name.rsplit_once('/') {
        Some((directory, file)) => format!("{directory}/.{file}.{writer}.part"),
        None => format!(".{name}.{writer}.part"),
    }
}

/// Whether a file of this name, in the directory of the objects of `path`, is what a killed transfer
/// of this snapshot left.
pub fn is_leftover(path: &str, file: &str) -> bool {
    let id = path.rsplit('/').next().unwrap_or(path);
    let rest = file.strip_prefix('.').and_then(|file| file.strip_prefix(id));
    rest.is_some_and(|rest| rest.starts_with('-') && rest.ends_with(".part"))
}

/// Whether a file of this name is an incomplete object, whose complete name will be `object`. Both
/// names are without directory. The object has the content that its name says, whichever transfer
/// writes it.
pub fn is_part_of(object: &str, file: &str) -> bool {
    let rest = file.strip_prefix('.').and_then(|file| file.strip_prefix(object));
    rest.is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".part"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_from_path_and_content() {
        let name = final_name("20261123/example.org/s7", "0123456789abcdef");
        assert_eq!(name, "20261123/example.org/s7-0123456789abcdef.tar");
        let partial = partial_name(&name, "web1");
        assert_eq!(partial, "20261123/example.org/.s7-0123456789abcdef.tar.web1.part");
        let file = partial.rsplit('/').next().unwrap();
        assert!(is_leftover("20261123/example.org/s7", file));
        assert_ne!(partial, partial_name(&name, "web2"));
        assert!(!is_leftover("20261123/example.org/s77", file));
        assert!(!is_leftover("20261123/example.org/s", file));
        assert!(!is_leftover("20261123/example.org/s7", &file[1..]));
        assert!(is_part_of("s7-0123456789abcdef.tar", file));
        assert!(!is_part_of("s7-0123456789abcdee.tar", file));
        assert!(!is_part_of("s7-0123456789abcdef.ta", file));
    }

    #[test]
    fn reserved_names_are_those_of_transfers() {
        for name in [STORED_MARKER, RESTORING, ".index.html.part"] {
            assert!(is_reserved(OsStr::new(name)), "{name}");
        }
        for name in ["index.html", "a.part", ".part.html", ".replaced-0"] {
            assert!(!is_reserved(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn tasks_round_trip() {
        for task in [Task::Put, Task::Drop, Task::Get, Task::Delete, Task::Test] {
            assert_eq!(Task::parse(task.as_str()), Some(task));
        }
    }
}
