//! Follows one crawl to its end: across restarts of the orchestrator, also by an administrator who stops it
//! and starts it later, and across those of the bus. Can hold the crawl for this command.

use crate::client::exit::Failure;
use crate::client::server::{Server, decode};
use archivist_core::model::{CrawlId, Lifecycle, Owner, SnapshotId};
use archivist_core::text::clean;
use archivist_shared::bus::documents::report::{CrawlEvent, Details, Why};
use std::collections::BTreeSet;
use std::future::pending;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// Deadline for units that still run after the crawl has ended.
const ENDING: Duration = Duration::from_secs(150);
/// Time without an event after which a command says what a crawl waits for, and the longest one.
const SILENCE_MIN: Duration = Duration::from_secs(2);
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Streams that end before this ended early.
const SHORT: Duration = Duration::from_secs(1);
/// Most streams in a row that end early.
const SHORT_STREAMS: u32 = 5;

/// A crawl, or some of its pages, that the command works on.
#[derive(Debug)]
pub struct CrawlJob {
    pub crawl: CrawlId,
    /// Only these pages; empty means all.
    pub only: BTreeSet<SnapshotId>,
    /// This command queued the crawl: it ends with the command.
    pub owned: bool,
    pub hold: Option<OwnedFd>,
}

impl CrawlJob {
    /// A crawl that is only followed.
    pub fn of(crawl: CrawlId) -> CrawlJob {
        CrawlJob { crawl, only: BTreeSet::new(), owned: false, hold: None }
    }

    /// The crawl or pages to interrupt and to cancel.
    pub fn targets(&self) -> Vec<Owner> {
        if self.owned || self.only.is_empty() {
            vec![Owner::Crawl(self.crawl)]
        } else {
            self.only.iter().copied().map(Owner::Snapshot).collect()
        }
    }
}

/// What [`follow`] says of a crawl.
#[derive(Debug)]
pub enum News {
    /// A stream starts, and repeats the present state.
    Begins,
    Event(Box<CrawlEvent>),
    /// A line: why nothing of it is started.
    Waits(String),
}

/// When to ask why a crawl is silent, and what of the answer is new.
pub struct Silence {
    /// Time without an event after which the reason is asked for.
    pub next: Duration,
    /// Codes of the reasons that were given last.
    told: Vec<String>,
}

impl Default for Silence {
    fn default() -> Silence {
        Silence { next: SILENCE_MIN, told: Vec::new() }
    }
}

impl Silence {
    /// An event came. The same reason is given again only if another one was given in between.
    pub fn ends(&mut self) {
        self.next = SILENCE_MIN;
    }

    /// Returns the line for a crawl of which nothing is started, if its reasons are new.
    pub fn line(&mut self, why: &Why) -> Option<String> {
        self.next = (self.next * 2).min(SILENCE_MAX);
        let is_blocked = why.status == Lifecycle::Queued
            || why.reasons.iter().any(|it| matches!(it.code.as_str(), "pressure" | "network"));
        let reasons = why.reasons.iter().filter(|_| is_blocked);
        let reasons: Vec<_> = reasons.filter(|reason| reason.code != "running").collect();
        let codes: Vec<String> = reasons.iter().map(|reason| reason.code.clone()).collect();
        if codes.is_empty() || codes == self.told {
            return None;
        }
        self.told = codes;
        let texts: Vec<String> = reasons.iter().map(|reason| clean(&reason.text)).collect();
        Some(format!("{} waits: {}", why.id, texts.join("; ")))
    }
}

