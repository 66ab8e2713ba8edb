//! The queue in which signals wait for the bus.

use super::emit;
use super::subscribers::Subscribers;
use archivist_shared::bus::signals::Signal;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;
use zbus::Connection;

/// Signals that wait for the bus; further ones are dropped. A bus that reads nothing must not cost
/// memory without limit.
const QUEUE_MAX: usize = 4096;

/// Sends signals in their order, without delaying its caller.
pub struct Announcer {
    queue: mpsc::Sender<Signal>,
    sending: JoinHandle<()>,
    subscribers: Subscribers,
    /// Signals were dropped since the queue was full.
    dropping: bool,
}

impl Announcer {
    /// Returns an announcer for the signals of `connection`.
    pub fn new(connection: Connection, subscribers: Subscribers) -> Announcer {
        let (queue, mut waiting) = mpsc::channel(QUEUE_MAX);
        let sending = tokio::spawn(async move {
            while let Some(signal) = waiting.recv().await {
                // The end of the connection is an event of its own.
                if emit(&connection, &signal).await.is_err() {
                    return;
                }
            }
        });
        Announcer { queue, sending, subscribers, dropping: false }
    }

    /// Returns whether a client has subscribed to the signals about pages.
    pub fn is_subscribed(&self) -> bool {
        !self.subscribers.is_empty()
    }

    /// Queues a signal. Drops it if the queue is full or the connection is closed; the first one is
    /// logged.
    pub fn announce(&mut self, signal: Signal) {
        match self.queue.try_send(signal) {
            Ok(()) => self.dropping = false,
            Err(TrySendError::Closed(_)) => {}
            Err(TrySendError::Full(_)) if self.dropping => {}
            Err(TrySendError::Full(_)) => {
                self.dropping = true;
                tracing::warn!("{QUEUE_MAX} signals wait for the bus; dropping further signals");
            }
        }
    }

    /// Waits until all queued signals are sent, at most `limit`.
    pub async fn finish(self, limit: Duration) {
        drop(self.queue);
        let _ = tokio::time::timeout(limit, self.sending).await;
    }
}
