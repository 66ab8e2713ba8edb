//! What users see of a fleet: crawls, pages, results, hosts and nodes, as the documents that the
//! orchestrator of a single machine answers with. Each answer is one read-only transaction of
//! limited time, and reads rows by index only.

mod crawls;
mod hosts;
mod pages;
mod reasons;
mod results;
mod status;
mod timeline;
mod why;

use crate::connect::{Link, Problem};
use archivist_core::model::{CrawlId, Lifecycle, Owner, ResultState, Time};
use archivist_shared::bus::documents::report::{ANSWER_BYTES, Crawl, Details, Filter, ROWS_MAX};
use serde::Serialize;
use std::collections::HashMap;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, IsolationLevel, Row, Statement, Transaction};

/// Limit of one statement: lists that are not of one crawl may read much before they find a rare
/// state. Lists come in the order of an index; a plan that sorts reads all rows first.
const SETTINGS: &str = "SET LOCAL statement_timeout = '5s'; SET LOCAL enable_sort = off";

/// Rows that are in memory at a time.
const PORTION: i32 = 50;

#[derive(Debug, thiserror::Error)]
pub enum ViewFault {
    #[error("{0}")]
    Invalid(String),
    /// The fleet has no such crawl or page.
    #[error("there is no {0}")]
    NoSuch(Owner),
    #[error("the answer of {0} takes longer than 5 s; name a crawl, or request another state")]
    Slow(String),
    /// The connection or the server failed.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// The answer cannot be written as JSON.
    #[error("failed to write the answer: {0}")]
    Json(#[from] serde_json::Error),
}

enum ViewFailure {
    Client(Error),
    NoSuch(Owner),
    Json(serde_json::Error),
}

impl From<Error> for ViewFailure {
    fn from(error: Error) -> ViewFailure {
        ViewFailure::Client(error)
    }
}

impl From<serde_json::Error> for ViewFailure {
    fn from(error: serde_json::Error) -> ViewFailure {
        ViewFailure::Json(error)
    }
}

type Answer<T> = Result<T, ViewFailure>;
type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The database of a fleet for readers, over a connection of its own: a long list delays no lease.
#[derive(Debug)]
pub struct View {
    link: Link,
    statements: HashMap<&'static str, Statement>,
    node: String,
}

impl View {
    /// Returns the view of node `node` over a connection whose schema was checked.
    pub fn new(link: Link, node: &str) -> View {
        View { link, statements: HashMap::new(), node: node.to_owned() }
    }

    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Returns the whole fleet ([`archivist_shared::bus::documents::report::Fleet`]) as JSON.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn status(&mut self) -> Result<String, ViewFault> {
        let (node, server) = (self.node.clone(), self.link.server());
        let work = self.begin(status::TEXTS).await;
        let answer = async {
            let fleet = work?.status(node, server).await?;
            Ok(serde_json::to_string(&fleet)?)
        };
        let answer = answer.await;
        answer.map_err(|failure| self.fault(failure))
    }

    /// Returns crawls, snapshots or results, newest first, hosts in the order of their names, or the
    /// time line of a crawl or page, oldest first, as a JSON list.
    ///
    /// # Errors
    /// If there is no such list or status, or the database does not answer in time.
    pub async fn list(&mut self, what: &str, filter: &Filter) -> Result<String, ViewFault> {
        check(what, filter)?;
        let filter = filter.piece();
        let texts = match what {
            "crawls" => crawls::TEXTS,
            "snapshots" => pages::TEXTS,
            "results" => results::TEXTS,
            "timeline" => &[timeline::TEXTS, pages::TEXTS].concat(),
            _ => hosts::TEXTS,
        };
        let work = self.begin(texts).await;
        let answer = async {
            let work = work?;
            Ok(match what {
                "crawls" => serde_json::to_string(&work.crawls(&filter).await?)?,
                "snapshots" => serde_json::to_string(&work.pages(&filter).await?)?,
                "results" => serde_json::to_string(&work.results(&filter).await?)?,
                "timeline" => serde_json::to_string(&work.timeline(&filter).await?)?,
                _ => serde_json::to_string(&work.hosts(&filter).await?)?,
            })
        };
        let answer = answer.await;
        answer.map_err(|failure| self.fault(failure))
    }

