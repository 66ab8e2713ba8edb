//! Callers that follow crawls: a socket for each, which gets the lines of its crawl.

use crate::crawl::hold::{hung_up, socket_pair};
use archivist_core::model::CrawlId;
use archivist_shared::bus::call::Reply;
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::documents::report::CrawlEvent;
use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

/// Lines that are kept for a slow follower; further lines are dropped.
const FOLLOWER_QUEUE: usize = 4096;

#[derive(Default)]
pub struct Followers {
    of_crawls: HashMap<CrawlId, Vec<mpsc::Sender<String>>>,
}

impl Followers {
    /// Crawls that have followers.
    pub fn crawls(&self) -> BTreeSet<CrawlId> {
        self.of_crawls.keys().copied().collect()
    }

    /// Answers with a socket that gets the lines of a crawl, starting with `first`. `claim` counts
    /// for the follower until it closes the socket or the crawl is over.
    pub fn follow(
        &mut self,
        crawl: CrawlId,
        first: Vec<String>,
        claim: Claim,
        reply: &Reply<OwnedFd>,
    ) {
        let Some(sender) = open(FOLLOWER_QUEUE, claim, reply) else {
            return;
        };
        // A final crawl has no further changes.
        let over = first.last().is_some_and(|line| is_final(line));
        for line in first {
            let _ = sender.try_send(line);
        }
        if !over {
            let followers = self.of_crawls.entry(crawl).or_default();
            followers.retain(|follower| !follower.is_closed());
            followers.push(sender);
        }
    }

    /// Sends a line to the followers of a crawl; `last`: their streams end with it.
    pub fn tell(&mut self, crawl: CrawlId, line: &str, last: bool) {
        let Some(followers) = self.of_crawls.get_mut(&crawl) else {
            return;
        };
        send(followers, line);
        if last || followers.is_empty() {
            self.of_crawls.remove(&crawl);
        }
    }
}

/// Sends a line to each follower that has room for it, and forgets those that are gone.
fn send(followers: &mut Vec<mpsc::Sender<String>>, line: &str) {
    followers.retain(|follower| {
        !matches!(
            follower.try_send(line.to_owned()),
            Err(mpsc::error::TrySendError::Closed(_))
        )
    });
}

/// Answers with a socket, and returns the queue of its lines; `None` if the answer is a refusal.
fn open(queue: usize, claim: Claim, reply: &Reply<OwnedFd>) -> Option<mpsc::Sender<String>> {
    let (ours, theirs) = match socket_pair() {
        Ok(pair) => pair,
        Err(refusal) => {
            reply.send(Err(refusal));
            return None;
        }
    };
    let (sender, mut lines) = mpsc::channel::<String>(queue);
    tokio::spawn(async move {
        let _claim = claim;
        let (from, mut to) = ours.into_split();
        let telling = async {
            while let Some(line) = lines.recv().await {
                if to.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        };
        // There may be nothing to send for days.
        tokio::select! {
            () = telling => {}
            () = hung_up(from) => {}
        }
    });
    reply.send(Ok(theirs));
    Some(sender)
}

fn is_final(line: &str) -> bool {
    matches!(
        serde_json::from_str::<CrawlEvent>(line),
        Ok(CrawlEvent::Crawl { crawl }) if crawl.status.is_final()
    )
}
