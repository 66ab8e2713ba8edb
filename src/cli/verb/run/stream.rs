//! Follows one crawl to its end, across restarts of the orchestrator, and holds it for this
//! command.

use crate::client::exit::Failure;
use crate::client::server::{Server, decode};
use crate::client::wait::read_lines;
use archivist_core::model::{CrawlId, Owner, SnapshotId};
use archivist_shared::bus::documents::report::{CrawlEvent, Details};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// Deadline for units that still run after the crawl has ended.
const ENDING: Duration = Duration::from_secs(150);
/// Most streams in a row that end early.
const SHORT: Duration = Duration::from_secs(1);
const SHORT_STREAMS: u32 = 5;

/// A crawl, or some of its pages, that the command works on.
#[derive(Debug)]
pub struct Job {
    pub crawl: CrawlId,
    /// Only these pages; empty means all.
    pub only: BTreeSet<SnapshotId>,
    /// This command queued the crawl: it ends with the command.
    pub owned: bool,
    pub hold: Option<OwnedFd>,
}

impl Job {
    /// The crawl or pages to interrupt and to cancel.
    pub fn targets(&self) -> Vec<Owner> {
        if self.owned || self.only.is_empty() {
            vec![Owner::Crawl(self.crawl)]
        } else {
            self.only.iter().copied().map(Owner::Snapshot).collect()
        }
    }
}

/// Event of a crawl's stream; `None` when a stream starts and repeats the present state.
pub type News = (CrawlId, Option<CrawlEvent>);

/// Sends every event to `news` until the crawl and its units have ended.
pub async fn follow(
    server: &Server,
    job: &Job,
    hold: OwnedFd,
    news: mpsc::UnboundedSender<News>,
) -> Result<(), Failure> {
    let id = job.crawl.to_string();
    let ask = async || {
        let call = || server.proxy().hold(&id, job.owned);
        server.call(call).await.map(OwnedFd::from)
    };
    // A living hold is never replaced: dropping it would cancel the crawl.
    let mut released = Box::pin(until_released(hold));
    let mut is_held = true;
    let mut missing = job.only.clone();
    let mut short = 0;
    loop {
        if !is_held {
            released = Box::pin(until_released(ask().await?));
            is_held = true;
        }
        let mut may_ask = true;
        let begin = Instant::now();
        let stream = server.call(|| server.proxy().watch(&id)).await?;
        let tell = |what| {
            let _ = news.send((job.crawl, what));
        };
        tell(None);
        for page in missing.clone() {
            // The stream starts with the open pages.
            let page_id = page.to_string();
            let call = || server.proxy().show(&page_id);
            let details: Details = server.ask(call).await?;
            if let Details::Snapshot { snapshot, .. } = details
                && snapshot.status.is_final()
            {
                missing.remove(&page);
                tell(Some(CrawlEvent::Snapshot { snapshot }));
            }
        }
        let mut lines = read_lines(stream.into());
        loop {
            if missing.is_empty() && !job.only.is_empty() && !job.owned {
                return Ok(());
            }
            let line = tokio::select! {
                biased;
                line = lines.recv() => line,
                // Either the crawl has ended, which the stream is about to report, or the
                // orchestrator that held it is gone and another one reports it.
                () = &mut released, if is_held => {
                    is_held = std::mem::take(&mut may_ask);
                    if is_held {
                        released = Box::pin(until_released(ask().await?));
                    }
                    continue;
                }
            };
            let Some(line) = line else {
                break;
            };
            let event: CrawlEvent = decode(&line)?;
            match &event {
                CrawlEvent::Snapshot { snapshot } if snapshot.status.is_final() => {
                    missing.remove(&snapshot.id);
                }
                CrawlEvent::Crawl { crawl } if crawl.status.is_final() => {
                    tell(Some(event));
                    // Units that still run may take some time, but not forever.
                    if is_held {
                        let _ = tokio::time::timeout(ENDING, released).await;
                    }
                    return Ok(());
                }
                _ => {}
            }
            tell(Some(event));
        }
        short = if begin.elapsed() < SHORT { short + 1 } else { 0 };
        if short == SHORT_STREAMS {
            return Err(Failure::failed(format!(
                "the orchestrator stopped reporting {id}; see: archivist status {id}"
            )));
        }
    }
}

/// Waits until the orchestrator closes the descriptor: nothing of the crawl runs any more, or the
/// orchestrator has ended.
pub async fn until_released(hold: OwnedFd) {
    let stream = std::os::unix::net::UnixStream::from(hold);
    let waiting = async {
        stream.set_nonblocking(true)?;
        let mut stream = UnixStream::from_std(stream)?;
        let mut buffer = [0; 16];
        while stream.read(&mut buffer).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = waiting.await;
}
