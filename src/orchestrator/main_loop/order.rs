//! Calls as values. What a caller asks for is an order, which its room carries out: the loop knows none of
//! them by name.

use crate::bus::call::{Answer, FromAnswer, Refusal, Reply};
use crate::database::Durability;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::Owner;
use archivist_plugin::Catalogue;
use std::sync::Arc;
use tokio::sync::mpsc;

/// The call of a user: an entry of [`CALLS`](archivist_core::model::CALLS).
pub struct UserCall<'a> {
    pub name: &'static str,
    /// The user id of the caller, if the rule of the call depends on it.
    pub user: Option<u32>,
    /// The crawls and snapshots that it is about. Empty for a deletion, which refuses each by itself.
    pub about: &'a [Owner],
}

impl<'a> UserCall<'a> {
    /// A call whose rule needs no caller: the policy of the bus alone decides, or the order itself.
    pub fn of_all(name: &'static str) -> Option<UserCall<'a>> {
        Some(UserCall { name, user: None, about: &[] })
    }

    pub fn of(name: &'static str, user: u32) -> Option<UserCall<'a>> {
        Some(UserCall { name, user: Some(user), about: &[] })
    }
}

pub trait Order: Send + Sync + 'static {
    /// Returns the answer; `None` if the caller gets it later.
    ///
    /// # Errors
    /// The caller gets a refusal, and nothing is changed.
    fn carry_out(&self, turn: &mut Turn<'_>, reply: &Reply) -> TurnResult<Option<Answer>>;

    /// The call of a user that it is. None for those of workers and services, which are kept while the
    /// database fails.
    fn user_call(&self) -> Option<UserCall<'_>>;

    /// What the commit must survive.
    fn durability(&self) -> Durability {
        Durability::PowerLoss
    }

    /// Whether it may take long and can wait for a later turn.
    fn is_heavy(&self) -> bool {
        true
    }

    /// Whether configuration and plugins are read again before it.
    fn reloads(&self) -> bool {
        false
    }

    /// Whether it names a plugin or a setting that is not in the catalogue, so that the plugins are read again.
    fn names_unknown(&self, _catalogue: &Catalogue) -> bool {
        false
    }
}

/// A call, with the caller that waits for its answer.
#[derive(Clone)]
pub struct Call {
    pub order: Arc<dyn Order>,
    pub reply: Reply,
}

impl Call {
    pub fn new(order: impl Order, reply: &Reply) -> Call {
        Call { order: Arc::new(order), reply: reply.clone() }
    }

    /// A call that the program makes itself; nothing waits for its answer.
    pub fn own(order: impl Order) -> Call {
        Call::new(order, &Reply::new().0)
    }

    /// The name of the call of a user.
    pub fn name(&self) -> Option<&'static str> {
        self.order.user_call().map(|call| call.name)
    }
}

/// Queue of the calls for the loop.
#[derive(Clone)]
pub struct Calls(mpsc::UnboundedSender<Call>);

impl Calls {
    pub fn new() -> (Calls, mpsc::UnboundedReceiver<Call>) {
        let (sender, arriving) = mpsc::unbounded_channel();
        (Calls(sender), arriving)
    }

    /// Sends an order to the loop and waits for the answer.
    ///
    /// # Errors
    /// The refusal of the room, or if the loop has ended.
    pub async fn ask<T: FromAnswer>(&self, order: impl Order) -> Result<T, Refusal> {
        let (reply, answer) = Reply::new();
        self.0.send(Call { order: Arc::new(order), reply }).map_err(|_| Refusal::Leaving)?;
        let answer = answer.await.map_err(|_| Refusal::Leaving)??;
        let unlike = || Refusal::Failed("the answer is not of the type of the method".to_owned());
        T::from_answer(answer).ok_or_else(unlike)
    }
}
