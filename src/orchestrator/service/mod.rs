//! Service side of the interfaces: every call becomes an order, which waits for its answer.

mod connection;
mod node;
mod worker;

use crate::bus::limits::{document, few, invalid, small_enough};
use crate::bus::list;
use crate::bus::subscribers::Subscribers;
use crate::calls::requests::Request;
use crate::calls::tag::{ChangeTags, RenameTag};
use crate::deletion::Delete;
use crate::main_loop::bus_context::{BusContext, caller, known, owner};
use crate::main_loop::rooms::Which;
use crate::notices::Follow;
use crate::programs::Install;
use crate::query::orders::Query;
use archivist_core::model::{AnyId, Owner};
use archivist_shared::bus::callers::{Claim, Kind, User, process};
use archivist_shared::bus::documents::report::{AddOptions, Added, Filter, Registration};
#[cfg(test)]
pub use connection::descriptions;
#[cfg(test)]
use connection::serve;
pub use connection::{hung_up, offer, request_name};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use zbus::message::Header;
use zbus::object_server::SignalEmitter;
use zbus::{Connection, OwnedFd, fdo, interface};

struct ManagerBus(BusContext, Subscribers);

async fn retry(
    context: &BusContext,
    id: Option<Owner>,
    which: Which,
    user: u32,
) -> fdo::Result<u32> {
    context.ask(Request::Retry { id, which, user, so_far: None }).await
}

impl ManagerBus {
    async fn add_for(
        &self,
        user: User,
        urls: OwnedFd,
        options: &str,
        joins: bool,
    ) -> fdo::Result<String> {
        let options: AddOptions = document(options)?;
        let owner = known(user)?;
        let places = self.0.callers.places(user);
        let list = list::read(urls.into(), &places, list::READ_TIME).await;
        // Its slots are free again when the pages are queued.
        let (lines, _places) = list.map_err(invalid)?.into_parts();
        let lines = Arc::new(lines);
        self.0.ask(Request::Add { lines, options, user: owner, joins, so_far: None }).await
    }

    async fn set_pinned(
        &self,
        id: &str,
        pinned: bool,
        dry_run: bool,
        user: u32,
    ) -> fdo::Result<u32> {
        let id = owner(id)?;
        self.0.ask(Request::Pin { id, pinned, dry_run, user }).await
    }

    async fn hold_for(&self, crawl: &str, cancel: bool, claim: Claim) -> fdo::Result<OwnedFd> {
        let crawl = crawl.parse().map_err(invalid)?;
        self.0.ask(Request::Hold { crawl, cancel, claim }).await
    }
}

#[interface(name = "org.archivist1.Manager")]
impl ManagerBus {
    async fn add(
        &self,
        urls: OwnedFd,
        options: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let (user, _claim) = self.0.claim(connection, &header, Kind::Call).await?;
        self.add_for(user, urls, options, false).await
    }

