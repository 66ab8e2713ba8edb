//! Having the bus start a service, and not waiting for its name longer than there is hope: the bus
//! itself does not hear that a unit failed, and waits to the end of a time limit of 25 s.

use super::jobs::{JOB_REMOVED, end_of_job};
use super::{MANAGER, MANAGER_PATH, SYSTEMD, reading};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use std::time::Duration;
use zbus::fdo::DBusProxy;
use zbus::names::{BusName, WellKnownName};
use zbus::{Connection, Message, MessageStream};

/// How long a start that the bus was asked for takes to become a job of systemd, at the most.
const QUEUED: Duration = Duration::from_secs(1);

/// Waits until somebody owns `name`, which the bus has `unit` do.
pub async fn activate(connection: &Connection, name: &str, unit: &str) -> zbus::Result<()> {
    let bus = DBusProxy::new(connection).await?;
    if bus.name_has_owner(BusName::try_from(name)?).await? {
        return Ok(());
    }
    let rule = format!("{JOB_REMOVED},arg2='{unit}'");
    let jobs = MessageStream::for_match_rule(rule.as_str(), connection, None).await?;
    // Without systemd there is nobody else to say that it failed.
    let subscribed = call(connection, "Subscribe", &()).await;
    let start = bus.start_service_by_name(WellKnownName::try_from(name)?, 0);
    if subscribed.is_err() {
        return Ok(start.await.map(drop)?);
    }
    let failure = std::pin::pin!(failure(connection, unit, jobs));
    match select(std::pin::pin!(start), failure).await {
        Either::Left((started, _)) => Ok(started.map(drop)?),
        Either::Right((why, _)) => {
            let error = format!("{unit} did not start ({why})");
            Err(zbus::Error::Failure(error))
        }
    }
}

/// Why the unit will not come: how the first of these jobs ended that was not done. The bus asks
/// systemd once, whoever else calls while it waits. Where that start has failed already, systemd is
/// asked here, by whom it listens to.
async fn failure(connection: &Connection, unit: &str, mut jobs: MessageStream) -> String {
    loop {
        let Ok(message) = tokio::time::timeout(QUEUED, jobs.next()).await else {
            let start = (unit, "replace");
            if is_idle(connection, unit).await
                && call(connection, "StartUnit", &start).await.is_err()
            {
                return "it failed before; try again in half a minute".to_owned();
            }
            continue;
        };
        let Some(Ok(message)) = message else {
            return std::future::pending().await;
        };
        match end_of_job(&message) {
            Some((_, result)) if result != "done" => return result,
            _ => {}
        }
    }
}

/// Whether the unit does not run, and no job of it is under way.
async fn is_idle(connection: &Connection, unit: &str) -> bool {
    let Ok(listed) = call(connection, "ListUnitsByNames", &vec![unit]).await else {
        return false;
    };
    let rows = listed.body().deserialize::<Vec<reading::Row>>();
    rows.is_ok_and(|rows| rows.iter().any(|row| row.3 != "active" && row.7 == 0))
}

async fn call<B>(connection: &Connection, method: &str, body: &B) -> zbus::Result<Message>
where
    B: serde::Serialize + zbus::DynamicType,
{
    connection
        .call_method(Some(SYSTEMD), MANAGER_PATH, Some(MANAGER), method, body)
        .await
}
