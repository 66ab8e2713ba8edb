//! Receives systemd's signals, and finds out which connection is systemd's.

use super::client::SYSTEMD;
use super::error::explain;
use super::hint_listener::{MATCH_RULES, Senders};
use super::{ManagerError, SystemdClient};
use zbus::fdo::{self, DBusProxy};

impl SystemdClient {
    /// Returns whose signals are trusted. A later change of the owner of systemd's name is a signal.
    pub(super) async fn senders(&self) -> Result<Senders, ManagerError> {
        if !self.connection().is_bus() {
            return Ok(Senders::Peer);
        }
        let fail = |error: zbus::Error| explain("find", SYSTEMD, &error);
        let bus = DBusProxy::new(self.connection()).await.map_err(fail)?;
        let name = SYSTEMD.try_into().map_err(|error: zbus::Error| fail(error))?;
        match bus.get_name_owner(name).await {
            Ok(owner) => Ok(Senders::Bus { systemd: Some(owner.to_string()) }),
            Err(fdo::Error::NameHasNoOwner(_)) => Ok(Senders::Bus { systemd: None }),
            Err(error) => Err(fail(error.into())),
        }
    }

    /// Has the bus pass systemd's signals on.
    pub(super) async fn add_match_rules(&self) -> Result<(), ManagerError> {
        if self.connection().is_bus() {
            for rule in MATCH_RULES {
                self.connection()
                    .call_method(
                        Some("org.freedesktop.DBus"),
                        "/org/freedesktop/DBus",
                        Some("org.freedesktop.DBus"),
                        "AddMatch",
                        rule,
                    )
                    .await
                    .map_err(|error| explain("watch", "systemd's signals", &error))?;
            }
        }
        Ok(())
    }
}
