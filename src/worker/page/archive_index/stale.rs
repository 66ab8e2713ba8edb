//! Lists whose snapshots are being deleted. A list of many pages is written once, after the last of them,
//! so which lists wait for that is noted in files.

use super::check::remove;
use super::{ArchiveIndex, ListOfPages, STATE_MODE, failed, make, write_json};
use crate::WorkerError;
use crate::page::versions::{directory_of, list_of_key};
use crate::page::{ListKind, groups};
use archivist_plugin::files::remove::remove_tree;
use std::fs;
use std::io::ErrorKind;

/// Directory of the notes, below that of the chunks. Each has the name of a list, and contains the
/// directory of its pages.
const STALE: &str = "stale";

impl ArchiveIndex {
    /// Notes that a list, whose pages are in `directory` of the archive, has snapshots that are deleted.
    pub fn mark_stale(&self, name: &str, directory: &str) -> Result<(), WorkerError> {
        let notes = self.state.join(STALE);
        make(&notes, STATE_MODE)?;
        write_json(&notes, name, &directory)
    }

    /// Notes the list of a URL, if it has one.
    pub fn mark_url_stale(&self, key: &str) -> Result<(), WorkerError> {
        let name = list_of_key(key);
        if !self.chunks(&name).is_dir() {
            return Ok(());
        }
        self.mark_stale(&name, &directory_of(&name))
    }

    /// Writes the noted lists without the snapshots that are gone, and the lists that are made of them. The lists of
    /// days note those of sites and tags.
    pub fn rebuild_stale(&self) -> Result<(), WorkerError> {
        let is_group = |name: &&String| groups::of_name(name).is_some();
        let noted = self.stale()?;
        let others = noted.iter().filter(|name| !is_group(name));
        others.clone().try_for_each(|name| self.rebuild_without_rows(name))?;
        let groups = self.stale()?;
        let groups = groups.iter().filter(is_group);
        groups.clone().try_for_each(|name| self.rebuild_without_rows(name))?;
        self.rebuild_newest()?;
        let notes = self.state.join(STALE);
        others.chain(groups).try_for_each(|name| remove(&notes.join(name)))
    }

    /// The names of the noted lists.
    fn stale(&self) -> Result<Vec<String>, WorkerError> {
        let notes = self.state.join(STALE);
        let names = match fs::read_dir(&notes) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            names => names.map_err(failed("read", &notes))?,
        };
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter(|name| !name.starts_with('.')).collect())
    }

    fn rebuild_without_rows(&self, name: &str) -> Result<(), WorkerError> {
        let directory: String = super::read_json(&self.state.join(STALE).join(name));
        let kind = ListKind::of_name(name);
        if kind != ListKind::Url && !self.archive.join(&directory).is_dir() {
            return Ok(());
        }
        self.rebuild(&ListOfPages { name: name.to_owned(), kind, directory, entries: Vec::new() })
    }

    pub fn forget(&self, name: &str) -> Result<(), WorkerError> {
        remove(&self.state.join(STALE).join(name))?;
        let chunks = self.state.join(name);
        remove_tree(&chunks).map_err(failed("remove", &chunks))
    }
}
