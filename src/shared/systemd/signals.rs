//! Having systemd's signals sent to us, and knowing who systemd is.

use super::hints::{MATCH_RULES, Senders};
use super::{Manager, ManagerError, SYSTEMD, explain};
use zbus::fdo::{self, DBusProxy};

impl Manager {
    /// Whose signals are believed. A name that moves after this is heard of.
    pub(super) async fn senders(&self) -> Result<Senders, ManagerError> {
        if !self.connection.is_bus() {
            return Ok(Senders::Peer);
        }
        let fail = |error: zbus::Error| explain("find", SYSTEMD, &error);
        let bus = DBusProxy::new(&self.connection).await.map_err(fail)?;
        let name = SYSTEMD
            .try_into()
            .map_err(|error: zbus::Error| fail(error))?;
        match bus.get_name_owner(name).await {
            Ok(owner) => Ok(Senders::Bus {
                systemd: Some(owner.to_string()),
            }),
            Err(fdo::Error::NameHasNoOwner(_)) => Ok(Senders::Bus { systemd: None }),
            Err(error) => Err(fail(error.into())),
        }
    }

    /// Has the bus pass systemd's signals on.
    pub(super) async fn watch(&self) -> Result<(), ManagerError> {
        if self.connection.is_bus() {
            for rule in MATCH_RULES {
                self.connection
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

    /// PID 1 emits unit and job signals only after a client has subscribed.
    pub(super) async fn subscribe(&self) -> Result<(), ManagerError> {
        self.call("Subscribe", &())
            .await
            .map_err(|e| explain("subscribe to", "systemd", &e))?;
        Ok(())
    }
}
