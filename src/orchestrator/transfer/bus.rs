//! The interface for the store.

use crate::main_loop::bus_context::{BusContext, known, owner};
use crate::transfer::StoreCall;
use archivist_core::model::Owner;
use archivist_shared::bus::callers::Kind;
use zbus::message::Header;
use zbus::{Connection, fdo, interface};

pub(crate) struct StoreBus(pub BusContext);

#[interface(name = "org.archivist1.Store")]
impl StoreBus {
    async fn fetch(
        &self,
        id: &str,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let Owner::Snapshot(id) = owner(id)? else {
            return Err(fdo::Error::InvalidArgs(format!("'{id}' is not a snapshot")));
        };
        let (_, _claim) = self.0.claim(connection, &header, Kind::Call).await?;
        self.0.ask(StoreCall::Fetch { id }).await
    }

    async fn test(
        &self,
        #[zbus(connection)] connection: &Connection,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<String> {
        let (user, _claim) = self.0.claim(connection, &header, Kind::Call).await?;
        self.0.ask(StoreCall::Test { user: known(user)? }).await
    }
}
