//! Makes documents of the bus from rows that the orchestrator works with, too. Lists are documents already
//! (`database/lists.rs`).

use crate::database::BinaryRow;
use archivist_shared::bus::documents::report;

impl From<BinaryRow> for report::Binary {
    /// What is known of the program alone; the caller adds the plugins that require it.
    fn from(row: BinaryRow) -> report::Binary {
        report::Binary {
            name: row.name,
            abspath: Some(row.abspath),
            version: row.version,
            sha256: row.sha256,
            provider: Some(row.provider),
            env: row.env,
            found_at: Some(row.found_at),
            ..report::Binary::default()
        }
    }
}
