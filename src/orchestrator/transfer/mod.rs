//! Copies of sealed pages in the store: which pages wait ([`queue`]), the units of transfers
//! ([`begin`], [`ends`]), and their records ([`files`]). Decisions are in `core/store`.

mod begin;
mod ends;
pub mod files;
mod queue;
mod report;
pub mod store_ids;

pub(crate) use ends::Transfer;

pub(crate) use begin::begin_transfer;
pub(crate) use queue::{fetch, fill_store, has_local_files, keep_local, queue_copy, test_store};
pub(crate) use report::{copy_of, store_status, why_copy};
