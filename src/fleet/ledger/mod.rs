//! The operations of a fleet on PostgreSQL. Each does what the ledger in
//! `tests/fleet-model` does with values; a test compares the two. Statements touch rows by index only, and never more
//! rows than they change or return.

/// The condition of the row of a node that a session holds: `$1` is the node, `$2` is [`mark`].
macro_rules! holds_session {
    () => {
        holds_session!("$1", "$2")
    };
    ($node:literal, $mark:literal) => {
        concat!("id = ", $node, " AND ", session_mark!(), " = ", $mark, " AND name IS NOT NULL")
    };
}

/// The incarnation of a node, with the table in which it is: pg_restore makes another table, and the rows of
/// its dump have the incarnations of connections that are still open.
macro_rules! session_mark {
    () => {
        "incarnation # (tableoid::bigint << 32)"
    };
}

mod claim;
mod command;
mod hello;
mod insert;
mod node;
mod pieces;
mod recall;
mod record;
mod release;
mod renew;
mod row;

pub(crate) use hello::{END_SESSIONS, SKIPPED_IDS};

use crate::connect::{Link, Problem};
use archivist_core::fleet::{Incarnation, NodeId, NodeRefusal, NodeReply, NodeRequest, Session};
use archivist_core::model::CrawlId;
use std::collections::HashMap;
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement, Transaction};

/// How often the nodes of a fleet, all together, look for leases that have expired.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// How often a transaction is repeated that lost a conflict.
const REPEATS: u32 = 5;

