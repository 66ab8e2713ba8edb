//! Full text search. The program `archivist-search` adds snapshots to the index and answers questions;
//! it knows neither database nor bus. All that it has of a snapshot is in its row, which the caller
//! passes, and in `text/text.txt` and `text/text.json` of its directory.
//!
//! `archivist search` reads `index/search` in the data directory, an index of tantivy, and the texts
//! that the plugin `text` saved (`text/text.txt`), for snippets. Nothing else reads the index, and it
//! can be built from rows and texts at any time, so backups leave it out.
//!
//! Triggers of the database put each snapshot into `search_queue` that ends, changes afterwards or is
//! deleted, in the transaction that does so. While the queue has rows, `Indexing`
//! (`orchestrator/indexing/`) starts a unit with the entries of up to 500 of them as its standard
//! input, at most once a second. The unit makes all changes in one commit, each by removing the
//! snapshot before it adds it, so a unit that is killed is repeated. A row goes when its unit has ended
//! well, unless the snapshot has changed since the unit was started.
//!
//! A build has a number and a directory of that name in `index/search`; the link `current` leads to the
//! one that is read. The row in `search_index` says up to which snapshot the build has all. The last
//! unit of a build renames the link. The orchestrator begins another build if the unit exits with 75
//! (`REBUILD`), because the index is missing, damaged or of another format, after four failed attempts,
//! and when a user asks for it, as `archivist search` does if it finds no usable index.
//!
//! A text is indexed as words without case, accents and width, and, by its language, as stems in a
//! field of their own. Of scripts without blanks, a run of n characters is indexed as its n − 1 pairs
//! and its last character; a question has the pairs alone, because the text may continue, and a single
//! character is the beginning of pairs. A page whose files are only in the store keeps the entry that
//! it has.

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
