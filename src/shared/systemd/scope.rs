//! Creates scopes around processes that systemd did not start (systemd.scope(5)).

use super::error::explain;
use super::{ManagerError, SystemdClient};
use zbus::Variant;

/// Moves a process of the caller into a new scope, which ends with the last process in it. `pid` 0
/// is the caller itself, in any PID namespace.
pub async fn enter_scope(
    user: bool,
    name: &str,
    description: &str,
    slice: &str,
    pid: u32,
) -> Result<(), ManagerError> {
    let fail = |error: zbus::Error| explain("start unit", name, &error);
    let client = SystemdClient::connect(user).await?;
    let properties: Vec<(&str, Variant<'_>)> = vec![
        ("Description", Variant::from(description.to_owned())),
        ("Slice", Variant::from(slice.to_owned())),
        ("PIDs", Variant::from(vec![pid])),
        ("CollectMode", Variant::from("inactive-or-failed".to_owned())),
    ];
    let auxiliary: Vec<(String, Vec<(String, Variant<'_>)>)> = Vec::new();
    let body = (name, "fail", properties, auxiliary);
    let started = client.call("StartTransientUnit", &body).await;
    started.map(drop).map_err(fail)
}
