//! A worker that does what workers do, one call after another.

use crate::bus::call::{Answer, Refusal, Reply};
use crate::main_loop::event::Event;
use crate::main_loop::order::Call;
use crate::work::calls::WorkerCall;
use archivist_core::model::web::reach::Hosts;
use archivist_core::model::{Figures, Owner, ResultState, Verdict, is_on_internet};
use archivist_shared::bus::documents::work::{Assignment, Ended, NO_NETWORK, Report, Standing};
use serde_json::json;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

type Answered = oneshot::Receiver<Result<Answer, Refusal>>;

#[derive(Debug)]
pub struct Worker {
    assignment: Assignment,
    call: Option<(WorkerCall, Answered)>,
    /// Hooks still to run; for a crawl's worker those after the snapshots come last.
    todo: Option<VecDeque<String>>,
    last: VecDeque<String>,
    /// The end of a hook, not reported yet.
    ended: Option<(String, Ended)>,
    waited: bool,
    /// How the server answers the hooks of a page.
    server: Option<Server>,
    fault: Option<Fault>,
    exit: i32,
}

/// Why the hooks of a page get no answer.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// They say that the machine is to blame, for this reason.
    OfMachine(&'static str),
    /// The error of a connection.
    Unknown(&'static str),
}

/// A server that answers requests for pages: its status and Retry-After.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    pub status: u16,
    pub retry_after: Option<u64>,
}

pub enum Did {
    Called(Box<Event>),
    /// It waits for an answer.
    Waits,
    Exits(i32),
}

impl Worker {
    pub fn new(assignment: &[u8], server: Option<Server>, fault: Option<Fault>) -> Worker {
        let assignment: Assignment = serde_json::from_slice(assignment).unwrap();
        let is_page = matches!(assignment.owner, Owner::Snapshot(_));
        let is_concerned = is_page && is_on_internet(&assignment.url, &Hosts::default());
        let keys = assignment.last_hooks.iter().map(|hook| hook.key.clone());
        Worker {
            last: keys.collect(),
            assignment,
            call: None,
            todo: None,
            ended: None,
            waited: false,
            server: server.filter(|_| is_page),
            fault: fault.filter(|_| is_concerned),
            exit: 0,
        }
    }

    /// The orchestrator died: whatever it was asked is asked again.
    pub fn call_again(&mut self) {
        if let Some((WorkerCall::Run { hook, .. }, _)) = self.call.take()
            && let Some(todo) = &mut self.todo
        {
            todo.push_front(hook);
        }
    }

    pub fn step(&mut self) -> Did {
        match self.call.take() {
            None => self.next(),
            Some((work, answer)) => self.wait(work, answer),
        }
    }

    fn wait(&mut self, work: WorkerCall, mut answer: Answered) -> Did {
        match (work, answer.try_recv()) {
            (work, Err(TryRecvError::Empty)) => {
                self.call = Some((work, answer));
                return Did::Waits;
            }
            (_, Ok(Err(_))) => return Did::Exits(1),
            (WorkerCall::Attach { .. }, Ok(Ok(Answer::Text(text)))) => self.attached(&text),
            (WorkerCall::Run { hook, .. }, Ok(Ok(Answer::Text(text)))) => {
                let ended: Ended = serde_json::from_str(&text).unwrap();
                if ended.again {
                    self.todo.as_mut().unwrap().push_front(hook)
                } else {
                    self.ended = Some((hook, ended))
                }
            }
            (WorkerCall::Run { hook, .. }, _) => self.todo.as_mut().unwrap().push_front(hook),
            (WorkerCall::Report { .. }, Ok(Ok(_))) => self.ended = None,
            (WorkerCall::SnapshotsDone { .. }, Ok(Ok(_))) => self.waited = true,
            _ => {}
        }
        self.next()
    }

    fn called(&mut self, work: WorkerCall) -> Did {
        let (reply, answer) = Reply::new();
        self.call = Some((work.clone(), answer));
        Did::Called(Box::new(Event::Call(Call::new(work, &reply))))
    }

    fn attached(&mut self, text: &str) {
        let standing: Standing = serde_json::from_str(text).unwrap();
        let done = |key: &str| {
            let mut hooks = standing.hooks.iter();
            hooks.any(|known| known.key == key && known.state.is_final())
        };
        let keys = self.assignment.hooks.iter().map(|hook| hook.key.clone());
        self.todo = Some(keys.filter(|key| !done(key)).collect());
        self.last.retain(|key| !done(key));
    }

    fn next(&mut self) -> Did {
        let token = self.assignment.token.clone();
        let Some(todo) = &mut self.todo else {
            return self.called(WorkerCall::Attach { token });
        };
        if let Some((hook, ended)) = &self.ended {
            let report = Arc::new(Report {
                key: hook.clone(),
                verdict: match self.fault {
                    Some(Fault::OfMachine(why) | Fault::Unknown(why)) => {
                        Verdict { state: ResultState::Failed, error: Some(why.to_owned()) }
                    }
                    None => Verdict::of(&ended.outcome, None, true),
                },
                output: None,
                files: Vec::new(),
                size: u64::from(ended.outcome.is_success()),
                children: Vec::new(),
                tags: Vec::new(),
                title: None,
                binary: None,
                derived: Default::default(),
                http_status: self.server.map(|server| server.status),
                http_plugin: None,
                network_fault: match self.fault {
                    Some(Fault::OfMachine(why)) => Some(why.to_owned()),
                    _ => None,
                },
                retry_after: self.server.and_then(|server| server.retry_after),
                crawl_delay: None,
                ready_at: None,
                recorded: None,
                figures: Figures::of(json!({"size": hook.len()}).as_object().unwrap()),
            });
            if self.assignment.visit.ends_early(report.answer().as_ref()) {
                todo.clear();
            }
            if report.network_fault.is_some() {
                todo.clear();
                self.exit = NO_NETWORK;
            }
            return self.called(WorkerCall::Report { token, report, done: 0 });
        }
        if let Some(hook) = todo.pop_front() {
            let stdout = Arc::new(File::open("/dev/null").unwrap().into());
            return self.called(WorkerCall::Run { token, hook, stdout });
        }
        let is_crawl = matches!(self.assignment.owner, Owner::Crawl(_));
        if is_crawl && !self.waited {
            return self.called(WorkerCall::SnapshotsDone { token });
        }
        if !self.last.is_empty() {
            std::mem::swap(todo, &mut self.last);
            return self.next();
        }
        Did::Exits(self.exit)
    }
}
