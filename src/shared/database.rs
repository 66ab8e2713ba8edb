//! What an orchestrator knew about the file of its database when it ended: that all of it was checked
//! and found whole, or that it is damaged. The record is in the directory for files that last until the
//! next boot. It is valid as long as nothing has changed the file, so that the next orchestrator need
//! not check it again, and commands do not start an orchestrator that would refuse it again.

use archivist_config::Scope;
use archivist_plugin::files::whole::{Survives, Whole};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Mode of the record: commands of all users read it.
const MODE: u32 = 0o644;
/// Largest record that is read, in bytes.
const RECORD_MAX: u64 = 64 << 10;

pub fn path(scope: &Scope) -> PathBuf {
    scope.database()
}

/// Returns the path of the write-ahead log of the database at `path`.
pub fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    /// All of it was checked, and SQLite wrote it since.
    Whole,
    /// It is damaged; the message for users, with what to do.
    Damaged(String),
}

/// Identity of a file and of its content. Every write changes the time, which no program can set
/// (ctime, inode(7)).
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl FileStamp {
    /// `None` if there is no such file.
    fn of(path: &Path) -> Option<FileStamp> {
        let found = fs::metadata(path).ok()?;
        Some(FileStamp {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// Boot id: a user's directory may outlast the boot.
    boot: String,
    database: FileStamp,
    log: Option<FileStamp>,
}

impl State {
    fn of(scope: &Scope) -> Option<State> {
        let path = path(scope);
        Some(State {
            boot: fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?,
            database: FileStamp::of(&path)?,
            log: FileStamp::of(&log_of(&path)),
        })
    }
}

#[derive(Serialize, Deserialize)]
struct Record {
    state: State,
    finding: Finding,
}

fn record_path(scope: &Scope) -> PathBuf {
    let name = format!("{}.database.json", scope.unit_prefix());
    scope.runtime_dir().join(name)
}

/// Returns what is known about the database as it is now; `None` if nothing is, or it has changed.
pub fn known(scope: &Scope) -> Option<Finding> {
    let file = File::open(record_path(scope)).ok()?;
    let record: Record = serde_json::from_reader(io::Read::take(file, RECORD_MAX)).ok()?;
    (State::of(scope)? == record.state).then_some(record.finding)
}

/// Records what is known about the database as it is now. Call it after the last connection to the
/// database was closed, because SQLite may write then.
///
/// # Errors
/// If the record cannot be written. The next orchestrator checks the database then.
pub fn record(scope: &Scope, finding: Finding) -> io::Result<()> {
    let Some(state) = State::of(scope) else {
        return Ok(());
    };
    let text = serde_json::to_string(&Record { state, finding })?;
    let path = record_path(scope);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let whole = Whole::at(&path, MODE)?;
    whole.file().set_permissions(Permissions::from_mode(MODE))?;
    // Without a record, the next orchestrator checks the database.
    whole.write(text.as_bytes(), Survives::Kill)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_is_valid_until_a_file_changes() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        assert_eq!(known(&scope), None);
        record(&scope, Finding::Whole).unwrap();
        assert_eq!(known(&scope), None, "there is no database");
        let path = path(&scope);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "one").unwrap();
        record(&scope, Finding::Whole).unwrap();
        assert_eq!(known(&scope), Some(Finding::Whole));
        let mode = fs::metadata(record_path(&scope)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        // The same size, and a time that was set back.
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, "two").unwrap();
        File::open(&path).unwrap().set_modified(modified).unwrap();
        assert_eq!(known(&scope), None);
        let damaged = Finding::Damaged("a\nb".to_owned());
        record(&scope, damaged.clone()).unwrap();
        assert_eq!(known(&scope), Some(damaged));
        fs::write(log_of(&path), "").unwrap();
        assert_eq!(known(&scope), None, "a new log");
    }

    #[test]
    fn instances_have_records_of_their_own() {
        let root = tempfile::tempdir().unwrap();
        let first = Scope::system(root.path());
        let second = Scope { instance: Some("second".to_owned()), ..first.clone() };
        for scope in [&first, &second] {
            fs::create_dir_all(scope.data_dir()).unwrap();
            fs::write(path(scope), "").unwrap();
        }
        record(&first, Finding::Whole).unwrap();
        assert_eq!(known(&second), None);
    }
}
