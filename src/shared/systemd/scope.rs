//! Scopes around processes that systemd did not start (systemd.scope(5)).

use super::{MANAGER, MANAGER_PATH, ManagerError, SYSTEMD, explain};
use zbus::Variant;
use zbus::connection::Builder;

/// Moves a process of the caller into a new scope, which goes away with the last process in it; 0
/// stands for the caller itself, whatever its PID namespace.
pub async fn enter_scope(
    user: bool,
    name: &str,
    slice: &str,
    pid: u32,
) -> Result<(), ManagerError> {
    let builder = if user {
        Builder::session()
    } else {
        Builder::system()
    };
    let fail = |error: zbus::Error| explain("start unit", name, &error);
    let connection = builder.build().await.map_err(fail)?;
    let properties: Vec<(&str, Variant<'_>)> = vec![
        ("Description", Variant::from("archivist run".to_owned())),
        ("Slice", Variant::from(slice.to_owned())),
        ("PIDs", Variant::from(vec![pid])),
        (
            "CollectMode",
            Variant::from("inactive-or-failed".to_owned()),
        ),
    ];
    let auxiliary: Vec<(String, Vec<(String, Variant<'_>)>)> = Vec::new();
    connection
        .call_method(
            Some(SYSTEMD),
            MANAGER_PATH,
            Some(MANAGER),
            "StartTransientUnit",
            &(name, "fail", properties, auxiliary),
        )
        .await
        .map(drop)
        .map_err(fail)
}
