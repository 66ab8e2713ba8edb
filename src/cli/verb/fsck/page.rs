//! Compares the rows of one page with its files, which hooks wrote: no link is followed.

use super::digests;
use super::finding::{Checked, Finding, Kind, Repair};
use crate::client::exit::Failure;
use crate::client::server::Server;
use archivist_core::model::{Lifecycle, Owner, RECORDER, ResultState, SnapshotId, Time};
use archivist_core::store::{STORED_MARKER, StoredObject};
use archivist_plugin::Directory;
use archivist_plugin::files::beneath::is_file;
use archivist_shared::bus::documents::report::{Copy, Details, HookResult, Snapshot};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

/// The file that says whose directory it is (`worker/files/identity.rs`).
const IDENTITY: &str = ".identity.json";
/// The recording in the directory of [`RECORDER`].
const RECORDING: &str = "page.wacz";
/// Longest identity that is read, in bytes.
const IDENTITY_MAX: u64 = 64 << 10;

/// A sealed page, as the orchestrator has it.
pub struct Page {
    pub snapshot: Snapshot,
    pub results: Vec<HookResult>,
    pub copy: Option<Copy>,
}

#[derive(Deserialize)]
pub struct Identity {
    id: String,
    #[serde(default)]
    url: String,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.url.as_str() {
            "" => f.write_str(&self.id),
            url => write!(f, "{} '{url}'", self.id),
        }
    }
}

/// Reads whose directory it is; `None` if it does not say so.
pub fn identity(directory: &Path) -> Option<Identity> {
    of_directory(&Directory::open(directory).ok()?)
}

/// Returns the recording in the directory of a page, if it has one.
pub fn recording(directory: &Path) -> Option<PathBuf> {
    let own = Directory::open(directory).ok()?.enter(RECORDER).ok()?;
    let is_there = own.stat(RECORDING).is_ok_and(|found| is_file(&found));
    is_there.then(|| directory.join(RECORDER).join(RECORDING))
}

