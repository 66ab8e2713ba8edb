//! What the archive as a whole reports about watches, and checks as documents.

use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::{CheckRecord, without_userinfo};
use archivist_shared::bus::documents::report::{Metrics, Status};
use archivist_shared::bus::documents::watches::{Certificate, Check};

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// Adds the certificates that have expired or expire soon, the next first.
pub(crate) fn status(turn: &Turn<'_>, status: &mut Status) -> TurnResult<()> {
    let entries = turn.tx.certificates(turn.now)?.into_iter();
    status.certificates = entries
        .map(|(watch, url, expires)| Certificate {
            watch,
            url: without_userinfo(&url),
            expires,
            days: (expires.0 - turn.now.0).div_euclid(DAY),
        })
        .collect();
    status.certificates.sort_by_key(|certificate| certificate.expires);
    Ok(())
}

/// Adds the sites of watches that were checked within the last days.
pub(crate) fn metrics(turn: &Turn<'_>, metrics: &mut Metrics) -> TurnResult<()> {
    metrics.sites = turn.tx.site_health(turn.now)?;
    Ok(())
}

/// Returns a check without findings and headers, which may be long.
pub fn without_details(check: Check) -> Check {
    let record = CheckRecord { findings: Vec::new(), headers: Default::default(), ..check.record };
    Check { record, ..check }
}
