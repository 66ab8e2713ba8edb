//! The descriptors of commands in the foreground that registered themselves.

use crate::bus::call::{Answer, Reply};
use crate::engine::commands::{Commands, RegisteredCommand};
use crate::main_loop::event::Event;
use crate::main_loop::live::hold::{hung_up, socket_pair};
use archivist_shared::bus::callers::Claim;
use tokio::sync::mpsc;

/// Keeps a command registered until it closes the descriptor that it gets; an event follows then.
/// Until then `claim` counts for the caller.
pub fn register(
    commands: &mut Commands,
    command: RegisteredCommand,
    claim: Claim,
    reply: &Reply,
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
    reply.send(Ok(Answer::Descriptor(theirs)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;
    use archivist_shared::bus::documents::report::Registration;

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
        assert_eq!(commands.iter().count(), 2);
        assert!(arriving.try_recv().is_err());
        descriptors.remove(0);
        let Some(Event::CommandEnded(number)) = arriving.recv().await else {
            panic!("another event");
        };
        commands.remove(number);
        assert_eq!(commands.iter().count(), 1);
        assert_eq!(number, 1);
    }
}
