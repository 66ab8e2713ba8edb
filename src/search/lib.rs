//! Full text search. The program `archivist-search` adds snapshots to the index and answers questions;
//! it knows neither database nor bus. All that it has of a snapshot is in its row, which the caller
//! passes, and in `text/text.txt` and `text/text.json` of its directory.

mod answer;
mod group;
mod index;
mod page;
mod query;
mod schema;
mod snippet;
mod stem;
mod suggest;
mod words;

pub use answer::answer;
pub use index::{Builder, Problem, change, check, perform};
