//! What the loop waits for: events, the time that was asked for, and the watchdog in between.

use crate::main_loop::event::Event;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, Interval, sleep_until};

/// How many events one transaction takes at most.
const BATCH_MAX: usize = 256;

/// The next batch of events, or that the time has come. `beat` is called with every tick meanwhile,
/// and the time stays what it is. None when nobody is left who could say anything.
pub async fn next(
    events: &mut UnboundedReceiver<Event>,
    alarm: Option<Instant>,
    beats: &mut Interval,
    beat: impl Fn(),
) -> Option<Vec<Event>> {
    let mut batch = Vec::new();
    let alarm = async {
        match alarm {
            Some(time) => sleep_until(time).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(alarm);
    loop {
        tokio::select! {
            count = events.recv_many(&mut batch, BATCH_MAX) => return (count > 0).then_some(batch),
            () = &mut alarm => return Some(vec![Event::Due]),
            _ = beats.tick() => beat(),
        }
    }
}

/// Tasks that a call passes on its way from the socket to the loop, and some more.
const TASK_HOPS: usize = 16;

/// After a turn that took so long others are let in.
const LONG_TURN: Duration = Duration::from_millis(5);

/// Lets what has arrived while the loop was busy come through, after a turn that began at `began`. A channel
/// that is never empty does not do that: receiving from it returns at once.
pub async fn let_in(began: Instant) {
    if began.elapsed() < LONG_TURN {
        return;
    }
    for _ in 0..TASK_HOPS {
        tokio::task::yield_now().await;
    }
}

/// What has arrived, without waiting for anything. For the turns after one that left events over: what has
/// come in meanwhile is to be taken with them.
pub fn more(events: &mut UnboundedReceiver<Event>) -> Vec<Event> {
    let mut batch = Vec::new();
    while batch.len() < BATCH_MAX
        && let Ok(event) = events.try_recv()
    {
        batch.push(event);
    }
    batch
}

/// How long one turn goes on with events that can wait.
const TURN_MAX: Duration = Duration::from_millis(50);

/// What one turn takes of `events`, and in which order: what cannot wait is first. `take` is called for
/// each; answers how many were taken, of which one could have waited at least, if any could.
pub fn in_turn<E>(
    events: &mut [Event],
    mut take: impl FnMut(&Event) -> Result<(), E>,
) -> Result<usize, E> {
    events.sort_by_key(Event::is_heavy);
    let begin = Instant::now();
    let mut heavy = 0;
    for (place, event) in events.iter().enumerate() {
        if event.is_heavy() {
            if heavy > 0 && begin.elapsed() >= TURN_MAX {
                return Ok(place);
            }
            heavy += 1;
        }
        take(event)?;
    }
    Ok(events.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_shared::bus::call::{Reply, Request};
    use std::cell::Cell;
    use tokio::sync::mpsc;

    /// The watchdog is fed many times before the time comes, which it does all the same.
    #[tokio::test]
    async fn beats_do_not_put_the_alarm_off() {
        let (_sender, mut events) = mpsc::unbounded_channel();
        let mut beats = tokio::time::interval(Duration::from_millis(5));
        let count = Cell::new(0);
        let alarm = Some(Instant::now() + Duration::from_millis(100));
        let beat = || count.set(count.get() + 1);
        let next = next(&mut events, alarm, &mut beats, beat);
        let batch = tokio::time::timeout(Duration::from_secs(20), next).await;
        let batch = batch.expect("the alarm").unwrap();
        assert!(matches!(batch[..], [Event::Due]));
        assert!(count.get() > 1, "{} beats", count.get());
    }

    /// A status is answered in the turn that it arrives in, however many other requests wait.
    #[test]
    fn what_cannot_wait_is_taken_first_and_the_rest_in_its_order() {
        let plugins = || {
            Event::Request(Request::Plugins {
                reply: Reply::new().0,
            })
        };
        let status = Event::Request(Request::Status {
            reply: Reply::new().0,
        });
        let mut events = vec![plugins(), Event::Due, plugins(), status, plugins()];
        let mut order = Vec::new();
        let taken = in_turn(&mut events, |event| {
            order.push(event.is_heavy());
            std::thread::sleep(TURN_MAX);
            Ok::<(), ()>(())
        });
        assert_eq!((taken, order), (Ok(3), vec![false, false, true]));
        let mut light = vec![Event::Due, Event::RunnersChanged];
        assert_eq!(in_turn(&mut light, |_| Ok::<(), ()>(())), Ok(2));
    }

    #[tokio::test]
    async fn what_arrived_meanwhile_is_there() {
        let (sender, mut events) = mpsc::unbounded_channel();
        tokio::spawn(async move { sender.send(Event::RunnersChanged) });
        assert!(more(&mut events).is_empty());
        let long_ago = Instant::now().checked_sub(LONG_TURN).unwrap();
        let_in(long_ago).await;
        assert!(matches!(more(&mut events)[..], [Event::RunnersChanged]));
        assert!(more(&mut events).is_empty());
    }

    #[tokio::test]
    async fn events_come_in_a_batch_until_nobody_is_left() {
        let (sender, mut events) = mpsc::unbounded_channel();
        let mut beats = tokio::time::interval(Duration::from_secs(3600));
        sender.send(Event::RunnersChanged).unwrap();
        sender.send(Event::Terminate).unwrap();
        drop(sender);
        let batch = next(&mut events, None, &mut beats, || ()).await.unwrap();
        assert!(matches!(
            batch[..],
            [Event::RunnersChanged, Event::Terminate]
        ));
        assert!(next(&mut events, None, &mut beats, || ()).await.is_none());
    }
}
