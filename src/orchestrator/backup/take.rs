//! Makes a backup.

use super::complete::{self, Complete, FORMAT, LeftOut};
use super::index::{BackupEntry, EntryKind, Look, sum_line};
use super::source::{
    Copied, Copier, Looks, Part, Previous, SourceCounts, SourceFailure, entries, is_directory,
    missed,
};
use super::{
    ARCHIVE, BEFORE, CONFIG, DATA, DATABASE, INDEX, LOCKS, LOST_FOUND, PARTLY, Problem, RESTORING,
    Result, SUMS, at, copy, of_store, sync,
};
use crate::database::DatabaseError;
use crate::database::backup::{DatabaseCopy, OwnerRow};
use crate::machine::clock::now;
use archivist_config::Scope;
use archivist_core::model::{Owner, Time, without_userinfo};
use archivist_core::text::{clean, human_size};
use archivist_plugin::Directory;
use archivist_plugin::files::remove::remove_tree;
use archivist_plugin::files::tidy::Beyond;
use archivist_plugin::files::walk::{Walk, WalkBounds, WalkStep};
use archivist_shared::archive::DELETED_PREFIX;
use archivist_shared::deleted;
use nix::sys::stat::FileStat;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

/// How often a page that changes meanwhile is copied.
const ATTEMPTS: usize = 3;
/// A new directory may have an earlier time than the clock said before it: the kernel's times of files
/// are those of its last tick.
const TICK_NANOS: i128 = 1_000_000_000;
/// What an interrupted backup leaves: this, its name, and another end.
const PARTIAL: &str = ".partial";
/// Mode of the directory of a backup: it has secrets, and files of all users.
const MODE: u32 = 0o700;
/// Number of names below the data directory of the lowest units ([`unit_of`]).
const UNIT_LEVEL: usize = 4;
/// Bounds of directories without units: they may have any number of files.
const REST: WalkBounds = WalkBounds { entries: usize::MAX, ..WalkBounds::SEALED };
/// Longest list of what was left out that is printed.
const SHOWN_MAX: usize = 20;

/// Makes a backup of `scope` in the directory `to`, and prints what it has.
pub fn take(scope: &Scope, to: &Path, keep: Option<usize>) -> Result<ExitCode> {
    let data = scope.data_dir();
    let (to, lock) = open(to, &data)?;
    let taken = take_into(&to, scope, data, keep);
    // Closing it is not enough: a program that another thread is starting has a copy of the descriptor.
    lock.unlock().map_err(at("unlock", &to))?;
    taken
}

fn take_into(to: &Path, scope: &Scope, data: PathBuf, keep: Option<usize>) -> Result<ExitCode> {
    remove_partial(to)?;
    let previous = complete::backups(to)?.pop();
    let (taken_at, name) = free_name(to);
    let partial = to.join(format!(".{name}{PARTIAL}"));
    make(&partial)?;
    let database = data.join(DATABASE);
    let copied = DatabaseCopy::make(&database, &partial.join(DATABASE));
    let rows = copied.map_err(|error| explain(&database, &error))?;
    let mut backup = Backup {
        copier: Copier::new(partial.clone(), previous.as_deref().and_then(previous_index)),
        index: Index::create(&partial)?,
        rows,
        data: data.clone(),
        began: i128::from(taken_at.0) * 1_000_000 - TICK_NANOS,
        counts: SourceCounts::default(),
        left_out: Vec::new(),
        unread: false,
    };
    let config = scope.config_dirs().pop();
    backup.tree(config.as_deref(), CONFIG)?;
    backup.tree(Some(&data), DATA)?;
    let unread = backup.unread;
    let (counts, left_out, index_sha256) = backup.finish(&partial)?;
    let complete = Complete {
        format: FORMAT,
        taken_at,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host(),
        data,
        files: counts.files,
        bytes: counts.bytes,
        index_sha256,
        left_out,
    };
    sync(&partial)?;
    complete.write(&partial)?;
    let path = to.join(name);
    fs::rename(&partial, &path).map_err(at("rename", &partial))?;
    sync(to)?;
    print(&path, &complete, counts);
    if let Some(keep) = keep {
        prune(to, keep.max(1))?;
    }
    Ok(if unread { ExitCode::from(PARTLY) } else { ExitCode::SUCCESS })
}

