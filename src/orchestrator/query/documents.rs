//! Makes documents of the bus from rows that the orchestrator works with, too. Lists are documents already
//! (`store/lists.rs`).

use crate::store::{BinaryRow, ResultRow};
use archivist_core::model::CheckRecord;
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::watches::Check;

/// Makes documents of rows.
pub fn documents<D: From<R>, R>(rows: Vec<R>) -> Vec<D> {
    rows.into_iter().map(D::from).collect()
}

impl From<ResultRow> for report::HookResult {
    fn from(row: ResultRow) -> report::HookResult {
        report::HookResult {
            id: Some(row.id),
            owner: row.owner,
            plugin: row.plugin,
            hook: row.hook,
            status: row.status,
            output: row.output,
            error: row.error,
            files: row.files,
            size: row.size,
            attempts: row.attempts,
            started_at: row.started_at,
            ended_at: row.ended_at,
        }
    }
}

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
    let record = CheckRecord {
        findings: Vec::new(),
        headers: Default::default(),
        ..check.record
    };
    Check { record, ..check }
}
