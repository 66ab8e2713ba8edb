//! What a data directory of ArchiveBox has. Its database and the files about its snapshots are parsed by
//! processes without rights; this one only opens and copies them.

use super::super::{failed, reader};
use super::layout::Layout;
use crate::client::exit::Failure;
use crate::verb::orchestrator;
use crate::verb::survey::archivebox::{Header, INDEX_MAX, LIST_MAX};
use archivist_config::Scope;
use archivist_core::text::clean;
use archivist_plugin::Directory;
use archivist_plugin::files;
use archivist_shared::archivebox::{BoxLine, BoxSnapshot};
use nix::fcntl::AT_FDCWD;
use nix::libc::{S_IFDIR, S_IFMT};
use nix::unistd::{Uid, fchownat, mkdtemp};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

/// The database.
const DATABASE: &str = "index.sqlite3";
/// Its write-ahead log, which has what was not written to it yet.
const LOG: &str = "index.sqlite3-wal";
/// Bytes that the readers may print.
const LINES_MAX_BYTES: u64 = 1 << 30;
/// Times that a database is copied which changes meanwhile.
const COPIES_MAX: usize = 3;
/// The file about all snapshots of versions before the database.
const LIST: &str = "index.json";
/// The file about a snapshot of versions before 0.9.
const OLD_INDEX: &str = "index.json";
/// Files about a snapshot, of which the first counts.
const INDEXES: [&str; 2] = [OLD_INDEX, "index.jsonl"];

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    pub snapshots: Vec<BoxSnapshot>,
    /// Snapshots of which the database has no row.
    pub orphans: usize,
    pub faults: Vec<String>,
}

/// The directories of snapshots.
pub struct Places {
    top: Directory,
    /// The names of the directories in `archive`.
    flat: BTreeSet<String>,
    /// The directories since 0.9 by the id of the snapshot.
    by_id: BTreeMap<String, Vec<OsString>>,
}

/// Whether a directory is one of ArchiveBox.
pub fn is_box(top: &Directory) -> bool {
    top.stat(DATABASE).is_ok() || enter(top, &["archive".into()]).is_ok()
}

impl Places {
    /// Lists the directories of snapshots.
    pub fn list(top: Directory, faults: &mut Vec<String>) -> Places {
        let mut places = Places {
            top,
            flat: BTreeSet::new(),
            by_id: BTreeMap::new(),
        };
        let archive: OsString = "archive".into();
        for name in places.names(std::slice::from_ref(&archive), faults) {
            if name != "users"
                && let Some(text) = name.to_str()
            {
                places.flat.insert(text.to_owned());
            }
        }
        let users = [archive, "users".into()];
        for user in places.names(&users, &mut Vec::new()) {
            let all = [&users[..], &[user, "snapshots".into()]].concat();
            for day in places.names(&all, faults) {
                let day = [&all[..], &[day]].concat();
                for host in places.names(&day, faults) {
                    let host = [&day[..], &[host]].concat();
                    for id in places.names(&host, faults) {
                        let plain = id.to_string_lossy().replace('-', "").to_ascii_lowercase();
                        places.by_id.insert(plain, [&host[..], &[id]].concat());
                    }
                }
            }
        }
        places
    }

    /// The names of the directories in a directory; links are none.
    fn names(&self, path: &[OsString], faults: &mut Vec<String>) -> Vec<OsString> {
        let read = enter(&self.top, path).and_then(|directory| {
            let mut names = directory.names()?;
            names.retain(|name| {
                let found = directory.stat(name);
                found.is_ok_and(|found| found.st_mode & S_IFMT == S_IFDIR)
            });
            Ok(names)
        });
        read.unwrap_or_else(|error| {
            if error.kind() != ErrorKind::NotFound {
                faults.push(format!("{}: {error}", shown(path)));
            }
            Vec::new()
        })
    }

    /// The directory of a snapshot, and how it is arranged.
    pub fn open(&self, snapshot: &BoxSnapshot) -> Option<(Directory, Layout)> {
        if let Some(path) = self.by_id.get(&snapshot.id) {
            let directory = enter(&self.top, path).ok()?;
            let layout = match directory.stat(OsStr::new(OLD_INDEX)) {
                Ok(_) => Layout::Flat,
                Err(_) => Layout::Plugins,
            };
            return Some((directory, layout));
        }
        let name = self.flat_name(&snapshot.timestamp)?;
        let path = ["archive".into(), name.into()];
        Some((enter(&self.top, &path).ok()?, Layout::Flat))
    }

    /// The name of a directory with this timestamp. Old versions write `1618912800.0` as `1618912800`.
    fn flat_name(&self, timestamp: &str) -> Option<&str> {
        if let Some(name) = self.flat.get(timestamp) {
            return Some(name);
        }
        let same = significant(timestamp);
        let mut near = self
            .flat
            .range(same.split('.').next().unwrap_or(same).to_owned()..);
        let start = same.split('.').next().unwrap_or(same);
        near.by_ref()
            .take_while(|name| name.starts_with(start))
            .find(|name| significant(name) == same)
            .map(String::as_str)
    }