/// Opens the directory of all backups, which must be outside of the data directory, and locks it.
fn open(to: &Path, data: &Path) -> Result<(PathBuf, File)> {
    make(to)?;
    let to = to.canonicalize().map_err(at("open", to))?;
    let data = data.canonicalize().map_err(at("open", data))?;
    if to.starts_with(&data) || data.starts_with(&to) {
        return Err(Problem(format!(
            "failed to back up to '{}': choose a directory outside of the data directory '{}', on another disk if there is one",
            to.display(),
            data.display()
        )));
    }
    let path = to.join(".lock");
    let lock = File::create(&path).map_err(at("open", &path))?;
    match lock.try_lock() {
        Ok(()) => Ok((to, lock)),
        Err(fs::TryLockError::WouldBlock) => {
            Err(Problem(format!("another backup to '{}' is running", to.display())))
        }
        Err(fs::TryLockError::Error(error)) => Err(at("lock", &path)(error)),
    }
}

fn make(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    let made = builder.mode(MODE).recursive(true).create(path);
    made.map_err(at("create", path))
}

fn remove_partial(to: &Path) -> Result<()> {
    for entry in fs::read_dir(to).map_err(at("read", to))? {
        let entry = entry.map_err(at("read", to))?;
        let name = entry.file_name();
        if name.as_bytes().starts_with(b".2") && name.as_bytes().ends_with(PARTIAL.as_bytes()) {
            let path = entry.path();
            remove_tree(&path).map_err(at("remove", &path))?;
        }
    }
    Ok(())
}

/// The present time, and a name that no backup has yet.
fn free_name(to: &Path) -> (Time, String) {
    let taken_at = now();
    let mut shown = taken_at;
    loop {
        let name = complete::name(shown);
        if !to.join(&name).exists() {
            return (taken_at, name);
        }
        shown = Time(shown.0 + 1000);
    }
}

fn host() -> String {
    let machine = nix::sys::utsname::uname().ok();
    machine.map_or_else(String::new, |machine| machine.nodename().to_string_lossy().into_owned())
}

/// The index of the backup before. A damaged one is not used.
fn previous_index(backup: &Path) -> Option<Previous> {
    let complete = Complete::read(backup).ok()??;
    let is_intact = complete.has_index(backup).unwrap_or(false);
    let index = File::open(backup.join(INDEX)).ok().filter(|_| is_intact)?;
    Some(Previous::new(backup.to_owned(), index))
}

fn explain(database: &Path, error: &DatabaseError) -> Problem {
    let path = database.display();
    if let Some(damage) = error.damage() {
        return Problem(format!(
            "failed to back up '{path}': {damage}\nnothing was backed up; restore an older backup, or recover its readable rows: sqlite3 '{path}' .recover | sqlite3 new.sqlite3"
        ));
    }
    Problem(error.message(database))
}

/// Index and sums, as they are written.
struct Index {
    index: BufWriter<File>,
    sums: BufWriter<File>,
}

impl Index {
    fn create(backup: &Path) -> Result<Index> {
        let create = |name: &str| {
            let path = backup.join(name);
            File::create_new(&path).map_err(at("create", &path))
        };
        Ok(Index { index: BufWriter::new(create(INDEX)?), sums: BufWriter::new(create(SUMS)?) })
    }

    fn add(&mut self, entry: &BackupEntry) -> std::io::Result<()> {
        self.index.write_all(&entry.line())?;
        self.index.write_all(b"\n")?;
        match entry.sum_line() {
            Some(line) => self.sums.write_all(&line),
            None => Ok(()),
        }
    }
}

/// What became of a unit.
enum Whole {
    /// It is in the backup, without this.
    Copied(Beyond),
    /// Its files change all the time.
    Changes,
}

/// What is copied as a whole.
enum Unit {
    /// The directory of a crawl or page.
    Owner(Owner),
    /// Another one, whose files belong together: an index of the archive, a persona.
    Other,
}

/// The unit that a directory is, by its path below the data directory.
fn unit_of(path: &Path) -> Option<Unit> {
    let parts: Option<Vec<&str>> = path
        .components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    match parts?[..] {
        [ARCHIVE, _, _, name] => Owner::of_directory(name).map(Unit::Owner),
        ["index" | "personas", _] => Some(Unit::Other),
        _ => None,
    }
}