fn of_directory(directory: &Directory) -> Option<Identity> {
    let mut text = String::new();
    let file = directory.read(IDENTITY).ok()?;
    file.take(IDENTITY_MAX).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// A file as its newest result has it.
struct Expected {
    size: u64,
    ended_at: Option<Time>,
}

impl Page {
    /// Returns a page with its results; `None` if it is not sealed any more, or deleted.
    pub async fn read(server: &Server, id: SnapshotId) -> Result<Option<Page>, Failure> {
        let id = id.to_string();
        let details = server.ask_if_known(|| server.proxy().show(&id)).await?;
        Ok(match details {
            Some(Details::Snapshot { snapshot, results, copy, .. })
                if snapshot.status == Lifecycle::Sealed =>
            {
                Some(Page { snapshot, results, copy })
            }
            _ => None,
        })
    }

    /// Compares the files of the page. Returns what differs, and what was compared.
    ///
    /// # Errors
    /// If this user has no permission to read them.
    pub fn check(&self, reads_content: bool) -> io::Result<(Vec<Finding>, Checked)> {
        let mut checked = Checked { pages: 1, ..Checked::default() };
        let path = Path::new(self.snapshot.directory.as_deref().unwrap_or_default());
        let directory = match Directory::open(path) {
            Ok(directory) => directory,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
            // The worker of a page that was given up may have made none.
            Err(_) if self.snapshot.reason.is_some() => return Ok((Vec::new(), checked)),
            Err(error) => {
                let missing = self.without_directory(path, &error);
                return Ok((vec![missing], checked));
            }
        };
        let name = self.snapshot.id.to_string();
        if let Some(other) = of_directory(&directory).filter(|own| own.id != name) {
            let what = format!("it is the directory of {other}");
            let foreign = self.again(Kind::Directory, path, what);
            return Ok((vec![foreign], checked));
        }
        // A transfer is changing the files, or the store has them.
        let is_moving = self
            .copy
            .as_ref()
            .is_some_and(|copy| copy.task.writes_locally() && copy.state != "idle");
        if is_moving || directory.stat(STORED_MARKER).is_ok() {
            checked.stored = 1;
            return Ok((Vec::new(), checked));
        }
        let mut findings = self.compare(&directory, &mut checked)?;
        if reads_content && let Some(at) = self.hashed_at() {
            let is_older = |plugin: &str| self.last_end(plugin) <= Some(at);
            let known: Vec<String> = findings.iter().map(|known| known.path.clone()).collect();
            let found = digests::compare(&directory, is_older, &mut checked)?;
            let new = found.into_iter().filter(|finding| !known.contains(&finding.path));
            findings.extend(new.map(|finding| self.own(finding)));
        }
        Ok((findings, checked))
    }

    /// Returns the copy in the store, unless a transfer may be replacing it.
    pub fn settled_object(&self) -> Option<&StoredObject> {
        let copy = self.copy.as_ref()?;
        copy.object.as_ref().filter(|_| copy.state == "idle")
    }

    /// Returns a finding as one of this page.
    pub fn own(&self, finding: Finding) -> Finding {
        Finding { id: Some(Owner::Snapshot(self.snapshot.id)), ..finding }
    }

    /// A finding after which the whole page has to be archived again.
    fn again(&self, kind: Kind, path: &Path, what: String) -> Finding {
        Finding {
            repair: Some(Repair::Retry(self.snapshot.id)),
            ..self.own(Finding::new(kind, path.to_string_lossy(), what))
        }
    }

    fn without_directory(&self, path: &Path, error: &io::Error) -> Finding {
        let what = match error.kind() {
            ErrorKind::NotFound => "its directory is missing".to_owned(),
            ErrorKind::NotADirectory => "it is no directory".to_owned(),
            _ => {
                let what = format!("its directory cannot be read: {error}");
                return self.own(Finding::new(Kind::Directory, path.to_string_lossy(), what));
            }
        };
        // The copy is the page as it was. Another visit would give another page.
        let object = self.copy.as_ref().and_then(|copy| copy.object.as_ref());
        match object {
            Some(object) => {
                let what = format!("{what}; the store has it: {} in {}", object.name, object.store);
                self.own(Finding::new(Kind::Directory, path.to_string_lossy(), what))
            }
            None => self.again(Kind::Directory, path, what),
        }
    }

    /// When the newest result of a plugin ended.
    fn last_end(&self, plugin: &str) -> Option<Time> {
        let of_plugin = self.results.iter().filter(|result| result.plugin == plugin);
        of_plugin.filter_map(|result| result.ended_at).max()
    }

    /// When the digests of the files were written, if they were.
    fn hashed_at(&self) -> Option<Time> {
        let mut results = self.results.iter();
        let hashes = results.find(|result| {
            result.plugin == digests::PLUGIN && result.status == ResultState::Succeeded
        });
        hashes.and_then(|result| result.ended_at)
    }

    /// Compares the sizes of the files of results that succeeded. A later hook of a plugin may replace
    /// and remove files of an earlier one.
    fn compare(&self, directory: &Directory, checked: &mut Checked) -> io::Result<Vec<Finding>> {
        let mut expected: BTreeMap<(&str, &str), Expected> = BTreeMap::new();
        for result in &self.results {
            if result.status != ResultState::Succeeded {
                continue;
            }
            for file in &result.files {
                let key = (result.plugin.as_str(), file.path.as_str());
                let known = expected.get(&key);
                if known.is_none_or(|known| known.ended_at <= result.ended_at) {
                    let (size, ended_at) = (file.size, result.ended_at);
                    expected.insert(key, Expected { size, ended_at });
                }
            }
        }
        let mut findings = Vec::new();
        for ((plugin, path), expected) in expected {
            checked.files += 1;
            let name = format!("{plugin}/{path}");
            let is_newest = expected.ended_at >= self.last_end(plugin);
            let found = match locate(directory, &name) {
                Ok((parent, file)) => parent.stat(file),
                Err(error) => Err(error),
            };
            let (kind, what) = match found {
                Ok(found) if is_file(&found) => match u64::try_from(found.st_size) {
                    Ok(size) if size == expected.size => continue,
                    _ if !is_newest => continue,
                    _ => {
                        let (size, expected) = (found.st_size, expected.size);
                        let what = format!("it has {size} bytes, its result says {expected}");
                        (Kind::Size, what)
                    }
                },
                Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
                _ if !is_newest => continue,
                _ => (Kind::File, "the file is missing".to_owned()),
            };
            let path = directory.path().join(&name);
            findings.push(self.own(Finding::new(kind, path.to_string_lossy(), what)));
        }
        Ok(findings)
    }
}

/// Opens the directory of a file below `top`, without following links, and returns the name of the file
/// in it.
pub fn locate(top: &Directory, path: &str) -> io::Result<(Directory, OsString)> {
    let mut names = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => names.push(name),
            _ => return Err(ErrorKind::InvalidInput.into()),
        }
    }
    let Some(file) = names.pop() else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let mut parent = top.here()?;
    for name in names {
        parent = parent.enter(name)?;
    }
    Ok((parent, file.to_owned()))
}

#[cfg(test)]
mod tests;
