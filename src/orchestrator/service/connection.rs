//! The connection that serves the interfaces, and its name.

use super::ManagerBus;
use super::node::NodeBus;
use super::worker::WorkerBus;
use crate::bus::subscribers::Subscribers;
use crate::main_loop::bus_context::BusContext;
use crate::main_loop::order::Calls;
use archivist_shared::bus::callers::Callers;
use archivist_shared::bus::client::Address;
use archivist_shared::bus::wire::PATH;
use archivist_shared::connection::builder;
use futures_util::StreamExt;
use zbus::connection::Builder;
use zbus::fdo::{DBusProxy, RequestNameFlags};
use zbus::object_server::Interface;
use zbus::{Connection, MessageStream};

/// Takes one interface after another.
trait Visit: Sized {
    fn visit(self, interface: impl Interface) -> Self;
}

/// All interfaces. A feature of the orchestrator that has one is listed here.
fn interfaces<T: Visit>(context: BusContext, subscribers: Subscribers, of_user: bool, to: T) -> T {
    let to = to.visit(ManagerBus(context.clone(), subscribers));
    #[cfg(feature = "retention")]
    let to = to.visit(crate::expiry::bus::RetentionBus(context.clone()));
    #[cfg(feature = "search")]
    let to = to.visit(crate::search::bus::SearchBus(context.clone()));
    #[cfg(feature = "store")]
    let to = to.visit(crate::transfer::bus::StoreBus(context.clone()));
    #[cfg(feature = "watches")]
    let to = to.visit(crate::watch::WatchesBus(context.clone()));
    to.visit(WorkerBus(context.calls.clone())).visit(NodeBus { calls: context.calls, of_user })
}

impl Visit for Builder<'_> {
    fn visit(self, interface: impl Interface) -> Self {
        self.serve_at(PATH, interface)
    }
}

/// Adds all interfaces to a connection that is being built.
pub fn serve<'a>(
    builder: Builder<'a>,
    calls: Calls,
    subscribers: Subscribers,
    of_user: bool,
) -> Builder<'a> {
    interfaces(BusContext { calls, callers: Callers::default() }, subscribers, of_user, builder)
}

/// The description of each interface in XML, as Introspect answers it, by its name.
#[cfg(test)]
pub type Descriptions = Vec<(String, String)>;

#[cfg(test)]
impl Visit for Descriptions {
    fn visit(mut self, interface: impl Interface) -> Self {
        fn name<T: Interface>(_: &T) -> String {
            T::name().to_string()
        }
        let mut text = String::new();
        interface.introspect_to_writer(&mut text, 0);
        self.push((name(&interface), text));
        self
    }
}

#[cfg(test)]
pub fn descriptions() -> Descriptions {
    let context = BusContext { calls: Calls::new().0, callers: Callers::default() };
    interfaces(context, Subscribers::default(), false, Vec::new())
}

/// Returns when the bus has disconnected this process, as it does after a violation of its limits.
pub async fn hung_up(connection: Connection) {
    let mut messages = MessageStream::from(connection);
    while let Some(Ok(_)) = messages.next().await {}
}

/// Serves the interfaces, without acquiring the bus name.
pub async fn offer(
    address: &Address,
    calls: Calls,
    subscribers: Subscribers,
) -> zbus::Result<Connection> {
    serve(builder(address.user), calls, subscribers, address.user).build().await
}

/// Acquires the bus name from its owner, or joins the queue for it. Another orchestrator can take
/// it over the same way.
pub async fn request_name(
    connection: &Connection,
    address: &Address,
    replace: bool,
) -> zbus::Result<()> {
    let mut flags = RequestNameFlags::ALLOW_REPLACEMENT;
    flags.set(RequestNameFlags::REPLACE_EXISTING, replace);
    let bus = DBusProxy::new(connection).await?;
    // Not by the method of the connection, which requests the name only once.
    bus.request_name(address.name.as_str().try_into()?, flags).await?;
    Ok(())
}
