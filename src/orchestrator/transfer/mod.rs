//! Copies of sealed pages in the store: which pages wait ([`queue`]), the units of transfers
//! ([`begin`], [`ends`]), and their records ([`files`]). Decisions are in `core/store`.
//!
//! When a snapshot is sealed and there is a store (`Store=`), its row in `copy` waits for a transfer.
//! `core/store/copy.rs` decides what follows from the end of each: `put` copies, `drop` removes the
//! local files, `get` restores them. The view has the due transfers, two of which run next to the
//! pages.
//!
//! | a killed transfer leaves | why nothing is lost |
//! |---|---|
//! | `.sN-SHA256.tar.INVOCATION.part` in the store | the name of an object appears by rename, after the object was read back; the next transfer continues the file if the store is a directory, and removes it otherwise |
//! | some local files, and `.stored.json` | the marker is written after local files and object were compared, and before the first file is removed |
//! | `.restoring/`, which only its owner can enter, and `.stored.json` | files are moved into place after the whole object was verified, and removed if it is not; the marker is removed last |
//!
//! `archivist fsck` starts the same program (`compare`) for copies on other hosts, and `archivist open`
//! (`foreign`) for a page that another node of the fleet copied to the store, in units with the sandbox
//! and the keys of transfers (`cli/client/transfer.rs`). The row of such a page is on the other node,
//! so its digest is the one in the name of the object, and its files are restored below
//! `archive/.fetched`.

pub mod begin;
pub mod bus;
pub mod ends;
pub mod files;
pub mod queue;
pub mod report;
mod rows;

pub(crate) use ends::Transfer;

pub(crate) use queue::{StoreCall, fill_store, has_local_files, queue_copy};
pub(crate) use report::{details, metrics, status, why_copy};
