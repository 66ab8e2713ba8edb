//! The units of runners: what systemd makes of our own, and the end of another's.

use super::{MANAGER, MANAGER_PATH, ManagerError, PROPERTIES, SYSTEMD, explain, unit_path};
use zbus::connection::Builder;
use zbus::{Connection, OwnedVariant};

/// What systemd does about the end of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restarting {
    /// It starts the service again.
    pub will: bool,
    /// It has done so before this process.
    pub did: bool,
}

async fn connect(user: bool) -> zbus::Result<Connection> {
    if user {
        Builder::session().build().await
    } else {
        Builder::system().build().await
    }
}

/// Asks about the service that this process is in.
pub async fn restarting(user: bool, unit: &str) -> Result<Restarting, ManagerError> {
    let fail = |error: zbus::Error| explain("read unit", unit, &error);
    let connection = connect(user).await.map_err(fail)?;
    let get = async |name: &'static str| -> zbus::Result<OwnedVariant> {
        let body = ("org.freedesktop.systemd1.Service", name);
        let path = unit_path(unit);
        let reply = connection.call_method(Some(SYSTEMD), path, Some(PROPERTIES), "Get", &body);
        reply.await?.body().deserialize()
    };
    let how = get("Restart").await.map_err(fail)?;
    let count = get("NRestarts").await.map_err(fail)?;
    let how = String::try_from(how).unwrap_or_default();
    Ok(Restarting {
        will: how == "always" || how == "on-failure",
        did: u32::try_from(count).unwrap_or(0) > 0,
    })
}

/// Sends SIGKILL to everything in the cgroup of a unit.
pub async fn kill_all(user: bool, unit: &str) -> Result<(), ManagerError> {
    const SIGKILL: i32 = 9;
    let fail = |error: zbus::Error| explain("kill unit", unit, &error);
    let connection = connect(user).await.map_err(fail)?;
    let body = (unit, "all", SIGKILL);
    let call = connection.call_method(
        Some(SYSTEMD),
        MANAGER_PATH,
        Some(MANAGER),
        "KillUnit",
        &body,
    );
    call.await.map(drop).map_err(fail)
}
