//! Long lists, requested in batches, newest first: one message over the bus is limited in size.

use crate::client::exit::Failure;
use crate::client::fleet::Fleet;
use crate::client::server::{Server, decode};
use archivist_core::model::Owner;
use archivist_shared::bus::documents::report::{
    ANSWER_BYTES, Crawl, Filter, HookResult, Host, ROWS_MAX, Run, Snapshot, Tag, Version,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// A kind of row, with the row number at which the next batch starts.
pub trait Row: DeserializeOwned {
    const WHAT: &str;
    fn number(&self) -> Option<i64>;
    /// Name after which the next batch starts, if the fleet orders such rows by name.
    fn name(&self) -> Option<String> {
        None
    }
}

#[derive(Clone, Copy)]
pub enum Source<'a> {
    Machine(&'a Server),
    Fleet(&'a Fleet),
}

impl Source<'_> {
    /// Returns the rows of a list, as JSON.
    pub async fn answer(self, what: &str, filter: &Filter) -> Result<String, Failure> {
        let filter = serde_json::to_string(filter)
            .map_err(|error| Failure::failed(format!("failed to write the filter: {error}")))?;
        match self {
            Source::Machine(server) => server.call(|| server.proxy().list(what, &filter)).await,
            Source::Fleet(fleet) => fleet.list(what, &filter).await,
        }
    }

    pub async fn list<T: DeserializeOwned>(
        self,
        what: &str,
        filter: &Filter,
    ) -> Result<Vec<T>, Failure> {
        decode(&self.answer(what, filter).await?)
    }

    /// Returns the row of a crawl or page, if there is one.
    pub async fn find<T: Row>(self, id: Owner) -> Result<Option<T>, Failure> {
        let row = Filter { limit: 1, ..Filter::of(id) };
        Ok(self.list(T::WHAT, &row).await?.pop())
    }
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

impl Row for Version {
    const WHAT: &str = "versions";
    fn number(&self) -> Option<i64> {
        self.snapshot.number()
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

impl Row for Host {
    const WHAT: &str = "hosts";
    fn number(&self) -> Option<i64> {
        Some(self.last_result)
    }
    fn name(&self) -> Option<String> {
        Some(self.name.clone())
    }
}

impl Row for Tag {
    const WHAT: &str = "tags";
    fn number(&self) -> Option<i64> {
        Some(self.row)
    }
}

/// Rows of one answer, and the JSON of each as the orchestrator wrote it.
pub struct Batch<T> {
    pub rows: Vec<T>,
    pub documents: Vec<Box<RawValue>>,
}

pub struct Paging<'a> {
    source: Source<'a>,
    filter: Filter,
    /// Most rows that are still requested.
    left: u64,
}

impl<'a> Paging<'a> {
    /// Returns the list for `filter`; a limit of 0 means all rows.
    pub fn new(server: &'a Server, filter: Filter) -> Paging<'a> {
        Paging::of(Source::Machine(server), filter)
    }

    pub fn of(source: Source<'a>, filter: Filter) -> Paging<'a> {
        let left = match filter.limit {
            0 => u64::MAX,
            limit => limit.into(),
        };
        Paging { source, filter, left }
    }

    /// Returns the next batch; it is empty after the last one.
    pub async fn next<T: Row>(&mut self) -> Result<Batch<T>, Failure> {
        if self.left == 0 {
            return Ok(Batch { rows: Vec::new(), documents: Vec::new() });
        }
        let limit = self.left.min(ROWS_MAX.into());
        self.filter.limit = u32::try_from(limit).unwrap_or(ROWS_MAX);
        let answer = self.source.answer(T::WHAT, &self.filter).await?;
        let documents: Vec<Box<RawValue>> = decode(&answer)?;
        let rows = documents
            .iter()
            .map(|document| decode(document.get()))
            .collect::<Result<Vec<T>, Failure>>()?;
        let next_name = match self.source {
            Source::Machine(_) => None,
            Source::Fleet(_) => rows.last().and_then(T::name),
        };
        if next_name.is_some() {
            self.filter.after_host = next_name;
        } else if self.filter.after_page.is_some() {
            let last = rows.last().and_then(T::number);
            self.filter.after_page = last.or(self.filter.after_page);
        } else {
            self.filter.before = rows.last().and_then(T::number);
        }
        let is_followed = self.filter.after_host.is_some()
            || self.filter.after_page.is_some()
            || self.filter.before.is_some();
        let bytes: usize = documents.iter().map(|row| row.get().len()).sum();
        let count = rows.len() as u64;
        // Fewer rows than requested: either there are no more, or the answer reached its size
        // limit.
        let is_last = count < limit && bytes < ANSWER_BYTES;
        self.left = if is_last || !is_followed { 0 } else { self.left - count };
        Ok(Batch { rows, documents })
    }

    pub async fn collect<T: Row>(mut self) -> Result<Vec<T>, Failure> {
        let mut all = Vec::new();
        loop {
            let batch = self.next::<T>().await?;
            if batch.rows.is_empty() {
                return Ok(all);
            }
            all.extend(batch.rows);
        }
    }
}
