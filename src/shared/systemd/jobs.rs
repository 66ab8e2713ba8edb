//! What systemctl(1) does for people, for verbs that talk to systemd themselves: look at units,
//! have them started and stopped, and wait for it. Whether the caller may, systemd decides.

use super::{
    ErrorKind, MANAGER, MANAGER_PATH, ManagerError, PROPERTIES, SYSTEMD, explain, reading,
    unit_path,
};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::time::Duration;
use zbus::connection::Builder;
use zbus::message::Type;
use zbus::{Connection, MessageStream, OwnedObjectPath, OwnedVariant};

pub(super) const JOB_REMOVED: &str = "type='signal',sender='org.freedesktop.systemd1',\
    interface='org.freedesktop.systemd1.Manager',member='JobRemoved'";
/// The answer to CleanUnit for a unit of which nothing is kept.
const NOTHING_TO_CLEAN: &str = "org.freedesktop.systemd1.NothingToClean";

/// What is to become of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    Start,
    Stop,
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
pub struct Undone {
    pub unit: String,
    /// `failed`, `timeout`, `canceled`, `dependency` …
    pub result: String,
}

/// A unit that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub name: String,
    pub active_state: String,
}

/// The properties of a service or a timer, and of the unit that it is.
#[derive(Debug, Default)]
pub struct Properties(HashMap<String, OwnedVariant>);

impl Properties {
    pub fn text(&self, name: &str) -> String {
        let value = self.0.get(name).and_then(|v| <&str>::try_from(v).ok());
        value.unwrap_or_default().to_owned()
    }

    pub fn list(&self, name: &str) -> Vec<String> {
        let value = self.0.get(name).and_then(|value| value.try_clone().ok());
        value
            .and_then(|value| Vec::<String>::try_from(value).ok())
            .unwrap_or_default()
    }

    /// The time from a timer's start to its first elapse (OnActiveSec=).
    pub fn first_elapse(&self) -> Option<Duration> {
        let timers = self.0.get("TimersMonotonic")?.try_clone().ok()?;
        let timers = Vec::<(String, u64, u64)>::try_from(timers).ok()?;
        let first = timers.iter().find(|(base, ..)| base == "OnActiveUSec");
        first.map(|(_, usec, _)| Duration::from_micros(*usec))
    }

    /// 0 for what is not there or not set.
    pub fn number(&self, name: &str) -> u64 {
        let value = self.0.get(name);
        let wide = value.and_then(|v| u64::try_from(v).ok());
        let narrow = || value.and_then(|v| u32::try_from(v).ok()).map(u64::from);
        wide.or_else(narrow).filter(|n| *n != u64::MAX).unwrap_or(0)
    }
}

/// A connection to the service manager on behalf of somebody who waits at a terminal.
pub struct Systemd {
    connection: Connection,
}

impl Systemd {
    pub async fn connect(user: bool) -> Result<Systemd, ManagerError> {
        let builder = if user {
            Builder::session()
        } else {
            Builder::system()
        };
        let connection = builder.build().await;
        let connection =
            connection.map_err(|error| explain("connect to", "the service manager", &error))?;
        let systemd = Systemd { connection };
        // Without it there are no signals.
        let subscribed = systemd.call("Subscribe", &()).await;
        subscribed.map_err(|error| explain("subscribe to", "systemd", &error))?;
        Ok(systemd)
    }

    async fn call<B>(&self, method: &'static str, body: &B) -> zbus::Result<zbus::Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        self.connection
            .call_method(Some(SYSTEMD), MANAGER_PATH, Some(MANAGER), method, body)
            .await
    }

    /// The loaded units whose names match one of the patterns.
    pub async fn loaded(&self, patterns: &[String]) -> Result<Vec<Loaded>, ManagerError> {
        let fail = |error: zbus::Error| explain("list units", &patterns.join(" "), &error);
        let states: Vec<String> = Vec::new();
        let reply = self.call("ListUnitsByPatterns", &(states, patterns)).await;
        let rows: Vec<reading::Row> = reply.map_err(fail)?.body().deserialize().map_err(fail)?;
        let loaded = rows.into_iter().map(|row| Loaded {
            name: row.0,
            active_state: row.3,
        });
        Ok(loaded.collect())
    }

    /// Reads a service; one that is not there has a LoadState= of `not-found`.
    pub async fn service(&self, unit: &str) -> Result<Properties, ManagerError> {
        self.read(unit, "org.freedesktop.systemd1.Service").await
    }

    /// Reads a timer, in the same way.
    pub async fn timer(&self, unit: &str) -> Result<Properties, ManagerError> {
        self.read(unit, "org.freedesktop.systemd1.Timer").await
    }

