//! Commands that registered themselves, for `archivist status`: which command works on what, from
//! which directory, in which process. Nothing depends on them, so they are not in the database; a
//! command registers again with the next orchestrator.

use crate::crawl::hold::{hung_up, socket_pair};
use crate::main_loop::event::Event;
use archivist_core::model::Time;
use archivist_shared::bus::call::Reply;
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::documents::report::Registration;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use tokio::sync::mpsc;

/// A command with what the bus reports of its process.
#[derive(Clone)]
pub struct RegisteredCommand {
    pub registration: Registration,
    pub pid: Option<u32>,
    pub user: Option<u32>,
    /// When it started, or else registered.
    pub since: Time,
}

/// The registered commands, in the order of their registration.
#[derive(Default)]
pub struct Commands {
    last: u64,
    all: BTreeMap<u64, RegisteredCommand>,
}

impl Commands {
    /// Adds a command and returns its number.
    pub fn add(&mut self, command: RegisteredCommand) -> u64 {
        self.last += 1;
        self.all.insert(self.last, command);
        self.last
    }

    /// The registered commands, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &RegisteredCommand> {
        self.all.values()
    }

    /// Removes the command of this number, if it is still there.
    pub fn remove(&mut self, number: u64) {
        self.all.remove(&number);
    }
}

/// Keeps a command registered until it closes the descriptor that it gets; an event follows then.
/// Until then `claim` counts for the caller.
pub fn register(
    commands: &mut Commands,
    command: RegisteredCommand,
    claim: Claim,
    reply: &Reply<OwnedFd>,
    events: &mpsc::UnboundedSender<Event>,
) {
    let (ours, theirs) = match socket_pair() {
        Ok(pair) => pair,
        Err(refusal) => return reply.send(Err(refusal)),
    };
    let number = commands.add(command);
    let events = events.clone();
    tokio::spawn(async move {
        let _claim = claim;
        hung_up(ours).await;
        let _ = events.send(Event::CommandEnded(number));
    });
    reply.send(Ok(theirs));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn command_is_registered_until_it_closes_its_descriptor() {
        let (events, mut arriving) = mpsc::unbounded_channel();
        let mut commands = Commands::default();
        let command = RegisteredCommand {
            registration: Registration::default(),
            pid: Some(12),
            user: None,
            since: Time(0),
        };
        let mut descriptors = Vec::new();
        for _ in 0..2 {
            let (reply, mut answer) = Reply::new();
            let command = command.clone();
            register(&mut commands, command, Claim::default(), &reply, &events);
            descriptors.push(answer.try_recv().unwrap().unwrap());
        }
        assert_eq!(commands.all.len(), 2);
        assert!(arriving.try_recv().is_err());
        descriptors.remove(0);
        let Some(Event::CommandEnded(number)) = arriving.recv().await else {
            panic!("another event");
        };
        commands.remove(number);
        assert_eq!(commands.all.keys().copied().collect::<Vec<_>>(), [2]);
    }
}
