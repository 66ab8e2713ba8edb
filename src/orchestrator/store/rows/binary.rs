//! Rows of programs: where each was found, and what it is.

use crate::store::{Result, Tx};
use archivist_core::model::Time;
use archivist_shared::bus::documents::report::{Binary, Uses};
use std::collections::BTreeMap;

/// How long what is known of a program counts, if its file stays as it is.
const FRESH_FOR: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// A program that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryRow {
    /// As the plugin asks for it.
    pub name: String,
    pub abspath: String,
    pub version: Option<String>,
    /// In hex; none for what is no file, or too large a one.
    pub sha256: Option<String>,
    /// The provider plugin that brought it; `env` when it was there.
    pub provider: String,
    /// Variables for the hooks that use it, as its record says them.
    pub env: BTreeMap<String, String>,
    /// Size and time of change of the file, by which another one is told from it.
    pub stamp: Option<String>,
    pub found_at: Time,
}

impl BinaryRow {
    /// Whether this still says what `stamp` is.
    pub fn is_fresh(&self, abspath: &str, stamp: &str, now: Time) -> bool {
        self.abspath == abspath
            && self.stamp.as_deref() == Some(stamp)
            && now < self.found_at.after(FRESH_FOR)
    }

    pub fn report(&self) -> Binary {
        Binary {
            name: self.name.clone(),
            abspath: Some(self.abspath.clone()),
            version: self.version.clone(),
            sha256: self.sha256.clone(),
            provider: Some(self.provider.clone()),
            env: self.env.clone(),
            found_at: Some(self.found_at),
            plugins: Vec::new(),
            missing: None,
            least: None,
            uses: Uses::default(),
        }
    }
}

impl Tx<'_> {
    /// All of them by name.
    pub fn binaries(&self) -> Result<Vec<BinaryRow>> {
        let mut statement = self.inner.prepare_cached(
            "SELECT name, abspath, version, sha256, provider, env, stamp, found_at
             FROM binary ORDER BY name",
        )?;
        let rows = statement.query_map([], |row| {
            let env: String = row.get(5)?;
            let binary = BinaryRow {
                name: row.get(0)?,
                abspath: row.get(1)?,
                version: row.get(2)?,
                sha256: row.get(3)?,
                provider: row.get(4)?,
                env: BTreeMap::new(),
                stamp: row.get(6)?,
                found_at: Time(row.get(7)?),
            };
            Ok((binary, env))
        })?;
        rows.map(|row| {
            let (binary, env) = row?;
            let env = serde_json::from_str(&env)?;
            Ok(BinaryRow { env, ..binary })
        })
        .collect()
    }

    pub fn binary(&self, name: &str) -> Result<Option<BinaryRow>> {
        Ok(self.binaries()?.into_iter().find(|row| row.name == name))
    }

    /// Writes what is known of a program, in the place of what was.
    pub fn record_binary(&self, row: &BinaryRow) -> Result<()> {
        self.inner
            .prepare_cached(
                "INSERT INTO binary
                     (name, abspath, version, sha256, provider, env, stamp, found_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT DO UPDATE SET abspath = ?2, version = ?3, sha256 = ?4,
                     provider = ?5, env = ?6, stamp = ?7, found_at = ?8",
            )?
            .execute((
                &row.name,
                &row.abspath,
                row.version.as_deref(),
                row.sha256.as_deref(),
                &row.provider,
                serde_json::to_string(&row.env)?,
                row.stamp.as_deref(),
                row.found_at.0,
            ))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use std::time::Duration;

    #[test]
    fn what_is_known_counts_for_a_day_and_for_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("db")).unwrap();
        store.take_over("unit", "boot", Time(0)).unwrap();
        let row = BinaryRow {
            name: "wget".into(),
            abspath: "/usr/bin/wget".into(),
            version: Some("1.25".into()),
            sha256: None,
            provider: "env".into(),
            env: [("PATH".to_owned(), "/x:".to_owned())].into(),
            stamp: Some("7 9".into()),
            found_at: Time(1000),
        };
        let tx = store.begin().unwrap();
        tx.record_binary(&row).unwrap();
        let later = BinaryRow {
            version: Some("1.26".into()),
            ..row.clone()
        };
        tx.record_binary(&later).unwrap();
        assert_eq!(tx.binaries().unwrap(), std::slice::from_ref(&later));
        assert_eq!(tx.binary("wget").unwrap(), Some(later));
        assert_eq!(tx.binary("curl").unwrap(), None);

        let day = Duration::from_secs(24 * 3600);
        let fresh = |path, stamp, now| row.is_fresh(path, stamp, now);
        assert!(fresh("/usr/bin/wget", "7 9", Time(1000)));
        assert!(!fresh("/usr/bin/wget", "7 9", Time(1000).after(day)));
        assert!(!fresh("/usr/bin/wget", "8 9", Time(1000)));
        assert!(!fresh("/opt/wget", "7 9", Time(1000)));
    }
}
