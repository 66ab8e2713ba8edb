//! Records deletions in the data directory, for restorations.

use archivist_core::model::{Owner, Time};
use archivist_shared::deleted;
use std::path::Path;

/// Records that pages or crawls were deleted. A failure is logged and ignored: the pages are deleted anyway, and
/// only an older backup has them again.
pub fn record(data: &Path, ids: &[Owner], at: Time) {
    if let Err(error) = deleted::add(data, ids, at) {
        let file = data.join(deleted::FILE);
        tracing::warn!("failed to record deleted pages in '{}': {error}, ignoring", file.display());
    }
}
