//! What a data directory of ArchiveBox has. Its database and the files about its snapshots are parsed by
//! processes without rights; this one only opens and copies them.

use super::layout::Layout;
use crate::client::exit::Failure;
use crate::client::reader::Reader;
use crate::machine::orchestrator;
use crate::staging::failed;
use crate::survey::archivebox::{Header, INDEX_MAX, LIST_MAX};
use archivist_config::Scope;
use archivist_core::text::clean;
use archivist_plugin::Directory;
use archivist_shared::archivebox::{BoxLine, BoxSnapshot, DATABASE_FILES, UNCHANGED};
use nix::libc::{S_IFDIR, S_IFMT};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};

const DATABASE: &str = DATABASE_FILES[0];
/// Bytes that the readers may print.
const LINES_MAX_BYTES: u64 = 1 << 30;
/// Times that a database is sent which changes meanwhile.
const SENT_MAX: usize = 3;
/// Bytes of a file that are sent at once.
const PART_BYTES: usize = 64 << 10;
/// The file about all snapshots of versions before the database.
const LIST: &str = "index.json";
/// The file about a snapshot of versions before 0.9.
const OLD_INDEX: &str = "index.json";
/// Files about a snapshot, of which the first counts.
const INDEXES: [&str; 2] = [OLD_INDEX, "index.jsonl"];

#[derive(Debug, Default)]
pub struct Found {
    pub snapshots: Vec<BoxSnapshot>,
    /// Snapshots of which the database has no row.
    pub orphans: usize,
    pub faults: Vec<String>,
}

pub struct Places {
    top: Directory,
    /// The names of the directories in `archive`.
    flat: BTreeSet<String>,
    /// The directories since 0.9 by the id of the snapshot.
    by_id: BTreeMap<String, Vec<OsString>>,
}

pub fn is_box(top: &Directory) -> bool {
    top.stat(DATABASE).is_ok() || enter(top, &["archive".into()]).is_ok()
}

impl Places {
    pub fn list(top: Directory, faults: &mut Vec<String>) -> Places {
        let mut places = Places { top, flat: BTreeSet::new(), by_id: BTreeMap::new() };
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
        let mut near = self.flat.range(same.split('.').next().unwrap_or(same).to_owned()..);
        let start = same.split('.').next().unwrap_or(same);
        near.by_ref()
            .take_while(|name| name.starts_with(start))
            .find(|name| significant(name) == same)
            .map(String::as_str)
    }

