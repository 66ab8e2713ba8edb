//! What the loop waits for: events, the time that was asked for, and the watchdog in between.

use super::event::Event;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, Interval, sleep_until};

/// How many events one transaction takes at most.
const BATCH: usize = 256;

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
            count = events.recv_many(&mut batch, BATCH) => return (count > 0).then_some(batch),
            () = &mut alarm => return Some(vec![Event::Due]),
            _ = beats.tick() => beat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::time::Duration;
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

    #[tokio::test]
    async fn events_come_in_a_batch_until_nobody_is_left() {
        let (sender, mut events) = mpsc::unbounded_channel();
        let mut beats = tokio::time::interval(Duration::from_secs(3600));
        sender.send(Event::Rival).unwrap();
        sender.send(Event::Terminate).unwrap();
        drop(sender);
        let batch = next(&mut events, None, &mut beats, || ()).await.unwrap();
        assert!(matches!(batch[..], [Event::Rival, Event::Terminate]));
        assert!(next(&mut events, None, &mut beats, || ()).await.is_none());
    }
}
