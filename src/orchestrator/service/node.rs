//! The interface of the fleet service.

use crate::bus::limits::invalid;
use crate::main_loop::order::Calls;
use crate::orders::holdings::NodeCall;
use archivist_core::fleet::FLEET_USER;
use archivist_shared::bus::callers;
use archivist_shared::bus::documents::bounds::DELIVERY_MAX;
use nix::unistd::User;
use std::sync::Arc;
use zbus::message::Header;
use zbus::{Connection, fdo, interface};

/// The object, which only the fleet service may call. Its user is looked up with each call, because the
/// package may create it while the orchestrator runs.
pub(super) struct NodeBus {
    pub(super) calls: Calls,
    /// Whether it is served on the bus of a user, which has no fleet.
    pub(super) of_user: bool,
}

impl NodeBus {
    async fn require_service(
        &self,
        connection: &Connection,
        header: &Header<'_>,
    ) -> fdo::Result<()> {
        let service = self.service();
        let why = "only the fleet service calls this interface";
        callers::require(connection, header, |user| service == Some(user), why).await
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
impl NodeBus {
    async fn holdings(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        self.require_service(connection, &header).await?;
        Ok(self.calls.ask(NodeCall::Holdings).await?)
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
        Ok(self.calls.ask(NodeCall::Deliver { delivery }).await?)
    }

    async fn stop(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.require_service(connection, &header).await?;
        Ok(self.calls.ask(NodeCall::Stop).await?)
    }

    async fn leave(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.require_service(connection, &header).await?;
        Ok(self.calls.ask(NodeCall::Leave).await?)
    }

    #[zbus(name = "Await")]
    async fn wait(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.require_service(connection, &header).await?;
        Ok(self.calls.ask(NodeCall::Await).await?)
    }
}
