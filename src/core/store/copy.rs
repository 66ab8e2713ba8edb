//! The state of a snapshot's copy, and what follows from the end of a transfer.

use super::{Record, StoredObject, Task};
use crate::model::{Backoff, Time};
use std::time::Duration;

crate::text::named! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum CopyStatus {
        /// Nothing is to do, apart from what `KeepLocal=` says.
        #[default]
        Idle = "idle",
        /// The next task waits for its time and a slot.
        Waiting = "waiting",
        /// A transfer is recorded, and has not ended.
        Running = "running",
    }
}

/// How long files stay that were restored for a user.
pub const RESTORED_STAYS: Duration = Duration::from_secs(86_400);
/// How old a verification may be without being repeated before local files are removed.
const VERIFIED_FOR: Duration = Duration::from_secs(86_400);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    pub status: CopyStatus,
    /// The task that waits or runs, or that was done last.
    pub task: Task,
    /// When the waiting task is due.
    pub due_at: Option<Time>,
    pub attempts: u32,
    /// Why the last attempt failed.
    pub reason: Option<String>,
    /// The snapshot was sealed again while a transfer ran: copy it again.
    pub again: bool,
    /// The newest verified object.
    pub object: Option<StoredObject>,
    /// When the object was read back.
    pub verified_at: Option<Time>,
    /// Whether the local files are complete.
    pub is_local: bool,
    /// When the snapshot was sealed, from which `KeepLocal=` counts, also for restored files.
    pub local_since: Option<Time>,
    /// They stay until then in any case, because a user requested them.
    pub keep_until: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The program ended with a record.
    Recorded(Record),
    Failed(String),
    /// The unit is gone without a trace: nothing speaks against the next attempt.
    Lost,
}

/// When a failed transfer or removal is retried: without an end, because the page would have no copy, or
/// its files would stay.
#[derive(Clone, Copy, Debug)]
pub struct Retries {
    /// Delays; the number of attempts is not limited.
    pub backoff: Backoff,
    pub now: Time,
    /// Spreads delays; in 0..1.
    pub jitter: f64,
}

