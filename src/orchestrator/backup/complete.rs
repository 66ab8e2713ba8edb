//! The file that makes a directory a backup, and the backups in a directory.

use super::{COMPLETE, INDEX, Problem, Result, at, copy};
use archivist_core::model::Time;
use archivist_plugin::files::whole::{Survives, replace};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub const FORMAT: u32 = 1;
/// Permissions of the file, less the umask.
const MODE: u32 = 0o666;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complete {
    pub format: u32,
    /// When the copy of the database was made.
    pub taken_at: Time,
    pub version: String,
    pub host: String,
    pub data: PathBuf,
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// SHA-256 of the index.
    pub index_sha256: String,
    /// What is not in the backup.
    pub left_out: Vec<LeftOut>,
}

/// Something that is not in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Id of a page or crawl, or a path.
    pub what: String,
    /// URL of the page, without user and password; empty if it is none.
    #[serde(default)]
    pub url: String,
    pub why: String,
}

impl Complete {
    /// Writes the file into the directory of a backup, which is complete with it.
    pub fn write(&self, backup: &Path) -> Result<()> {
        let path = backup.join(COMPLETE);
        let write = || -> std::io::Result<()> {
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            replace(&path, &text, MODE, Survives::PowerCut)
        };
        write().map_err(at("write", &path))
    }

    /// Reads the file of a backup; none if the directory has none.
    ///
    /// # Errors
    /// If it cannot be read, or is of a newer version.
    pub fn read(backup: &Path) -> Result<Option<Complete>> {
        let path = backup.join(COMPLETE);
        let text = match fs::read(&path) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            other => other.map_err(at("read", &path))?,
        };
        let found: Complete = serde_json::from_slice(&text).map_err(at("read", &path))?;
        if found.format == FORMAT {
            return Ok(Some(found));
        }
        Err(Problem(format!(
            "'{}' is a backup of format {}, this program knows {FORMAT}: use archivist {} or newer",
            backup.display(),
            found.format,
            found.version
        )))
    }

    /// Whether the index is the one that was written with this file.
    pub fn has_index(&self, backup: &Path) -> Result<bool> {
        let path = backup.join(INDEX);
        let file = File::open(&path).map_err(at("read", &path))?;
        let sum = copy::digest(file).map_err(at("read", &path))?;
        Ok(sum == self.index_sha256)
    }
}

/// Returns the name of a backup: `20261125T193005Z`.
pub fn name(taken_at: Time) -> String {
    let text = taken_at.to_string();
    let seconds = text.split('.').next().unwrap_or_default();
    format!("{}Z", seconds.replace(['-', ':'], ""))
}

fn is_name(name: &str) -> bool {
    let digit = |at: &u8| at.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() == 16
        && bytes[8] == b'T'
        && bytes[15] == b'Z'
        && bytes[..8].iter().chain(&bytes[9..15]).all(digit)
}

/// Returns the complete backups in a directory, oldest first.
pub fn backups(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(at("read", directory))? {
        let name = entry.map_err(at("read", directory))?.file_name();
        let path = directory.join(&name);
        if name.to_str().is_some_and(is_name) && path.join(COMPLETE).is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_time_and_others_are_no_backups() {
        let taken = name(Time(1_795_253_105_123));
        assert_eq!(taken, "20261121T092505Z");
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["20261121T092505Z", "20261120T235959Z", "20261122T000000Z", "notes"] {
            fs::create_dir(path(name)).unwrap();
        }
        for name in ["20261121T092505Z", "20261120T235959Z", "notes"] {
            fs::write(path(name).join(COMPLETE), "{}").unwrap();
        }
        let found = backups(directory.path()).unwrap();
        assert_eq!(found, [path("20261120T235959Z"), path("20261121T092505Z")]);
        assert!(Complete::read(&found[0]).is_err(), "no document");
        assert_eq!(Complete::read(&path("20261122T000000Z")).unwrap(), None);
    }
}
