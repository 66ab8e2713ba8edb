//! The outbox of a node: requests that must reach the database, in order. On disk, each entry is a
//! row that is written in the transaction of its cause.

use super::request::NodeRequest;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long an answered entry is kept, to send it again after a failover to a replica that lost it.
pub const KEEP: Duration = Duration::from_secs(3600);

/// How long an entry is kept that the rows of the node do not replace ([`is_kept_long`]), to send it again
/// to a database that was restored from a backup.
pub const KEEP_LONG: Duration = Duration::from_secs(7 * 86_400);

/// A request that waits for its reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxEntry {
    /// Position in the outbox; grows.
    pub number: u64,
    /// Submit, record, give back, or crawl closed.
    pub request: NodeRequest,
}

/// Returns whether a request is kept for [`KEEP_LONG`] after its answer. The rows of the node have the
/// ends of its pages, but neither pages that wait in the database nor what users commanded.
pub fn is_kept_long(request: &NodeRequest) -> bool {
    matches!(
        request,
        NodeRequest::Submit(_) | NodeRequest::Command(_) | NodeRequest::CrawlClosed { .. }
    )
}
