//! Callers that wait for something, and what they wait for.

use crate::bus::call::{Answer, Reply};
use crate::main_loop::action::{Awaited, ReplyAction};
use crate::main_loop::order::Call;
use std::collections::HashMap;

#[derive(Default)]
pub struct Replies {
    waiting: HashMap<Awaited, Vec<Reply>>,
    /// Calls of workers that are made again later.
    parked: Vec<Call>,
}

impl Replies {
    pub fn unpark(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.parked)
    }

    /// Answers, or keeps what is answered later. Calls that wait for the journal or are made again
    /// are not for this.
    pub fn perform(&mut self, action: ReplyAction) {
        match action {
            ReplyAction::Answer(reply, answer) => reply.send(answer),
            ReplyAction::Await(what, reply) => self.waiting.entry(what).or_default().push(reply),
            ReplyAction::Settle(what, answer) => {
                for reply in self.waiting.remove(&what).unwrap_or_default() {
                    let answer = answer.clone();
                    reply.send(answer.map(|text| text.map_or(Answer::Done, Answer::Text)));
                }
            }
            ReplyAction::Park(call) => self.parked.push(call),
            ReplyAction::Unpark | ReplyAction::SyncJournal { .. } => {}
        }
    }
}
