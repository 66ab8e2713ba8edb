//! Which installation an archive belongs to: of two disks, the other one may be mounted.
//!
//! The data directory has a random identity in a file. Workers leave the same in the archive, as the name
//! of an empty file next to the marks of ids ([`crate::id_marks`]). An archive with other identities only
//! is not used. A data directory without an identity, such as a new one next to an older archive, takes
//! that of the archive.

use crate::id_marks::make_directory;
use archivist_config::Scope;
use archivist_core::model::IdMarks;
use archivist_plugin::files::whole::{Survives, replace};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const FILE: &str = "installation";
const MARK: &str = "installation-";
/// 128 random bits in hex.
const LENGTH: usize = 32;
/// Mode of both files: the identity is no secret.
const MODE: u32 = 0o644;

/// Returns the file that has the identity of a data directory.
pub fn path(scope: &Scope) -> PathBuf {
    scope.data_dir().join(FILE)
}

/// Returns the identity of a data directory; `None` if it has none that can be read.
fn of_data(scope: &Scope) -> Option<String> {
    let file = File::open(path(scope)).ok()?;
    let mut text = String::new();
    file.take(2 * LENGTH as u64).read_to_string(&mut text).ok()?;
    let identity = text.trim_end();
    is_identity(identity).then(|| identity.to_owned())
}

fn is_identity(text: &str) -> bool {
    text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the identities that an archive has, in order; none if it has no marks.
///
/// # Errors
/// If the directory of the marks cannot be read.
fn of_archive(archive: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(archive.join(IdMarks::DIRECTORY)) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        other => other?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let identity = name.to_str().and_then(|name| name.strip_prefix(MARK));
        found.extend(identity.filter(|it| is_identity(it)).map(str::to_owned));
    }
    found.sort();
    Ok(found)
}

/// Returns whether an archive belongs to another installation than the data directory. One whose marks
/// this user cannot read counts as its own.
pub fn is_foreign(scope: &Scope, archive: &Path) -> bool {
    let Some(own) = of_data(scope) else {
        return false;
    };
    of_archive(archive).is_ok_and(|found| is_of_others(&found, &own))
}

fn is_of_others(found: &[String], own: &str) -> bool {
    !found.is_empty() && found.iter().all(|identity| identity != own)
}

/// Returns the identity of the data directory. If there is none, writes that of the archive, or `new` if
/// that has none either.
///
/// # Errors
/// If the marks of the archive cannot be read, or the file cannot be written.
pub fn settle(scope: &Scope, archive: &Path, new: String) -> io::Result<String> {
    if let Some(own) = of_data(scope) {
        return Ok(own);
    }
    let identity = of_archive(archive)?.into_iter().next().unwrap_or(new);
    replace(&path(scope), format!("{identity}\n").as_bytes(), MODE, Survives::PowerCut)?;
    Ok(identity)
}

/// Leaves this identity in an archive that has none. Returns false if it belongs to another installation.
///
/// # Errors
/// If the marks cannot be read or written.
pub fn mark(archive: &Path, own: &str) -> io::Result<bool> {
    let found = of_archive(archive)?;
    if found.is_empty() && is_identity(own) {
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).mode(MODE);
        let options = options.custom_flags(nix::libc::O_NOFOLLOW);
        options.open(make_directory(archive)?.join(format!("{MARK}{own}")))?;
    }
    Ok(!is_of_others(&found, own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(digit: char) -> String {
        digit.to_string().repeat(LENGTH)
    }

    /// A data directory with an archive that has pages.
    fn installation() -> (tempfile::TempDir, Scope, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let scope = Scope::system(top.path());
        let archive = scope.data_dir().join("archive");
        fs::create_dir_all(archive.join(IdMarks::DIRECTORY)).unwrap();
        (top, scope, archive)
    }

    #[test]
    fn archive_of_another_installation_is_foreign_until_its_identity_is_taken() {
        let (_first, scope, archive) = installation();
        assert_eq!(settle(&scope, &archive, identity('a')).unwrap(), identity('a'));
        assert!(!is_foreign(&scope, &archive), "no worker has marked it");
        assert!(mark(&archive, &identity('a')).unwrap());
        assert!(mark(&archive, &identity('a')).unwrap());
        assert!(!is_foreign(&scope, &archive));
        assert_eq!(settle(&scope, &archive, identity('b')).unwrap(), identity('a'));

        let (_other, other, its_archive) = installation();
        settle(&other, &its_archive, identity('c')).unwrap();
        assert!(mark(&its_archive, &identity('c')).unwrap());
        assert!(is_foreign(&scope, &its_archive));
        assert!(!mark(&its_archive, &identity('a')).unwrap());
        assert_eq!(of_archive(&its_archive).unwrap(), [identity('c')]);

        fs::remove_file(path(&scope)).unwrap();
        assert!(!is_foreign(&scope, &its_archive), "no identity yet");
        assert_eq!(settle(&scope, &its_archive, identity('d')).unwrap(), identity('c'));
        assert!(!is_foreign(&scope, &its_archive));
        assert!(is_foreign(&scope, &archive));
    }

    #[test]
    fn archive_that_several_installations_used_belongs_to_each() {
        let (_top, scope, archive) = installation();
        settle(&scope, &archive, identity('b')).unwrap();
        for one in ['a', 'b'] {
            let name = format!("{MARK}{}", identity(one));
            fs::write(archive.join(IdMarks::DIRECTORY).join(name), "").unwrap();
        }
        assert!(!is_foreign(&scope, &archive));
        assert!(mark(&archive, &identity('b')).unwrap());
    }

    #[test]
    fn damaged_identity_is_replaced() {
        let (_top, scope, archive) = installation();
        for text in ["", "a\n", "no identity"] {
            fs::write(path(&scope), text).unwrap();
            assert!(!is_foreign(&scope, &archive));
            assert_eq!(settle(&scope, &archive, identity('e')).unwrap(), identity('e'));
        }
        fs::remove_dir(archive.join(IdMarks::DIRECTORY)).unwrap();
        fs::remove_dir(&archive).unwrap();
        assert!(!is_foreign(&scope, &archive), "an archive that is gone");
        mark(&archive, &identity('e')).unwrap_err();
    }
}
