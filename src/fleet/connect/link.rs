//! One connection.

use super::problem::Problem;
use super::secret::Secrets;
use super::target::Target;
use super::trust;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, Connection, Error};

/// Limit for connecting and logging in, all addresses together.
const OPEN_TIMEOUT: Duration = Duration::from_secs(15);
/// Limit for the reply to a heartbeat.
pub const HEARTBEAT: Duration = Duration::from_secs(5);
/// Channel on which a node announces new pages and orders. A hint only: a node that misses it looks
/// by itself a few seconds later.
pub const HINTS: &str = "archivist";
/// Payload of a hint about orders, which nodes that are busy with pages want to know at once, too.
const ORDERS: &str = "orders";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    Pages,
    Orders,
}

/// Statements are lookups by index. Plans that were made while tables were small must not survive
/// their growth, and compiling a plan takes longer than running it. A session of a user who switched
/// off durability would lose acknowledged writes.
const SETTINGS: &str = "
    SET jit = off;
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SET plan_cache_mode = force_generic_plan;
    SET statement_timeout = '30s';
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '30s';
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
    LISTEN archivist;
";

/// A connection that is logged in, to a server that accepts changes.
#[derive(Debug)]
pub struct Link {
    /// For statements.
    pub client: Client,
    target: Target,
    hints: Arc<Notify>,
    has_orders: Arc<AtomicBool>,
    driver: JoinHandle<()>,
}

impl Link {
    /// Connects, logs in, and checks that the server accepts changes. `name` appears in the server's
    /// lists of connections.
    ///
    /// # Errors
    /// See `Problem`.
    pub async fn open(target: &Target, secrets: &Secrets, name: &str) -> Result<Link, Problem> {
        let connector = trust::connector(target, secrets)?;
        let config = target.config(secrets, name);
        let opened = within(OPEN_TIMEOUT, target, config.connect(connector)).await;
        let (client, connection) = opened?;
        let hints = Arc::new(Notify::new());
        let has_orders = Arc::new(AtomicBool::new(false));
        let driver = drive(connection, Arc::clone(&hints), Arc::clone(&has_orders));
        let driver = tokio::spawn(driver);
        let link = Link { client, target: target.clone(), hints, has_orders, driver };
        link.prepare().await?;
        Ok(link)
    }

    async fn prepare(&self) -> Result<(), Problem> {
        let query =
            "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean";
        let row = within(HEARTBEAT, &self.target, self.client.query_one(query, &[])).await?;
        if row.get(0) {
            let server = self.target.to_string();
            return Err(Problem::ReadOnly { server });
        }
        within(HEARTBEAT, &self.target, self.client.batch_execute(SETTINGS)).await
    }

    /// Asks the server for a reply. A connection whose packets are dropped silently fails here, and
    /// would otherwise wait for hints forever.
    ///
    /// # Errors
    /// If there is no reply within `HEARTBEAT`; the connection is then useless.
    pub async fn heartbeat(&self) -> Result<(), Problem> {
        within(HEARTBEAT, &self.target, self.client.batch_execute("")).await
    }

    /// Waits for a hint of another node. Several hints may be one: of orders, if one is about them.
    pub async fn hint(&self) -> Hint {
        self.hints.notified().await;
        if self.has_orders.swap(false, Ordering::Relaxed) { Hint::Orders } else { Hint::Pages }
    }

    /// Returns what hints notify, for a wait that does not hold the connection.
    pub fn hints(&self) -> Arc<Notify> {
        Arc::clone(&self.hints)
    }

    /// Announces new pages or orders to the other nodes, after the commit of these.
    ///
    /// # Errors
    /// If the server does not take it; the hint may be left out.
    pub async fn announce(&self, hint: Hint) -> Result<(), Problem> {
        let statement = match hint {
            Hint::Pages => format!("NOTIFY {HINTS}"),
            Hint::Orders => format!("NOTIFY {HINTS}, '{ORDERS}'"),
        };
        let done = self.client.batch_execute(&statement);
        within(HEARTBEAT, &self.target, done).await
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Returns the URL of the server without secrets, for messages.
    pub fn server(&self) -> String {
        self.target.to_string()
    }

    /// Returns the fault that an error of the client means.
    pub fn problem(&self, error: &Error) -> Problem {
        Problem::of(error, &self.target)
    }
}

/// The task of the connection ends with it, whatever the server does.
impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Carries messages until the connection ends; its end shows in every later call.
async fn drive<S, T>(
    mut connection: Connection<S, T>,
    hints: Arc<Notify>,
    has_orders: Arc<AtomicBool>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
        if let AsyncMessage::Notification(notification) = message {
            if notification.payload() == ORDERS {
                has_orders.store(true, Ordering::Relaxed);
            }
            hints.notify_one();
        }
    }
}

async fn within<T>(
    limit: Duration,
    target: &Target,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Problem> {
    match timeout(limit, call).await {
        Ok(done) => done.map_err(|error| Problem::of(&error, target)),
        Err(_) => Err(Problem::Late { server: target.to_string(), after: limit }),
    }
}
