//! Tests whether the store can be written, read and cleaned.

use super::read_back;
use crate::backend::Store;
use crate::digest::sum_of;
use crate::failure::{Result, TransferFailure};

const CONTENT: &[u8] = b"archivist tests whether it can write here; this file may be removed\n";

/// Writes a small file, reads it back, and removes it.
pub fn test(store: &dyn Store) -> Result<()> {
    let part = format!(".archivist-test-{}.part", std::process::id());
    let name = format!(".archivist-test-{}", std::process::id());
    store.list("")?;
    store.write(&part, CONTENT.len() as u64, &mut |to| {
        let failed =
            |error| TransferFailure::new(format!("failed to write '{part}' to the store: {error}"));
        to.write_all(CONTENT).map_err(failed)
    })?;
    store.rename(&part, &name)?;
    let read = read_back(store, &name, CONTENT.len() as u64);
    store.remove(&name)?;
    if read? == sum_of(CONTENT).map_err(|error| TransferFailure::new(error.to_string()))? {
        Ok(())
    } else {
        Err(TransferFailure::new(
            "failed to verify the store: it returned something else than was written",
        ))
    }
}