    /// Returns everything about a crawl or page ([`Details`], without runs) as JSON.
    ///
    /// # Errors
    /// If there is no such crawl or page, or the database does not answer in time.
    pub async fn show(&mut self, id: Owner) -> Result<String, ViewFault> {
        let texts = [crawls::TEXTS, pages::TEXTS, results::TEXTS].concat();
        let work = self.begin(&texts).await;
        let answer = async {
            let details = work?.details(id).await?;
            Ok(serde_json::to_string(&details)?)
        };
        let answer = answer.await;
        answer.map_err(|failure| self.fault(failure))
    }

    /// Returns why a crawl or page is not done, or has failed results
    /// ([`archivist_shared::bus::documents::report::Why`]), as JSON.
    ///
    /// # Errors
    /// As [`View::show`].
    pub async fn why(&mut self, id: Owner) -> Result<String, ViewFault> {
        let texts = [why::TEXTS, crawls::TEXTS, pages::TEXTS, results::TEXTS].concat();
        let work = self.begin(&texts).await;
        let answer = async {
            let why = work?.why(id).await?;
            Ok(serde_json::to_string(&why)?)
        };
        let answer = answer.await;
        answer.map_err(|failure| self.fault(failure))
    }

    /// Returns a crawl; `None` if the database does not have it yet.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn crawl(&mut self, id: CrawlId) -> Result<Option<Crawl>, ViewFault> {
        let work = self.begin(crawls::TEXTS).await;
        let crawl = async { work?.crawl(id).await };
        let crawl = crawl.await;
        crawl.map_err(|failure| self.fault(failure))
    }

    fn fault(&self, failure: ViewFailure) -> ViewFault {
        match failure {
            ViewFailure::Client(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => {
                ViewFault::Slow(self.link.server())
            }
            ViewFailure::Client(error) => ViewFault::Problem(self.link.problem(&error)),
            ViewFailure::NoSuch(id) => ViewFault::NoSuch(id),
            ViewFailure::Json(error) => ViewFault::Json(error),
        }
    }

    /// Prepares statements that this connection has not used yet, and begins a transaction in which
    /// all statements see the same rows.
    async fn begin(&mut self, texts: &[&'static str]) -> Answer<Work<'_>> {
        for text in texts {
            if !self.statements.contains_key(text) {
                let statement = self.link.client.prepare(text).await?;
                self.statements.insert(text, statement);
            }
        }
        let begin = self.link.client.build_transaction().read_only(true);
        let begin = begin.isolation_level(IsolationLevel::RepeatableRead);
        let transaction = begin.start().await?;
        transaction.batch_execute(SETTINGS).await?;
        Ok(Work { transaction, statements: &self.statements })
    }
}

/// A transaction with its statements. It ends without a commit: it changed nothing.
struct Work<'a> {
    transaction: Transaction<'a>,
    statements: &'a HashMap<&'static str, Statement>,
}

impl Work<'_> {
    async fn rows(&self, text: &'static str, values: Values<'_>) -> Answer<Vec<Row>> {
        Ok(self.transaction.query(&self.statements[text], values).await?)
    }

    /// Returns the rows of a list as documents, as many as one answer has. Callers continue the list after
    /// the last one.
    async fn documents<T: Serialize>(
        &self,
        text: &'static str,
        values: Values<'_>,
        read: impl Fn(&Row) -> T,
    ) -> Answer<Vec<T>> {
        let mut documents = Documents::new(ROWS_MAX);
        let read = |row: &Row| Some(read(row));
        self.fill(&mut documents, text, values, read).await?;
        Ok(documents.list)
    }

    /// Adds documents of rows until the answer is full.
    async fn fill<T: Serialize>(
        &self,
        documents: &mut Documents<T>,
        text: &'static str,
        values: Values<'_>,
        mut read: impl FnMut(&Row) -> Option<T>,
    ) -> Answer<()> {
        let statement = &self.statements[text];
        let portal = self.transaction.bind(statement, values).await?;
        loop {
            let rows = self.transaction.query_portal(&portal, PORTION).await?;
            for row in &rows {
                if let Some(document) = read(row) {
                    documents.push(document)?;
                }
                if documents.is_full() {
                    return Ok(());
                }
            }
            if rows.len() < PORTION as usize {
                return Ok(());
            }
        }
    }

    async fn row(&self, text: &'static str, values: Values<'_>) -> Answer<Row> {
        Ok(self.transaction.query_one(&self.statements[text], values).await?)
    }

    async fn details(&self, id: Owner) -> Answer<Details> {
        let filter = Filter { limit: ROWS_MAX, ..Filter::of(id) };
        let mut results = self.results(&filter).await?;
        let mut snapshots = self.pages(&filter).await?;
        // The oldest first.
        results.reverse();
        snapshots.reverse();
        let runs = Vec::new();
        Ok(match id {
            Owner::Crawl(crawl) => Details::Crawl {
                crawl: self.crawl(crawl).await?.ok_or(ViewFailure::NoSuch(id))?,
                snapshots,
                results,
                runs,
            },
            Owner::Snapshot(_) => Details::Snapshot {
                snapshot: snapshots.pop().ok_or(ViewFailure::NoSuch(id))?,
                results,
                runs,
                copy: None,
            },
        })
    }
}

struct Documents<T> {
    list: Vec<T>,
    rows_max: u32,
    /// Size as JSON.
    bytes: usize,
}

impl<T: Serialize> Documents<T> {
    fn new(rows_max: u32) -> Documents<T> {
        Documents { list: Vec::new(), rows_max, bytes: 0 }
    }

