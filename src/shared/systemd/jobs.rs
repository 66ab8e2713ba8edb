//! Jobs and properties of units, for verbs of the command line that do what systemctl(1) does.
//! systemd decides whether the caller may.

use super::client::unit_path;
use super::error::{explain, name_and_text};
use super::{ErrorKind, LoadedUnit, ManagerError, SystemdClient};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::time::Duration;
use zbus::message::Type;
use zbus::{MessageStream, OwnedObjectPath, OwnedVariant};

pub(super) const JOB_REMOVED: &str = "type='signal',sender='org.freedesktop.systemd1',\
    interface='org.freedesktop.systemd1.Manager',member='JobRemoved'";
/// The error of CleanUnit for a unit without state.
const NOTHING_TO_CLEAN: &str = "org.freedesktop.systemd1.NothingToClean";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// StartUnit.
    Start,
    /// StopUnit.
    Stop,
    /// RestartUnit.
    Restart,
}

impl Job {
    fn method(self) -> (&'static str, &'static str) {
        match self {
            Job::Start => ("StartUnit", "start unit"),
            Job::Stop => ("StopUnit", "stop unit"),
            Job::Restart => ("RestartUnit", "restart unit"),
        }
    }
}

/// A job that did not end as `done`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoneJob {
    pub unit: String,
    /// `failed`, `timeout`, `canceled`, `dependency` …
    pub result: String,
}

/// The properties of a service or a timer, and of the unit that it is.
#[derive(Debug, Default)]
pub struct Properties(HashMap<String, OwnedVariant>);

impl Properties {
    /// Returns a text property; an empty text if there is no such property.
    pub fn text(&self, name: &str) -> String {
        let value = self.0.get(name).and_then(|v| <&str>::try_from(v).ok());
        value.unwrap_or_default().to_owned()
    }

    /// Returns a property that is a list of texts; an empty list if there is no such property.
    pub fn list(&self, name: &str) -> Vec<String> {
        let value = self.0.get(name).and_then(|value| value.try_clone().ok());
        value.and_then(|value| Vec::<String>::try_from(value).ok()).unwrap_or_default()
    }

    /// Returns the time from a timer's start to its first elapse (OnActiveSec=).
    pub fn first_elapse(&self) -> Option<Duration> {
        let value = self.0.get("TimersMonotonic")?.try_clone().ok()?;
        let timers = Vec::<(String, u64, u64)>::try_from(value).ok()?;
        let first = timers.iter().find(|(base, ..)| base == "OnActiveUSec");
        first.map(|(_, usec, _)| Duration::from_micros(*usec))
    }

    /// Returns a number; 0 if there is no such property or if it is not set.
    pub fn number(&self, name: &str) -> u64 {
        let value = self.0.get(name);
        let wide = value.and_then(|v| u64::try_from(v).ok());
        let narrow = || value.and_then(|v| u32::try_from(v).ok()).map(u64::from);
        wide.or_else(narrow).filter(|n| *n != u64::MAX).unwrap_or(0)
    }
}

impl SystemdClient {
    /// Connects and subscribes to signals, for callers that wait for jobs or changes.
    pub async fn subscribed(user: bool) -> Result<SystemdClient, ManagerError> {
        let client = SystemdClient::connect(user).await?;
        client.subscribe().await?;
        Ok(client)
    }

    /// Returns the loaded units whose names match one of the patterns.
    pub async fn loaded(&self, patterns: &[String]) -> Result<Vec<LoadedUnit>, ManagerError> {
        let fail = |error: zbus::Error| explain("list units", &patterns.join(" "), &error);
        let rows = self.list(patterns).await.map_err(fail)?;
        let loaded = rows.into_iter().map(|row| LoadedUnit { name: row.0, active_state: row.3 });
        Ok(loaded.collect())
    }

    /// Reads a service; the LoadState= of a service that does not exist is `not-found`.
    pub async fn service(&self, unit: &str) -> Result<Properties, ManagerError> {
        self.all_properties(unit, "org.freedesktop.systemd1.Service").await
    }

    /// Reads a timer; the LoadState= of a timer that does not exist is `not-found`.
    pub async fn timer(&self, unit: &str) -> Result<Properties, ManagerError> {
        self.all_properties(unit, "org.freedesktop.systemd1.Timer").await
    }

