//! Calls to the fleet service, which answers for all machines of a fleet.

use crate::client::exit::Failure;
use crate::client::paging::Source;
use crate::client::server::{Server, decode};
use archivist_config::programs::{FLEET, FLEET_FIX, FLEET_MISSING};
use archivist_config::{Scope, Settings, load};
use archivist_core::model::{CrawlId, Lifecycle, Owner, SnapshotId};
use archivist_core::text::{clean, human_span};
use archivist_shared::bus::client::Address;
use archivist_shared::bus::documents::fleet::{Fleet as Members, Member, NodeState};
use archivist_shared::bus::documents::report::{Crawl, Details, Filter, ROWS_MAX, Snapshot};
use archivist_shared::bus::wire::{FleetNodeProxy, FleetProxy};
use clap::Args;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use zbus::DBusError;
use zbus::fdo::PeerProxy;

/// Limit for a sign of life of the service; the service itself limits that of the database.
const REACH_TIMEOUT: Duration = Duration::from_secs(2);
/// Limit for an answer. The database ends a statement after 5 s.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);
/// Limit for a call that waits for a crawl, which the service answers after 20 s.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time between two looks at who has the pages of a cancelled crawl.
const LOOK: Duration = Duration::from_secs(3);

const HINT: &str = "for this machine alone, use --local";

// For verbs that mean the whole fleet.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Local {
    /// In a fleet, this machine alone
    ///
    /// See archivist-fleet(8).
    #[arg(long)]
    pub local: bool,
}

pub struct Fleet {
    proxy: FleetProxy<'static>,
    /// Name of this node; empty if unknown.
    node: String,
    /// Whether the user was told that no node works with the database.
    is_fault_said: AtomicBool,
}

impl Fleet {
    /// Connects to the service of the fleet that this machine is a node of; `None` if the machine is
    /// in no fleet or `local` is set. Only the first instance of a machine can be a node.
    ///
    /// # Errors
    /// If the service is not installed, does not run, or does not answer within two seconds.
    pub async fn reach(scope: &Scope, local: Local) -> Result<Option<Fleet>, Failure> {
        if local.local || scope.user || scope.instance.is_some() {
            return Ok(None);
        }
        // Verbs that need the configuration report what is wrong with it.
        let settings = load(scope).ok().map(|(settings, _)| settings);
        let Some(settings) = settings.filter(Settings::is_in_fleet) else {
            return Ok(None);
        };
        if !FLEET.is_installed() {
            return Err(away(&format!("{FLEET_MISSING}; {FLEET_FIX}")));
        }
        let bus = Address::new(false, None).connect().await?;
        let proxy = FleetProxy::new(&bus).await.map_err(explain)?;
        let peer = PeerProxy::new(&bus, proxy.inner().destination().to_owned(), "/").await;
        let peer = peer.map_err(explain)?;
        let alive = tokio::time::timeout(REACH_TIMEOUT, peer.ping());
        let alive = alive.await.map_err(|_| late())?;
        alive.map_err(explain)?;
        let node = settings.node_name().unwrap_or_default();
        Ok(Some(Fleet { proxy, node, is_fault_said: AtomicBool::new(false) }))
    }

    pub fn is_here(&self, node: Option<&str>) -> bool {
        node == Some(self.node.as_str())
    }

    pub async fn status(&self) -> Result<String, Failure> {
        let status = answer(REPLY_TIMEOUT, self.proxy.status()).await?;
        self.say_fault().await;
        Ok(status)
    }

    pub async fn list(&self, what: &str, filter: &str) -> Result<String, Failure> {
        let rows = answer(REPLY_TIMEOUT, self.proxy.list(what, filter)).await?;
        self.say_fault().await;
        Ok(rows)
    }

    pub async fn show(&self, id: Owner) -> Result<Details, Failure> {
        let name = id.to_string();
        let details = decode(&answer(REPLY_TIMEOUT, self.proxy.show(&name)).await?)?;
        self.say_fault().await;
        Ok(details)
    }

    /// Prints once to standard error why no node works with a database that answers: one that went back to an
    /// earlier state lacks what is later.
    async fn say_fault(&self) {
        if let Ok(Some(fault)) = self.fault().await
            && !self.is_fault_said.swap(true, Ordering::Relaxed)
        {
            eprintln!("archivist: {}", clean(&fault));
        }
    }

    pub async fn why(&self, id: Owner) -> Result<String, Failure> {
        let id = id.to_string();
        answer(REPLY_TIMEOUT, self.proxy.why(&id)).await
    }

    /// Returns the document of a crawl when it differs from `known`, or after a while; an empty text
    /// while the database does not have it.
    pub async fn wait(&self, crawl: CrawlId, known: &str) -> Result<String, Failure> {
        let crawl = crawl.to_string();
        answer(WAIT_TIMEOUT, self.proxy.wait(&crawl, known)).await
    }

    /// Returns whether this machine has sent everything to the database.
    pub async fn has_sent_all(&self) -> Result<bool, Failure> {
        Ok(!self.node().await?.is_sending)
    }

