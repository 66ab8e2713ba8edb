//! Loads a recorded page in a browser that the caller has started.

use super::export::shown;
use super::job::say;
use super::print;
use crate::client::reader_files::{Caller, Said, Wanted};
use crate::recording::archive::Archive;
use crate::recording::finder::{Finder, Place};
use crate::recording::recordings::{Located, Recording};
use archivist_core::model::SnapshotId;
use archivist_core::text::clean;
use archivist_hooks::picture::PictureFormat;
use archivist_hooks::replay::{Answers, Loaded, Namespace, Replay, Requests, connect, load_over};
use archivist_plugin::Values;
use archivist_warc::wacz::Wacz;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;

/// Threads that look up answers; the unit may have 16 tasks.
const THREADS_MAX: usize = 4;

/// Faults of the recording that are printed.
pub const FLAWS_MAX: usize = 20;

/// A recording, which is file 0 of the job.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReplayJob {
    /// Name of the file, for messages.
    pub name: String,
    /// The snapshot, of which others of the archive are neighbours; `None` if the file is shown alone.
    pub page: Option<SnapshotId>,
    /// URL and time of the page, if the file has several.
    pub shown: Option<(String, String)>,
    /// Time limit for the page.
    pub limit: Duration,
    /// Settings of the browser, as hooks get them.
    pub settings: Values,
}

impl ReplayJob {
    /// Returns an error of the file.
    pub fn unreadable(&self, error: &dyn Display) -> String {
        format!("failed to read '{}': {}", self.name, clean(&error.to_string()))
    }

    /// Opens the recording.
    pub fn open(&self, caller: &Arc<Caller>) -> Result<Recording, String> {
        let file = opened(caller, 0).map_err(|error| self.unreadable(&error))?;
        let shown = self.shown.as_ref().and_then(shown);
        let located = Located { page: self.page, path: PathBuf::new(), shown };
        Recording::of(file, located, &self.name)
    }

    /// The replay of its page. The browser of the caller is in the namespace.
    pub fn replay(&self, recording: &Recording) -> Replay {
        Replay {
            url: recording.url.clone(),
            time: recording.time,
            world: recording.world(),
            namespace: Namespace::none(),
            viewport: None,
            picture: PictureFormat::Png,
            limit: self.limit,
            settings: self.settings.clone(),
        }
    }
}

/// A replay, as `--json` prints it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Shown {
    pub url: String,
    pub recorded: String,
    #[serde(flatten)]
    pub requests: Requests,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub page: Option<LoadedPage>,
}

/// What is known of a page that was loaded without a window.
#[derive(Debug, Serialize, Deserialize)]
pub struct LoadedPage {
    pub final_url: String,
    pub errors: Vec<String>,
    pub note: Option<String>,
}

fn opened(caller: &Arc<Caller>, file: usize) -> Result<Wacz, String> {
    let text = |error: &dyn Display| error.to_string();
    let open = caller.file(&Wanted::File(file)).map_err(|error| text(&error))?;
    Wacz::open_with(open, caller.bodies(file)).map_err(|error| text(&error))
}

/// Loads a page, passes on what it became, and lets the browser exit.
pub fn load(
    replay: &Replay,
    answers: Arc<dyn Answers>,
    caller: &Arc<Caller>,
    done: impl FnOnce(Loaded) -> Result<(), String>,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("failed to replay: {error}");
    let runtime =
        Builder::new_current_thread().enable_all().max_blocking_threads(THREADS_MAX).build();
    let runtime = runtime.map_err(|error| format!("failed to start the async runtime: {error}"))?;
    runtime.block_on(async {
        let pipe = caller.ask(&Wanted::Browser(replay.world.seed)).map_err(failed)?;
        let [input, output] = pipe.try_into().map_err(|_| "there is no browser".to_owned())?;
        let connection = connect(input, output).map_err(failed)?;
        let loaded = load_over(&connection, replay, answers)
            .await
            .map_err(|finding| format!("failed to replay: {}", clean(&finding.output_str)))?;
        // The browser exits when the connection is dropped, after the answer.
        done(loaded)
    })
}

/// Loads a page, and writes a picture of it.
pub fn replay(job: ReplayJob, caller: &Arc<Caller>) -> Result<(), String> {
    let recording = job.open(caller)?;
    let file = recording.file.clone();
    let replay = job.replay(&recording);
    let answers: Arc<dyn Answers> = match job.page {
        None => Arc::new(recording.index()),
        Some(page) => {
            let first = Place { page, file: 0 };
            Arc::new(Archive::new(CallersArchive(Arc::clone(caller)), first, recording.file))
        }
    };
    load(&replay, answers, caller, |loaded| {
        let output = caller.file(&Wanted::Output);
        output
            .and_then(|mut output: File| output.write_all(&loaded.picture))
            .map_err(|error| format!("failed to write the picture: {error}"))?;
        for flaw in file.noticed().iter().take(FLAWS_MAX) {
            warn(&flaw.to_string());
        }
        say(Shown {
            url: (*replay.url).to_owned(),
            recorded: replay.time.to_string(),
            requests: loaded.requests,
            page: Some(LoadedPage {
                final_url: loaded.final_url,
                errors: loaded.errors,
                note: loaded.note,
            }),
        })
    })
}

fn warn(text: &str) {
    // Who does not get this line gets no result either.
    let _ = print(&Said::<()>::Warning(text.to_owned()));
}

/// The archive, as the caller shows it.
struct CallersArchive(Arc<Caller>);

impl CallersArchive {
    fn ask<T: for<'a> Deserialize<'a>>(&self, wanted: &Wanted) -> Result<T, String> {
        self.0.document(wanted).map_err(|error| error.to_string())
    }
}

impl Finder for CallersArchive {
    fn pages(&self, url: &str, near: Timestamp) -> Result<Vec<SnapshotId>, String> {
        self.ask(&Wanted::Pages(url.to_owned(), near.to_string()))
    }

    fn place(&self, page: SnapshotId) -> Result<Option<Place>, String> {
        self.ask(&Wanted::Place(page))
    }

    fn around(&self, page: SnapshotId) -> Result<Vec<Place>, String> {
        self.ask(&Wanted::Around(page))
    }

    fn open(&self, place: Place) -> Result<Wacz, String> {
        opened(&self.0, place.file).map_err(|error| format!("{}: {error}", place.page))
    }

    fn warn(&self, text: &str) {
        warn(text);
    }
}
