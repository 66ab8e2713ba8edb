//! Freezing and thawing units: one call at a time for each unit, and before any other call for it.

use archivist_shared::systemd::{ErrorKind, Manager, ManagerError};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use std::collections::HashMap;

type UnderWay = Shared<BoxFuture<'static, ()>>;

#[derive(Default)]
pub struct Freezer {
    by_unit: HashMap<String, UnderWay>,
}

impl Freezer {
    pub fn freeze(&mut self, manager: &Manager, unit: String) {
        let manager = manager.clone();
        let object = unit.clone();
        self.next(unit, async move {
            match manager.freeze(&object).await {
                Ok(()) => {}
                // The unit has ended, or its start is not done: an event follows.
                Err(error) if matches!(error.kind, ErrorKind::NoSuchUnit | ErrorKind::Busy) => {}
                Err(error) => {
                    tracing::warn!("{error}; the hook continues to its end, ignoring");
                }
            }
        });
    }

    pub fn thaw(&mut self, manager: &Manager, unit: String) {
        let manager = manager.clone();
        let object = unit.clone();
        self.next(unit, async move { thaw(&manager, &object).await });
    }

    fn next(&mut self, unit: String, what: impl Future<Output = ()> + Send + 'static) {
        self.by_unit.retain(|_, under_way| under_way.peek().is_none());
        let before = self.by_unit.get(&unit).cloned();
        let task = tokio::spawn(async move {
            if let Some(before) = before {
                before.await;
            }
            what.await;
        });
        self.by_unit.insert(unit, task.map(drop).boxed().shared());
    }

    /// Resolves when the calls in progress for this unit are done.
    pub fn settled(&self, unit: &str) -> impl Future<Output = ()> + Send + use<> {
        let under_way = self.by_unit.get(unit).cloned();
        async move {
            if let Some(under_way) = under_way {
                under_way.await;
            }
        }
    }

    /// Resolves when all calls that are in progress now are done.
    pub fn all_settled(&self) -> impl Future<Output = ()> + Send + use<> {
        let all: Vec<UnderWay> = self.by_unit.values().cloned().collect();
        async move {
            for under_way in all {
                under_way.await;
            }
        }
    }
}

/// Thaws units if the machine is shutting down.
pub async fn thaw_at_shutdown(manager: Manager, units: Vec<String>) {
    if manager.is_stopping().await.unwrap_or(false) {
        futures_util::future::join_all(units.iter().map(|unit| thaw(&manager, unit))).await;
    }
}

/// Thaws a unit. A unit that is gone or was not frozen is no error.
pub async fn thaw(manager: &Manager, unit: &str) {
    match manager.thaw(unit).await {
        Ok(()) | Err(ManagerError { kind: ErrorKind::NoSuchUnit, .. }) => {}
        Err(error) => tracing::debug!("{error}, ignoring"),
    }
}