    /// The directories that none of these snapshots has, each with the name that its snapshot gets.
    fn others(&self, snapshots: &[BoxSnapshot]) -> Vec<(String, Vec<OsString>)> {
        let own: BTreeSet<&str> = snapshots
            .iter()
            .filter_map(|snapshot| self.flat_name(&snapshot.timestamp))
            .collect();
        let ids: BTreeSet<&str> = snapshots.iter().map(|snapshot| &*snapshot.id).collect();
        let flat = self.flat.iter().filter(|name| !own.contains(name.as_str()));
        let flat = flat.map(|name| (name.clone(), vec!["archive".into(), name.into()]));
        let by_id = self
            .by_id
            .iter()
            .filter(|(id, _)| !ids.contains(id.as_str()));
        flat.chain(by_id.map(|(id, path)| (id.clone(), path.clone())))
            .collect()
    }
}

/// A timestamp without the zeros at its end.
fn significant(timestamp: &str) -> &str {
    if timestamp.contains('.') {
        timestamp.trim_end_matches('0').trim_end_matches('.')
    } else {
        timestamp
    }
}

/// Opens a directory below `top`, without following links.
fn enter(top: &Directory, path: &[OsString]) -> io::Result<Directory> {
    path.iter()
        .try_fold(top.here()?, |from, name| from.enter(name))
}

fn shown(path: &[OsString]) -> String {
    let path: PathBuf = path.iter().collect();
    clean(&path.to_string_lossy())
}

/// Reads the database, and the files about snapshots that it does not know or whose results it does not
/// have; without a database, also the file about all snapshots.
pub fn read(top: Directory, scope: &Scope) -> Result<(Found, Places), Failure> {
    let mut found = Found::default();
    if top.stat(DATABASE).is_ok() {
        let copy = Copied::of(&top)?;
        let program = orchestrator::command(scope)?.get_program().to_owned();
        let opened =
            File::open(&program).map_err(|error| failed("open", Path::new(&program), &error))?;
        // The reader may have no access to the directory of the program.
        let mut command = Command::new(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        command.arg("archivebox").arg(copy.directory.join(DATABASE));
        command.stdin(Stdio::null());
        take_lines(
            command,
            |_| {},
            &mut found,
            |found, snapshot| {
                found.snapshots.push(snapshot);
            },
        )?;
    }
    let places = Places::list(top, &mut found.faults);
    let (mut wanted, mut missing) = (Vec::new(), BTreeMap::new());
    for (at, snapshot) in found.snapshots.iter().enumerate() {
        if snapshot.results.is_empty()
            && let Some(name) = places.flat_name(&snapshot.timestamp)
        {
            wanted.push((name.to_owned(), vec!["archive".into(), name.into()]));
            missing.insert(name.to_owned(), at);
        }
    }
    wanted.extend(places.others(&found.snapshots));
    let mut unknown: BTreeSet<String> = wanted.iter().map(|(name, _)| name.clone()).collect();
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["survey", "--archivebox"])
        .stdin(Stdio::piped());
    // A database has what the list had, and what was deleted since.
    let mut list = None;
    if found.snapshots.is_empty()
        && let Ok(file) = places.top.read(LIST)
    {
        list = bounded(file, LIST_MAX);
        if list.is_none() {
            let mib = LIST_MAX >> 20;
            found.faults.push(format!("{LIST}: longer than {mib} MiB"));
        }
    }
    let send = |input| send_all(input, &places, &wanted, list);
    let mut listed = Vec::new();
    take_lines(command, send, &mut found, |found, mut snapshot| {
        if !unknown.remove(&snapshot.timestamp) && !missing.contains_key(&snapshot.timestamp) {
            return listed.push(snapshot);
        }
        match missing.get(&snapshot.timestamp) {
            Some(at) => found.snapshots[*at].results = snapshot.results,
            None => {
                if places.by_id.contains_key(&snapshot.timestamp) {
                    snapshot.id.clone_from(&snapshot.timestamp);
                }
                found.orphans += 1;
                found.snapshots.push(snapshot);
            }
        }
    })?;
    // The file in the directory of a snapshot says more than the list.
    let known = found.snapshots.iter();
    let known: BTreeSet<String> = known
        .map(|snapshot| significant(&snapshot.timestamp).to_owned())
        .collect();
    listed.retain(|snapshot| !known.contains(significant(&snapshot.timestamp)));
    for snapshot in &listed {
        places
            .flat_name(&snapshot.timestamp)
            .map(|name| unknown.remove(name));
    }
    found.snapshots.append(&mut listed);
    for (name, path) in &wanted {
        let is_reported = found.faults.iter().any(|fault| fault.starts_with(name));
        if unknown.contains(name) && !missing.contains_key(name) && !is_reported {
            let what = without_index(&places.top, path);
            found.faults.push(format!("{}: {what}", shown(path)));
        }
    }
    Ok((found, places))
}

