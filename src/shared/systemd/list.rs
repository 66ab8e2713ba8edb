//! Which units there are, and what is left of those that are not.

use super::traces::Traces;
use super::{Manager, ManagerError, explain, reading};
use std::collections::HashSet;

/// A unit of ours that systemd has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub active_state: String,
}

impl Manager {
    /// Removes what systemd leaves of a unit that is gone.
    pub fn forget(&self, unit: &str) {
        if let Some(traces) = &self.traces {
            traces.remove(unit);
        }
    }

    /// All workers, hooks and slices of crawls of this instance that systemd has loaded. What is left of others is
    /// removed.
    pub async fn list(&self) -> Result<Vec<Listed>, ManagerError> {
        // Before the units: one that starts meanwhile is not taken for one that is gone.
        let left = self.traces.as_ref().map(Traces::units).unwrap_or_default();
        let listed = self.list_loaded().await?;
        let loaded: HashSet<&str> = listed.iter().map(|unit| unit.name.as_str()).collect();
        for unit in left.iter().filter(|unit| !loaded.contains(unit.as_str())) {
            self.forget(unit);
        }
        Ok(listed)
    }

    async fn list_loaded(&self) -> Result<Vec<Listed>, ManagerError> {
        let states: Vec<String> = Vec::new();
        let mut patterns = self.names.patterns();
        patterns.push(self.names.slice_pattern());
        let body = (states, patterns);
        let fail =
            |error: zbus::Error| explain("list units", &self.names.patterns().join(" "), &error);
        let reply = self
            .call_again("ListUnitsByPatterns", &body)
            .await
            .map_err(fail)?;
        let rows: Vec<reading::Row> = reply.body().deserialize().map_err(fail)?;
        let ours = rows.into_iter().filter(|row| {
            self.names.parse(&row.0).is_some() || self.names.crawl_of_slice(&row.0).is_some()
        });
        Ok(ours
            .map(|row| Listed {
                name: row.0,
                active_state: row.3,
            })
            .collect())
    }
}