impl Retries {
    /// When the next attempt is due after so many failed ones.
    pub fn at(&self, attempts: u32) -> Time {
        let backoff = Backoff { attempts: u32::MAX, ..self.backoff };
        let delay = backoff.delay(attempts.max(1), self.jitter).unwrap_or(backoff.longest);
        self.now.after(delay.max(Duration::from_millis(1)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    NoObject,
}

impl Copy {
    /// The snapshot was sealed: its local files are complete and have to be copied.
    pub fn sealed(&self, now: Time) -> Copy {
        let sealed = Copy { is_local: true, local_since: Some(now), ..self.clone() };
        if sealed.status == CopyStatus::Running {
            return Copy { again: true, ..sealed };
        }
        sealed.wait_for(Task::Put, now)
    }

    /// The store was changed: the local files have to be copied to the new one.
    pub fn moved(&self, store: &str, now: Time) -> Copy {
        let is_there = self.object.as_ref().is_some_and(|object| object.store == store);
        if is_there || !self.is_local || self.status != CopyStatus::Idle {
            return self.clone();
        }
        self.clone().wait_for(Task::Put, now)
    }

    /// The snapshot was deleted: its copy has to go, too. `None` if the store has none.
    pub fn deleted(&self, now: Time) -> Option<Copy> {
        self.object.as_ref()?;
        Some(self.clone().wait_for(Task::Delete, now))
    }

    /// A user or a retry requests the local files.
    ///
    /// # Errors
    /// If there are none and the store has no copy.
    pub fn requested(&self, now: Time) -> Result<Copy, Refused> {
        let kept = Copy { keep_until: Some(now.after(RESTORED_STAYS)), ..self.clone() };
        let is_being_dropped = self.status == CopyStatus::Running && self.task == Task::Drop;
        if is_being_dropped || (self.status != CopyStatus::Idle && self.task == Task::Get) {
            return Ok(kept);
        }
        if self.is_local {
            // A removal that waits is not started before `keep_until`.
            return Ok(kept);
        }
        match &self.object {
            Some(_) => Ok(kept.wait_for(Task::Get, now)),
            None => Err(Refused::NoObject),
        }
    }

    /// Whether the files can be used now: no transfer is about to remove them.
    pub fn is_usable(&self) -> bool {
        self.is_local && !(self.status == CopyStatus::Running && self.task == Task::Drop)
    }

    /// Whether the object has to be read again before local files are removed.
    pub fn needs_reading(&self, now: Time) -> bool {
        self.verified_at.is_none_or(|time| time.after(VERIFIED_FOR) < now)
    }

    pub fn begun(&self, task: Task) -> Copy {
        Copy { status: CopyStatus::Running, task, due_at: None, ..self.clone() }
    }

    /// Nothing is to do any more.
    pub fn rest(&self) -> Copy {
        Copy { status: CopyStatus::Idle, due_at: None, ..self.clone() }
    }

    /// The task that was due has become pointless. The next look at the local files is a while away, so
    /// that nothing is decided again and again.
    pub fn nothing_to_do(&self, now: Time) -> Copy {
        Copy { keep_until: Some(now.after(RESTORED_STAYS)), ..self.rest() }
    }

    pub fn ended(&self, end: &End, retries: &Retries) -> Copy {
        let now = retries.now;
        let after = match end {
            End::Recorded(Record { error: None, object, .. }) => self.done(object.as_ref(), now),
            End::Recorded(record) => {
                let reason = record.error.clone().unwrap_or_default();
                self.failed(&reason, record.differs, retries)
            }
            End::Failed(reason) => self.failed(reason, false, retries),
            End::Lost => self.lost(now),
        };
        if self.again {
            return Copy { again: false, ..after.wait_for(Task::Put, now) };
        }
        // The user requested the files while they were being removed.
        let is_wanted = after.keep_until.is_some_and(|until| until > now);
        if self.task == Task::Drop && !after.is_local && is_wanted {
            return after.wait_for(Task::Get, now);
        }
        after
    }

    fn done(&self, object: Option<&StoredObject>, now: Time) -> Copy {
        let rest = Copy { attempts: 0, reason: None, ..self.rest() };
        match self.task {
            Task::Put => Copy {
                object: object.cloned().or_else(|| self.object.clone()),
                verified_at: Some(now),
                ..rest
            },
            Task::Drop => Copy { is_local: false, ..rest },
            Task::Get => Copy {
                is_local: true,
                verified_at: Some(now),
                keep_until: Some(now.after(RESTORED_STAYS)),
                ..rest
            },
            Task::Delete | Task::Test => rest,
        }
    }

    fn failed(&self, reason: &str, differs: bool, retries: &Retries) -> Copy {
        let attempts = self.attempts.saturating_add(1);
        let failed = Copy { attempts, reason: Some(reason.to_owned()), ..self.clone() };
        match self.task {
            // The user or the page that waits for it asks again.
            Task::Get | Task::Test => failed.rest(),
            Task::Drop if differs => Copy {
                status: CopyStatus::Waiting,
                task: Task::Put,
                due_at: Some(retries.at(attempts)),
                ..failed
            },
            Task::Put | Task::Drop | Task::Delete => {
                Copy { status: CopyStatus::Waiting, due_at: Some(retries.at(attempts)), ..failed }
            }
        }
    }

    fn lost(&self, now: Time) -> Copy {
        match self.task {
            Task::Test => self.rest(),
            _ => Copy { status: CopyStatus::Waiting, due_at: Some(now), ..self.clone() },
        }
    }

    fn wait_for(self, task: Task, now: Time) -> Copy {
        Copy {
            status: CopyStatus::Waiting,
            task,
            due_at: Some(now),
            attempts: 0,
            reason: None,
            ..self
        }
    }
}

#[cfg(test)]
mod tests;