    async fn install(
        &self,
        names: Vec<String>,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<String> {
        few(&names)?;
        let user = caller(connection, &header).await?;
        self.0.ask(Install { names, user }).await
    }

    async fn cancel(&self, id: &str) -> fdo::Result<()> {
        match id.parse().map_err(invalid)? {
            AnyId::Owner(id) => self.0.ask(Request::Cancel { id }).await,
            AnyId::Run(id) => self.0.ask(Request::CancelRun { id }).await,
        }
    }

    async fn delete(
        &self,
        ids: Vec<String>,
        dry_run: bool,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<String> {
        few(&ids)?;
        let ids: Result<_, _> = ids.iter().map(|id| id.parse().map_err(invalid)).collect();
        let ids = ids?;
        let user = caller(connection, &header).await?;
        self.0.ask(Delete { ids, dry_run, user }).await
    }

    async fn pin(
        &self,
        id: &str,
        dry_run: bool,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<u32> {
        let user = caller(connection, &header).await?;
        self.set_pinned(id, true, dry_run, user).await
    }

    async fn unpin(
        &self,
        id: &str,
        dry_run: bool,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<u32> {
        let user = caller(connection, &header).await?;
        self.set_pinned(id, false, dry_run, user).await
    }

    async fn tag(
        &self,
        id: &str,
        add: Vec<String>,
        remove: Vec<String>,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<u32> {
        few(&add)?;
        few(&remove)?;
        let (id, user) = (owner(id)?, caller(connection, &header).await?);
        self.0.ask(ChangeTags { id, add, remove, user }).await
    }

    async fn rename_tag(
        &self,
        old: String,
        new: String,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<u32> {
        let user = caller(connection, &header).await?;
        self.0.ask(RenameTag { old, new, user }).await
    }

    async fn unknown_settings(&self, names: Vec<String>) -> fdo::Result<String> {
        self.0.ask(Request::UnknownSettings { names }).await
    }

    async fn await_units(
        &self,
        id: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        let id = id.parse().map_err(invalid)?;
        let (_, _claim) = self.0.claim(connection, &header, Kind::Call).await?;
        self.0.ask(Request::AwaitUnits { id }).await
    }

    async fn abort(&self, crawl: &str) -> fdo::Result<()> {
        let Owner::Crawl(id) = owner(crawl)? else {
            return Err(fdo::Error::InvalidArgs(format!(
                "'{crawl}' is not a crawl: cancel a snapshot with Cancel"
            )));
        };
        self.0.ask(Request::Abort { id }).await
    }

    /// Pauses a crawl or snapshot, and freezes its hooks.
    async fn pause(&self, id: &str) -> fdo::Result<()> {
        let id = owner(id)?;
        self.0.ask(Request::Pause { id }).await
    }

    /// Continues a paused crawl or snapshot.
    async fn resume(&self, id: &str) -> fdo::Result<()> {
        let id = owner(id)?;
        self.0.ask(Request::Resume { id }).await
    }

    async fn amend(
        &self,
        id: &str,
        config: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        let id = owner(id)?;
        let config = document(config)?;
        let user = caller(connection, &header).await?;
        self.0.ask(Request::Amend { id, config, user }).await
    }

    async fn retry(
        &self,
        id: &str,
        hook: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<u32> {
        let id = match id {
            "" => None,
            id => Some(owner(id)?),
        };
        let which = match hook {
            "" => Which::Failed,
            hook => Which::Hook(hook.to_owned()),
        };
        let user = caller(connection, &header).await?;
        retry(&self.0, id, which, user).await
    }

    async fn retry_all(
        &self,
        id: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<u32> {
        let id = owner(id)?;
        let user = caller(connection, &header).await?;
        retry(&self.0, Some(id), Which::All, user).await
    }

    async fn update(
        &self,
        id: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<u32> {
        let id = match id {
            "" => None,
            id => Some(owner(id)?),
        };
        let user = caller(connection, &header).await?;
        retry(&self.0, id, Which::Missing, user).await
    }

    async fn status(&self) -> fdo::Result<String> {
        self.0.ask(Query::Status).await
    }

    async fn metrics(&self) -> fdo::Result<String> {
        self.0.ask(Query::Metrics).await
    }

    async fn list(&self, what: &str, filter: &str) -> fdo::Result<String> {
        let filter: Box<Filter> = document(filter)?;
        let what = what.to_owned();
        small_enough(self.0.ask(Query::List { what, filter }).await?)
    }

    async fn show(&self, id: &str) -> fdo::Result<String> {
        let shown = match id.parse().map_err(invalid)? {
            AnyId::Owner(id) => self.0.ask(Query::Show { id }).await,
            AnyId::Run(id) => self.0.ask(Query::ShowRun { id }).await,
        };
        shown.and_then(small_enough)
    }

    async fn why(&self, id: &str) -> fdo::Result<String> {
        let id = id.parse().map_err(invalid)?;
        self.0.ask(Query::Why { id }).await
    }

    async fn plugins(&self) -> fdo::Result<String> {
        self.0.ask(Query::Plugins).await
    }

    async fn watch(
        &self,
        crawl: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<OwnedFd> {
        let crawl = crawl.parse().map_err(invalid)?;
        let (_, claim) = self.0.claim(connection, &header, Kind::Descriptor).await?;
        self.0.ask(Follow::Crawl { crawl, claim }).await
    }

    async fn watch_status(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<OwnedFd> {
        let (_, claim) = self.0.claim(connection, &header, Kind::Descriptor).await?;
        self.0.ask(Follow::Status { claim }).await
    }

    async fn run(
        &self,
        urls: OwnedFd,
        options: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<(String, OwnedFd)> {
        let (user, claim) = self.0.claim(connection, &header, Kind::Descriptor).await?;
        let _call = self.0.callers.claim(user, Kind::Call)?;
        let answer = self.add_for(user, urls, options, true).await?;
        let added: Added = serde_json::from_str(&answer).map_err(invalid)?;
        // Its crawl belongs to another caller: nothing is held.
        if added.accepted == 0 && added.known > 0 {
            let (closed, _) = UnixStream::pair().map_err(|error| {
                fdo::Error::Failed(format!("failed to create a socket pair: {error}"))
            })?;
            return Ok((answer, std::os::fd::OwnedFd::from(closed).into()));
        }
        // If the caller is gone by now, the descriptor closes and the crawl is cancelled, unless another
        // caller holds it.
        let hold = self.hold_for(&added.crawl.to_string(), true, claim).await?;
        Ok((answer, hold))
    }

    async fn hold(
        &self,
        crawl: &str,
        cancel: bool,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<OwnedFd> {
        let (_, claim) = self.0.claim(connection, &header, Kind::Descriptor).await?;
        self.hold_for(crawl, cancel, claim).await
    }

    async fn register(
        &self,
        command: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<OwnedFd> {
        let command = document::<Registration>(command)?.bounded();
        let (user, claim) = self.0.claim(connection, &header, Kind::Descriptor).await?;
        let pid = process(connection, &header).await?;
        self.0.ask(Request::Register { command, pid, user, claim }).await
    }

    async fn interrupt(&self, id: &str) -> fdo::Result<String> {
        let id = owner(id)?;
        self.0.ask(Request::Interrupt { id }).await
    }

    async fn proceed(&self, crawl: &str, again: bool) -> fdo::Result<u32> {
        let crawl = crawl.parse().map_err(invalid)?;
        self.0.ask(Request::Proceed { crawl, again }).await
    }

    async fn draft(
        &self,
        options: &str,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<String> {
        let options: AddOptions = document(options)?;
        let user = caller(connection, &header).await?;
        self.0.ask(Request::Draft { options, user }).await
    }

    async fn reload(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> fdo::Result<()> {
        let user = caller(connection, &header).await?;
        self.0.ask(Request::Reload { user }).await
    }

    async fn subscribe(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        let (_, claim) = self.0.claim(connection, &header, Kind::Subscription).await?;
        self.1.add(connection, &sender(&header), claim).await
    }

    fn unsubscribe(&self, #[zbus(header)] header: Header<'_>) {
        self.1.remove(&sender(&header));
    }

    // Declared for clients that introspect; `bus/emit.rs` sends them.
    #[zbus(signal)]
    async fn crawl_added(to: &SignalEmitter<'_>, id: &str, document: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn crawl_started(to: &SignalEmitter<'_>, id: &str, document: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn crawl_sealed(to: &SignalEmitter<'_>, id: &str, document: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn crawl_cancelled(to: &SignalEmitter<'_>, id: &str, document: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn crawl_changed(to: &SignalEmitter<'_>, id: &str, document: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn snapshots_added(
        to: &SignalEmitter<'_>,
        crawl: &str,
        document: &str,
    ) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn snapshot_started(to: &SignalEmitter<'_>, id: &str, document: &str)
    -> zbus::Result<()>;
    #[zbus(signal)]
    async fn snapshot_sealed(to: &SignalEmitter<'_>, id: &str, document: &str) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn snapshot_cancelled(
        to: &SignalEmitter<'_>,
        id: &str,
        document: &str,
    ) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn snapshot_changed(to: &SignalEmitter<'_>, id: &str, document: &str)
    -> zbus::Result<()>;
    #[zbus(signal)]
    async fn idle(to: &SignalEmitter<'_>) -> zbus::Result<()>;
    #[zbus(signal)]
    async fn stopping(to: &SignalEmitter<'_>) -> zbus::Result<()>;
}

/// Returns the unique name of the caller; empty on a connection without a bus.
fn sender(header: &Header<'_>) -> String {
    header.sender().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests;
