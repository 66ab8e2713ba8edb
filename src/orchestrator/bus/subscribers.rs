//! Clients that subscribed to the signals about pages. Without any, these signals are not made.

use archivist_core::lock;
use archivist_shared::bus::callers::Claim;
use futures_util::StreamExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::task::AbortHandle;
use zbus::fdo::{self, DBusProxy};
use zbus::message::Type;
use zbus::names::BusName;
use zbus::{Connection, MatchRule, MessageStream};

const BUS: &str = "org.freedesktop.DBus";

/// A client on the bus, by its unique name, or the other end of a connection without a bus.
#[derive(Default)]
struct Client {
    _claim: Claim,
    /// Waits for the end of its connection.
    watch: Option<AbortHandle>,
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}

/// All clients that subscribed and are still connected.
#[derive(Clone, Default)]
pub struct Subscribers(Arc<Mutex<HashMap<String, Client>>>);

impl Subscribers {
    pub fn is_empty(&self) -> bool {
        self.clients().is_empty()
    }

    fn clients(&self) -> std::sync::MutexGuard<'_, HashMap<String, Client>> {
        lock(&self.0)
    }

    /// Adds a client until it unsubscribes or leaves the bus. Does nothing if it is subscribed.
    pub async fn add(&self, connection: &Connection, name: &str, claim: Claim) -> fdo::Result<()> {
        let client = Client { _claim: claim, watch: None };
        {
            let mut clients = self.clients();
            if clients.contains_key(name) {
                return Ok(());
            }
            clients.insert(name.to_owned(), client);
        }
        if !connection.is_bus() {
            return Ok(());
        }
        let gone = match left(connection, name).await {
            Ok(gone) => gone,
            Err(error) => {
                self.remove(name);
                return Err(error);
            }
        };
        let (all, gone_name) = (self.clone(), name.to_owned());
        let watch = tokio::spawn(async move {
            gone.await;
            all.remove(&gone_name);
        });
        // It may have unsubscribed in the meantime.
        match self.clients().get_mut(name) {
            Some(client) => client.watch = Some(watch.abort_handle()),
            None => watch.abort(),
        }
        Ok(())
    }

    /// Removes a client, if it is subscribed.
    pub fn remove(&self, name: &str) {
        let client = self.clients().remove(name);
        drop(client);
    }
}

/// Returns a future that ends when the connection with this unique name has left the bus.
async fn left(
    connection: &Connection,
    name: &str,
) -> fdo::Result<impl Future<Output = ()> + use<>> {
    let rule = MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(BUS)
        .interface(BUS)
        .member("NameOwnerChanged")
        .add_arg(name)
        .build()?;
    let mut changes = MessageStream::for_match_rule(rule, connection, None).await?;
    // It may have left before the rule was set.
    let bus = DBusProxy::new(connection).await?;
    let is_there = bus.name_has_owner(BusName::try_from(name)?).await?;
    Ok(async move {
        // The owner of a unique name changes only once.
        if is_there {
            changes.next().await;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use zbus::Guid;
    use zbus::connection::Builder;

    #[tokio::test]
    async fn a_client_counts_once_until_it_unsubscribes() {
        let (theirs, ours) = UnixStream::pair().unwrap();
        let bus = Builder::unix_stream(theirs).server(Guid::generate()).p2p();
        let us = Builder::unix_stream(ours).p2p();
        let (bus, _us) = tokio::join!(bus.build(), us.build());
        let bus = bus.unwrap();
        let all = Subscribers::default();
        assert!(all.is_empty());
        for _ in 0..2 {
            all.add(&bus, ":1.7", Claim::default()).await.unwrap();
        }
        assert_eq!(all.clients().len(), 1);
        all.remove(":1.8");
        assert!(!all.is_empty());
        all.remove(":1.7");
        assert!(all.is_empty());
    }
}