    async fn all_properties(&self, unit: &str, kind: &str) -> Result<Properties, ManagerError> {
        let fail = |error: zbus::Error| explain("read unit", unit, &error);
        let mut all = HashMap::new();
        for interface in ["org.freedesktop.systemd1.Unit", kind] {
            let reply = self.unit_properties(unit, interface).await.map_err(fail)?;
            let body = reply.body();
            let some: HashMap<String, OwnedVariant> = body.deserialize().map_err(fail)?;
            all.extend(some);
        }
        Ok(Properties(all))
    }

    /// Queues a job for each of `units` and, with `wait`, waits for the end of all jobs; systemd
    /// limits how long each takes. Returns the jobs that did not end as `done` or `skipped`.
    /// Stopping a unit that is not loaded is not an error.
    pub async fn run(
        &self,
        job: Job,
        units: &[String],
        wait: bool,
    ) -> Result<Vec<UndoneJob>, ManagerError> {
        let mut ends = self.ends_of_jobs().await?;
        let (method, verb) = job.method();
        let mut open = HashMap::new();
        let mut undone = Vec::new();
        for unit in units {
            match self.call(method, &(unit.as_str(), "replace")).await {
                Ok(reply) => {
                    let path = reply
                        .body()
                        .deserialize::<OwnedObjectPath>()
                        .map_err(|error| explain(verb, unit, &error))?;
                    open.insert(path, unit.clone());
                }
                Err(error) => match explain(verb, unit, &error) {
                    error if job == Job::Stop && error.kind == ErrorKind::NoSuchUnit => {}
                    error => return Err(error),
                },
            }
        }
        while wait && !open.is_empty() {
            let message = match ends.next().await {
                Some(Ok(message)) => message,
                Some(Err(error)) => return Err(explain("wait for", "systemd", &error)),
                None => {
                    let gone = zbus::Error::Failure("the connection was closed".to_owned());
                    return Err(explain("wait for", "systemd", &gone));
                }
            };
            if let Some((path, result)) = end_of_job(&message)
                && let Some(unit) = open.remove(&path)
                && !matches!(result.as_str(), "done" | "skipped")
            {
                undone.push(UndoneJob { unit, result });
            }
        }
        Ok(undone)
    }

    /// Returns the signals about ended jobs. Call it before the first job is queued, so that no
    /// signal is missed.
    async fn ends_of_jobs(&self) -> Result<MessageStream, ManagerError> {
        let fail = |error: zbus::Error| explain("watch", "systemd's jobs", &error);
        let queue = NonZeroUsize::new(4096);
        let stream = MessageStream::for_match_rule(JOB_REMOVED, self.connection(), queue).await;
        stream.map_err(fail)
    }

    /// Deletes the state of a unit that does not run, such as the time at which a timer elapsed
    /// last. A unit without state is not an error.
    pub async fn clean(&self, unit: &str) -> Result<(), ManagerError> {
        match self.call("CleanUnit", &(unit, ["state"].as_slice())).await {
            Ok(_) => Ok(()),
            Err(error) if name_and_text(&error).0 == NOTHING_TO_CLEAN => Ok(()),
            Err(error) => match explain("clean unit", unit, &error) {
                error if error.kind == ErrorKind::NoSuchUnit => Ok(()),
                error => Err(error),
            },
        }
    }

    pub async fn reload(&self) -> Result<(), ManagerError> {
        let reloaded = self.call("Reload", &()).await;
        reloaded.map(drop).map_err(|error| explain("reload", "systemd", &error))
    }

    /// Returns the signals about changes of a unit's properties. The caller reads the unit after a
    /// signal.
    pub async fn changes(&self, unit: &str) -> Result<MessageStream, ManagerError> {
        let fail = |error: zbus::Error| explain("watch unit", unit, &error);
        let rule = format!(
            "type='signal',sender='org.freedesktop.systemd1',path='{}',\
             interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'",
            unit_path(unit)
        );
        let stream =
            MessageStream::for_match_rule(rule.as_str(), self.connection(), NonZeroUsize::new(64))
                .await;
        stream.map_err(fail)
    }
}

pub(super) fn end_of_job(message: &zbus::Message) -> Option<(OwnedObjectPath, String)> {
    let header = message.header();
    let is_end = header.message_type() == Type::Signal
        && header.member().is_some_and(|member| *member == "JobRemoved");
    let body = message.body();
    let (_, path, _, result): (u32, OwnedObjectPath, String, String) =
        is_end.then(|| body.deserialize().ok()).flatten()?;
    Some((path, result))
}
