//! Lists the loaded units, and removes files of units that are not loaded.

use super::error::explain;
use super::log_field_files::LogFieldFiles;
use super::{Manager, ManagerError, reading};
use std::collections::HashSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedUnit {
    pub name: String,
    /// Its ActiveState=.
    pub active_state: String,
}

impl Manager {
    /// Removes the file that systemd leaves of a unit that is not loaded any more.
    pub fn forget(&self, unit: &str) {
        if let Some(files) = &self.log_field_files {
            files.remove(unit);
        }
    }

    /// Returns the loaded workers, hooks and slices of crawls of this instance. Removes the files
    /// of units that are not loaded.
    pub async fn list(&self) -> Result<Vec<LoadedUnit>, ManagerError> {
        // The files are listed before the units, so that the file of a unit that starts meanwhile
        // stays.
        let files = self.log_field_files.as_ref();
        let left = files.map(LogFieldFiles::units).unwrap_or_default();
        let listed = self.list_loaded().await?;
        let loaded: HashSet<&str> = listed.iter().map(|unit| unit.name.as_str()).collect();
        for unit in left.iter().filter(|unit| !loaded.contains(unit.as_str())) {
            self.forget(unit);
        }
        Ok(listed)
    }

    async fn list_loaded(&self) -> Result<Vec<LoadedUnit>, ManagerError> {
        let states: Vec<String> = Vec::new();
        let mut patterns = self.names.patterns();
        patterns.push(self.names.slice_pattern());
        let body = (states, patterns);
        let fail =
            |error: zbus::Error| explain("list units", &self.names.patterns().join(" "), &error);
        let reply = self.call_again("ListUnitsByPatterns", &body).await.map_err(fail)?;
        let rows: Vec<reading::Row> = reply.body().deserialize().map_err(fail)?;
        let ours = rows.into_iter().filter(|row| {
            self.names.kind_of(&row.0).is_some() || self.names.crawl_of_slice(&row.0).is_some()
        });
        Ok(ours.map(|row| LoadedUnit { name: row.0, active_state: row.3 }).collect())
    }
}
