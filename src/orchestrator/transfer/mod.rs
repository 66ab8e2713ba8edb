//! Copies of sealed pages in the store: which pages wait ([`queue`]), the units of transfers
//! ([`begin`], [`ends`]), and their records ([`files`]). Decisions are in `core/store`.

pub mod begin;
pub mod ends;
pub mod files;
pub mod queue;
pub mod report;

pub(crate) use ends::Transfer;

pub(crate) use queue::{fetch, fill_store, has_local_files, queue_copy, test_store};
pub(crate) use report::{copy_of, store_status, why_copy};
