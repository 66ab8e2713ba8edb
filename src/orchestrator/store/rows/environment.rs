//! Environments of runs. What the runs of a hook have in common is one row, so that a run costs no copy
//! of all settings.

use crate::store::column::optional_json;
use crate::store::{Result, Tx};
use archivist_core::model::RunId;
use rusqlite::OptionalExtension;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Variables by name, without secrets.
pub type Variables = BTreeMap<String, String>;

impl Tx<'_> {
    /// Returns the row that has exactly these variables, and inserts it if there is none.
    pub(super) fn environment(&self, variables: &Variables) -> Result<i64> {
        let text = serde_json::to_string(variables)?;
        let digest = Sha256::digest(&text);
        let known: Option<i64> = self
            .inner
            .prepare_cached("SELECT id FROM environment WHERE digest = ?1")?
            .query_row([digest.as_slice()], |row| row.get(0))
            .optional()?;
        if let Some(id) = known {
            return Ok(id);
        }
        self.inner
            .prepare_cached("INSERT INTO environment (digest, variables) VALUES (?1, ?2)")?
            .execute((digest.as_slice(), text))?;
        Ok(self.inner.last_insert_rowid())
    }

    /// Returns the variables of a run; none if it is unknown, or was recorded by an older version.
    pub fn environment_of(&self, run: RunId) -> Result<Variables> {
        let found = self
            .inner
            .prepare_cached(
                "SELECT variables, own_variables FROM run
                 JOIN environment ON environment.id = environment_id WHERE run.id = ?1",
            )?
            .query_row([run.0], |row| {
                let shared: Option<Variables> = optional_json(row, 0)?;
                let own: Option<Variables> = optional_json(row, 1)?;
                Ok(shared.into_iter().chain(own).flatten().collect())
            })
            .optional()?;
        Ok(found.unwrap_or_default())
    }
}
