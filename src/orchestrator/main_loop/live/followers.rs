//! Callers that follow crawls or the status: a socket for each, which gets the lines of its crawl, or
//! an empty line whenever the status may have changed.

use crate::bus::call::{Answer, Reply};
use crate::main_loop::live::hold::{hung_up, socket_pair};
use archivist_core::model::CrawlId;
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::documents::report::CrawlEvent;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;

/// Lines that are kept for a slow follower; further lines are dropped.
const FOLLOWER_QUEUE: usize = 4096;
/// Least time between two lines about the status.
const STATUS_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Default)]
pub struct Followers {
    of_crawls: HashMap<CrawlId, Vec<mpsc::Sender<String>>>,
    of_status: Vec<mpsc::Sender<String>>,
    /// The STATUS= line of the last turn.
    line: String,
}

impl Followers {
    pub fn crawls(&self) -> BTreeSet<CrawlId> {
        self.of_crawls.keys().copied().collect()
    }

    /// Answers with a socket that gets the lines of a crawl, starting with `first`. `claim` counts
    /// for the follower until it closes the socket or the crawl is over.
    pub fn follow(&mut self, crawl: CrawlId, first: Vec<String>, claim: Claim, reply: &Reply) {
        let Some(sender) = open(FOLLOWER_QUEUE, Duration::ZERO, claim, reply) else {
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

impl Followers {
    /// Answers with a socket that gets a line for each change of the status, at most one in
    /// [`STATUS_INTERVAL`]. `claim` counts for the follower until it closes the socket.
    pub fn follow_status(&mut self, claim: Claim, reply: &Reply) {
        // Changes that the caller has not read yet are one.
        if let Some(sender) = open(1, STATUS_INTERVAL, claim, reply) {
            self.of_status.retain(|follower| !follower.is_closed());
            self.of_status.push(sender);
        }
    }

    /// The answer to a request for the status may have changed.
    pub fn tell_of_status(&mut self) {
        send(&mut self.of_status, "\n");
    }

    /// The same if this STATUS= line differs from the last one.
    pub fn compare_line(&mut self, line: &str) {
        if self.line != line {
            line.clone_into(&mut self.line);
            self.tell_of_status();
        }
    }
}

/// Sends a line to each follower that has room for it, and forgets those that are gone.
fn send(followers: &mut Vec<mpsc::Sender<String>>, line: &str) {
    followers.retain(|follower| {
        !matches!(follower.try_send(line.to_owned()), Err(mpsc::error::TrySendError::Closed(_)))
    });
}

/// Answers with a socket, and returns the queue of its lines; `None` if the answer is a refusal.
/// Lines are at least `pause` apart.
fn open(
    queue: usize,
    pause: Duration,
    claim: Claim,
    reply: &Reply,
) -> Option<mpsc::Sender<String>> {
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
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
        };
        // There may be nothing to send for days.
        tokio::select! {
            () = telling => {}
            () = hung_up(from) => {}
        }
    });
    reply.send(Ok(Answer::Descriptor(theirs)));
    Some(sender)
}

fn is_final(line: &str) -> bool {
    matches!(
        serde_json::from_str::<CrawlEvent>(line),
        Ok(CrawlEvent::Crawl { crawl }) if crawl.status.is_final()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::call::FromAnswer;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use tokio::time::Instant;

    /// Reads once, in a thread, and returns how many bytes.
    async fn read(stream: &UnixStream) -> usize {
        let mut stream = stream.try_clone().unwrap();
        let reading = tokio::task::spawn_blocking(move || stream.read(&mut [0; 64]).unwrap());
        reading.await.unwrap()
    }

    #[tokio::test]
    async fn changes_of_the_status_are_reported_together() {
        let mut followers = Followers::default();
        let (reply, mut answer) = Reply::new();
        followers.follow_status(Claim::default(), &reply);
        let descriptor = zbus::OwnedFd::from_answer(answer.try_recv().unwrap().unwrap());
        let stream = UnixStream::from(OwnedFd::from(descriptor.unwrap()));
        let begin = Instant::now();
        followers.compare_line("one");
        assert_eq!(read(&stream).await, 1);
        for _ in 0..9 {
            followers.tell_of_status();
            followers.compare_line("one");
        }
        assert_eq!(read(&stream).await, 1);
        assert!(begin.elapsed() >= STATUS_INTERVAL);
        drop(stream);
        // The task notices the end of the caller.
        while !followers.of_status.is_empty() {
            tokio::task::yield_now().await;
            followers.of_status.retain(|follower| !follower.is_closed());
        }
    }
}
