//! The fleet service: the loop around [`Service`], which decides. It keeps nothing that must
//! survive: the orchestrator has leases and outbox, the database everything else.

mod clock;
mod delivery;
mod face;
mod orchestrator;
mod status;

pub use clock::IdentityError;
pub use status::show_failure;

use crate::connect::{Hint, Link, Problem, Secrets, Target};
use crate::ledger::{Fault, Ledger};
use crate::schema;
use crate::serve;
use archivist_core::fleet::service::{Action, Event, Service};
use archivist_core::fleet::{
    BootTime, Delivery, Hello, Holdings, NodeRefusal, NodeReply, NodeRequest, SCHEMA, Session,
};
use archivist_shared::bus::client::{Address, ClientError};
use archivist_shared::bus::wire::PATH;
use clock::{Identity, jitter, now};
use face::{FleetNode, Leave};
use orchestrator::{CallError, Orchestrator};
use status::{Status, beat, beats, ready, stopping};
use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, timeout};
use zbus::Connection;

const BUS_NAME: &str = "org.archivist1.Fleet";
/// Limit for the reply to a request.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
/// Limit for the last request, and for the one before it.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between two hints for the other nodes.
const ANNOUNCE_INTERVAL: Duration = Duration::from_millis(200);
/// Time between two calls of [`Ledger::sweep`], which does nothing if another node was faster.
const SWEEP_INTERVAL: Duration = Duration::from_secs(2);
/// Time between two rounds of summing up counters.
const FOLD_INTERVAL: Duration = Duration::from_secs(60);
/// Counters that one round reads.
const FOLD_ROWS: u32 = 1_000;

#[derive(Debug)]
pub struct Node {
    pub name: String,
    pub target: Target,
    pub secrets: Secrets,
    pub lease: Option<Duration>,
}

/// Why the service ends. Faults of the database and of the orchestrator are no reason.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error(transparent)]
    Bus(#[from] ClientError),
    #[error("failed to use the bus: {0}")]
    Use(#[from] zbus::Error),
    /// The bus closed the connection, as at its restart.
    #[error("the bus closed the connection")]
    BusClosed,
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("failed to handle signals: {0}")]
    Signals(std::io::Error),
}

impl Node {
    /// Serves until SIGTERM.
    ///
    /// # Errors
    /// See [`NodeError`].
    pub async fn serve(&self) -> Result<(), NodeError> {
        let mut terminate = signal(SignalKind::terminate()).map_err(NodeError::Signals)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(NodeError::Signals)?;
        let bus = Address::new(false, None).connect().await?;
        let mut running = Running::new(self, &bus).await?;
        let (leaves, mut leaving) = mpsc::unbounded_channel();
        let face = FleetNode {
            states: running.status.states(),
            leaves,
            target: self.target.clone(),
            secrets: self.secrets.clone(),
        };
        bus.object_server().at(PATH, face).await?;
        let (target, secrets) = (self.target.clone(), self.secrets.clone());
        serve::offer(&bus, target, secrets, &self.name).await?;
        bus.request_name(BUS_NAME).await?;
        ready();
        let stop = Notify::new();
        let mut beats = beats();
        let mut work = pin!(running.run(&stop, &mut leaving));
        loop {
            tokio::select! {
                biased;
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = beats.tick() => beat(),
                ended = &mut work => return ended,
            }
        }
        stopping();
        stop.notify_one();
        // A request without a reply may still take effect; the next hello ends that.
        timeout(STOP_TIMEOUT, work).await.unwrap_or(Ok(()))
    }
}

struct Running<'a> {
    node: &'a Node,
    bus: Connection,
    identity: Identity,
    orchestrator: Orchestrator,
    service: Service,
    ledger: Option<Ledger>,
    session: Option<Session>,
    wake: BootTime,
    events: VecDeque<Event>,
    status: Status,
    /// What the orchestrator last got of a refusal, so that it logs each once.
    refused: Option<NodeRefusal>,
    announced: Option<Instant>,
    swept: Instant,
    folded: Instant,
    /// Who waits for the end of the membership.
    leaving: Vec<Leave>,
    has_left: bool,
}

