//! Pages for looking at the archive with nothing but a browser: data in, HTML out. No server, no
//! script, nothing from elsewhere.
//!
//! Titles, addresses, file names and what hooks say are hostile. `maud` escapes all text by
//! construction; every link to a file is made by [`href::relative`], every link to the web by
//! [`href::web`].

mod frame;
pub mod href;
pub mod index;
mod list;
pub mod pages;
pub mod shelf;
mod snapshot;
mod text;

pub use list::{Day, Entry, Kind, List, PER_PAGE, days};
pub use snapshot::Snapshot;

#[cfg(test)]
mod tests;