/// Whether a path below the data directory is not part of a backup: locks, temporary files, what was
/// moved away, which pages were deleted, and the database, which is copied otherwise.
fn is_skipped(path: &Path) -> bool {
    let mut parts = path.components().map(Component::as_os_str);
    let name = path.file_name().unwrap_or_default().as_bytes();
    match (parts.next().and_then(OsStr::to_str), parts.count()) {
        (_, 0) => {
            name.starts_with(DATABASE.as_bytes())
                || [LOCKS, LOST_FOUND, ".setup", deleted::FILE].map(str::as_bytes).contains(&name)
                || is_moved(name)
        }
        (Some(ARCHIVE), 1) => {
            [".run", LOST_FOUND].map(str::as_bytes).contains(&name) || is_moved(name)
        }
        // It is built again from rows and texts.
        (Some("index"), 1) => name == b"search",
        // A directory that its first worker has not given its name yet, and the rest of a deleted one.
        (Some(ARCHIVE), 3) => {
            name.starts_with(b".new-") || name.starts_with(DELETED_PREFIX.as_bytes())
        }
        _ => false,
    }
}

/// Whether restorations made a directory of this name.
fn is_moved(name: &[u8]) -> bool {
    name.starts_with(BEFORE.as_bytes()) || name == RESTORING.as_bytes()
}

struct Backup {
    copier: Copier,
    index: Index,
    rows: DatabaseCopy,
    data: PathBuf,
    /// Nanoseconds since 1970.
    began: i128,
    counts: SourceCounts,
    left_out: Vec<LeftOut>,
    /// Something could not be read.
    unread: bool,
}

impl Backup {
    /// Copies a directory to `name` of the backup, if it exists.
    fn tree(&mut self, from: Option<&Path>, name: &str) -> Result<()> {
        let Some(from) = from.filter(|from| from.is_dir()) else {
            return Ok(());
        };
        let dir = Directory::open(from).map_err(at("read", from))?;
        let found = nix::sys::stat::fstat(&dir).map_err(at("read", from))?;
        self.directory(&found, Path::new(name))?;
        self.level(&dir, Path::new(name))
    }

    /// Copies everything below a directory that has no units.
    fn rest(&mut self, dir: &Directory, path: &Path) -> Result<()> {
        let walk = Walk::new(dir, REST).map_err(at("read", dir.path()));
        let walk = self.settle(path, walk.map_err(SourceFailure::Unreadable))?;
        let Some(mut walk) = walk else {
            return Ok(());
        };
        while let Some(step) = walk.step() {
            match step {
                WalkStep::Enter(found) => self.directory(&found.stat, &path.join(found.below()))?,
                WalkStep::Leaf(entry) => {
                    let path = path.join(entry.below());
                    self.leaf(entry.dir, entry.name, &entry.stat, &path)?;
                }
                WalkStep::Missed { path: below, why, .. } => {
                    let missed: Copied<()> = Err(missed(dir, below, &why));
                    self.settle(&path.join(below), missed)?;
                }
                WalkStep::Leave => {}
            }
        }
        Ok(())
    }

    fn directory(&mut self, found: &FileStat, path: &Path) -> Result<()> {
        let mut part = Part::default();
        let made = self.copier.make(path, found, &mut part);
        self.settle(path, made)?;
        self.flush(part)
    }

    /// Copies what is in a directory, in the order of the names; units as a whole.
    fn level(&mut self, dir: &Directory, path: &Path) -> Result<()> {
        let listed = entries(dir).map_err(at("read", dir.path()));
        let listed = self.settle(path, listed.map_err(SourceFailure::Unreadable))?;
        for (name, found) in listed.unwrap_or_default() {
            let path = path.join(&name);
            let below_data = path.strip_prefix(DATA).ok().map(Path::to_owned);
            let was_moved = path.parent() == Some(Path::new(CONFIG)) && is_moved(name.as_bytes());
            if was_moved || below_data.as_deref().is_some_and(is_skipped) {
                continue;
            }
            // The administrator may have moved the archive to another disk.
            let is_archive = below_data.as_deref() == Some(Path::new(ARCHIVE));
            let inner = if is_archive {
                Some(Directory::open(&dir.path().join(&name)))
            } else {
                is_directory(&found).then(|| dir.enter(&name))
            };
            let Some(inner) = inner else {
                self.leaf(dir, &name, &found, &path)?;
                continue;
            };
            let inner = match inner {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                other => other.map_err(at("read", &dir.path().join(&name))),
            };
            let Some(inner) = self.settle(&path, inner.map_err(SourceFailure::Unreadable))? else {
                continue;
            };
            let found = if is_archive {
                nix::sys::stat::fstat(&inner).map_err(at("read", inner.path()))?
            } else {
                found
            };
            if let Some(unit) = below_data.as_deref().and_then(unit_of) {
                self.unit(&inner, &found, &path, &unit)?;
            } else {
                self.directory(&found, &path)?;
                match below_data.map(|path| path.components().count()) {
                    Some(..UNIT_LEVEL) => self.level(&inner, &path)?,
                    _ => self.rest(&inner, &path)?,
                }
            }
        }
        Ok(())
    }

