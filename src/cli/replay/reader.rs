//! Readers of recordings that control a browser, which this process has started.

use super::{LIMIT, browser_settings, failure, find_namespace};
use crate::client::exit::Failure;
use crate::client::reader::reopened;
use crate::client::reader_files::{self, Wanted, document};
use crate::recording::finder::{Finder, LocalFinder, Snapshots};
use crate::recording::recordings::{Located, Target};
use crate::survey::job::ReaderJob;
use crate::survey::replay::ReplayJob;
use archivist_config::Scope;
use archivist_hooks::bodies::of_digest;
use archivist_hooks::process::finding::Finding;
use archivist_hooks::replay;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// Bytes that the reader may print: lists of requests, with their URLs.
const ANSWER_MAX_BYTES: u64 = 256 << 20;

/// Lets a reader do a job with a recording and a browser, which is started when the reader asks for it, and
/// returns its result. `more` opens what it asks for in addition to them.
///
/// # Errors
/// If the recording cannot be opened, the browser does not start, or the reader has no result.
pub async fn read<T: DeserializeOwned + Send + 'static>(
    target: &Target,
    located: Located,
    scope: &Scope,
    no_namespace: bool,
    job: fn(ReplayJob) -> ReaderJob,
    mut more: impl FnMut(Wanted) -> io::Result<Vec<OwnedFd>> + Send + 'static,
) -> Result<T, Failure> {
    let file = located.open(target)?;
    let settings = browser_settings(scope, no_namespace)?;
    let namespace = find_namespace(no_namespace, &settings)?;
    let of_browser = settings.clone();
    let job = job(ReplayJob {
        name: located.path.display().to_string(),
        page: located.page,
        shown: located.shown.map(|(url, time)| ((*url).to_owned(), time.to_string())),
        limit: LIMIT,
        settings,
    });
    let path = located.path;
    let (started, browser) = oneshot::channel();
    let runtime = Handle::current();
    let (sent, answer) = oneshot::channel();
    let reading = spawn_blocking(move || {
        let (mut sent, mut started) = (Some(sent), Some(started));
        let open = |wanted| match wanted {
            // Opened again, so that each descriptor begins at the start.
            Wanted::File(0) => Ok(vec![reopened(&file)?.into()]),
            Wanted::Body(0, hex) => body(&path, &hex),
            Wanted::Browser(seed) => {
                let started = started.take().ok_or(ErrorKind::AlreadyExists)?;
                // Another thread answers the reader.
                let _runtime = runtime.enter();
                let begun = replay::begin(&namespace, &of_browser, seed);
                let (browser, pipe) =
                    begun.map_err(|finding| io::Error::other(finding.output_str))?;
                let _ = started.send(browser);
                Ok(pipe.into())
            }
            wanted => more(wanted),
        };
        reader_files::read(&job, ANSWER_MAX_BYTES, open, |part: T| {
            // A second answer is ignored.
            if let Some(sent) = sent.take() {
                let _ = sent.send(part);
            }
        })
    });
    let mut running = None;
    let ended = async {
        match browser.await {
            Ok(browser) => running.insert(browser).ended().await,
            // The reader says why there is none.
            Err(_) => pending().await,
        }
    };
    // The end of the browser explains that there is no answer, which comes before the end otherwise.
    let answer = tokio::select! {
        biased;
        answer = answer => answer.ok(),
        reason = ended => return Err(failure(Finding::failed(reason))),
    };
    reading.await.map_err(|error| Failure::failed(error.to_string()))??;
    if let Some(browser) = running {
        browser.end().await;
    }
    answer.ok_or_else(|| Failure::failed("the reader has no result"))
}

fn body(recording: &Path, hex: &str) -> io::Result<Vec<OwnedFd>> {
    Ok(of_digest(recording, hex)?.map(OwnedFd::from).into_iter().collect())
}

/// Opens for a reader what it may see of the archive: recordings, and the ids of their pages.
pub fn of_archive<S: Snapshots>(
    finder: &LocalFinder<S>,
    wanted: Wanted,
) -> io::Result<Vec<OwnedFd>> {
    fn listed(found: Result<impl Serialize, String>) -> io::Result<Vec<OwnedFd>> {
        Ok(vec![document(&found.map_err(io::Error::other)?)?])
    }
    let path = |number| finder.path(number).ok_or(ErrorKind::NotFound);
    match wanted {
        Wanted::File(number) => Ok(vec![File::open(path(number)?)?.into()]),
        Wanted::Body(number, hex) => body(&path(number)?, &hex),
        Wanted::Pages(url, near) => {
            listed(finder.pages(&url, near.parse().map_err(io::Error::other)?))
        }
        Wanted::Place(page) => listed(finder.place(page)),
        Wanted::Around(page) => listed(finder.around(page)),
        _ => Err(ErrorKind::NotFound.into()),
    }
}
