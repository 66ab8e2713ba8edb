//! The tasks of a transfer.

mod delete;
mod drop;
pub(crate) mod get;
mod put;
mod test;

use crate::backend::{self, Store};
use crate::digest::{Sum, sum_of};
use crate::failure::{Result, TransferFailure};
use archivist_core::store::{Assignment, StoredObject, Task};
use std::io::Read;

/// Carries out an assignment. Returns the verified object of [`Task::Put`].
pub fn perform(assignment: &Assignment) -> Result<Option<StoredObject>> {
    let store = backend::open(&assignment.store)?;
    let store = store.as_ref();
    match assignment.task {
        Task::Put => put::put(store, assignment).map(Some),
        Task::Drop => drop::drop(store, assignment).map(|()| None),
        Task::Get => get::get(store, assignment).map(|()| None),
        Task::Delete => delete::delete(store, assignment).map(|()| None),
        Task::Test => test::test(store).map(|()| None),
    }
}

fn object_of(assignment: &Assignment) -> Result<&StoredObject> {
    let missing = || TransferFailure::differs("the store has no copy of this page");
    assignment.object.as_ref().ok_or_else(missing)
}

/// Reads an object of the store, which should have `size` bytes, and returns its sum. Of a longer
/// object, the sum is that of the first bytes and one more, so an object without end has an end.
pub(crate) fn read_back(store: &dyn Store, name: &str, size: u64) -> Result<Sum> {
    let mut sum = None;
    store.read(name, &mut |content| {
        let read = sum_of(content.take(size.saturating_add(1)));
        let failed = |error| {
            TransferFailure::new(format!("failed to read '{name}' from the store: {error}"))
        };
        sum = Some(read.map_err(failed)?);
        Ok(())
    })?;
    sum.ok_or_else(|| TransferFailure::new(format!("failed to read '{name}' from the store")))
}

#[cfg(test)]
mod tests;