    /// Returns why this node does not work with the database, although that may answer.
    pub async fn fault(&self) -> Result<Option<String>, Failure> {
        Ok(self.node().await?.fault)
    }

    async fn node(&self) -> Result<NodeState, Failure> {
        let node = FleetNodeProxy::new(self.proxy.inner().connection()).await;
        let node = node.map_err(explain)?;
        decode(&answer(REPLY_TIMEOUT, node.state()).await?)
    }

    /// Waits until no node has a page of a crawl or page that was cancelled.
    ///
    /// # Errors
    /// If only nodes have such pages that are not connected; the message names them.
    pub async fn until_cancelled(&self, id: Owner) -> Result<(), Failure> {
        let mut known = String::new();
        loop {
            let (crawl, is_ended) = self.ended(id).await?;
            if is_ended {
                return Ok(());
            }
            let held = self.held(id).await?;
            if let Some(why) = held_elsewhere(id, &held, &self.members().await?.nodes) {
                return Err(Failure::failed(why));
            }
            // The crawl changes with each of its pages.
            if let Ok(document) = timeout(LOOK, self.wait(crawl, &known)).await {
                known = document?;
            }
        }
    }

    /// Returns the crawl of `id`, and whether `id` is final.
    async fn ended(&self, id: Owner) -> Result<(CrawlId, bool), Failure> {
        let found = match id {
            Owner::Crawl(id) => {
                let found = self.crawl(id).await?;
                found.map(|crawl| (id, crawl.status.is_final()))
            }
            Owner::Snapshot(id) => {
                let found = self.page(id).await?;
                found.map(|page| (page.crawl, page.status.is_final()))
            }
        };
        found.ok_or_else(|| Failure::failed(format!("there is no {id}")))
    }

    /// Returns the first pages of a crawl, or the page, that nodes have.
    async fn held(&self, id: Owner) -> Result<Vec<Snapshot>, Failure> {
        let started = Filter {
            status: Some(Lifecycle::Started.as_str().to_owned()),
            limit: ROWS_MAX,
            ..Filter::of(id)
        };
        Source::Fleet(self).list("snapshots", &started).await
    }

    /// Returns the row of a crawl; `None` if the fleet has none of this id.
    async fn crawl(&self, id: CrawlId) -> Result<Option<Crawl>, Failure> {
        Source::Fleet(self).find(Owner::Crawl(id)).await
    }

    /// Returns the row of a page; `None` if the fleet has none of this id.
    pub async fn page(&self, id: SnapshotId) -> Result<Option<Snapshot>, Failure> {
        Source::Fleet(self).find(Owner::Snapshot(id)).await
    }

    /// Returns the nodes, as the database knows them.
    async fn members(&self) -> Result<Members, Failure> {
        let node = FleetNodeProxy::new(self.proxy.inner().connection()).await;
        let node = node.map_err(explain)?;
        decode(&answer(REPLY_TIMEOUT, node.nodes()).await?)
    }

    pub async fn cancelled_pages(&self, id: CrawlId) -> Result<u64, Failure> {
        let found = self.crawl(id).await?;
        let cancelled = found.and_then(|crawl| crawl.snapshots.get("cancelled").copied());
        Ok(cancelled.unwrap_or(0))
    }

    /// Returns whether the fleet has a crawl or page.
    pub async fn has(&self, id: Owner) -> Result<bool, Failure> {
        Ok(match id {
            Owner::Crawl(id) => self.crawl(id).await?.is_some(),
            Owner::Snapshot(id) => self.page(id).await?.is_some(),
        })
    }
}

/// Returns what nodes that are not connected have of a cancelled crawl or page; `None` if another node has
/// pages, too, or none is known to have any.
fn held_elsewhere(id: Owner, held: &[Snapshot], nodes: &[Member]) -> Option<String> {
    let mut pages: BTreeMap<&str, usize> = BTreeMap::new();
    for page in held {
        *pages.entry(page.node.as_deref()?).or_default() += 1;
    }
    let holder = |(name, count): (&&str, &usize)| {
        let node = nodes.iter().find(|node| node.name == **name);
        match node {
            Some(node) if node.is_connected => None,
            Some(node) => {
                let seen = human_span(Duration::from_millis(node.seen_ms));
                Some(format!("node '{name}', which was not seen for {seen}, has {count}"))
            }
            None => Some(format!("{name}, which is no node any more, has {count}")),
        }
    };
    let holders: Vec<String> = pages.iter().map(holder).collect::<Option<_>>()?;
    (!holders.is_empty()).then(|| {
        format!(
            "{id} is cancelled, but not all of its pages have ended: {}; such a node stops them when it is back, and the fleet ends them with the lease of their hosts",
            holders.join(", ")
        )
    })
}

/// The fleet, for commands that change crawls and pages: the orchestrator accepts them while the
/// database is away, and sends them later.
pub struct Orders {
    fleet: Option<Fleet>,
    is_away: bool,
}

/// What follows the message about a command that only this machine has carried out.
const LATER: &str = " here; the other nodes follow when the fleet can be reached";

