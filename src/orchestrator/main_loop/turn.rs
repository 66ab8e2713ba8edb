//! One turn of the loop: a batch of events in one transaction, which yields actions. Nothing
//! outside the transaction changes before the commit, and nothing outside is read: facts about
//! files come from [`Facts`](crate::engine::facts::Facts).

use crate::bus::call::{Answer, Refusal, Reply};
use crate::database::{DatabaseError, Tx};
use crate::engine::state::Engine;
use crate::machine::notify;
use crate::main_loop::action::{Action, Awaited, LoopAction, ReplyAction, UnitAction};
use crate::main_loop::due::{Due, DueUnit};
use crate::main_loop::event::Event;
use crate::main_loop::rooms::Rooms;
use archivist_core::model::{CrawlId, Owner, RunId, Time};
use archivist_core::plan::{LOAD_INTERVAL, Outlook};
use archivist_core::store::Retries;
use archivist_shared::bus::documents::work::Ended;
use std::collections::BTreeSet;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Hook { crawl: CrawlId, owner: Owner, plugin: String, hook: String },
    Snapshot { crawl: CrawlId, id: archivist_core::model::SnapshotId },
    Crawl(CrawlId),
}

/// Why an event was not carried out.
#[derive(Debug)]
pub(crate) enum TurnError {
    /// The caller gets the refusal.
    Refused(Refusal),
    /// More pages of the crawl are to end with this reason than one turn cancels.
    ManyPages(CrawlId, String),
    Database(DatabaseError),
}

impl fmt::Display for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TurnError::Refused(refusal) => write!(f, "{refusal}"),
            TurnError::ManyPages(crawl, reason) => {
                write!(f, "{crawl} has too many pages for one turn: {reason}")
            }
            TurnError::Database(_) => f.write_str("the database failed"),
        }
    }
}

impl From<DatabaseError> for TurnError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::NoSuch(what) => {
                TurnError::Refused(Refusal::NoSuch(format!("there is no {what}")))
            }
            DatabaseError::Illegal { what, source } => {
                TurnError::Refused(Refusal::Invalid(format!("{what}: {source}")))
            }
            other => TurnError::Database(other),
        }
    }
}

impl From<serde_json::Error> for TurnError {
    fn from(error: serde_json::Error) -> Self {
        TurnError::Database(error.into())
    }
}

pub(crate) type TurnResult<T> = Result<T, TurnError>;

enum Attempt {
    Done,
    /// Facts are missing: the next turn repeats the step.
    Left,
    Refused(Refusal),
    /// Pages of the crawl are cancelled first, in pieces, with this reason.
    InPieces(CrawlId, String),
}

pub(crate) fn invalid(what: impl Into<String>) -> TurnError {
    TurnError::Refused(Refusal::Invalid(what.into()))
}

pub(crate) fn failed(why: impl Into<String>) -> TurnError {
    TurnError::Refused(Refusal::Failed(why.into()))
}

/// The plugin and the hook of a key `PLUGIN/HOOK`.
pub(crate) fn parts(key: &str) -> TurnResult<(&str, &str)> {
    key.split_once('/').ok_or_else(|| invalid(format!("'{key}' is not the key of a hook")))
}

pub(crate) struct Turn<'a> {
    pub tx: &'a Tx<'a>,
    pub engine: &'a Engine,
    pub rooms: &'static dyn Rooms,
    pub now: Time,
    /// CLOCK_BOOTTIME in milliseconds.
    pub boottime: i64,
    /// Spreads delays; in 0..1.
    pub jitter: f64,
    pub followed: &'a BTreeSet<CrawlId>,
    /// A client requested the signals about pages.
    pub is_subscribed: bool,
    pub announced: usize,
    /// Runs whose start systemd has not answered.
    pub unanswered: &'a BTreeSet<RunId>,
    /// Crawls with pages that the next turns cancel or leave out: no page of theirs is begun in
    /// this one.
    pub leaving_out: BTreeSet<CrawlId>,
    /// Bytes a second by which the free space of the archive shrinks, if that was read.
    pub disk_rate: u64,
    pub actions: Vec<Action>,
    pub changes: BTreeSet<Change>,
}

