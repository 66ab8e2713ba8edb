//! Makes documents of the bus from rows that the orchestrator works with, too. Lists are documents already
//! (`database/lists.rs`).

use crate::database::BinaryRow;
use archivist_core::model::CheckRecord;
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::watches::Check;

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

/// Returns a check without findings and headers, which may be long.
pub fn without_details(check: Check) -> Check {
    let record = CheckRecord { findings: Vec::new(), headers: Default::default(), ..check.record };
    Check { record, ..check }
}
