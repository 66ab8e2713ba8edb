//! What the loop waits for: events and the requested time, with beats for the watchdog.

use crate::machine::notify::Beats;
use crate::main_loop::event::Event;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until};

/// Most events of one transaction.
const BATCH_MAX: usize = 256;

/// The next batch of events; [`Event::Due`] when `alarm` has come. `beat` is called with every
/// tick. None when all senders are gone.
pub async fn next(
    events: &mut UnboundedReceiver<Event>,
    alarm: Option<Instant>,
    beats: &Beats,
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
            () = beats.due() => beat(),
        }
    }
}

/// Tasks that a call passes on its way from the socket to the loop, with a margin.
const TASK_HOPS: usize = 16;

/// Other tasks run after turns that took this long together.
const TURNS_MAX: Duration = Duration::from_millis(5);

/// Lets other tasks run during consecutive turns, so that their events arrive. Receiving from a
/// channel that is never empty does not yield.
#[derive(Default)]
pub struct Yielding {
    /// What turns took since other tasks ran.
    taken: Duration,
}

impl Yielding {
    /// After a turn that began at `began`.
    pub async fn let_in(&mut self, began: Instant) {
        self.taken += began.elapsed();
        if self.taken < TURNS_MAX {
            return;
        }
        self.taken = Duration::ZERO;
        for _ in 0..TASK_HOPS {
            tokio::task::yield_now().await;
        }
    }
}

/// The events that have arrived, without waiting: for the turn after one that left events.
pub fn more(events: &mut UnboundedReceiver<Event>) -> Vec<Event> {
    let mut batch = Vec::new();
    while batch.len() < BATCH_MAX
        && let Ok(event) = events.try_recv()
    {
        batch.push(event);
    }
    batch
}

/// How long one turn takes events that can wait.
const TURN_MAX: Duration = Duration::from_millis(50);

/// Takes events in one turn, those that cannot wait first. Calls `take` for each, which returns
/// whether it took the event; at least for one that could wait, if any. Returns the positions of
/// the events that are left for the next turn.
pub fn in_turn<E>(
    events: &mut [Event],
    mut take: impl FnMut(&Event) -> Result<bool, E>,
) -> Result<Vec<usize>, E> {
    events.sort_by_key(Event::is_heavy);
    let begin = Instant::now();
    let (mut heavy, mut left) = (0, Vec::new());
    for (place, event) in events.iter().enumerate() {
        if event.is_heavy() {
            if heavy > 0 && begin.elapsed() >= TURN_MAX {
                left.extend(place..events.len());
                break;
            }
            heavy += 1;
        }
        if !take(event)? {
            left.push(place);
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::main_loop::order::Call;
    use crate::query::orders::Query;
    use std::cell::Cell;
    use tokio::sync::mpsc;

    /// The watchdog is fed many times before the time comes, which it does all the same.
    #[tokio::test]
    async fn beats_do_not_delay_the_alarm() {
        let (_sender, mut events) = mpsc::unbounded_channel();
        let beats = Beats::every(Some(Duration::from_millis(5))).unwrap();
        let count = Cell::new(0);
        let alarm = Some(Instant::now() + Duration::from_millis(100));
        let beat = || count.set(count.get() + 1);
        let next = next(&mut events, alarm, &beats, beat);
        let batch =
            tokio::time::timeout(Duration::from_secs(20), next).await.expect("the alarm").unwrap();
        assert!(matches!(batch[..], [Event::Due]));
        assert!(count.get() > 1, "{} beats", count.get());
    }

    /// A status is answered in the turn that it arrives in, however many other requests wait.
    #[test]
    fn urgent_events_come_first_in_order() {
        let plugins = || Event::Call(Call::own(Query::Plugins));
        let status = Event::Call(Call::own(Query::Status));
        let mut events = vec![plugins(), Event::Due, plugins(), status, plugins()];
        let mut order = Vec::new();
        let left = in_turn(&mut events, |event| {
            order.push(event.is_heavy());
            std::thread::sleep(TURN_MAX);
            Ok::<bool, ()>(true)
        });
        assert_eq!((left, order), (Ok(vec![3, 4]), vec![false, false, true]));
        let mut light = vec![Event::Due, Event::RunnersChanged];
        assert_eq!(in_turn(&mut light, |_| Ok::<bool, ()>(true)), Ok(vec![]));
        let is_due = |event: &Event| Ok::<bool, ()>(matches!(event, Event::Due));
        assert_eq!(in_turn(&mut light, is_due), Ok(vec![1]), "not taken");
    }

    #[tokio::test]
    async fn events_arrive_after_long_turns() {
        let (sender, mut events) = mpsc::unbounded_channel();
        tokio::spawn(async move { sender.send(Event::RunnersChanged) });
        let mut yielding = Yielding::default();
        let half_ago = || Instant::now().checked_sub(TURNS_MAX / 2).unwrap();
        assert!(more(&mut events).is_empty());
        yielding.let_in(Instant::now()).await;
        assert!(more(&mut events).is_empty(), "after a short turn");
        yielding.let_in(half_ago()).await;
        yielding.let_in(half_ago()).await;
        assert!(matches!(more(&mut events)[..], [Event::RunnersChanged]));
        assert!(more(&mut events).is_empty());
    }

    #[tokio::test]
    async fn batches_end_when_all_senders_are_gone() {
        let (sender, mut events) = mpsc::unbounded_channel();
        let beats = Beats::every(None).unwrap();
        sender.send(Event::RunnersChanged).unwrap();
        sender.send(Event::Terminate).unwrap();
        drop(sender);
        let batch = next(&mut events, None, &beats, || ()).await.unwrap();
        assert!(matches!(batch[..], [Event::RunnersChanged, Event::Terminate]));
        assert!(next(&mut events, None, &beats, || ()).await.is_none());
    }
}
