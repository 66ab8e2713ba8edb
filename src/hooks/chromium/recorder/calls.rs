//! What a recording orders: calls to the browser, whose answers it expects, and what is kept.

use crate::chromium::cdp::Call;
use crate::visit::recording::Row;
use archivist_warc::exchange::Exchange;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, PartialEq)]
pub enum Step {
    Send(Call),
    /// Add bytes to the body of a request.
    Append {
        request: String,
        bytes: Vec<u8>,
    },
    Join {
        from: String,
        to: String,
    },
    Clear {
        request: String,
    },
    /// Write a request with its response. Its body is that of `body`, if it has one.
    Keep {
        body: Option<String>,
        exchange: Box<Exchange>,
        row: Row,
    },
    /// Name a request that is not kept.
    Name(Row),
}

/// Whose answer is expected, by the number of the call.
#[derive(Debug)]
pub enum Expected {
    /// A request, which waits for it.
    Of { request: String, what: Awaited },
    /// A worker of another page is there, and then runs.
    ForeignWorker { session: String, is_running: bool },
    /// The world of our own in the page.
    World,
    /// The page has fetched what a body lacks.
    Fetched,
}

/// What a request waits for.
#[derive(Debug)]
pub enum Awaited {
    Stream,
    Body,
    /// The body of a response that is stopped.
    Stopped {
        session: String,
        stop: String,
    },
    Posted,
}

/// Steps that are not carried out yet, and calls without an answer.
#[derive(Debug)]
pub struct Calls {
    last: u64,
    expected: BTreeMap<u64, Expected>,
    steps: Vec<Step>,
}

impl Calls {
    /// Calls have numbers above `last`.
    pub fn new(last: u64) -> Calls {
        Calls { last, expected: BTreeMap::new(), steps: Vec::new() }
    }

    /// Calls without waiting for an answer.
    pub fn post(&mut self, session: &str, method: &'static str, params: Value) {
        self.last += 1;
        let session = Some(session.to_owned());
        self.steps.push(Step::Send(Call { id: self.last, session, method, params }));
    }

    pub fn ask(&mut self, session: &str, method: &'static str, params: Value, expected: Expected) {
        self.post(session, method, params);
        self.expected.insert(self.last, expected);
    }

    pub fn answered(&mut self, call: u64) -> Option<Expected> {
        self.expected.remove(&call)
    }

    pub fn order(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub fn clear(&mut self, request: &str) {
        self.steps.push(Step::Clear { request: request.to_owned() });
    }

    pub fn take(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }
}
