//! Callers that wait for something, and what they wait for.

use crate::main_loop::action::ReplyAction;
use archivist_core::model::{AnyId, CrawlId, RunId, SnapshotId};
use archivist_shared::bus::call::{Reply, Work};
use std::collections::HashMap;

#[derive(Default)]
pub struct Replies {
    /// Workers that wait for the end of a run.
    of_runs: HashMap<RunId, Vec<Reply<String>>>,
    /// Workers of crawls that wait for their snapshots.
    of_snapshots: HashMap<CrawlId, Vec<Reply<()>>>,
    /// Callers that wait until no unit of a crawl or snapshot runs.
    of_units: HashMap<AnyId, Vec<Reply<()>>>,
    of_outbox: Vec<Reply<()>>,
    /// Callers that wait for restored files.
    of_copies: HashMap<SnapshotId, Vec<Reply<String>>>,
    /// Callers that wait for an answer of the index of full text search.
    of_searches: HashMap<RunId, Reply<String>>,
    /// Calls of workers that are made again later.
    parked: Vec<Work>,
}

impl Replies {
    /// The calls that were kept.
    pub fn unpark(&mut self) -> Vec<Work> {
        std::mem::take(&mut self.parked)
    }

    /// Answers, or keeps what is answered later. Calls that wait for the journal or are made again
    /// are not for this.
    pub fn perform(&mut self, action: ReplyAction) {
        match action {
            ReplyAction::Answer(answer) => answer.send(),
            ReplyAction::Join { run, reply } => self.of_runs.entry(run).or_default().push(reply),
            ReplyAction::Settle { run, ended } => {
                let text = serde_json::to_string(&ended).unwrap_or_default();
                for reply in self.of_runs.remove(&run).unwrap_or_default() {
                    reply.send(Ok(text.clone()));
                }
            }
            ReplyAction::AwaitCopy { id, reply } => {
                self.of_copies.entry(id).or_default().push(reply);
            }
            ReplyAction::CopyReady { id, answer } => {
                for reply in self.of_copies.remove(&id).unwrap_or_default() {
                    reply.send(answer.clone());
                }
            }
            ReplyAction::AwaitSearch { run, reply } => {
                self.of_searches.insert(run, reply);
            }
            ReplyAction::Found { run, answer } => {
                if let Some(reply) = self.of_searches.remove(&run) {
                    reply.send(answer);
                }
            }
            ReplyAction::AwaitOutbox(reply) => self.of_outbox.push(reply),
            ReplyAction::OutboxChanged => send_all(std::mem::take(&mut self.of_outbox)),
            ReplyAction::AwaitSnapshots { crawl, reply } => {
                self.of_snapshots.entry(crawl).or_default().push(reply);
            }
            ReplyAction::SnapshotsDone(crawl) => {
                send_all(self.of_snapshots.remove(&crawl).unwrap_or_default());
            }
            ReplyAction::AwaitUnits { of, reply } => {
                self.of_units.entry(of).or_default().push(reply);
            }
            ReplyAction::UnitsEnded(of) => {
                send_all(self.of_units.remove(&of).unwrap_or_default());
            }
            ReplyAction::Park(work) => self.parked.push(work),
            ReplyAction::Withhold(_) | ReplyAction::Unpark | ReplyAction::SyncJournal { .. } => {}
        }
    }
}

fn send_all(replies: Vec<Reply<()>>) {
    for reply in replies {
        reply.send(Ok(()));
    }
}