/// Why an operation was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The database refuses; it has changed nothing.
    #[error(transparent)]
    Refused(#[from] NodeRefusal),
    /// The connection or the server failed. Whether the operation was done is unknown: after
    /// reconnecting, it is sent again.
    #[error(transparent)]
    Problem(#[from] Problem),
}

enum StatementFailure {
    Refused(NodeRefusal),
    Client(Error),
}

impl From<Error> for StatementFailure {
    fn from(error: Error) -> StatementFailure {
        StatementFailure::Client(error)
    }
}

impl From<NodeRefusal> for StatementFailure {
    fn from(refusal: NodeRefusal) -> StatementFailure {
        StatementFailure::Refused(refusal)
    }
}

type Answer<T> = Result<T, StatementFailure>;
type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

#[derive(Debug)]
pub struct Ledger {
    link: Link,
    statements: HashMap<&'static str, Statement>,
    is_eager: bool,
    rest: Option<pieces::Rest>,
    /// The last release gave pages back.
    has_freed: bool,
    /// The last crawl that a submission in one statement was not possible for.
    limited: Option<CrawlId>,
    /// The table of nodes in which the session of the latest hello is.
    table: i64,
}

impl Ledger {
    /// Returns the operations over a connection whose schema was checked.
    pub fn new(link: Link) -> Ledger {
        Ledger {
            link,
            statements: HashMap::new(),
            is_eager: false,
            rest: None,
            has_freed: false,
            limited: None,
            table: 0,
        }
    }

    /// Looks for expired leases with every claim, and at all hosts. Otherwise, another node gets the
    /// hosts of a node that crashed after the next [`Ledger::sweep`].
    #[must_use]
    pub fn with_eager_claims(mut self) -> Ledger {
        self.is_eager = true;
        self
    }

    /// Returns whether the last request gave pages back that other nodes can claim, and forgets it.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.has_freed)
    }

    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Carries out a request, as one transaction; a command about a large crawl in several, each of
    /// which a request asks for.
    ///
    /// # Errors
    /// If the database refuses or cannot be reached.
    pub async fn apply(
        &mut self,
        session: Session,
        request: &NodeRequest,
    ) -> Result<NodeReply, Fault> {
        for repeat in 1.. {
            let failure = match self.once(session, request).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let fault = self.fault(failure);
            let is_conflict = matches!(fault, Fault::Problem(Problem::Conflict { .. }));
            if !is_conflict || repeat >= REPEATS {
                return Err(fault);
            }
        }
        unreachable!("the last repeat returns")
    }

    async fn once(&mut self, session: Session, request: &NodeRequest) -> Answer<NodeReply> {
        match request {
            NodeRequest::ReserveCrawls { count } => self.reserve_crawls(session, *count).await,
            NodeRequest::Submit(submit) => self.submit(session, submit).await,
            NodeRequest::Claim(claim) => self.claim(session, *claim).await.map(NodeReply::Claimed),
            NodeRequest::Renew(renew) => self.renew(session, renew).await.map(NodeReply::Renewed),
            NodeRequest::Record(record) => {
                self.record(session, record).await.map(NodeReply::Recorded)
            }
            NodeRequest::GiveBack { page, epoch } => {
                let fate = self.give_back(session, *page, *epoch).await;
                fate.map(NodeReply::GivenBack)
            }
            NodeRequest::Release(release) => {
                self.release(session, release).await.map(NodeReply::Released)
            }
            NodeRequest::Command(command) => {
                let more = self.command(session, *command).await?;
                Ok(NodeReply::Commanded { more })
            }
            NodeRequest::Drain { node, draining } => self.drain(session, *node, *draining).await,
            NodeRequest::Leave { node } => self.leave(session, *node).await,
            NodeRequest::Goodbye => self.goodbye(session).await,
            NodeRequest::CrawlClosed { crawl } => self.crawl_closed(session, *crawl).await,
            NodeRequest::Compare(compare) => self.compare(session, compare).await,
            NodeRequest::Restore { pages } => self.restore(session, pages).await,
        }
    }

    fn mark(&self, session: Session) -> i64 {
        mark(self.table, session)
    }

    fn fault(&self, failure: StatementFailure) -> Fault {
        match failure {
            StatementFailure::Refused(refusal) => Fault::Refused(refusal),
            StatementFailure::Client(error) if error.code() == Some(&SqlState::CHECK_VIOLATION) => {
                // The same request never succeeds.
                let constraint = error.as_db_error().and_then(|error| error.constraint());
                let constraint = constraint.unwrap_or_default().to_owned();
                Fault::Refused(NodeRefusal::Unfit { constraint })
            }
            StatementFailure::Client(error) => Fault::Problem(self.link.problem(&error)),
        }
    }

    /// Prepares statements that this connection has not used yet, and begins a transaction.
    async fn begin(&mut self, statements: &[&'static str]) -> Answer<Work<'_>> {
        for text in statements {
            self.prepared(text).await?;
        }
        let transaction = self.link.client.transaction().await?;
        Ok(Work { transaction, statements: &self.statements, table: self.table })
    }

    async fn prepared(&mut self, text: &'static str) -> Result<Statement, Error> {
        if let Some(statement) = self.statements.get(text) {
            return Ok(statement.clone());
        }
        let statement = self.link.client.prepare(text).await?;
        self.statements.insert(text, statement.clone());
        Ok(statement)
    }

    /// Runs one statement as a transaction of its own, and returns its only row.
    async fn alone(&mut self, text: &'static str, values: Values<'_>) -> Result<Row, Error> {
        let statement = self.prepared(text).await?;
        self.link.client.query_one(&statement, values).await
    }

    /// Returns why the database does not know a session.
    async fn stranger(&mut self, session: Session) -> StatementFailure {
        let statement = match self.prepared(SESSION).await {
            Ok(statement) => statement,
            Err(error) => return error.into(),
        };
        let client = &self.link.client;
        match client.query_opt(&statement, &[&session.node.0]).await {
            Ok(row) => refusal(session, row.as_ref()).into(),
            Err(error) => error.into(),
        }
    }
}

struct Work<'a> {
    transaction: Transaction<'a>,
    statements: &'a HashMap<&'static str, Statement>,
    table: i64,
}

impl Work<'_> {
    fn statement(&self, text: &'static str) -> &Statement {
        &self.statements[text]
    }

    async fn rows(&self, text: &'static str, values: Values<'_>) -> Result<Vec<Row>, Error> {
        self.transaction.query(self.statement(text), values).await
    }

    async fn row(&self, text: &'static str, values: Values<'_>) -> Result<Row, Error> {
        let statement = self.statement(text);
        self.transaction.query_one(statement, values).await
    }

    async fn maybe_row(
        &self,
        text: &'static str,
        values: Values<'_>,
    ) -> Result<Option<Row>, Error> {
        let statement = self.statement(text);
        self.transaction.query_opt(statement, values).await
    }

    async fn run(&self, text: &'static str, values: Values<'_>) -> Result<u64, Error> {
        let statement = self.statement(text);
        self.transaction.execute(statement, values).await
    }

    async fn commit(self) -> Result<(), Error> {
        self.transaction.commit().await
    }

    /// Checks the session; until the end of the transaction, no other connection of the node begins.
    async fn check(&self, session: Session) -> Answer<()> {
        let row = self.maybe_row(SESSION_SHARED, &[&session.node.0]).await?;
        let mark = mark(self.table, session);
        let is_current = row.as_ref().is_some_and(|row| {
            row.get::<_, Option<&str>>(0).is_some() && row.get::<_, i64>(1) == mark
        });
        if is_current {
            return Ok(());
        }
        Err(refusal(session, row.as_ref()).into())
    }
}

const SESSION: &str = "SELECT name FROM archivist.node WHERE id = $1";
const SESSION_SHARED: &str =
    concat!("SELECT name, ", session_mark!(), " FROM archivist.node WHERE id = $1 FOR SHARE");

/// Returns what `session_mark` is for the row of a node while the session holds.
fn mark(table: i64, session: Session) -> i64 {
    session.incarnation.0 ^ (table << 32)
}

fn refusal(session: Session, row: Option<&Row>) -> NodeRefusal {
    let node = session.node.0;
    match row {
        None => NodeRefusal::UnknownNode { node },
        Some(row) => {
            NodeRefusal::Superseded { name: row.get::<_, Option<String>>(0).unwrap_or_default() }
        }
    }
}

fn session(node: i64, incarnation: i64) -> Session {
    Session { node: NodeId(node), incarnation: Incarnation(incarnation) }
}

fn millis(span: Duration) -> i64 {
    // A thousand years, which PostgreSQL can add to a time.
    const LONGEST: u128 = 1000 * 365 * 86_400_000;
    i64::try_from(span.as_millis().min(LONGEST)).unwrap_or_default()
}

fn span(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}
