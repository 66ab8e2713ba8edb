//! Writes recorded pages as files that any browser opens.

use super::export::{self, shown};
use super::job::say;
use crate::client::reader_files::{Caller, Wanted};
use crate::recording::recordings::first_page;
use archivist_core::model::SnapshotId;
use archivist_core::text::clean;
use archivist_hooks::standalone::{Page, Plan, Site};
use archivist_warc::wacz::Wacz;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io::Read;
use std::sync::Arc;

/// Longest HTML of a browser in bytes that is read.
const DOM_MAX_BYTES: u64 = 64 << 20;

/// Which pages become files. The caller makes them (`Wanted::New`).
#[derive(Debug, Serialize, Deserialize)]
pub struct HtmlJob {
    /// Title of the list of pages.
    pub title: String,
    pub pages: Vec<PageFiles>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct PageFiles {
    pub page: export::ExportedPage,
    /// Number of the file with the HTML that the browser saved.
    pub dom: Option<usize>,
}

/// What became of them.
#[derive(Debug, Serialize, Deserialize)]
pub enum Written {
    /// Parts of the recording of a page that cannot be used.
    Faults(SnapshotId, Vec<String>),
    /// Why a page is not in the copy.
    Missing(SnapshotId, String),
    /// The copy is complete.
    All { pages: usize, files: usize, absent: usize },
}

/// An open recording, and the page of it.
struct Open {
    wacz: Arc<Wacz>,
    url: String,
    time: Timestamp,
}

/// Writes the copy.
pub fn write(job: &HtmlJob, caller: &Arc<Caller>) -> Result<(), String> {
    let create = |name: &str| caller.file(&Wanted::New(name.to_owned()));
    let mut site = Site::new(&create, job.pages.len(), u64::MAX);
    let mut last = None;
    let mut plans: Vec<(&PageFiles, Plan)> = Vec::new();
    for page in &job.pages {
        let planned = opened(page, caller, &mut last)
            .and_then(|open| with(page, &open, page.dom.map(|_| ""), |page| site.plan(page)));
        match planned {
            Ok(plan) => plans.push((page, plan)),
            Err(reason) => say(Written::Missing(page.page.id, clean(&reason)))?,
        }
    }
    if plans.is_empty() {
        return Err("there is no page to export".to_owned());
    }
    for (page, plan) in plans {
        let open = opened(page, caller, &mut last)?;
        let dom = page.dom.and_then(|number| dom(number, caller));
        if page.dom.is_some() && dom.is_none() {
            let reason = "the HTML that the browser saved cannot be read".to_owned();
            say(Written::Missing(page.page.id, reason))?;
            continue;
        }
        let failed = |error: std::io::Error| format!("{}: {error}", page.page.id);
        let written = with(page, &open, dom.as_deref(), |page| site.write(page, &plan));
        let faults = written.map_err(failed)?;
        if !faults.is_empty() {
            say(Written::Faults(page.page.id, faults))?;
        }
    }
    let done = site.finish(&job.title).map_err(|error| error.to_string())?;
    say(Written::All { pages: done.pages, files: done.files, absent: done.absent })
}

fn with<T>(
    page: &PageFiles,
    open: &Open,
    dom: Option<&str>,
    act: impl FnOnce(&Page<'_>) -> T,
) -> T {
    act(&Page {
        id: &page.page.id.to_string(),
        title: &page.page.title,
        url: &open.url,
        time: open.time,
        recording: &open.wacz,
        dom,
    })
}

/// Opens the recording of a page, unless it is that of the last one.
fn opened(
    page: &PageFiles,
    caller: &Arc<Caller>,
    last: &mut Option<(usize, Arc<Wacz>)>,
) -> Result<Open, String> {
    let text = |error: &dyn Display| format!("'{}': {error}", page.page.name);
    let number = page.page.file;
    let wacz = match last {
        Some((open, wacz)) if *open == number => Arc::clone(wacz),
        _ => {
            let file = caller.file(&Wanted::File(number)).map_err(|error| text(&error))?;
            let wacz =
                Wacz::open_with(file, caller.bodies(number)).map_err(|error| text(&error))?;
            let wacz = Arc::new(wacz);
            *last = Some((number, Arc::clone(&wacz)));
            wacz
        }
    };
    let first = page.page.shown.as_ref().and_then(shown).or_else(|| first_page(&wacz));
    let (url, time) = first.ok_or_else(|| "its recording has no page".to_owned())?;
    Ok(Open { wacz, url: (*url).to_owned(), time })
}

/// The HTML that the browser saved, if it can be read.
fn dom(number: usize, caller: &Arc<Caller>) -> Option<String> {
    let file = caller.file(&Wanted::File(number)).ok()?;
    let mut text = Vec::new();
    file.take(DOM_MAX_BYTES + 1).read_to_end(&mut text).ok()?;
    let fits = text.len() as u64 <= DOM_MAX_BYTES;
    fits.then(|| String::from_utf8_lossy(&text).into_owned())
}
