//! The connection to the service manager, and the calls that the orchestrator and the command line
//! both make.

use super::error::explain;
use super::{ErrorKind, ManagerError, reading};
use crate::connection::builder;
use std::sync::Arc;
use tokio::sync::Semaphore;
use zbus::connection::Builder;
use zbus::{Connection, Message, OwnedVariant};

const SYSTEMD_PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
pub(super) const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
pub(super) const SYSTEMD: &str = "org.freedesktop.systemd1";

/// Calls that wait for their answer at the same time; further calls wait for these. The bus refuses
/// calls beyond 128 of one connection (`max_replies_per_connection`, dbus-daemon(1)).
const CALLS_MAX: usize = 64;
/// Why a guarded call was not made.
const DISPLACED: &str = "another orchestrator is active on this data directory";

/// Whether the caller may still change anything.
pub type Guard = Arc<dyn Fn() -> bool + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    Main,
    /// All processes in the cgroup.
    All,
}

impl Whom {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Whom::Main => "main",
            Whom::All => "all",
        }
    }
}

/// A connection to the service manager. Clones share it.
#[derive(Clone)]
pub struct SystemdClient {
    connection: Connection,
    calls: Arc<Semaphore>,
    guard: Option<Guard>,
}

impl SystemdClient {
    /// Connects over the system bus, or for `user` over the session bus to a user's own manager.
    /// Signals do not arrive before [`SystemdClient::subscribe`].
    pub async fn connect(user: bool) -> Result<SystemdClient, ManagerError> {
        SystemdClient::over(builder(user)).await
    }

    /// Connects in another way.
    pub(super) async fn over(builder: Builder<'_>) -> Result<SystemdClient, ManagerError> {
        let connection = builder.build().await;
        let connection =
            connection.map_err(|error| explain("connect to", "the service manager", &error))?;
        Ok(SystemdClient::on(connection))
    }

    /// Uses a connection to the bus that is there already.
    pub(super) fn on(connection: Connection) -> SystemdClient {
        SystemdClient { connection, calls: Arc::new(Semaphore::new(CALLS_MAX)), guard: None }
    }

    /// Asks `guard` right before every call that changes something, and fails the call if it
    /// returns false.
    pub(super) fn guarded_by(self, guard: Guard) -> SystemdClient {
        let guard = Some(guard);
        SystemdClient { guard, ..self }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Subscribes to signals: systemd emits those of units and jobs only for subscribers.
    pub async fn subscribe(&self) -> Result<(), ManagerError> {
        let subscribed = self.call("Subscribe", &()).await;
        subscribed.map(drop).map_err(|error| explain("subscribe to", "systemd", &error))
    }

    pub(super) async fn call<B>(&self, method: &'static str, body: &B) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        self.call_at(SYSTEMD_PATH, MANAGER, method, body).await
    }

    /// Calls a method of any object.
    pub(super) async fn call_at<B>(
        &self,
        path: &str,
        interface: &'static str,
        method: &'static str,
        body: &B,
    ) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let _permit = self.calls.acquire().await;
        let changes = !matches!(
            method,
            "Subscribe" | "ListUnitsByNames" | "ListUnitsByPatterns" | "Get" | "GetAll"
        );
        if changes && self.guard.as_ref().is_some_and(|may| !may()) {
            return Err(zbus::Error::Failure(DISPLACED.to_owned()));
        }
        self.connection.call_method(Some(SYSTEMD), path, Some(interface), method, body).await
    }

    pub(super) async fn unit_property(
        &self,
        unit: &str,
        interface: &str,
        name: &str,
    ) -> zbus::Result<OwnedVariant> {
        let (path, body) = (unit_path(unit), (interface, name));
        let reply = self.call_at(&path, PROPERTIES, "Get", &body).await?;
        reply.body().deserialize()
    }

    /// Reads all properties of an interface of a unit, unparsed.
    pub(super) async fn unit_properties(
        &self,
        unit: &str,
        interface: &str,
    ) -> zbus::Result<Message> {
        self.call_at(&unit_path(unit), PROPERTIES, "GetAll", &interface).await
    }

    pub(super) async fn manager_property(&self, name: &str) -> zbus::Result<String> {
        let body = (MANAGER, name);
        let reply = self.call_at(SYSTEMD_PATH, PROPERTIES, "Get", &body).await?;
        let value: OwnedVariant = reply.body().deserialize()?;
        String::try_from(value)
    }

    /// Lists the loaded units whose names match one of `patterns`.
    pub(super) async fn list(&self, patterns: &[String]) -> zbus::Result<Vec<reading::Row>> {
        let states: Vec<String> = Vec::new();
        let reply = self.call("ListUnitsByPatterns", &(states, patterns)).await?;
        reply.body().deserialize()
    }

    /// Sends a signal to processes of a unit. A unit without processes is not an error.
    pub async fn kill(&self, unit: &str, whom: Whom, signal: i32) -> Result<(), ManagerError> {
        let body = (unit, whom.as_str(), signal);
        killed(unit, self.call("KillUnit", &body).await)
    }

    /// Resets the failed state and the start counter of a unit. A unit that is not loaded is not an
    /// error.
    pub async fn reset_failed(&self, unit: &str) -> Result<(), ManagerError> {
        gone_is_fine("reset unit", unit, self.call("ResetFailedUnit", &unit).await)
    }
}

/// Turns the errors for a unit without processes into a success.
pub(super) fn killed(unit: &str, result: zbus::Result<Message>) -> Result<(), ManagerError> {
    match result.map_err(|error| explain("signal unit", unit, &error)) {
        Err(error)
            if error.kind == ErrorKind::NoSuchUnit || error.why.contains("No such process") =>
        {
            Ok(())
        }
        other => other.map(drop),
    }
}

/// Turns the error for a unit that is not loaded into a success.
pub(super) fn gone_is_fine(
    verb: &'static str,
    unit: &str,
    result: zbus::Result<Message>,
) -> Result<(), ManagerError> {
    match result.map_err(|error| explain(verb, unit, &error)) {
        Err(error) if error.kind == ErrorKind::NoSuchUnit => Ok(()),
        other => other.map(drop),
    }
}

/// Returns the path of a unit's object: all bytes but `[A-Za-z0-9]` become `_xx`
/// (sd_bus_path_encode(3)).
pub(super) fn unit_path(unit: &str) -> String {
    use std::fmt::Write;
    let mut path = String::from("/org/freedesktop/systemd1/unit/");
    for (place, byte) in unit.bytes().enumerate() {
        if byte.is_ascii_alphabetic() || (byte.is_ascii_digit() && place > 0) {
            path.push(char::from(byte));
        } else {
            let _ = write!(path, "_{byte:02x}");
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_paths_are_encoded_as_systemd_does() {
        assert_eq!(
            unit_path("archivist-hook-wget-s3.service"),
            "/org/freedesktop/systemd1/unit/archivist_2dhook_2dwget_2ds3_2eservice"
        );
    }
}
