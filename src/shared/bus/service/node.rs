//! The interface of the fleet service.

use super::limits::invalid;
use super::{Calls, ask};
use crate::bus::call::{Call, NodeCall, Reply};
use crate::bus::callers;
use crate::bus::documents::bounds::DELIVERY_MAX;
use archivist_core::fleet::FLEET_USER;
use nix::unistd::User;
use std::sync::Arc;
use zbus::message::Header;
use zbus::{Connection, fdo, interface};

/// The object, which only the fleet service may call. Its user is looked up with each call, because the
/// package may create it while the orchestrator runs.
pub(super) struct Node {
    pub(super) calls: Calls,
    /// Whether it is served on the bus of a user, which has no fleet.
    pub(super) of_user: bool,
}

impl Node {
    async fn require_service(
        &self,
        connection: &Connection,
        header: &Header<'_>,
    ) -> fdo::Result<()> {
        let service = self.service();
        let why = "only the fleet service calls this interface";
        callers::require(connection, header, |user| service == Some(user), why).await
    }

    async fn call<T>(&self, make: impl FnOnce(Reply<T>) -> NodeCall) -> fdo::Result<T> {
        ask(&self.calls, |reply| Call::Node(make(reply))).await
    }

    /// Returns the user id of the fleet service, if there is one.
    fn service(&self) -> Option<u32> {
        if self.of_user {
            return None;
        }
        let user = User::from_name(FLEET_USER).ok().flatten();
        user.map(|user| user.uid.as_raw())
    }
}

#[interface(name = "org.archivist1.Node")]
impl Node {
    async fn holdings(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        self.require_service(connection, &header).await?;
        self.call(|reply| NodeCall::Holdings { reply }).await
    }

    async fn deliver(
        &self,
        delivery: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.require_service(connection, &header).await?;
        if delivery.len() > DELIVERY_MAX {
            return Err(invalid(format!(
                "a reply of {} bytes: the limit is {DELIVERY_MAX}",
                delivery.len()
            )));
        }
        let delivery = Arc::new(serde_json::from_str(delivery).map_err(invalid)?);
        self.call(|reply| NodeCall::Deliver { delivery, reply }).await
    }

    async fn stop(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.require_service(connection, &header).await?;
        self.call(|reply| NodeCall::Stop { reply }).await
    }

    async fn leave(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.require_service(connection, &header).await?;
        self.call(|reply| NodeCall::Leave { reply }).await
    }

    #[zbus(name = "Await")]
    async fn wait(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.require_service(connection, &header).await?;
        self.call(|reply| NodeCall::Await { reply }).await
    }
}
