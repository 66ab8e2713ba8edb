//! Hints about units, and their queue for the main loop. A hint that is queued already is not
//! queued again: its unit is read after the hint is taken, so a second one would add nothing. A
//! storm of signals about few units therefore takes little memory.

use archivist_core::lock;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// The main process of a unit of this instance has ended. The fields are evidence if the unit
    /// is unloaded before it is read.
    Exited {
        unit: String,
        /// ExecMainCode= (`si_code` of waitid(2)).
        code: i32,
        /// ExecMainStatus=: exit status or signal.
        status: i32,
        /// Result=.
        result: String,
    },
    JobRemoved {
        unit: String,
        /// Result of the job: `done`, `failed`, `canceled`, …
        result: String,
    },
    /// A unit of this instance is not loaded any more.
    Removed {
        unit: String,
    },
    /// The manager was reloaded or re-executed: signals may have been lost.
    Reloaded,
    Disconnected,
}

/// The queue; clones share it.
#[derive(Clone, Default)]
pub struct HintQueue(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Notified when a hint was added.
    news: Notify,
    /// Notified when all hints were taken.
    emptied: Notify,
}

#[derive(Default)]
struct Waiting {
    order: VecDeque<Hint>,
    known: HashSet<Hint>,
}

impl HintQueue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.0.waiting)
    }

    /// Queues a hint, unless it is queued already.
    pub fn push(&self, hint: Hint) {
        let mut waiting = self.waiting();
        if waiting.known.insert(hint.clone()) {
            waiting.order.push_back(hint);
            self.0.news.notify_one();
        }
    }

    /// Takes the oldest hint, if any.
    pub fn try_next(&self) -> Option<Hint> {
        let mut waiting = self.waiting();
        let hint = waiting.order.pop_front()?;
        waiting.known.remove(&hint);
        Some(hint)
    }

    /// Waits for a hint and takes it.
    pub async fn next(&self) -> Hint {
        loop {
            if let Some(hint) = self.try_next() {
                return hint;
            }
            self.0.news.notified().await;
        }
    }

    /// Takes all hints in their order.
    pub fn take_all(&self) -> Vec<Hint> {
        let mut waiting = self.waiting();
        waiting.known.clear();
        let all = waiting.order.drain(..).collect();
        self.0.emptied.notify_one();
        all
    }

    /// Returns when the queue has a hint; takes none.
    pub async fn filled(&self) {
        while self.waiting().order.is_empty() {
            self.0.news.notified().await;
        }
    }

    /// Returns when all hints were taken, after [`HintQueue::filled`].
    pub async fn emptied(&self) {
        self.0.emptied.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn removed(n: u8) -> Hint {
        let unit = format!("archivist-hook-x-s{n}.service");
        Hint::Removed { unit }
    }

    proptest! {
        /// The queue has each of the pushed hints once, in the order of their first push.
        #[test]
        fn repeated_hints_are_queued_once(units in prop::collection::vec(0u8..5, 0..300)) {
            let queue = HintQueue::default();
            let mut first: Vec<u8> = Vec::new();
            for unit in units {
                queue.push(removed(unit));
                if !first.contains(&unit) {
                    first.push(unit);
                }
            }
            prop_assert_eq!(queue.take_all(), first.into_iter().map(removed).collect::<Vec<_>>());
            queue.push(removed(1));
            prop_assert_eq!(queue.try_next(), Some(removed(1)));
            prop_assert_eq!(queue.try_next(), None);
        }
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let queue = HintQueue::default();
        let (ours, theirs) = (queue.clone(), queue.clone());
        let waiting = tokio::spawn(async move {
            ours.filled().await;
            ours.take_all()
        });
        tokio::task::yield_now().await;
        theirs.push(Hint::Reloaded);
        queue.emptied().await;
        assert_eq!(waiting.await.unwrap(), [Hint::Reloaded]);
        queue.push(Hint::Disconnected);
        assert_eq!(queue.next().await, Hint::Disconnected);
    }
}