    fn leaf(&mut self, dir: &Directory, name: &OsStr, found: &FileStat, path: &Path) -> Result<()> {
        let mut part = Part::default();
        let copied = self.copier.leaf(dir, name, found, path, &mut part);
        if self.settle(path, copied)?.is_some() {
            self.flush(part)?;
        }
        Ok(())
    }

    /// Copies a unit, unless it is new or running or changes all the time.
    fn unit(&mut self, dir: &Directory, found: &FileStat, path: &Path, unit: &Unit) -> Result<()> {
        let row = match unit {
            Unit::Owner(owner) => self.row(*owner)?,
            Unit::Other => None,
        };
        let row = row.filter(|row| Path::new(&row.directory) == dir.path());
        if let (Unit::Owner(owner), None) = (unit, &row)
            && Look::of_stat(found).modified >= self.began
        {
            self.leave_out(&owner.to_string(), "", "it began after this backup");
            return Ok(());
        }
        // Those that run are named at the end.
        let runs = row.as_ref().is_some_and(|row| row.runs);
        if runs && matches!(unit, Unit::Owner(Owner::Snapshot(_))) {
            return Ok(());
        }
        let why = match self.whole(dir, found, path) {
            Ok(Whole::Copied(beyond)) => {
                if let Some(remark) = beyond.remark() {
                    self.unread = true;
                    let (what, url) = row.map_or_else(
                        || (path.to_string_lossy().into_owned(), String::new()),
                        |row| (row.owner.to_string(), row.url),
                    );
                    self.leave_out(&what, &url, &remark);
                }
                return Ok(());
            }
            Ok(Whole::Changes) => "its files change".to_owned(),
            Err(SourceFailure::Unwritable(problem)) => return Err(problem),
            Err(SourceFailure::Unreadable(problem)) => {
                self.unread = true;
                problem.to_string()
            }
        };
        let copy = self.copier.backup.join(path);
        remove_tree(&copy).map_err(at("remove", &copy))?;
        match row {
            None => self.leave_out(&path.to_string_lossy(), "", &why),
            Some(row) => {
                let failed = of_store(&self.data.join(DATABASE));
                self.rows.leave_out(row.owner).map_err(failed)?;
                self.leave_out(&row.owner.to_string(), &row.url, &why);
            }
        }
        Ok(())
    }

    fn row(&self, owner: Owner) -> Result<Option<OwnerRow>> {
        let path = self.copier.backup.join(DATABASE);
        self.rows.owner(owner).map_err(of_store(&path))
    }

    /// Copies a unit until it did not change meanwhile.
    fn whole(&mut self, dir: &Directory, found: &FileStat, path: &Path) -> Copied<Whole> {
        for _ in 0..ATTEMPTS {
            let before = Looks::of(dir)?;
            let mut part = Part::default();
            self.copier.make(path, found, &mut part)?;
            let beyond = self.copier.below(dir, path, &mut part)?;
            if Looks::of(dir)? == before {
                return self
                    .flush(part)
                    .map(|()| Whole::Copied(beyond))
                    .map_err(SourceFailure::Unwritable);
            }
            let copy = self.copier.backup.join(path);
            remove_tree(&copy).map_err(at("remove", &copy)).map_err(SourceFailure::Unwritable)?;
        }
        Ok(Whole::Changes)
    }

    /// Returns what was copied; none if it could not be read, which is noted.
    fn settle<T>(&mut self, path: &Path, copied: Copied<T>) -> Result<Option<T>> {
        match copied {
            Ok(done) => Ok(Some(done)),
            Err(SourceFailure::Unwritable(problem)) => Err(problem),
            Err(SourceFailure::Unreadable(problem)) => {
                self.unread = true;
                self.leave_out(&path.to_string_lossy(), "", &problem.to_string());
                Ok(None)
            }
        }
    }

    fn leave_out(&mut self, what: &str, url: &str, why: &str) {
        self.left_out.push(LeftOut {
            what: clean(what),
            url: clean(&without_userinfo(url)),
            why: clean(why),
        });
    }

    fn flush(&mut self, part: Part) -> Result<()> {
        self.counts.add(part.counts);
        for entry in &part.entries {
            let added = self.index.add(entry);
            added.map_err(at("write", &self.copier.backup.join(INDEX)))?;
        }
        Ok(())
    }

