//! Writes recordings into one WACZ file.

use super::job::say;
use crate::client::reader_files::{Caller, Wanted};
use crate::recording::recordings::{Located, first_page};
use archivist_core::model::SnapshotId;
use archivist_core::text::clean;
use archivist_hooks::replay::WebUrl;
use archivist_shared::bus::documents::report::Snapshot;
use archivist_warc::wacz::{self, Merge, Wacz};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

/// Which recordings become one file: that of `Wanted::Output`, which is empty.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportJob {
    pub about: About,
    pub pages: Vec<ExportedPage>,
}

/// What the file says about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct About {
    pub software: String,
    pub title: String,
    pub main_url: String,
    /// RFC 3339, as all times of jobs.
    pub created: String,
}

/// A page.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExportedPage {
    pub id: SnapshotId,
    pub title: String,
    /// Number of its file. Pages of the same file follow one another.
    pub file: usize,
    /// Name of the file, for messages.
    pub name: String,
    /// URL and time, if the file has several pages.
    pub shown: Option<(String, String)>,
}

impl ExportedPage {
    /// A page whose recording is the file with this number.
    pub fn of(page: &Snapshot, located: &Located, file: usize) -> ExportedPage {
        ExportedPage {
            id: page.id,
            title: page.title.clone().unwrap_or_default(),
            file,
            name: located.path.display().to_string(),
            shown: located.shown.as_ref().map(|(url, time)| ((**url).to_owned(), time.to_string())),
        }
    }
}

/// What became of them.
#[derive(Debug, Serialize, Deserialize)]
pub enum Written {
    /// Faults of the recording of a page.
    Faults(SnapshotId, Vec<String>),
    /// The file is complete.
    All { entries: u64, bytes: u64 },
}

/// Writes the file.
pub fn export(job: &ExportJob, caller: &Arc<Caller>) -> Result<(), String> {
    let text = |error: &dyn Display| error.to_string();
    let About { software, title, main_url, created } = job.about.clone();
    let created = created.parse().map_err(|error| text(&error))?;
    let about = wacz::About { software, title, main_url, created };
    let output = caller.file(&Wanted::Output).map_err(|error| text(&error))?;
    let scratch = || caller.file(&Wanted::Scratch);
    let mut merge = Merge::create(output, &about, &scratch).map_err(|error| text(&error))?;
    let mut added = BTreeSet::new();
    let mut last: Option<(usize, Wacz)> = None;
    for page in &job.pages {
        let in_page = |error: &dyn Display| {
            format!("{}: '{}': {}", page.id, page.name, clean(&error.to_string()))
        };
        let wacz = match last.take() {
            Some((open, wacz)) if open == page.file => wacz,
            _ => {
                let file =
                    caller.file(&Wanted::File(page.file)).map_err(|error| in_page(&error))?;
                let bodies = caller.bodies(page.file);
                Wacz::open_with(file, bodies).map_err(|error| in_page(&error))?
            }
        };
        if added.insert(page.file) {
            let faults = wacz
                .faults()
                .iter()
                .chain(&wacz.missing_bodies())
                .map(ToString::to_string)
                .collect::<Vec<_>>();
            if !faults.is_empty() {
                say(Written::Faults(page.id, faults))?;
            }
            merge.add(&wacz).map_err(|error| in_page(&error))?;
        }
        for mut one in listed(page, &wacz) {
            one.text = wacz.text_of(&one);
            merge.add_page(&one).map_err(|error| text(&error))?;
        }
        last = Some((page.file, wacz));
    }
    let done = merge.finish().map_err(|error| text(&error))?;
    say(Written::All { entries: done.entries, bytes: done.bytes })
}

/// URL and time of a page in a recording.
pub fn shown((url, time): &(String, String)) -> Option<(WebUrl, Timestamp)> {
    Some((WebUrl::of(url)?, time.parse().ok()?))
}

/// The pages of a recording that the list has for a snapshot.
fn listed(page: &ExportedPage, wacz: &Wacz) -> Vec<wacz::Page> {
    let all = wacz.pages();
    let one = |(url, time): (WebUrl, Timestamp)| wacz::Page {
        url: (*url).to_owned(),
        title: page.title.clone(),
        time,
        text: None,
    };
    match page.shown.as_ref().and_then(shown) {
        Some(shown) => {
            let same = |listed: &&wacz::Page| listed.time == shown.1 && listed.url == *shown.0;
            let found = all.iter().find(same).cloned();
            vec![found.unwrap_or_else(|| one(shown))]
        }
        None if all.is_empty() => first_page(wacz).map(one).into_iter().collect(),
        None => all.to_vec(),
    }
}