impl Orders {
    /// Connects to the fleet, if this machine is a node of one.
    pub async fn begin(scope: &Scope) -> Orders {
        let reached = Fleet::reach(scope, Local::default()).await;
        Orders { is_away: reached.is_err(), fleet: reached.ok().flatten() }
    }

    /// Returns the fleet, if it was reached.
    pub fn fleet(&self) -> Option<&Fleet> {
        self.fleet.as_ref()
    }

    pub fn is_in_fleet(&self) -> bool {
        self.is_away || self.fleet.is_some()
    }

    /// Returns the end of the message about a command that the orchestrator accepts.
    ///
    /// # Errors
    /// If neither the fleet nor this machine, which may have added it just now, knows the id.
    pub async fn check(&self, id: Owner, server: &Server) -> Result<&'static str, Failure> {
        let Some(fleet) = &self.fleet else {
            return Ok(if self.is_away { LATER } else { "" });
        };
        match fleet.has(id).await {
            Ok(true) => Ok(""),
            Ok(false) => {
                let name = id.to_string();
                server.call(|| server.proxy().show(&name)).await?;
                Ok("")
            }
            Err(failure) if failure.is_unreachable() => Ok(LATER),
            Err(failure) => Err(failure),
        }
    }

    /// Queues all hooks of a page again, on any node of a fleet.
    pub async fn retry_all(&self, page: Owner, server: &Server) -> Result<(), Failure> {
        let name = page.to_string();
        if self.is_in_fleet() {
            self.check(page, server).await?;
            server.call_once(server.proxy().retry(&name, "")).await?;
        } else {
            let call = server.proxy().retry_all(&name);
            server.call_once_in_pieces(call).await?;
        }
        Ok(())
    }
}

async fn answer<T>(
    limit: Duration,
    call: impl Future<Output = zbus::Result<T>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => answer.map_err(explain),
        Err(_) => Err(late()),
    }
}

fn late() -> Failure {
    away("the fleet service does not answer; see: systemctl status archivist-fleet.service")
}

fn away(why: &str) -> Failure {
    Failure::unreachable(format!("failed to reach the fleet: {why}\n{HINT}"))
}

/// Returns an error of a call as a message for the user.
fn explain(error: zbus::Error) -> Failure {
    let (name, text) = match &error {
        zbus::Error::MethodError(name, text, _) => (name.to_string(), text.clone()),
        zbus::Error::FDO(error) => (error.name().to_string(), error.description().map(Into::into)),
        _ => return away(&error.to_string()),
    };
    let text = text.unwrap_or_else(|| name.clone());
    match name.strip_prefix("org.freedesktop.DBus.Error.") {
        Some("ServiceUnknown" | "NameHasNoOwner" | "NoReply" | "Disconnected") => {
            away("the fleet service does not run; see: systemctl status archivist-fleet.service")
        }
        Some("NoServer") => away(&text),
        Some("InvalidArgs") => Failure::usage(text),
        Some("AccessDenied") => Failure::denied(&text),
        _ => Failure::failed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::exit::Exit;
    use crate::sample;

    #[test]
    fn pages_of_a_cancelled_crawl_are_waited_for_while_a_node_can_stop_them() {
        let id = Owner::Crawl(CrawlId(14));
        let page = |node: &str| Snapshot { node: Some(node.to_owned()), ..sample::snapshot(3) };
        let node = |name: &str, is_connected| Member {
            name: name.to_owned(),
            seen_ms: 14_000,
            is_connected,
            ..Member::default()
        };
        let nodes = [node("n1", true), node("n2", false), node("n3", false)];
        assert_eq!(held_elsewhere(id, &[], &nodes), None);
        assert_eq!(held_elsewhere(id, &[page("n1"), page("n2")], &nodes), None);
        let held = [page("n2"), page("n3"), page("n2")];
        let why = held_elsewhere(id, &held, &nodes).unwrap();
        for part in [
            "c14 is cancelled",
            "node 'n2', which was not seen for 14s, has 2",
            "node 'n3', which was not seen for 14s, has 1",
        ] {
            assert!(why.contains(part), "{part}: {why}");
        }
    }

    #[test]
    fn a_fleet_that_is_away_offers_this_machine_alone() {
        let error = |error: zbus::fdo::Error| explain(zbus::Error::FDO(Box::new(error)));
        let gone = error(zbus::fdo::Error::ServiceUnknown("x".into()));
        assert_eq!(gone.exit(), Exit::Unreachable);
        assert!(gone.message().contains("the fleet service does not run"));
        let away = error(zbus::fdo::Error::NoServer("failed to connect to db".into()));
        assert_eq!(away.exit(), Exit::Unreachable);
        assert_eq!(
            away.message(),
            "failed to reach the fleet: failed to connect to db\nfor this machine alone, use --local"
        );
        let missing = error(zbus::fdo::Error::UnknownObject("there is no s9".into()));
        assert_eq!((missing.exit(), missing.message()), (Exit::Failed, "there is no s9"));
    }
}