    /// The directories that none of these snapshots has, each with the name that its snapshot gets.
    fn others(&self, snapshots: &[BoxSnapshot]) -> Vec<(String, Vec<OsString>)> {
        let own: BTreeSet<&str> =
            snapshots.iter().filter_map(|snapshot| self.flat_name(&snapshot.timestamp)).collect();
        let ids: BTreeSet<&str> = snapshots.iter().map(|snapshot| &*snapshot.id).collect();
        let flat = self.flat.iter().filter(|name| !own.contains(name.as_str()));
        let flat = flat.map(|name| (name.clone(), vec!["archive".into(), name.into()]));
        let by_id = self.by_id.iter().filter(|(id, _)| !ids.contains(id.as_str()));
        flat.chain(by_id.map(|(id, path)| (id.clone(), path.clone()))).collect()
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
    path.iter().try_fold(top.here()?, |from, name| from.enter(name))
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
        read_database(&top, scope, &mut found)?;
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
    let reader = Reader::survey(&["--archivebox"], Stdio::piped())?;
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
    take_lines(reader, send, &mut found, |found, mut snapshot| {
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
    let known: BTreeSet<String> =
        known.map(|snapshot| significant(&snapshot.timestamp).to_owned()).collect();
    listed.retain(|snapshot| !known.contains(significant(&snapshot.timestamp)));
    for snapshot in &listed {
        places.flat_name(&snapshot.timestamp).map(|name| unknown.remove(name));
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

/// Reads the database. It is sent again if it changed meanwhile.
fn read_database(top: &Directory, scope: &Scope, found: &mut Found) -> Result<(), Failure> {
    let path = top.path().join(DATABASE);
    let program = orchestrator::command(scope)?.get_program().to_owned();
    for _ in 0..SENT_MAX {
        let mut is_sent = Ok(true);
        let reader = Reader::new(Path::new(&program), &["archivebox"], Stdio::piped());
        let send = |input| is_sent = send_database(input, top);
        take_lines(reader, send, found, |found, snapshot| {
            found.snapshots.push(snapshot);
        })?;
        if is_sent.map_err(|error| failed("read", &path, &error))? {
            return Ok(());
        }
    }
    let path = clean(&path.display().to_string());
    Err(Failure::failed(format!(
        "failed to copy the database '{path}': it changes all the time; stop ArchiveBox and import again"
    )))
}

/// Sends the files of the database to its reader. Returns whether they stayed as they were; a reader
/// that ends before has its own reason.
fn send_database(mut input: ChildStdin, top: &Directory) -> io::Result<bool> {
    let before = stamps(top);
    let mut part = vec![0; PART_BYTES];
    for name in DATABASE_FILES {
        let file = match top.read(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => Some(opened?),
        };
        let bytes =
            file.as_ref().map_or(Ok(0), |file| file.metadata().map(|metadata| metadata.len()))?;
        if input.write_all(&bytes.to_le_bytes()).is_err() {
            return Ok(true);
        }
        let mut rest = file.map(|file| file.take(bytes));
        let mut sent = 0;
        while let Some(count) = rest.as_mut().map(|rest| rest.read(&mut part)).transpose()?
            && count > 0
        {
            if input.write_all(&part[..count]).is_err() {
                return Ok(true);
            }
            sent += count as u64;
        }
        if sent < bytes {
            return Ok(false);
        }
    }
    let is_unchanged = stamps(top) == before;
    if is_unchanged {
        let _ = input.write_all(&[UNCHANGED]);
    }
    Ok(is_unchanged)
}

fn take_lines(
    reader: Reader,
    write: impl FnOnce(ChildStdin) + Send,
    found: &mut Found,
    mut take: impl FnMut(&mut Found, BoxSnapshot),
) -> Result<(), Failure> {
    let mut unusable = None;
    let write = |input: Option<ChildStdin>| {
        if let Some(input) = input {
            write(input);
        }
    };
    reader.lines(LINES_MAX_BYTES, write, |line| match line {
        BoxLine::Snapshot(snapshot) => take(found, snapshot),
        BoxLine::Fault(fault) => found.faults.push(fault),
        BoxLine::Unusable(why) => unusable = Some(why),
    })?;
    if let Some(why) = unusable {
        // The files about the snapshots may be whole.
        found.faults.push(format!("{DATABASE} cannot be used: {}", clean(&why)));
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
    let header = Header { name: name.to_owned(), bytes: content.len() as u64, is_list };
    let header = serde_json::to_string(&header).map_err(io::Error::other)?;
    writeln!(input, "{header}")?;
    input.write_all(&content)
}

/// Opens the file about the snapshot of a directory; `None` if there is none that can be read.
fn index_of(top: &Directory, path: &[OsString]) -> Option<(File, u64)> {
    let directory = enter(top, path).ok()?;
    INDEXES.iter().find_map(|name| bounded(directory.read(name).ok()?, INDEX_MAX))
}

/// Why the directory of a snapshot without a row had no index that was read.
fn without_index(top: &Directory, path: &[OsString]) -> String {
    let directory = enter(top, path);
    let lengths = |name: &&str| {
        let file = directory.as_ref().ok()?.read(*name).ok()?;
        Some(file.metadata().ok()?.len())
    };
    if INDEXES.iter().filter_map(lengths).any(|bytes| bytes > INDEX_MAX) {
        return format!("its index is longer than {} MiB", INDEX_MAX >> 20);
    }
    "no snapshot: it has neither a row in the database nor an index".to_owned()
}

/// A file and its length, if that is at most so many bytes.
fn bounded(file: File, most: u64) -> Option<(File, u64)> {
    let bytes = file.metadata().ok()?.len();
    (bytes <= most).then_some((file, bytes))
}

/// What changes if a file does.
fn stamps(top: &Directory) -> Vec<Option<(u64, u64, i64, i64)>> {
    let stamp = |name: &&str| {
        let metadata = top.read(OsStr::new(name)).ok()?.metadata().ok()?;
        Some((metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
    };
    DATABASE_FILES.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn database_is_sent_with_its_log_and_whether_it_changed() {
        let top = tempfile::tempdir().unwrap();
        let directory = Directory::open(top.path()).unwrap();
        let sent = |directory: &Directory| {
            let mut cat = Command::new("cat");
            let cat = cat.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut cat = cat.spawn().unwrap();
            let is_sent = send_database(cat.stdin.take().unwrap(), directory);
            (is_sent.ok(), cat.wait_with_output().unwrap().stdout)
        };
        std::fs::write(top.path().join(DATABASE), "pages").unwrap();
        let wanted = [&[5, 0, 0, 0, 0, 0, 0, 0][..], b"pages", &[0; 8], b"."].concat();
        assert_eq!(sent(&directory), (Some(true), wanted));
        std::fs::write(top.path().join("index.sqlite3-wal"), "log").unwrap();
        let (is_sent, bytes) = sent(&directory);
        assert!(
            is_sent == Some(true)
                && bytes.ends_with(&[3, 0, 0, 0, 0, 0, 0, 0, b'l', b'o', b'g', b'.'])
        );
        std::os::unix::fs::symlink("/etc/passwd", top.path().join("link")).unwrap();
        std::fs::rename(top.path().join("link"), top.path().join(DATABASE)).unwrap();
        let (is_sent, bytes) = sent(&directory);
        assert!(is_sent.is_none() && bytes.is_empty(), "a link is not followed");
    }
}
