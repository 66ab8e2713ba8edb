//! Lists whose snapshots are being deleted. A list of many pages is written once, after the last of them,
//! so which lists wait for that is noted in files.

use super::check::remove;
use super::{ArchiveIndex, ListOfPages, STATE_MODE, failed, make, write_json};
use crate::WorkerError;
use crate::page::ListKind;
use crate::page::versions::{directory_of, list_of_key};
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

    /// Writes the noted lists without the snapshots that are gone, and the lists that are made of them.
    pub fn rebuild_stale(&self) -> Result<(), WorkerError> {
        let notes = self.state.join(STALE);
        let names = match fs::read_dir(&notes) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            names => names.map_err(failed("read", &notes))?,
        };
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        for name in &names {
            let path = notes.join(name);
            let directory: String = super::read_json(&path);
            let kind = ListKind::of_name(name);
            if kind == ListKind::Url || self.archive.join(&directory).is_dir() {
                self.rebuild(&ListOfPages {
                    name: name.clone(),
                    kind,
                    directory,
                    entries: Vec::new(),
                })?;
            }
        }
        self.rebuild_newest()?;
        for name in names {
            remove(&notes.join(name))?;
        }
        Ok(())
    }

    /// Forgets the list of a deleted crawl.
    pub fn forget(&self, name: &str) -> Result<(), WorkerError> {
        remove(&self.state.join(STALE).join(name))?;
        let chunks = self.state.join(name);
        remove_tree(&chunks).map_err(failed("remove", &chunks))
    }
}
