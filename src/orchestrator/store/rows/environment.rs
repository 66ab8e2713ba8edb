//! Environments of runs. What the runs of a hook have in common is one row, so that a run costs no copy
//! of all settings.

use crate::store::{Result, Tx};
use archivist_core::model::RunId;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Variables by name, without secrets.
pub type Variables = BTreeMap<String, String>;

impl Tx<'_> {
    /// Returns the row that has exactly these variables, and inserts it if there is none.
    pub(super) fn environment(&self, variables: &Variables) -> Result<i64> {
        let text = serde_json::to_string(variables)?;
        let digest = Sha256::digest(&text);
        let known: Option<i64> =
            self.first("SELECT id FROM environment WHERE digest = ?1", [digest.as_slice()])?;
        if let Some(id) = known {
            return Ok(id);
        }
        self.execute(
            "INSERT INTO environment (digest, variables) VALUES (?1, ?2)",
            (digest.as_slice(), text),
        )?;
        Ok(self.inner.last_insert_rowid())
    }

    /// Returns the variables of a run; none if it is unknown, or was recorded by an older version.
    pub fn environment_of(&self, run: RunId) -> Result<Variables> {
        let found: Option<(Option<Variables>, Option<Variables>)> = self.first(
            "SELECT variables, own_variables FROM run
             JOIN environment ON environment.id = environment_id WHERE run.id = ?1",
            [run.0],
        )?;
        let (shared, own) = found.unwrap_or_default();
        Ok(shared.into_iter().chain(own).flatten().collect())
    }
}
