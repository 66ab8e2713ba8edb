//! HTML pages to browse the archive without a server: functions from data to HTML, without scripts
//! and without content from other sites.
//!
//! Titles, URLs, file names and the output of hooks are untrusted. `maud` escapes all text by
//! construction; every link to a file is made by [`href::relative`], every link to the web by
//! [`href::web`].

pub mod archive_index;
mod frame;
pub mod groups;
pub mod href;
mod list;
pub mod pages;
mod snapshot;
pub mod snapshot_index;
mod text;
pub mod versions;

pub use list::{Day, ListEntry, ListKind, ListPage, PER_PAGE, days};
pub use snapshot::SnapshotPage;

#[cfg(test)]
mod tests;