impl<'a> Running<'a> {
    async fn new(node: &'a Node, bus: &Connection) -> Result<Running<'a>, NodeError> {
        Ok(Running {
            node,
            bus: bus.clone(),
            identity: Identity::read(bus).await?,
            orchestrator: Orchestrator::new(bus).await?,
            service: Service::default(),
            ledger: None,
            session: None,
            wake: now(),
            events: VecDeque::from([Event::Tick]),
            status: Status::new(&node.name, &node.target.to_string()),
            refused: None,
            announced: None,
            swept: Instant::now(),
            folded: Instant::now(),
            leaving: Vec::new(),
            has_left: false,
        })
    }

    /// Works until `stop`, and says goodbye to the database.
    async fn run(
        &mut self,
        stop: &Notify,
        leaves: &mut mpsc::UnboundedReceiver<Leave>,
    ) -> Result<(), NodeError> {
        loop {
            let event = tokio::select! {
                biased;
                () = stop.notified() => break,
                // Answered when the service looks at its work the next time.
                Some(leave) = leaves.recv() => {
                    self.leaving.push(leave);
                    continue;
                }
                event = self.next(), if !self.has_left => event,
            };
            let actions = self.service.handle(now(), jitter(), event);
            for action in actions {
                let result = self.perform(action).await;
                self.events.extend(result);
            }
            if self.bus.is_closed() {
                return Err(NodeError::BusClosed);
            }
        }
        self.say_goodbye().await;
        Ok(())
    }

    /// Releases what this node does not work on, so that other nodes get it at once, and ends the
    /// session, so that this machine need not wait after a quick reboot.
    async fn say_goodbye(&mut self) {
        let (Some(ledger), Some(session)) = (&mut self.ledger, self.session) else {
            return;
        };
        if let Err(fault) = release(ledger, session, &mut self.orchestrator).await {
            tracing::warn!("failed to release hosts: {fault}, ignoring");
        }
        if let Err(fault) = ledger.apply(session, &NodeRequest::Goodbye).await {
            tracing::warn!("failed to say goodbye to the database: {fault}, ignoring");
        }
    }

    /// Returns the next event: the result of an action, the requested time, or a hint.
    async fn next(&mut self) -> Event {
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        let link = self.ledger.as_ref().map(Ledger::link);
        let is_connected = link.is_some();
        tokio::select! {
            () = sleep(self.wake.until(now())) => Event::Tick,
            hint = hint(link) => match hint {
                Hint::Pages => Event::News,
                Hint::Orders => Event::Orders,
            },
            () = self.orchestrator.news(), if is_connected => Event::Hint,
        }
    }

    /// Performs an action, and returns the event that is its result.
    async fn perform(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Connect => Some(self.connect().await),
            Action::Disconnect => {
                self.ledger = None;
                self.session = None;
                None
            }
            Action::Hello => Some(self.hello().await),
            Action::Send(session, request) => Some(self.send(session, &request).await),
            Action::Ask => {
                let answer = self.orchestrator.holdings().await;
                let Some(holdings) = self.answer(answer) else {
                    return Some(Event::Failed);
                };
                self.status.holds(&holdings);
                if !self.leaving.is_empty() && self.leave(&holdings).await {
                    return None;
                }
                Some(Event::Holdings(holdings))
            }
            Action::Deliver(delivery) => Some(self.deliver(delivery).await),
            Action::Wake(at) => {
                self.wake = at;
                self.housekeep().await
            }
        }
    }