    fn push(&mut self, document: T) -> Answer<()> {
        self.bytes += serde_json::to_string(&document)?.len();
        self.list.push(document);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.bytes >= ANSWER_BYTES || self.list.len() >= self.rows_max as usize
    }
}

fn check(what: &str, filter: &Filter) -> Result<(), ViewFault> {
    let known: Vec<&str> = match what {
        "crawls" | "snapshots" => Lifecycle::ALL.map(Lifecycle::as_str).to_vec(),
        "results" => ResultState::ALL.map(ResultState::as_str).to_vec(),
        "timeline" if filter.owner.is_none() => {
            return Err(ViewFault::Invalid(
                "a time line is that of a crawl or page: name it in 'owner'".to_owned(),
            ));
        }
        "hosts" | "timeline" => Vec::new(),
        _ => {
            return Err(ViewFault::Invalid(format!(
                "invalid list '{what}' of a fleet: expected crawls, snapshots, results, hosts or timeline"
            )));
        }
    };
    match &filter.status {
        Some(status) if !known.contains(&status.as_str()) => {
            let known = known.join(", ");
            Err(ViewFault::Invalid(format!(
                "invalid status '{status}' of {what}: expected one of {known}"
            )))
        }
        _ => Ok(()),
    }
}

/// SQL expression: milliseconds since the epoch; NULL for an infinite time.
macro_rules! ms {
    ($time:literal) => {
        concat!(
            "CASE WHEN isfinite(",
            $time,
            ") THEN (extract(epoch FROM ",
            $time,
            ") * 1000)::bigint END"
        )
    };
}
use ms;

fn time(row: &Row, column: usize) -> Option<Time> {
    row.get::<_, Option<i64>>(column).map(Time)
}

fn count(row: &Row, column: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(column)).unwrap_or_default()
}

/// Returns the counts that are not zero, by name.
fn counts<const N: usize>(
    counts: [(&str, u64); N],
) -> archivist_shared::bus::documents::report::Counts {
    let some = counts.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(name, count)| (name.to_owned(), count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_lists_and_states_are_refused() {
        let filter = |status: &str| Filter { status: Some(status.to_owned()), ..Filter::default() };
        assert!(check("runs", &Filter::default()).is_err());
        assert!(check("crawls", &filter("failed")).is_err());
        assert!(check("results", &filter("failed")).is_ok());
        assert!(check("hosts", &filter("queued")).is_err());
        let of_crawl = |filter| Filter { owner: Some(Owner::Crawl(CrawlId(1))), ..filter };
        assert!(check("timeline", &Filter::default()).is_err());
        assert!(check("timeline", &of_crawl(filter("queued"))).is_err());
        assert!(check("timeline", &of_crawl(Filter::default())).is_ok());
    }
}
