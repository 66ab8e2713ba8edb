//! Freezing and thawing of units under way: one after another for each unit, and before whatever
//! is to be done with it next.

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
                // It has ended meanwhile, or its start is not done: we will hear of that.
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
        self.by_unit
            .retain(|_, under_way| under_way.peek().is_none());
        let before = self.by_unit.get(&unit).cloned();
        let task = tokio::spawn(async move {
            if let Some(before) = before {
                before.await;
            }
            what.await;
        });
        self.by_unit.insert(unit, task.map(drop).boxed().shared());
    }

    /// Done when what is under way with this unit is.
    pub fn settled(&self, unit: &str) -> impl Future<Output = ()> + Send + use<> {
        let under_way = self.by_unit.get(unit).cloned();
        async move {
            if let Some(under_way) = under_way {
                under_way.await;
            }
        }
    }

    /// Done when whatever is under way now is.
    pub fn all_settled(&self) -> impl Future<Output = ()> + Send + use<> {
        let all: Vec<UnderWay> = self.by_unit.values().cloned().collect();
        async move {
            for under_way in all {
                under_way.await;
            }
        }
    }
}

/// Thaws units if the machine goes down.
pub async fn thaw_at_shutdown(manager: Manager, units: Vec<String>) {
    if manager.is_stopping().await.unwrap_or(false) {
        futures_util::future::join_all(units.iter().map(|unit| thaw(&manager, unit))).await;
    }
}

/// Thaws a unit. One that is gone or was not frozen needs nothing.
pub async fn thaw(manager: &Manager, unit: &str) {
    match manager.thaw(unit).await {
        Ok(())
        | Err(ManagerError {
            kind: ErrorKind::NoSuchUnit,
            ..
        }) => {}
        Err(error) => tracing::debug!("{error}, ignoring"),
    }
}
