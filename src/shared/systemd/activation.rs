//! Has the bus start a service, and stops waiting for its name once the start has failed: the bus
//! itself does not notice that a unit failed, and waits for 25 s.

use super::jobs::{JOB_REMOVED, end_of_job};
use super::{SystemdClient, reading};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use std::time::Duration;
use zbus::fdo::DBusProxy;
use zbus::names::{BusName, WellKnownName};
use zbus::{Connection, MessageStream};

const UNIT: &str = "org.freedesktop.systemd1.Unit";
const SERVICE: &str = "org.freedesktop.systemd1.Service";

/// How long it takes at most until a start by the bus is a job of systemd.
const QUEUE_TIME: Duration = Duration::from_secs(1);

/// Starts `unit` by way of the bus and waits until it owns `name`.
pub async fn activate(connection: &Connection, name: &str, unit: &str) -> zbus::Result<()> {
    let bus = DBusProxy::new(connection).await?;
    if bus.name_has_owner(BusName::try_from(name)?).await? {
        return Ok(());
    }
    let rule = format!("{JOB_REMOVED},arg2='{unit}'");
    let jobs = MessageStream::for_match_rule(rule.as_str(), connection, None).await?;
    // Without systemd only the bus can report the failure.
    let systemd = SystemdClient::on(connection.clone());
    let subscribed = systemd.subscribe().await;
    let start = bus.start_service_by_name(WellKnownName::try_from(name)?, 0);
    if subscribed.is_err() {
        return Ok(start.await.map(drop)?);
    }
    let failure = std::pin::pin!(failure(&systemd, unit, jobs));
    match select(std::pin::pin!(start), failure).await {
        Either::Left((started, _)) => Ok(started.map(drop)?),
        Either::Right((why, _)) => {
            let said = status_text(&systemd, unit).await;
            Err(zbus::Error::Failure(not_started(unit, &why, &said)))
        }
    }
}

/// `said`: the STATUS= line of the unit, which the orchestrator sets before it gives up.
fn not_started(unit: &str, why: &str, said: &str) -> String {
    match said {
        "" => format!("{unit} did not start ({why})"),
        said => format!("{unit} did not start: {said}"),
    }
}

/// Returns whether a unit has ended with a failure and is not restarted. False without systemd.
pub async fn has_failed(connection: &Connection, unit: &str) -> bool {
    let systemd = SystemdClient::on(connection.clone());
    text(&systemd, unit, UNIT, "ActiveState").await == "failed"
}

async fn status_text(systemd: &SystemdClient, unit: &str) -> String {
    text(systemd, unit, SERVICE, "StatusText").await
}

/// Returns a text property of a unit; an empty text if it cannot be read.
async fn text(systemd: &SystemdClient, unit: &str, interface: &str, name: &str) -> String {
    let value = systemd.unit_property(unit, interface, name).await;
    let text = value.ok().and_then(|value| String::try_from(value).ok());
    text.unwrap_or_default()
}

/// Returns why the unit does not start: the result of its first job that did not end as `done`. The
/// bus asks systemd once for all callers that wait. If that start failed before this call, the unit
/// is started again from here.
async fn failure(systemd: &SystemdClient, unit: &str, mut jobs: MessageStream) -> String {
    loop {
        let Ok(message) = tokio::time::timeout(QUEUE_TIME, jobs.next()).await else {
            let start = (unit, "replace");
            if is_idle(systemd, unit).await && systemd.call("StartUnit", &start).await.is_err() {
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

/// Whether the unit is inactive and has no job.
async fn is_idle(systemd: &SystemdClient, unit: &str) -> bool {
    let Ok(listed) = systemd.call("ListUnitsByNames", &vec![unit]).await else {
        return false;
    };
    let rows = listed.body().deserialize::<Vec<reading::Row>>();
    rows.is_ok_and(|rows| rows.iter().any(|row| row.3 != "active" && row.7 == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_that_did_not_start_is_named_with_its_own_reason() {
        let unit = "archivist-orchestrator.service";
        let reason = |said| not_started(unit, "failed", said);
        assert_eq!(reason(""), format!("{unit} did not start (failed)"));
        let said = "'/x' was written by a newer archivist";
        assert_eq!(reason(said), format!("{unit} did not start: {said}"));
    }
}