impl Turn<'_> {
    /// Returns the delays of units that are retried without a limit, as of this turn.
    pub fn retries(&self) -> Retries {
        Retries { backoff: self.engine.backoff(), now: self.now, jitter: self.jitter }
    }

    /// The first part of a turn, before its events.
    pub fn open(&mut self) -> Result<(), DatabaseError> {
        for step in self.rooms.before() {
            self.attempt(step)?;
        }
        Ok(())
    }

    /// Takes one event. Callers get refusals as answers; other refusals are logged. Returns false
    /// if facts are missing: the event has changed nothing, and is for the next turn.
    pub fn event(&mut self, event: &Event) -> Result<bool, DatabaseError> {
        let rooms = self.rooms;
        match self.attempt(|turn| rooms.handle(turn, event))? {
            Attempt::Done => Ok(true),
            Attempt::Left => Ok(false),
            Attempt::Refused(refusal) => {
                let why = refusal.to_string();
                match event.caller() {
                    Some(reply) => self.act(ReplyAction::Answer(reply.clone(), Err(refusal))),
                    None => self.log_refused(why),
                }
                Ok(true)
            }
            Attempt::InPieces(crawl, reason) => {
                let again = match event {
                    // The list would be out of date.
                    Event::Listed(_) => UnitAction::List.into(),
                    other => LoopAction::Again(other.clone()).into(),
                };
                self.cancel_piece(crawl, &reason, again)?;
                Ok(true)
            }
        }
    }

    /// Cancels some pages of a crawl and queues `again`, which repeats the step that would cancel
    /// all of them. Until the last piece the crawl is unchanged apart from these pages: no caller
    /// is answered yet, and after a restart the step is found out again.
    fn cancel_piece(
        &mut self,
        crawl: CrawlId,
        reason: &str,
        again: Action,
    ) -> Result<(), DatabaseError> {
        self.leaving_out.insert(crawl);
        let rooms = self.rooms;
        match self.attempt(|turn| rooms.cancel_some(turn, crawl, reason))? {
            Attempt::Refused(refusal) => {
                self.log_refused(refusal.to_string());
            }
            Attempt::Done | Attempt::Left | Attempt::InPieces(..) => self.act(again),
        }
        Ok(())
    }

    /// Calls `step`. Rolls back what it changes and queues if it is refused, or asks for facts that
    /// were not read before the turn.
    fn attempt(
        &mut self,
        step: impl FnOnce(&mut Self) -> TurnResult<()>,
    ) -> Result<Attempt, DatabaseError> {
        let engine = self.engine;
        let (mark, facts) = (self.actions.len(), &engine.facts);
        let changes = std::mem::take(&mut self.changes);
        facts.begin();
        self.tx.savepoint()?;
        let result = step(self);
        let mut made = std::mem::replace(&mut self.changes, changes);
        let attempt = match result {
            Err(TurnError::Database(error)) => return Err(error),
            _ if !facts.are_complete() => {
                facts.leave();
                Attempt::Left
            }
            Ok(()) => {
                self.changes.append(&mut made);
                self.tx.release_savepoint()?;
                return Ok(Attempt::Done);
            }
            Err(TurnError::Refused(refusal)) => Attempt::Refused(refusal),
            Err(TurnError::ManyPages(crawl, reason)) => Attempt::InPieces(crawl, reason),
        };
        self.actions.truncate(mark);
        self.tx.roll_back_savepoint()?;
        Ok(attempt)
    }

    /// Ends a step early that lacks facts. It is repeated in the next turn.
    ///
    /// # Errors
    /// If facts are missing; no caller gets this refusal.
    pub(crate) fn require_facts(&self) -> TurnResult<()> {
        if self.engine.facts.are_complete() {
            Ok(())
        } else {
            Err(failed("facts about files were not read yet"))
        }
    }

    /// Makes all starts that are due, and returns what is left to do.
    pub fn start_all(&mut self) -> Result<Outlook, DatabaseError> {
        loop {
            let Due { starts, outlook } = self.rooms.due(self)?;
            if starts.is_empty() {
                return Ok(outlook);
            }
            for DueUnit { what, begin } in starts {
                match self.attempt(begin)? {
                    Attempt::Done => {}
                    Attempt::Left => return Ok(outlook),
                    Attempt::InPieces(crawl, reason) => {
                        let again = LoopAction::Again(Event::Due).into();
                        self.cancel_piece(crawl, &reason, again)?;
                        return Ok(outlook);
                    }
                    Attempt::Refused(refusal) => {
                        // It would be due again and again; the next turn is soon enough.
                        let why = refusal.to_string();
                        self.log(move || tracing::error!("failed to carry out {what}: {why}"));
                        return Ok(outlook);
                    }
                }
            }
        }
    }

    /// The last part of a turn: messages for followers, and the STATUS= line.
    pub fn close(&mut self, outlook: &Outlook) -> Result<(), DatabaseError> {
        for step in self.rooms.after() {
            match step(self) {
                Ok(()) => {}
                Err(TurnError::Database(error)) => return Err(error),
                Err(error) => self.log_refused(error.to_string()),
            }
        }
        let (queued, units) = (self.tx.queued_run_counts()?, self.tx.open_run_counts()?);
        let crawls = self.tx.counts("crawl", None)?;
        let snapshots = self.tx.counts("snapshot", None)?;
        let line = notify::line(&crawls, &snapshots, &queued, &units);
        let line = match &outlook.blocked {
            Some(why) => {
                self.act(LoopAction::WakeAt(self.now.after(LOAD_INTERVAL)));
                format!("{line}; starting nothing: {why}")
            }
            None => line,
        };
        self.act(LoopAction::Status(line));
        if let Some(next) = outlook.next {
            self.act(LoopAction::WakeAt(next));
        }
        Ok(())
    }

    /// Queues an action, performed after the commit.
    pub(crate) fn act(&mut self, action: impl Into<Action>) {
        self.actions.push(action.into());
    }

    /// Changes what the process remembers, after the commit.
    pub(crate) fn remember(&mut self, change: impl FnOnce(&mut Engine) + Send + 'static) {
        self.actions.push(Action::Engine(Box::new(change)));
    }

    /// Answers the callers that wait for the end of a run.
    pub(crate) fn settle(&mut self, run: RunId, ended: &Ended) -> TurnResult<()> {
        self.act(UnitAction::Ended(run));
        let ended = serde_json::to_string(ended)?;
        self.act(ReplyAction::Settle(Awaited::end_of(run), Ok(Some(ended))));
        Ok(())
    }

    /// Writes a log entry after the commit: the journal reports no change that was not made. The
    /// message catalog explains the entries that have a message id, from their fields.
    pub(crate) fn log(&mut self, write: impl FnOnce() + Send + 'static) {
        self.actions.push(Action::Log(Box::new(write)));
    }

    fn log_refused(&mut self, why: String) {
        self.log(move || {
            tracing::error!("failed to handle an internal event: {why}, ignoring");
        });
    }

    /// Answers a caller after the commit.
    pub(crate) fn answer(&mut self, reply: &Reply, answer: Answer) {
        self.act(ReplyAction::Answer(reply.clone(), Ok(answer)));
    }
}