    /// Ends the membership, if that was requested and the node holds nothing of the fleet any more.
    /// Returns whether it has ended.
    async fn leave(&mut self, holdings: &Holdings) -> bool {
        let left = self.try_leaving(holdings).await;
        self.has_left = left != Ok(false);
        for reply in self.leaving.drain(..) {
            // A caller that is gone needs no answer.
            let _ = reply.send(left.clone());
        }
        self.has_left
    }

    async fn try_leaving(&mut self, holdings: &Holdings) -> Result<bool, String> {
        let holds = !holdings.leases.is_empty() || !holdings.releasing.is_empty();
        let (Some(ledger), Some(session)) = (&mut self.ledger, self.session) else {
            return Ok(false);
        };
        // The orchestrator refuses while a crawl of the fleet ends.
        if holds || !holdings.entries.is_empty() || self.orchestrator.leave().await.is_err() {
            return Ok(false);
        }
        let node = session.node;
        let left = ledger.apply(session, &NodeRequest::Leave { node }).await;
        self.session = None;
        let name = &self.node.name;
        left.map(|_| true).map_err(|fault| {
            format!(
                "{fault}; to remove this node, run 'archivist fleet leave {name}' on another one"
            )
        })
    }

    async fn connect(&mut self) -> Event {
        let Node { name, target, secrets, .. } = self.node;
        let link = match Link::open(target, secrets, &format!("archivist node {name}")).await {
            Ok(link) => link,
            Err(problem) => return self.failed(&problem),
        };
        if let Err(problem) = schema::check(&link).await {
            return self.failed(&problem);
        }
        self.ledger = Some(Ledger::new(link));
        Event::Connected
    }

    async fn hello(&mut self) -> Event {
        let answer = self.orchestrator.holdings().await;
        let Some(holdings) = self.answer(answer) else {
            return Event::Failed;
        };
        let hello = Hello {
            name: self.node.name.clone(),
            machine: self.identity.machine.clone(),
            boot: self.identity.boot.clone(),
            uptime: self.identity.uptime(now()),
            schema: SCHEMA,
            memory: holdings.memory,
            lease: self.node.lease,
        };
        let Some(ledger) = &mut self.ledger else {
            return Event::Disconnected;
        };
        match timeout(REPLY_TIMEOUT, ledger.hello(&hello)).await {
            Ok(Ok(welcome)) => {
                // A migration that ended the sessions just before the hello.
                if let Err(problem) = schema::check(ledger.link()).await {
                    return self.failed(&problem);
                }
                self.session = Some(welcome.session);
                self.refused = None;
                Event::Welcomed(Ok(welcome))
            }
            Ok(Err(Fault::Refused(refusal))) => {
                self.status.failed(&refusal.to_string());
                Event::Welcomed(Err(refusal))
            }
            Ok(Err(Fault::Problem(problem))) => self.failed(&problem),
            Err(_) => self.late(REPLY_TIMEOUT),
        }
    }

    async fn send(&mut self, session: Session, request: &NodeRequest) -> Event {
        let Some(ledger) = &mut self.ledger else {
            return Event::Disconnected;
        };
        match timeout(REPLY_TIMEOUT, ledger.apply(session, request)).await {
            Ok(Ok(reply)) => {
                self.announce(&reply).await;
                Event::Replied(Ok(reply))
            }
            Ok(Err(Fault::Refused(refusal))) => match self.excluded(&refusal).await {
                Some(problem) => self.failed(&problem),
                None => Event::Replied(Err(refusal)),
            },
            Ok(Err(Fault::Problem(problem))) => self.failed(&problem),
            Err(_) => self.late(REPLY_TIMEOUT),
        }
    }

    /// Returns the fault that this program cannot use the schema any more, if that is why the session
    /// ended.
    async fn excluded(&self, refusal: &NodeRefusal) -> Option<Problem> {
        let NodeRefusal::Superseded { .. } = refusal else {
            return None;
        };
        let link = self.ledger.as_ref()?.link();
        timeout(REPLY_TIMEOUT, schema::check(link)).await.ok()?.err()
    }

