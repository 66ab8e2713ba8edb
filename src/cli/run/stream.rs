//! Following one crawl to its end, over restarts of the orchestrator, with the crawl held.

use crate::bus::report::{Details, Event};
use crate::cli::exit::Failure;
use crate::cli::server::{Server, decode};
use crate::cli::wait::read_lines;
use crate::model::{CrawlId, Owner, SnapshotId};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::pin::pin;
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
        match self.owned || self.only.is_empty() {
            true => vec![Owner::Crawl(self.crawl)],
            false => self.only.iter().copied().map(Owner::Snapshot).collect(),
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
    let mut hold = Some(hold);
    let mut missing = job.only.clone();
    let mut short = 0;
    loop {
        let held = match hold.take() {
            Some(held) => held,
            None => {
                let call = || server.proxy().hold(&id, job.owned);
                server.call(call).await?.into()
            }
        };
        let mut let_go = pin!(let_go(held));
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
            // Whoever held the crawl for us may be gone while another tells of it: held once more.
            let line = tokio::select! {
                biased;
                line = lines.recv() => line,
                () = &mut let_go => None,
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
                    let _ = tokio::time::timeout(ENDING, let_go).await;
                    return Ok(());
                }
                _ => {}
            }
            tell(Some(event));
        }
        short = match begin.elapsed() < SHORT {
            true => short + 1,
            false => 0,
        };
        if short == SHORT_STREAMS {
            return Err(Failure::failed(format!(
                "the orchestrator stopped telling of {id}; see: archivist status {id}"
            )));
        }
    }
}

/// The orchestrator closes the descriptor when nothing of the crawl runs any more, or when it ends.
async fn let_go(hold: OwnedFd) {
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
