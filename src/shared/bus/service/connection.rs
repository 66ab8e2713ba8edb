//! The connection that serves the interfaces, and its name.

use super::node::Node;
use super::worker::Worker;
use super::{Calls, Manager};
use crate::bus::callers::Callers;
use crate::bus::client::Address;
use crate::bus::subscribers::Subscribers;
use crate::bus::wire::PATH;
use crate::connection::builder;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use zbus::fdo::{DBusProxy, RequestNameFlags};
use zbus::object_server::Interface;
use zbus::{Connection, MessageStream};

/// Returns the description of the interfaces in XML, as Introspect answers it.
pub fn description() -> String {
    let (calls, _) = mpsc::unbounded_channel();
    let mut text = String::new();
    Manager(calls.clone(), Callers::default(), Subscribers::default())
        .introspect_to_writer(&mut text, 0);
    Worker(calls.clone()).introspect_to_writer(&mut text, 0);
    let of_user = false;
    Node { calls, of_user }.introspect_to_writer(&mut text, 0);
    text
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
    let manager = Manager(calls.clone(), Callers::default(), subscribers);
    let of_user = address.user;
    builder(address.user)
        .serve_at(PATH, manager)
        .serve_at(PATH, Worker(calls.clone()))
        .serve_at(PATH, Node { calls, of_user })
        .build()
        .await
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
