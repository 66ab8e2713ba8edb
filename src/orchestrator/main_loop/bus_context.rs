//! What the interfaces of the bus share: the queue of the loop, and who calls.

use crate::bus::call::FromAnswer;
use crate::bus::limits::invalid;
use crate::main_loop::order::{Calls, Order};
use archivist_core::model::Owner;
use archivist_shared::bus::callers::{Callers, Claim, Kind, User, user};
use zbus::message::Header;
use zbus::{Connection, fdo};

#[derive(Clone)]
pub struct BusContext {
    pub calls: Calls,
    pub callers: Callers,
}

impl BusContext {
    /// Sends an order to the loop and waits for the answer.
    pub async fn ask<T: FromAnswer>(&self, order: impl Order) -> fdo::Result<T> {
        Ok(self.calls.ask(order).await?)
    }

    /// Counts a resource of the orchestrator that this call holds, for its user.
    pub async fn claim(
        &self,
        connection: &Connection,
        header: &Header<'_>,
        kind: Kind,
    ) -> fdo::Result<(User, Claim)> {
        let user = user(connection, header).await?;
        Ok((user, self.callers.claim(user, kind)?))
    }
}

/// Returns the user id of the caller, as the bus reports it.
pub async fn caller(connection: &Connection, header: &Header<'_>) -> fdo::Result<u32> {
    known(user(connection, header).await?)
}

pub fn known(user: User) -> fdo::Result<u32> {
    let unknown = || fdo::Error::AccessDenied("failed to find the user of this call".to_owned());
    user.ok_or_else(unknown)
}

pub fn owner(id: &str) -> fdo::Result<Owner> {
    id.parse().map_err(invalid)
}
