//! Long lists: asked for in pieces, newest first, because one message over the bus has its limit.

use crate::client::exit::Failure;
use crate::client::server::{Server, decode};
use archivist_shared::bus::documents::report::{
    ANSWER_BYTES, Crawl, Filter, HookResult, ROWS_MAX, Run, Snapshot,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// What is listed, and the number by which the next piece is asked for.
pub trait Row: DeserializeOwned {
    const WHAT: &str;
    fn number(&self) -> Option<i64>;
}

impl Row for Crawl {
    const WHAT: &str = "crawls";
    fn number(&self) -> Option<i64> {
        Some(self.id.0)
    }
}

impl Row for Snapshot {
    const WHAT: &str = "snapshots";
    fn number(&self) -> Option<i64> {
        Some(self.id.0)
    }
}

impl Row for HookResult {
    const WHAT: &str = "results";
    fn number(&self) -> Option<i64> {
        self.id
    }
}

impl Row for Run {
    const WHAT: &str = "runs";
    fn number(&self) -> Option<i64> {
        Some(self.id.0)
    }
}

/// One piece: its rows, and each as the orchestrator wrote it.
pub struct Piece<T> {
    pub rows: Vec<T>,
    pub documents: Vec<Box<RawValue>>,
}

/// What is left of a list.
pub struct Pieces<'a> {
    server: &'a Server,
    filter: Filter,
    /// Rows that are still wanted, as far as there are any.
    left: u64,
}

impl<'a> Pieces<'a> {
    /// A list by `filter`; a limit of 0 is none.
    pub fn new(server: &'a Server, filter: Filter) -> Pieces<'a> {
        let left = match filter.limit {
            0 => u64::MAX,
            limit => limit.into(),
        };
        Pieces {
            server,
            filter,
            left,
        }
    }

    /// The next piece; an empty one after the last.
    pub async fn next<T: Row>(&mut self) -> Result<Piece<T>, Failure> {
        if self.left == 0 {
            return Ok(Piece {
                rows: Vec::new(),
                documents: Vec::new(),
            });
        }
        let limit = self.left.min(ROWS_MAX.into());
        self.filter.limit = u32::try_from(limit).unwrap_or(ROWS_MAX);
        let filter = serde_json::to_string(&self.filter)
            .map_err(|error| Failure::failed(format!("failed to write the filter: {error}")))?;
        let call = || self.server.proxy().list(T::WHAT, &filter);
        let documents: Vec<Box<RawValue>> = self.server.ask(call).await?;
        let rows = documents.iter().map(|document| decode(document.get()));
        let rows = rows.collect::<Result<Vec<T>, Failure>>()?;
        self.filter.before = rows.last().and_then(T::number);
        let bytes: usize = documents.iter().map(|row| row.get().len()).sum();
        let count = rows.len() as u64;
        // Rows are missing because there are no more of them, or because the others are long.
        let is_last = count < limit && bytes < ANSWER_BYTES;
        self.left = if is_last || self.filter.before.is_none() {
            0
        } else {
            self.left - count
        };
        Ok(Piece { rows, documents })
    }

    /// All of them, newest first.
    pub async fn collect<T: Row>(mut self) -> Result<Vec<T>, Failure> {
        let mut all = Vec::new();
        loop {
            let piece = self.next::<T>().await?;
            if piece.rows.is_empty() {
                return Ok(all);
            }
            all.extend(piece.rows);
        }
    }
}
