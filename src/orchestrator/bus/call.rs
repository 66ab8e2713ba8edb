//! The answers of calls, and the handles for them.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// Error of a call; each variant is an error name on the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request is invalid; the caller can correct it.
    Invalid(String),
    /// No crawl or snapshot has this id.
    NoSuch(String),
    Denied(String),
    Failed(String),
    /// The orchestrator is stopping; the next one answers.
    Leaving,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Invalid(why)
            | Refusal::NoSuch(why)
            | Refusal::Denied(why)
            | Refusal::Failed(why) => why,
            Refusal::Leaving => "the orchestrator is stopping",
        })
    }
}

/// What a caller gets.
#[derive(Debug)]
pub enum Answer {
    Done,
    /// A document, most of them JSON.
    Text(String),
    Number(u32),
    Descriptor(OwnedFd),
}

impl Answer {
    /// # Errors
    /// If the value has no JSON form.
    pub fn json(value: &impl serde::Serialize) -> serde_json::Result<Answer> {
        Ok(Answer::Text(serde_json::to_string(value)?))
    }
}

/// An answer as the type of a method's result; `None` if it is of another type.
pub trait FromAnswer: Sized {
    fn from_answer(answer: Answer) -> Option<Self>;
}

macro_rules! from_answer {
    ($($type:ty: $pattern:pat => $value:expr),* $(,)?) => {$(
        impl FromAnswer for $type {
            fn from_answer(answer: Answer) -> Option<$type> {
                match answer {
                    $pattern => Some($value),
                    _ => None,
                }
            }
        }
    )*};
}

from_answer! {
    (): Answer::Done => (),
    String: Answer::Text(text) => text,
    u32: Answer::Number(number) => number,
    zbus::OwnedFd: Answer::Descriptor(descriptor) => descriptor.into(),
}

type Answered = Result<Answer, Refusal>;

/// A caller that waits for an answer. Only the first answer counts.
#[derive(Clone)]
pub struct Reply(Arc<Mutex<Option<oneshot::Sender<Answered>>>>);

impl Reply {
    /// Returns a reply and the end at which the interface waits for it.
    pub fn new() -> (Reply, oneshot::Receiver<Answered>) {
        let (sender, receiver) = oneshot::channel();
        (Reply(Arc::new(Mutex::new(Some(sender)))), receiver)
    }

    /// Answers the caller, unless an earlier call of this function did.
    pub fn send(&self, answer: Answered) {
        let sender = self.0.lock().ok().and_then(|mut sender| sender.take());
        if let Some(sender) = sender {
            let _ = sender.send(answer);
        }
    }
}
