//! The index of a backup: a line for each file, directory and link, in the order of their paths. It
//! has what a file system of another kind, or of another machine, cannot keep: owners by name, modes,
//! and what the original looked like, so that the next backup need not read it again.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io::{self, BufRead};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// What a file looks like while no process changes it. Its owner can set the time of modification, as
/// wget does, but not that of the last change (utimensat(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Bytes.
    pub size: u64,
    /// Time of the last modification, in nanoseconds since 1970.
    pub modified: i128,
    pub inode: u64,
    /// Time of the last change of content or inode, in nanoseconds since 1970.
    pub changed: i128,
}

fn nanos(seconds: i64, nanos: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanos)
}

impl Look {
    /// Returns that of an open file.
    pub fn of(found: &Metadata) -> Look {
        Look {
            size: found.size(),
            modified: nanos(found.mtime(), found.mtime_nsec()),
            inode: found.ino(),
            changed: nanos(found.ctime(), found.ctime_nsec()),
        }
    }

    /// Returns that of a directory or link, or of a file by its name.
    pub fn of_stat(found: &nix::sys::stat::FileStat) -> Look {
        Look {
            size: u64::try_from(found.st_size).unwrap_or_default(),
            modified: nanos(found.st_mtime, found.st_mtime_nsec),
            inode: found.st_ino,
            changed: nanos(found.st_ctime, found.st_ctime_nsec),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Directory,
    File {
        look: Look,
        /// SHA-256 in hex.
        sha256: String,
    },
    Link(OsString),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupEntry {
    /// Path below the directory of the backup.
    pub path: PathBuf,
    pub mode: u32,
    /// Name of the owner, or its number if it has no name.
    pub user: String,
    /// Name of the group, or its number.
    pub group: String,
    pub kind: EntryKind,
}

impl BackupEntry {
    /// Returns the line without its end.
    pub fn line(&self) -> Vec<u8> {
        let (user, group) = (&self.user, &self.group);
        let mut line = match &self.kind {
            EntryKind::Directory => format!("d\t{:04o}\t{user}\t{group}\t", self.mode),
            EntryKind::Link(_) => format!("l\t{:04o}\t{user}\t{group}\t", self.mode),
            EntryKind::File { look, sha256 } => format!(
                "f\t{:04o}\t{user}\t{group}\t{}\t{}\t{}\t{}\t{sha256}\t",
                self.mode, look.size, look.modified, look.inode, look.changed
            ),
        }
        .into_bytes();
        line.extend(escape(self.path.as_os_str()));
        if let EntryKind::Link(target) = &self.kind {
            line.push(b'\t');
            line.extend(escape(target));
        }
        line
    }

    /// Returns the entry of a line; none if it is none, or if its path leads out of the backup.
    pub fn parse(line: &[u8]) -> Option<BackupEntry> {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
        let text = |at: usize| std::str::from_utf8(fields.get(at)?).ok();
        let mode = u32::from_str_radix(text(1)?, 8).ok()?;
        let (kind, path) = match (text(0)?, fields.len()) {
            ("d", 5) => (EntryKind::Directory, fields[4]),
            ("l", 6) => (EntryKind::Link(unescape(fields[5])?), fields[4]),
            ("f", 10) => {
                let look = Look {
                    size: text(4)?.parse().ok()?,
                    modified: text(5)?.parse().ok()?,
                    inode: text(6)?.parse().ok()?,
                    changed: text(7)?.parse().ok()?,
                };
                let sha256 = text(8)?.to_owned();
                (EntryKind::File { look, sha256 }, fields[9])
            }
            _ => return None,
        };
        let path = PathBuf::from(unescape(path)?);
        let mut parts = path.components();
        if path.as_os_str().is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
            return None;
        }
        Some(BackupEntry {
            path,
            mode: mode & 0o7777,
            user: text(2)?.to_owned(),
            group: text(3)?.to_owned(),
            kind,
        })
    }

    /// Returns the line for sha256sum(1), with its end; none if the entry is no file.
    pub fn sum_line(&self) -> Option<Vec<u8>> {
        match &self.kind {
            EntryKind::File { sha256, .. } => Some(sum_line(sha256, &self.path)),
            _ => None,
        }
    }
}

/// Returns a line for `sha256sum --check`. It reads a name with special characters as [`escape`]
/// writes it if the line begins with a backslash.
pub fn sum_line(sha256: &str, path: &Path) -> Vec<u8> {
    let name = path.as_os_str().as_bytes();
    let special = |byte: &u8| matches!(byte, b'\\' | b'\n' | b'\r');
    let mut line = Vec::new();
    let is_special = name.iter().any(special);
    line.extend(is_special.then_some(b'\\'));
    line.extend(format!("{sha256}  ").bytes());
    for byte in name {
        match byte {
            b'\\' if is_special => line.extend(b"\\\\"),
            b'\n' => line.extend(b"\\n"),
            b'\r' => line.extend(b"\\r"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\n');
    line
}

/// Returns a name without tabs and ends of lines.
fn escape(name: &OsStr) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in name.as_bytes() {
        match byte {
            b'\\' => out.extend(b"\\\\"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            byte => out.push(*byte),
        }
    }
    out
}

fn unescape(text: &[u8]) -> Option<OsString> {
    let mut out = Vec::new();
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next()? {
                b'\\' => b'\\',
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                _ => return None,
            },
            byte => *byte,
        });
    }
    Some(OsString::from_vec(out))
}

pub struct IndexEntries<R>(pub R);

impl<R: BufRead> Iterator for IndexEntries<R> {
    type Item = io::Result<BackupEntry>;

    fn next(&mut self) -> Option<io::Result<BackupEntry>> {
        let mut line = Vec::new();
        match self.0.read_until(b'\n', &mut line) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let entry = BackupEntry::parse(line);
        Some(entry.ok_or_else(|| {
            let shown = String::from_utf8_lossy(line).escape_debug().to_string();
            io::Error::new(io::ErrorKind::InvalidData, format!("unexpected line '{shown}'"))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(path: OsString) -> BackupEntry {
        BackupEntry {
            path: path.into(),
            mode: 0o640,
            user: "archivist".to_owned(),
            group: "1007".to_owned(),
            kind: EntryKind::File {
                look: Look {
                    size: 7,
                    modified: -1_500_000_000,
                    inode: 12,
                    changed: 1_795_253_105_123_456_789,
                },
                sha256: "ab".repeat(32),
            },
        }
    }

    #[test]
    fn paths_out_of_the_backup_are_refused() {
        for path in ["../x", "/etc/passwd", "a/../../b", ""] {
            assert_eq!(BackupEntry::parse(&file(path.into()).line()), None, "{path}");
        }
        assert_eq!(BackupEntry::parse(b"f\t0640\ta\tb\tx\t0\t0\t0\tab\tp"), None);
        assert_eq!(BackupEntry::parse(b"d\t0750\ta\tb\tp\\q"), None);
    }

    #[test]
    fn sums_are_those_of_coreutils() {
        let line = |path: &str| String::from_utf8(sum_line("ab", Path::new(path))).unwrap();
        assert_eq!(line("data/a b\t"), "ab  data/a b\t\n");
        assert_eq!(line("a\\b\n"), "\\ab  a\\\\b\\n\n");
    }

    proptest! {
        #[test]
        fn lines_are_read_as_they_were_written(
            name in proptest::collection::vec(1u8.., 1..60),
            target in proptest::collection::vec(1u8.., 0..60),
        ) {
            let name: Vec<u8> = name.into_iter().filter(|byte| *byte != b'/').collect();
            let path = Path::new("data").join(OsStr::from_bytes(&name)).join("end");
            let mut entry = file(path.into_os_string());
            prop_assume!(!entry.path.components().any(|part| part == Component::ParentDir));
            let link = EntryKind::Link(OsString::from_vec(target));
            for kind in [entry.kind.clone(), EntryKind::Directory, link] {
                entry.kind = kind;
                let line = entry.line();
                prop_assert!(!line.contains(&b'\n'));
                prop_assert_eq!(BackupEntry::parse(&line), Some(entry.clone()));
            }
        }
    }
}