/// The end of a hold.
type Released = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Sends every event to `news` until the crawl has ended, and with a hold, also its units.
pub async fn follow(
    server: &Server,
    job: &CrawlJob,
    hold: Option<OwnedFd>,
    news: mpsc::UnboundedSender<(CrawlId, News)>,
) -> Result<(), Failure> {
    let id = job.crawl.to_string();
    let holds = hold.is_some();
    // A living hold is never replaced: dropping it would cancel the crawl.
    let mut released = hold.map(until_released);
    let mut missing = job.only.clone();
    let mut short = 0;
    let mut reconnected: Option<Server> = None;
    let mut silence = Silence::default();
    loop {
        let server = reconnected.as_ref().unwrap_or(server);
        let tell = |what| {
            let _ = news.send((job.crawl, what));
        };
        let say = |line| tell(News::Waits(line));
        if holds && released.is_none() {
            released = Some(ask_hold(server, job, &id, &say).await?);
        }
        let mut may_ask = true;
        let begin = Instant::now();
        let stream = match server.rejoin(|| server.proxy().watch(&id), say).await {
            Err(failure) if failure.is_unreachable() && server.is_cut_off() => {
                reconnected = Some(server.reconnected().await?);
                continue;
            }
            stream => stream?,
        };
        tell(News::Begins);
        for page in missing.clone() {
            // The stream starts with the open pages.
            let page_id = page.to_string();
            let call = || server.proxy().show(&page_id);
            let details: Details = server.ask(call).await?;
            if let Details::Snapshot { snapshot, .. } = details
                && snapshot.status.is_final()
            {
                missing.remove(&page);
                tell(News::Event(Box::new(CrawlEvent::Snapshot { snapshot })));
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
                () = end_of(&mut released) => {
                    released = None;
                    if std::mem::take(&mut may_ask) {
                        released = Some(ask_hold(server, job, &id, &say).await?);
                    }
                    continue;
                }
                () = tokio::time::sleep(silence.next) => {
                    let why = server.call_once(server.proxy().why(&id)).await;
                    let why = why.and_then(|why| decode::<Why>(&why));
                    let line = why.ok().and_then(|why| silence.line(&why));
                    line.into_iter().for_each(|line| tell(News::Waits(line)));
                    continue;
                }
            };
            let Some(line) = line else {
                break;
            };
            silence.ends();
            let event: CrawlEvent = decode(&line)?;
            match &event {
                CrawlEvent::Snapshot { snapshot } if snapshot.status.is_final() => {
                    missing.remove(&snapshot.id);
                }
                CrawlEvent::Crawl { crawl } if crawl.status.is_final() => {
                    tell(News::Event(Box::new(event)));
                    // Units that still run may take some time, but not forever.
                    if let Some(released) = released {
                        let _ = tokio::time::timeout(ENDING, released).await;
                    }
                    return Ok(());
                }
                _ => {}
            }
            tell(News::Event(Box::new(event)));
        }
        short = if begin.elapsed() < SHORT { short + 1 } else { 0 };
        if short == SHORT_STREAMS {
            return Err(Failure::failed(format!(
                "the orchestrator stopped reporting {id}; see: archivist status {id}"
            )));
        }
    }
}

async fn ask_hold(
    server: &Server,
    job: &CrawlJob,
    id: &str,
    say: impl Fn(String),
) -> Result<Released, Failure> {
    let hold = server.rejoin(|| server.proxy().hold(id, job.owned), say).await?;
    Ok(until_released(hold.into()))
}

async fn end_of(hold: &mut Option<Released>) {
    match hold {
        Some(hold) => hold.await,
        None => pending().await,
    }
}

/// Reads a stream, pipe or socket on its own thread. An incomplete last line is dropped: the next
/// stream repeats it.
pub(crate) fn read_lines(stream: OwnedFd) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(256);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(std::fs::File::from(stream));
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|n| n > 0) && line.ends_with('\n') {
            let line = std::mem::take(&mut line);
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Waits until the orchestrator closes the descriptor: nothing of the crawl runs any more, or the
/// orchestrator has ended.
pub fn until_released(hold: OwnedFd) -> Released {
    let stream = std::os::unix::net::UnixStream::from(hold);
    let waiting = async move {
        stream.set_nonblocking(true)?;
        let mut stream = UnixStream::from_std(stream)?;
        let mut buffer = [0; 16];
        while stream.read(&mut buffer).await? > 0 {}
        std::io::Result::Ok(())
    };
    Box::pin(async move { drop(waiting.await) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_shared::bus::documents::report::Reason;
    use std::io::Write;

    #[test]
    fn reason_of_a_blocked_crawl_is_given_once() {
        let why = |status, code: &str, text: &str| Why {
            id: Owner::Crawl(CrawlId(7)),
            status,
            reasons: vec![Reason { code: code.to_owned(), text: text.to_owned(), until: None }],
            node: None,
        };
        let mut silence = Silence::default();
        let (queued, started) = (Lifecycle::Queued, Lifecycle::Started);
        let line = silence.line(&why(queued, "pressure", "5 MiB are free"));
        assert_eq!(line.as_deref(), Some("c7 waits: 5 MiB are free"));
        assert_eq!(silence.line(&why(queued, "pressure", "4 MiB are free")), None);
        assert_eq!(silence.line(&why(started, "running", "a hook runs")), None);
        assert_eq!(silence.line(&why(started, "queued", "3 pages wait")), None);
        let line = silence.line(&why(started, "network", "no route"));
        assert_eq!(line.as_deref(), Some("c7 waits: no route"));
        assert!(silence.next > SILENCE_MIN);
        (0..10).for_each(|_| drop(silence.line(&why(started, "running", ""))));
        assert_eq!(silence.next, SILENCE_MAX);
        silence.ends();
        assert_eq!(silence.next, SILENCE_MIN);
    }

    #[tokio::test]
    async fn an_incomplete_last_line_is_dropped() {
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        theirs.write_all(b"one\ntwo\nthr").unwrap();
        drop(theirs);
        let mut lines = read_lines(ours.into());
        assert_eq!(lines.recv().await.as_deref(), Some("one\n"));
        assert_eq!(lines.recv().await.as_deref(), Some("two\n"));
        assert_eq!(lines.recv().await, None);
    }
}