    /// Closes the copy of the database, and adds it to the index. Returns what was copied, what was
    /// left out, and the digest of the index.
    fn finish(mut self, partial: &Path) -> Result<(SourceCounts, Vec<LeftOut>, String)> {
        let path = partial.join(DATABASE);
        let failed = of_store(&path);
        for row in self.rows.running().map_err(&failed)? {
            self.rows.leave_out(row.owner).map_err(&failed)?;
            self.leave_out(&row.owner.to_string(), &row.url, "it is running");
        }
        self.rows.close().map_err(failed)?;
        let file = File::open(&path).map_err(at("read", &path))?;
        let look = Look::of(&file.metadata().map_err(at("read", &path))?);
        let sha256 = copy::digest(&file).map_err(at("read", &path))?;
        self.counts.add(SourceCounts {
            files: 1,
            bytes: look.size,
            read: 1,
            read_bytes: look.size,
        });
        let entry = BackupEntry {
            path: DATABASE.into(),
            mode: 0o600,
            user: String::new(),
            group: String::new(),
            kind: EntryKind::File { look, sha256 },
        };
        let index = partial.join(INDEX);
        self.index.add(&entry).map_err(at("write", &index))?;
        self.index.index.flush().map_err(at("write", &index))?;
        let file = File::open(&index).map_err(at("read", &index))?;
        let sum = copy::digest(file).map_err(at("read", &index))?;
        let line = sum_line(&sum, Path::new(INDEX));
        let mut sums = self.index.sums;
        let written = sums.write_all(&line).and_then(|()| sums.flush());
        written.map_err(at("write", &partial.join(SUMS)))?;
        Ok((self.counts, self.left_out, sum))
    }
}

fn print(path: &Path, complete: &Complete, counts: SourceCounts) {
    println!(
        "complete: {}\n{} files, {}; {} new or changed, {}",
        path.display(),
        counts.files,
        human_size(counts.bytes),
        counts.read,
        human_size(counts.read_bytes)
    );
    let left_out = &complete.left_out;
    if left_out.is_empty() {
        return;
    }
    println!("not in this backup:");
    for one in left_out.iter().take(SHOWN_MAX) {
        let words = [&one.what, &one.url].map(String::as_str);
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        println!("  {}: {}", words.join(" "), one.why);
    }
    if let Some(more) = left_out.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        println!("  and {more} more, see '{}'", path.join(super::COMPLETE).display());
    }
}

/// Removes the oldest backups. `COMPLETE` goes first, so that no half of one is left.
fn prune(to: &Path, keep: usize) -> Result<()> {
    let backups = complete::backups(to)?;
    let old = backups.len().saturating_sub(keep);
    for path in &backups[..old] {
        for part in [path.join(super::COMPLETE), path.clone()] {
            remove_tree(&part).map_err(at("remove", &part))?;
        }
        println!("removed: {}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_personas_and_indexes_are_units() {
        let owner = |path: &str| match unit_of(Path::new(path)) {
            Some(Unit::Owner(owner)) => Some(owner.to_string()),
            _ => None,
        };
        assert_eq!(owner("archive/20261125/a.test/s7"), Some("s7".to_owned()));
        assert_eq!(owner("archive/20261125/s1/c7-0011aaff"), Some("c7".to_owned()));
        for path in [
            "archive/20261125/s7",
            "archive/20261125/a.test/s7/wget",
            "lib/a/b/s7",
            "archive/.index/a/1",
        ] {
            assert_eq!(owner(path), None, "{path}");
        }
        assert!(matches!(unit_of(Path::new("personas/work")), Some(Unit::Other)));
        assert!(unit_of(Path::new("personas/work/Default")).is_none());
    }

    #[test]
    fn locks_and_temporary_files_are_skipped() {
        for path in [
            "archivist.sqlite3-wal",
            "runner.lock",
            "deleted",
            ".before-20261125T000000Z",
            "archive/.run",
            "archive/.restoring",
            "archive/20261125/a.test/.new-0011",
            "archive/20261125/a.test/.deleted-s7",
            "index/search",
        ] {
            assert!(is_skipped(Path::new(path)), "{path}");
        }
        for path in [
            "archive/.index",
            "index/search_backend_sqlite",
            "lib/.run",
            "lib/runner.lock",
            "archive/20261125/a.test/s1",
            "personas",
        ] {
            assert!(!is_skipped(Path::new(path)), "{path}");
        }
    }
}
