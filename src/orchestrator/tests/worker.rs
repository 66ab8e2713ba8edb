//! A worker that does what workers do, one call after another.

use crate::main_loop::event::Event;
use archivist_core::model::web::reach::Hosts;
use archivist_core::model::{Figures, Owner, ResultState, Verdict, is_on_internet};
use archivist_shared::bus::call::{Refusal, Reply, Work};
use archivist_shared::bus::documents::work::{Assignment, Ended, NO_NETWORK, Report, Standing};
use serde_json::json;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

type Answer<T> = oneshot::Receiver<Result<T, Refusal>>;

#[derive(Debug)]
enum Call {
    Attach(Answer<String>),
    Run(String, Answer<String>),
    Report(String, Answer<String>),
    SnapshotsDone(Answer<()>),
}

#[derive(Debug)]
pub struct Worker {
    assignment: Assignment,
    call: Option<Call>,
    /// Hooks still to run; for a crawl's worker those after the snapshots come last.
    todo: Option<VecDeque<String>>,
    last: VecDeque<String>,
    /// The end of a hook, not reported yet.
    ended: Option<(String, Ended)>,
    waited: bool,
    /// How the server answers the hooks of a page.
    server: Option<Server>,
    /// Why they fail.
    fault: Option<Fault>,
    /// Exit status at the end.
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

/// What a worker did in a step.
pub enum Did {
    Called(Box<Event>),
    /// It waits for an answer.
    Waits,
    /// It ends with this exit status.
    Exits(i32),
}

fn called(work: Work) -> Did {
    Did::Called(Box::new(Event::Work(work)))
}

/// The answer, if it came: `Err` if none will come.
fn take<T>(answer: &mut Answer<T>) -> Option<Result<Result<T, Refusal>, ()>> {
    match answer.try_recv() {
        Ok(answer) => Some(Ok(answer)),
        Err(TryRecvError::Empty) => None,
        Err(TryRecvError::Closed) => Some(Err(())),
    }
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
        if let Some(Call::Run(hook, _)) = self.call.take()
            && let Some(todo) = &mut self.todo
        {
            todo.push_front(hook);
        }
    }

    pub fn step(&mut self) -> Did {
        match self.call.take() {
            None => self.next(),
            Some(call) => self.wait(call),
        }
    }

    fn wait(&mut self, call: Call) -> Did {
        match call {
            Call::Attach(mut answer) => match take(&mut answer) {
                None => self.call = Some(Call::Attach(answer)),
                Some(Ok(Ok(text))) => self.attached(&text),
                Some(Ok(Err(_))) => return Did::Exits(1),
                Some(Err(())) => {}
            },
            Call::Run(hook, mut answer) => match take(&mut answer) {
                None => self.call = Some(Call::Run(hook, answer)),
                Some(Ok(Ok(text))) => {
                    let ended: Ended = serde_json::from_str(&text).unwrap();
                    if ended.again {
                        self.todo.as_mut().unwrap().push_front(hook)
                    } else {
                        self.ended = Some((hook, ended))
                    }
                }
                Some(Ok(Err(_))) => return Did::Exits(1),
                Some(Err(())) => self.todo.as_mut().unwrap().push_front(hook),
            },
            Call::Report(hook, mut answer) => match take(&mut answer) {
                None => self.call = Some(Call::Report(hook, answer)),
                Some(Ok(Ok(_))) => self.ended = None,
                Some(Ok(Err(_))) => return Did::Exits(1),
                Some(Err(())) => {}
            },
            Call::SnapshotsDone(mut answer) => match take(&mut answer) {
                None => self.call = Some(Call::SnapshotsDone(answer)),
                Some(Ok(Ok(()))) => self.waited = true,
                Some(Ok(Err(_))) => return Did::Exits(1),
                Some(Err(())) => {}
            },
        }
        match self.call {
            Some(_) => Did::Waits,
            None => self.next(),
        }
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
            let (reply, answer) = Reply::new();
            self.call = Some(Call::Attach(answer));
            return called(Work::Attach { token, reply });
        };
        if let Some((hook, ended)) = &self.ended {
            let (reply, answer) = Reply::new();
            self.call = Some(Call::Report(hook.clone(), answer));
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
            return called(Work::Report { token, report, done: 0, reply });
        }
        if let Some(hook) = todo.pop_front() {
            let (reply, answer) = Reply::new();
            self.call = Some(Call::Run(hook.clone(), answer));
            let stdout = Arc::new(File::open("/dev/null").unwrap().into());
            return called(Work::Run { token, hook, stdout, reply });
        }
        let is_crawl = matches!(self.assignment.owner, Owner::Crawl(_));
        if is_crawl && !self.waited {
            let (reply, answer) = Reply::new();
            self.call = Some(Call::SnapshotsDone(answer));
            return called(Work::SnapshotsDone { token, reply });
        }
        if !self.last.is_empty() {
            std::mem::swap(todo, &mut self.last);
            return self.next();
        }
        Did::Exits(self.exit)
    }
}
