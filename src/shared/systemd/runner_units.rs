//! The units of orchestrators: whether systemd restarts this one, and the end of another one.

use super::error::explain;
use super::{ManagerError, SystemdClient, Whom};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restarting {
    /// It will restart the service.
    pub will: bool,
    /// It started this process by a restart.
    pub did: bool,
}

/// Reads whether systemd restarts the service that this process is in.
pub async fn restarting(user: bool, unit: &str) -> Result<Restarting, ManagerError> {
    const SERVICE: &str = "org.freedesktop.systemd1.Service";
    let fail = |error: zbus::Error| explain("read unit", unit, &error);
    let client = SystemdClient::connect(user).await?;
    let get = |name| client.unit_property(unit, SERVICE, name);
    let policy = get("Restart").await.map_err(fail)?;
    let count = get("NRestarts").await.map_err(fail)?;
    let policy = String::try_from(policy).unwrap_or_default();
    Ok(Restarting {
        will: policy == "always" || policy == "on-failure",
        did: u32::try_from(count).unwrap_or(0) > 0,
    })
}

/// Sends SIGKILL to all processes in the cgroup of a unit.
pub async fn kill_all(user: bool, unit: &str) -> Result<(), ManagerError> {
    const SIGKILL: i32 = 9;
    let client = SystemdClient::connect(user).await?;
    client.kill(unit, Whom::All, SIGKILL).await
}
