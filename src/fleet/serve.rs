//! The bus interface for users of a fleet. It reads the database over a connection of its own,
//! which is made for the first call and closed when no call comes.

use crate::connect::{Link, Problem, Secrets, Target};
use crate::schema;
use crate::view::{View, ViewFault};
use archivist_core::model::{CrawlId, Owner, cut};
use archivist_shared::bus::documents::report::Filter;
use archivist_shared::bus::wire::PATH;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep, timeout};
use zbus::{Connection, fdo, interface};

/// Longest filter of a list, in bytes.
const FILTER_MAX: usize = 64 << 10;
/// Limit for a sign of life of the database, with a new connection if necessary. Users wait for it.
const REACH_TIMEOUT: Duration = Duration::from_millis(1800);
/// Limit for a sign of life over the present connection.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_millis(600);
/// Limit for earlier calls.
const TURN_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without a call after which the connection is closed.
const IDLE: Duration = Duration::from_secs(30);
/// Time between two looks at a crawl without a hint of another node. Recorded pages give none, because
/// all commits with a NOTIFY wait for each other.
const LOOK: Duration = Duration::from_secs(1);
/// Shortest time between two looks at a crawl.
const LOOK_MIN: Duration = Duration::from_millis(500);
/// Time after which a call that waits for a crawl returns in any case.
const WAIT: Duration = Duration::from_secs(20);

struct Access {
    target: Target,
    secrets: Secrets,
    node: String,
}

/// The connection while it is open, and its last use.
#[derive(Default)]
struct Open {
    view: Option<View>,
    used: Option<Instant>,
}

/// Object `org.archivist1.Fleet`. The bus policy decides who may call it: root and group
/// `archivist`.
pub struct Fleet {
    access: Access,
    open: Arc<Mutex<Open>>,
}

/// Serves the interface on a connection of the bus, without acquiring a name.
///
/// # Errors
/// If the connection has the object already.
pub async fn offer(
    bus: &Connection,
    target: Target,
    secrets: Secrets,
    node: &str,
) -> zbus::Result<()> {
    let fleet = Fleet::new(target, secrets, node);
    bus.object_server().at(PATH, fleet).await?;
    Ok(())
}

impl Fleet {
    /// Returns the object of node `node`.
    pub fn new(target: Target, secrets: Secrets, node: &str) -> Fleet {
        let node = node.to_owned();
        let access = Access { target, secrets, node };
        Fleet { access, open: Arc::default() }
    }

    /// Returns the view, over a connection that has just answered.
    async fn view(&self) -> fdo::Result<MutexGuard<'_, Open>> {
        let busy = |_| fdo::Error::LimitsExceeded("earlier calls are not done yet".to_owned());
        let mut open = timeout(TURN_TIMEOUT, self.open.lock()).await.map_err(busy)?;
        let server = self.access.target.to_string();
        let late = |_| Problem::Late { server, after: REACH_TIMEOUT };
        let reached = timeout(REACH_TIMEOUT, self.access.reach(&mut open.view)).await;
        match reached.map_err(late) {
            Ok(Ok(())) => {}
            Ok(Err(problem)) | Err(problem) => {
                open.view = None;
                return Err(away(&problem));
            }
        }
        open.used = Some(Instant::now());
        tokio::spawn(close_when_idle(Arc::clone(&self.open)));
        Ok(open)
    }
}

impl Access {
    async fn reach(&self, view: &mut Option<View>) -> Result<(), Problem> {
        if let Some(known) = view {
            let alive = timeout(HEARTBEAT_TIMEOUT, known.link().heartbeat()).await;
            if matches!(alive, Ok(Ok(()))) {
                return Ok(());
            }
            *view = None;
        }
        let name = format!("archivist fleet {}", self.node);
        let link = Link::open(&self.target, &self.secrets, &name).await?;
        schema::check(&link).await?;
        *view = Some(View::new(link, &self.node));
        Ok(())
    }
}

async fn close_when_idle(open: Arc<Mutex<Open>>) {
    sleep(IDLE).await;
    let mut open = open.lock().await;
    if open.used.is_some_and(|used| used.elapsed() >= IDLE) {
        open.view = None;
    }
}

/// The error that the command line reports as "the fleet cannot be reached".
fn away(problem: &Problem) -> fdo::Error {
    fdo::Error::NoServer(cut(problem.to_string()))
}

fn refusal(fault: ViewFault) -> fdo::Error {
    match fault {
        ViewFault::Problem(problem) => away(&problem),
        ViewFault::Invalid(text) => fdo::Error::InvalidArgs(cut(text)),
        ViewFault::NoSuch(_) => fdo::Error::UnknownObject(fault.to_string()),
        ViewFault::Slow(_) => fdo::Error::LimitsExceeded(fault.to_string()),
        ViewFault::Json(_) => fdo::Error::Failed(fault.to_string()),
    }
}

fn owner(id: &str) -> fdo::Result<Owner> {
    id.parse().map_err(invalid)
}

fn invalid(error: impl std::fmt::Display) -> fdo::Error {
    fdo::Error::InvalidArgs(cut(error.to_string()))
}

#[interface(name = "org.archivist1.Fleet")]
impl Fleet {
    async fn status(&self) -> fdo::Result<String> {
        let mut open = self.view().await?;
        let view = open.view.as_mut().ok_or_else(closed)?;
        view.status().await.map_err(refusal)
    }

    async fn list(&self, what: &str, filter: &str) -> fdo::Result<String> {
        if filter.len() > FILTER_MAX {
            return Err(invalid(format!("a filter of {} bytes", filter.len())));
        }
        let filter: Filter = serde_json::from_str(filter).map_err(invalid)?;
        let mut open = self.view().await?;
        let view = open.view.as_mut().ok_or_else(closed)?;
        view.list(what, &filter).await.map_err(refusal)
    }

    async fn show(&self, id: &str) -> fdo::Result<String> {
        let id = owner(id)?;
        let mut open = self.view().await?;
        let view = open.view.as_mut().ok_or_else(closed)?;
        view.show(id).await.map_err(refusal)
    }

    async fn why(&self, id: &str) -> fdo::Result<String> {
        let id = owner(id)?;
        let mut open = self.view().await?;
        let view = open.view.as_mut().ok_or_else(closed)?;
        view.why(id).await.map_err(refusal)
    }

    #[zbus(name = "Await")]
    async fn wait(&self, crawl: &str, known: &str) -> fdo::Result<String> {
        let crawl: CrawlId = crawl.parse().map_err(invalid)?;
        let until = Instant::now() + WAIT;
        loop {
            let document = {
                let mut open = self.view().await?;
                let view = open.view.as_mut().ok_or_else(closed)?;
                match view.crawl(crawl).await.map_err(refusal)? {
                    Some(crawl) => serde_json::to_string(&crawl).map_err(invalid)?,
                    None => String::new(),
                }
            };
            if document != known || Instant::now() >= until {
                return Ok(document);
            }
            let begin = Instant::now();
            self.hint_or_look().await;
            tokio::time::sleep_until(begin + LOOK_MIN).await;
        }
    }
}

impl Fleet {
    /// Returns after a hint of another node, or when it is time for a look.
    async fn hint_or_look(&self) {
        let open = self.open.lock().await;
        let hints = open.view.as_ref().map(|view| view.link().hints());
        drop(open);
        match hints {
            Some(hints) => drop(timeout(LOOK, hints.notified()).await),
            None => sleep(LOOK).await,
        }
    }
}

fn closed() -> fdo::Error {
    fdo::Error::NoServer("the connection to the database was closed".to_owned())
}