fn take_lines(
    command: Command,
    write: impl FnOnce(ChildStdin) + Send,
    found: &mut Found,
    mut take: impl FnMut(&mut Found, BoxSnapshot),
) -> Result<(), Failure> {
    let mut unusable = None;
    reader::lines(command, LINES_MAX_BYTES, write, |line| match line {
        BoxLine::Snapshot(snapshot) => take(found, snapshot),
        BoxLine::Fault(fault) => found.faults.push(fault),
        BoxLine::Unusable(why) => unusable = Some(why),
    })?;
    if let Some(why) = unusable {
        // The files about the snapshots may be whole.
        found
            .faults
            .push(format!("{DATABASE} cannot be used: {}", clean(&why)));
    }
    Ok(())
}

/// Sends the files about snapshots to their reader, at last that about all of them. It ends if that does.
fn send_all(
    mut input: ChildStdin,
    places: &Places,
    wanted: &[(String, Vec<OsString>)],
    list: Option<(File, u64)>,
) {
    for (name, path) in wanted {
        if let Some(file) = index_of(&places.top, path)
            && send(&mut input, name, file, false).is_err()
        {
            return;
        }
    }
    if let Some(file) = list {
        let _ = send(&mut input, LIST, file, true);
    }
}

/// Fails if the reader has ended. A file that cannot be read is left out.
fn send(
    input: &mut ChildStdin,
    name: &str,
    (file, bytes): (File, u64),
    is_list: bool,
) -> io::Result<()> {
    let mut content = Vec::new();
    if file.take(bytes).read_to_end(&mut content).is_err() {
        return Ok(());
    }
    let header = Header {
        name: name.to_owned(),
        bytes: content.len() as u64,
        is_list,
    };
    let header = serde_json::to_string(&header).map_err(io::Error::other)?;
    writeln!(input, "{header}")?;
    input.write_all(&content)
}

/// Opens the file about the snapshot of a directory; `None` if there is none that can be read.
fn index_of(top: &Directory, path: &[OsString]) -> Option<(File, u64)> {
    let directory = enter(top, path).ok()?;
    INDEXES
        .iter()
        .find_map(|name| bounded(directory.read(name).ok()?, INDEX_MAX))
}

/// Why the directory of a snapshot without a row had no index that was read.
fn without_index(top: &Directory, path: &[OsString]) -> String {
    let directory = enter(top, path);
    let lengths = |name: &&str| {
        let file = directory.as_ref().ok()?.read(*name).ok()?;
        Some(file.metadata().ok()?.len())
    };
    if INDEXES
        .iter()
        .filter_map(lengths)
        .any(|bytes| bytes > INDEX_MAX)
    {
        return format!("its index is longer than {} MiB", INDEX_MAX >> 20);
    }
    "no snapshot: it has neither a row in the database nor an index".to_owned()
}

/// A file and its length, if that is at most so many bytes.
fn bounded(file: File, most: u64) -> Option<(File, u64)> {
    let bytes = file.metadata().ok()?.len();
    (bytes <= most).then_some((file, bytes))
}

/// A copy of the database with its write-ahead log, in a directory of the reader.
struct Copied {
    directory: PathBuf,
}

impl Copied {
    fn of(top: &Directory) -> Result<Copied, Failure> {
        let path = top.path().join(DATABASE);
        let failed = |error: io::Error| {
            let path = clean(&path.display().to_string());
            Failure::failed(format!("failed to copy the database '{path}': {error}"))
        };
        let reader = reader::user()?.map(|user| user.uid);
        let directory = mkdtemp(&temporary(reader).join("archivist-import-XXXXXX"));
        let copied = Copied {
            directory: directory.map_err(|error| failed(error.into()))?,
        };
        for _ in 0..COPIES_MAX {
            let before = stamps(top);
            copied.write(top, reader).map_err(failed)?;
            if stamps(top) == before {
                return Ok(copied);
            }
        }
        Err(failed(io::Error::other(
            "it changes all the time; stop ArchiveBox and import again",
        )))
    }

    fn write(&self, top: &Directory, reader: Option<Uid>) -> io::Result<()> {
        for name in [DATABASE, LOG] {
            let source = match top.read(name) {
                Err(error) if error.kind() == ErrorKind::NotFound && name == LOG => continue,
                opened => opened?,
            };
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let path = self.directory.join(name);
            files::copy::copy(&source, &options.open(&path)?)?;
            give(&path, reader)?;
        }
        give(&self.directory, reader)
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn give(path: &Path, reader: Option<Uid>) -> io::Result<()> {
    let flags = nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW;
    Ok(fchownat(AT_FDCWD, path, reader, None, flags)?)
}

/// Where the copy is made. The directory of temporary files of root may be closed to others.
fn temporary(reader: Option<Uid>) -> PathBuf {
    match reader {
        Some(_) => "/var/tmp".into(),
        None => std::env::temp_dir(),
    }
}

/// What changes if a file does.
fn stamps(top: &Directory) -> Vec<Option<(u64, u64, i64, i64)>> {
    let stamp = |name: &&str| {
        let metadata = top.read(OsStr::new(name)).ok()?.metadata().ok()?;
        Some((
            metadata.ino(),
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec(),
        ))
    };
    [DATABASE, LOG].iter().map(stamp).collect()
}
