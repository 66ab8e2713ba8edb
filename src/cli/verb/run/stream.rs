//! Following one crawl to its end, over restarts of the orchestrator, with the crawl held.

use crate::client::exit::Failure;
use crate::client::server::{Server, decode};
use crate::client::wait::read_lines;
use archivist_core::model::{CrawlId, Owner, SnapshotId};
use archivist_shared::bus::documents::report::{Details, Event};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// How long what runs may take to end after the crawl is over.
const ENDING: Duration = Duration::from_secs(150);
/// Streams that end so soon, one after the other, before this is given up.
const SHORT: Duration = Duration::from_secs(1);
const SHORT_STREAMS: u32 = 5;

/// A crawl, or some of its pages, that the command works on.
#[derive(Debug)]
pub struct Job {
    pub crawl: CrawlId,
    /// Only these of its pages; empty stands for all.
    pub only: BTreeSet<SnapshotId>,
    /// This command has queued it: it ends with the command.
    pub owned: bool,
    pub hold: Option<OwnedFd>,
}

impl Job {
    /// What is interrupted and given up.
    pub fn targets(&self) -> Vec<Owner> {
        if self.owned || self.only.is_empty() {
            vec![Owner::Crawl(self.crawl)]
        } else {
            self.only.iter().copied().map(Owner::Snapshot).collect()
        }
    }
}

/// What the stream of a crawl brings; nothing where it begins and tells the present state first.
pub type News = (CrawlId, Option<Event>);

/// Tells `news` of everything until there is nothing to wait for any more.
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
    // One that lives is never dropped for another: the crawl would be given up.
    let mut let_go = Box::pin(until_let_go(hold));
    let mut is_held = true;
    let mut missing = job.only.clone();
    let mut short = 0;
    loop {
        if !is_held {
            let_go = Box::pin(until_let_go(ask().await?));
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
            // The stream begins with what is open.
            let page_id = page.to_string();
            let call = || server.proxy().show(&page_id);
            let details: Details = server.ask(call).await?;
            if let Details::Snapshot { snapshot, .. } = details
                && snapshot.status.is_final()
            {
                missing.remove(&page);
                tell(Some(Event::Snapshot { snapshot }));
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
                // The crawl is over, which the stream is about to tell; or who held it for us is gone, and another tells of it.
                () = &mut let_go, if is_held => {
                    is_held = std::mem::take(&mut may_ask);
                    if is_held {
                        let_go = Box::pin(until_let_go(ask().await?));
                    }
                    continue;
                }
            };
            let Some(line) = line else {
                break;
            };
            let event: Event = decode(&line)?;
            match &event {
                Event::Snapshot { snapshot } if snapshot.status.is_final() => {
                    missing.remove(&snapshot.id);
                }
                Event::Crawl { crawl } if crawl.status.is_final() => {
                    tell(Some(event));
                    // What runs may take its time, but not for ever.
                    if is_held {
                        let _ = tokio::time::timeout(ENDING, let_go).await;
                    }
                    return Ok(());
                }
                _ => {}
            }
            tell(Some(event));
        }
        short = if begin.elapsed() < SHORT {
            short + 1
        } else {
            0
        };
        if short == SHORT_STREAMS {
            return Err(Failure::failed(format!(
                "the orchestrator stopped telling of {id}; see: archivist status {id}"
            )));
        }
    }
}

/// The orchestrator closes the descriptor when nothing of the crawl runs any more, or when it ends.
async fn until_let_go(hold: OwnedFd) {
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
