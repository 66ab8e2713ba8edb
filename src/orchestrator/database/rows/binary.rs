//! Rows of installed programs: where each was found, and which file it is.

use crate::database::column::{Columns, columns};
use crate::database::{Result, Tx};
use archivist_core::model::Time;
use std::collections::BTreeMap;

/// How long a row is valid if the file stays as it is.
const FRESH_FOR: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryRow {
    /// Name under which plugins require it.
    pub name: String,
    pub abspath: String,
    /// Its version, if known.
    pub version: Option<String>,
    /// In hexadecimal digits; `None` for a file that is not regular or too large.
    pub sha256: Option<String>,
    /// The provider plugin that installed it; `env` if it was found on the machine.
    pub provider: String,
    /// Environment variables for the hooks that use it, from the provider's record.
    pub env: BTreeMap<String, String>,
    /// Size and change time of the file, which differ for another file.
    pub stamp: Option<String>,
    /// When it was found.
    pub found_at: Time,
}

columns! { BinaryRow: name, abspath, version, sha256, provider, env, stamp, found_at }

impl BinaryRow {
    /// Whether the row still describes the file at `abspath` with this `stamp`.
    pub fn is_fresh(&self, abspath: &str, stamp: &str, now: Time) -> bool {
        self.abspath == abspath
            && self.stamp.as_deref() == Some(stamp)
            && now < self.found_at.after(FRESH_FOR)
    }
}

impl Tx<'_> {
    pub fn binaries(&self) -> Result<Vec<BinaryRow>> {
        self.all(&format!("SELECT {} FROM binary ORDER BY name", BinaryRow::COLUMNS), [])
    }

    pub fn binary(&self, name: &str) -> Result<Option<BinaryRow>> {
        Ok(self.binaries()?.into_iter().find(|row| row.name == name))
    }

    /// Records a program; replaces its earlier row.
    pub fn record_binary(&self, row: &BinaryRow) -> Result<()> {
        self.execute(
            "INSERT INTO binary
                 (name, abspath, version, sha256, provider, env, stamp, found_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT DO UPDATE SET abspath = ?2, version = ?3, sha256 = ?4,
                 provider = ?5, env = ?6, stamp = ?7, found_at = ?8",
            (
                &row.name,
                &row.abspath,
                row.version.as_deref(),
                row.sha256.as_deref(),
                &row.provider,
                serde_json::to_string(&row.env)?,
                row.stamp.as_deref(),
                row.found_at.0,
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Database;
    use std::time::Duration;

    #[test]
    fn row_is_fresh_for_a_day_and_for_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Database::open(&directory.path().join("db")).unwrap();
        database.take_over("unit", "boot", Time(0)).unwrap();
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
        let tx = database.begin().unwrap();
        tx.record_binary(&row).unwrap();
        let later = BinaryRow { version: Some("1.26".into()), ..row.clone() };
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