    async fn read(&self, unit: &str, kind: &str) -> Result<Properties, ManagerError> {
        let fail = |error: zbus::Error| explain("read unit", unit, &error);
        let path = unit_path(unit);
        let mut all = HashMap::new();
        for interface in ["org.freedesktop.systemd1.Unit", kind] {
            let call = self.connection.call_method(
                Some(SYSTEMD),
                path.as_str(),
                Some(PROPERTIES),
                "GetAll",
                &interface,
            );
            let reply = call.await.map_err(fail)?;
            let body = reply.body();
            let some: HashMap<String, OwnedVariant> = body.deserialize().map_err(fail)?;
            all.extend(some);
        }
        Ok(Properties(all))
    }

    /// Queues the job for all `units` at once, and waits for the end of all of them if that is
    /// wanted; systemd limits how long each may take. The answer is what came to another end. A unit
    /// that is not there is one that need not be stopped.
    pub async fn run(
        &self,
        job: Job,
        units: &[String],
        wait: bool,
    ) -> Result<Vec<Undone>, ManagerError> {
        let mut ends = self.ends_of_jobs().await?;
        let (method, verb) = job.method();
        let mut open = HashMap::new();
        let mut undone = Vec::new();
        for unit in units {
            match self.call(method, &(unit.as_str(), "replace")).await {
                Ok(reply) => {
                    let path = reply.body().deserialize::<OwnedObjectPath>();
                    let path = path.map_err(|error| explain(verb, unit, &error))?;
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
                undone.push(Undone { unit, result });
            }
        }
        Ok(undone)
    }

    /// Subscribed before the first job is queued, so that no end is missed.
    async fn ends_of_jobs(&self) -> Result<MessageStream, ManagerError> {
        let fail = |error: zbus::Error| explain("watch", "systemd's jobs", &error);
        let queue = NonZeroUsize::new(4096);
        let stream = MessageStream::for_match_rule(JOB_REMOVED, &self.connection, queue).await;
        stream.map_err(fail)
    }

    /// Sends a signal to every process of a unit. One without any is not an error.
    pub async fn kill(&self, unit: &str, signal: i32) -> Result<(), ManagerError> {
        match self.call("KillUnit", &(unit, "all", signal)).await {
            Ok(_) => Ok(()),
            Err(error) => match explain("signal unit", unit, &error) {
                e if e.kind == ErrorKind::NoSuchUnit || e.why.contains("No such process") => Ok(()),
                e => Err(e),
            },
        }
    }

    /// Forgets that a unit failed, and how often it was started. One that is not loaded is fine.
    pub async fn forget_failure(&self, unit: &str) -> Result<(), ManagerError> {
        match self.call("ResetFailedUnit", &unit).await {
            Ok(_) => Ok(()),
            Err(error) => match explain("reset unit", unit, &error) {
                error if error.kind == ErrorKind::NoSuchUnit => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Deletes what systemd keeps of a unit that does not run, such as the time a timer elapsed last.
    /// One that is not loaded has nothing, nor has a timer that is not persistent.
    pub async fn clean(&self, unit: &str) -> Result<(), ManagerError> {
        match self.call("CleanUnit", &(unit, ["state"].as_slice())).await {
            Ok(_) => Ok(()),
            Err(error) if super::name_and_text(&error).0 == NOTHING_TO_CLEAN => Ok(()),
            Err(error) => match explain("clean unit", unit, &error) {
                error if error.kind == ErrorKind::NoSuchUnit => Ok(()),
                error => Err(error),
            },
        }
    }

    /// Has systemd read its units anew, with those that generators make.
    pub async fn reload(&self) -> Result<(), ManagerError> {
        let reloaded = self.call("Reload", &()).await;
        reloaded
            .map(drop)
            .map_err(|error| explain("reload", "systemd", &error))
    }

    /// Waits until a property of the service changes; what has changed, the caller reads.
    pub async fn changes(&self, unit: &str) -> Result<MessageStream, ManagerError> {
        let fail = |error: zbus::Error| explain("watch unit", unit, &error);
        let rule = format!(
            "type='signal',sender='org.freedesktop.systemd1',path='{}',\
             interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'",
            unit_path(unit)
        );
        let stream =
            MessageStream::for_match_rule(rule.as_str(), &self.connection, NonZeroUsize::new(64))
                .await;
        stream.map_err(fail)
    }
}

pub(super) fn end_of_job(message: &zbus::Message) -> Option<(OwnedObjectPath, String)> {
    let header = message.header();
    let is_end = header.message_type() == Type::Signal
        && header
            .member()
            .is_some_and(|member| *member == "JobRemoved");
    let body = message.body();
    let (_, path, _, result): (u32, OwnedObjectPath, String, String) =
        is_end.then(|| body.deserialize().ok()).flatten()?;
    Some((path, result))
}