    /// Tells the other nodes that there are pages or orders for them. A hint that is left out costs
    /// them a few seconds.
    async fn announce(&mut self, reply: &NodeReply) {
        let Some(ledger) = &mut self.ledger else {
            return;
        };
        let has_freed = ledger.take_freed();
        let hint = match reply {
            NodeReply::Commanded { .. } => Hint::Orders,
            NodeReply::Submitted { inserted } if *inserted > 0 => Hint::Pages,
            NodeReply::Released(_) if has_freed => Hint::Pages,
            _ => return,
        };
        let is_recent = |at: Instant| at.elapsed() < ANNOUNCE_INTERVAL;
        if hint == Hint::Pages && self.announced.is_some_and(is_recent) {
            return;
        }
        self.announced = Some(Instant::now());
        if let Err(problem) = ledger.link().announce(hint).await {
            tracing::debug!("failed to announce news to the other nodes: {problem}, ignoring");
        }
    }

    /// Does what some node must do for all of them now and then, while there is nothing else to do:
    /// looks for expired leases, and sums up counters of crawls.
    async fn housekeep(&mut self) -> Option<Event> {
        let ledger = self.ledger.as_mut().filter(|_| self.session.is_some())?;
        let sweeps = is_due(&mut self.swept, SWEEP_INTERVAL);
        let folds = is_due(&mut self.folded, FOLD_INTERVAL);
        let work = async {
            if sweeps {
                ledger.sweep().await?;
            }
            if folds {
                ledger.fold(FOLD_ROWS).await?;
            }
            Ok(())
        };
        match timeout(REPLY_TIMEOUT, work).await {
            // After a conflict with another transaction, the next round does it.
            Ok(Ok(()) | Err(Fault::Refused(_) | Fault::Problem(Problem::Conflict { .. }))) => None,
            Ok(Err(Fault::Problem(problem))) => Some(self.failed(&problem)),
            Err(_) => Some(self.late(REPLY_TIMEOUT)),
        }
    }

    fn failed(&mut self, problem: &Problem) -> Event {
        self.status.failed(&problem.to_string());
        Event::Disconnected
    }

    fn late(&mut self, after: Duration) -> Event {
        let server = self.node.target.to_string();
        self.failed(&Problem::Late { server, after })
    }

    fn answer<T>(&mut self, answer: Result<T, CallError>) -> Option<T> {
        match answer {
            Ok(value) => Some(value),
            Err(error) => {
                self.status.failed(&error.to_string());
                None
            }
        }
    }
}

/// Why hosts were not released; their leases end by themselves.
#[derive(Debug, thiserror::Error)]
enum ReleaseError {
    #[error(transparent)]
    Orchestrator(#[from] CallError),
    #[error(transparent)]
    Database(#[from] Fault),
}

async fn release(
    ledger: &mut Ledger,
    session: Session,
    orchestrator: &mut Orchestrator,
) -> Result<(), ReleaseError> {
    orchestrator.stop().await?;
    let holdings = orchestrator.holdings().await?;
    for release in holdings.releases {
        let (host, epoch) = (release.host.clone(), release.epoch);
        let reply = ledger.apply(session, &NodeRequest::Release(release)).await?;
        if let NodeReply::Released(fate) = reply {
            let delivery = Delivery::Released { host, epoch, fate };
            orchestrator.deliver(&delivery).await?;
        }
    }
    Ok(())
}

/// Returns when another node has announced pages or orders; never without a connection.
async fn hint(link: Option<&Link>) -> Hint {
    match link {
        Some(link) => link.hint().await,
        None => std::future::pending().await,
    }
}

/// Whether `interval` has passed since `last`, which then becomes now.
fn is_due(last: &mut Instant, interval: Duration) -> bool {
    let is_due = last.elapsed() >= interval;
    if is_due {
        *last = Instant::now();
    }
    is_due
}
