//! The descriptors of commands that hold a crawl in the foreground: closed by the orchestrator when
//! the crawl is over and none of its units runs, by the kernel when the command ends.

use crate::bus::call::{Answer, Refusal, Reply};
use crate::main_loop::event::Event;
use archivist_core::model::CrawlId;
use archivist_shared::bus::callers::Claim;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

#[derive(Default)]
pub struct Holds {
    /// Dropped to release the holders of a crawl.
    holders: HashMap<CrawlId, Vec<oneshot::Sender<()>>>,
}

impl Holds {
    /// Answers with a descriptor. When the command closes it early, an event follows; `cancel`: the
    /// crawl is aborted then. Until then `claim` counts for the caller.
    pub fn hold(
        &mut self,
        (crawl, cancel): (CrawlId, bool),
        claim: Claim,
        reply: &Reply,
        events: &mpsc::UnboundedSender<Event>,
    ) {
        let (ours, theirs) = match socket_pair() {
            Ok(pair) => pair,
            Err(refusal) => {
                let _ = events.send(Event::Abandoned { crawl, cancel });
                return reply.send(Err(refusal));
            }
        };
        let (sender, released) = oneshot::channel();
        let holders = self.holders.entry(crawl).or_default();
        holders.retain(|holder| !holder.is_closed());
        holders.push(sender);
        let events = events.clone();
        tokio::spawn(async move {
            let _claim = claim;
            tokio::select! {
                () = hung_up(ours) => {
                    let _ = events.send(Event::Abandoned { crawl, cancel });
                }
                _ = released => {}
            }
        });
        reply.send(Ok(Answer::Descriptor(theirs)));
    }

    /// Closes the descriptors of all holders of a crawl, which is over.
    pub fn release(&mut self, crawl: CrawlId) {
        self.holders.remove(&crawl);
    }
}

/// Returns the end of the orchestrator and the end of a caller, which blocks.
pub(crate) fn socket_pair() -> Result<(UnixStream, OwnedFd), Refusal> {
    let pair = UnixStream::pair().and_then(|(ours, theirs)| {
        let theirs = theirs.into_std()?;
        theirs.set_nonblocking(false)?;
        Ok((ours, theirs.into()))
    });
    pair.map_err(|error| Refusal::Failed(format!("failed to create a socket pair: {error}")))
}

/// Returns when the other end is closed. Data from it is ignored.
pub(crate) async fn hung_up(mut stream: impl AsyncRead + Unpin) {
    let mut buffer = [0; 256];
    while stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::call::FromAnswer;
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream as Std;

    fn held(cancel: bool) -> (Holds, Std, mpsc::UnboundedReceiver<Event>) {
        let (events, arriving) = mpsc::unbounded_channel();
        let mut holds = Holds::default();
        let (reply, mut answer) = Reply::new();
        holds.hold((CrawlId(1), cancel), Claim::default(), &reply, &events);
        let descriptor = answer.try_recv().unwrap().unwrap();
        (holds, OwnedFd::from(zbus::OwnedFd::from_answer(descriptor).unwrap()).into(), arriving)
    }

    #[tokio::test]
    async fn closing_the_descriptor_makes_an_event() {
        let (_holds, mut theirs, mut events) = held(true);
        theirs.write_all(b"noise").unwrap();
        drop(theirs);
        let event = events.recv().await;
        assert!(matches!(event, Some(Event::Abandoned { crawl: CrawlId(1), cancel: true })));
    }

    #[tokio::test]
    async fn closed_holders_are_dropped() {
        let (events, mut arriving) = mpsc::unbounded_channel();
        let mut holds = Holds::default();
        for _ in 0..3 {
            let (reply, answer) = Reply::new();
            holds.hold((CrawlId(1), false), Claim::default(), &reply, &events);
            drop(answer.await);
            arriving.recv().await.unwrap();
            tokio::task::yield_now().await;
        }
        assert_eq!(holds.holders[&CrawlId(1)].len(), 1);
    }

    #[tokio::test]
    async fn released_holder_makes_no_event() {
        let (mut holds, mut theirs, mut events) = held(true);
        holds.release(CrawlId(1));
        let waiting = tokio::task::spawn_blocking(move || theirs.read(&mut [0]).unwrap());
        assert_eq!(waiting.await.unwrap(), 0);
        // Every sender is gone with the task, and nothing was sent.
        assert!(events.recv().await.is_none());
    }
}
