//! The seam over systemd's D-Bus interface, in our words: start, read, signal, acknowledge. The
//! traps it steps around are those of org.freedesktop.systemd1(5).

mod activation;
mod dict;
mod hint_queue;
mod hints;
mod jobs;
mod journal_sync;
mod list;
mod own;
mod reading;
mod scope;
mod sealed;
mod signals;
mod traces;
mod variants;

pub use activation::activate;
pub use hint_queue::HintQueue;
pub use hints::Hint;
pub use jobs::{Job, Loaded, Properties, Systemd, Undone};
pub use journal_sync::synchronize_journal;
pub use list::Listed;
pub use own::{Restarting, kill_all, restarting};
pub use scope::enter_scope;
pub use sealed::sealed;
pub use variants::encode;

use archivist_core::model::Reading;
use archivist_core::unit::{Names, UnitSpec, properties};
use hints::Listener;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};
use traces::Traces;
use zbus::connection::Builder;
use zbus::{Connection, DBusError, Message, MessageStream};

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// What systemd signals between two turns of the draining task; zbus stops the whole connection
/// when a queue is full, so it is roomy.
const QUEUE: usize = 16 * 1024;

/// Calls that await their answer at once; the rest waits its turn. The bus refuses those beyond
/// 128 of one connection (`max_replies_per_connection`, dbus-daemon(1)).
const CALLS: usize = 64;
/// What a call comes to once another runner was promoted.
const DISPLACED: &str = "another runner works on this data directory";

/// A call that systemd refused or that did not get through.
#[derive(Clone, Debug, thiserror::Error)]
#[error("failed to {verb} '{object}': {why}")]
pub struct ManagerError {
    pub verb: &'static str,
    pub object: String,
    pub why: String,
    pub kind: ErrorKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A unit of that name is loaded still.
    UnitExists,
    /// There is no such unit (any more).
    NoSuchUnit,
    /// Not while a job of it is under way, or not in the state that it is in.
    Busy,
    /// The connection or the bus failed: nothing is known of whether the call had an effect.
    Unreachable,
    /// Something that it needs is being stopped, such as the whole system.
    GoingDown,
    /// systemd said no.
    Refused,
}

/// Which processes of a unit a signal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    Main,
    All,
}

/// How a finished unit is let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// StopUnit: for one that is active (exited), which also ends what is left in its cgroup.
    Stop,
    /// ResetFailedUnit: for one that failed.
    Reset,
}

impl Release {
    /// The way that fits what was read.
    pub fn for_reading(reading: &Reading) -> Release {
        if reading.active_state == "failed" {
            Release::Reset
        } else {
            Release::Stop
        }
    }
}

/// Whether whoever asks systemd for something may still do so.
pub type Guard = Arc<dyn Fn() -> bool + Send + Sync>;

/// A connection to the service manager.
#[derive(Clone)]
pub struct Manager {
    connection: Connection,
    names: Names,
    calls: Arc<Semaphore>,
    /// Changes when systemd has come back, closes with the connection.
    back: watch::Receiver<()>,
    guard: Option<Guard>,
    /// None of a user's manager, which leaves nothing.
    traces: Option<Traces>,
}

impl Manager {
    /// Connects over the system bus, or the session bus of a user's own manager. Hints go to
    /// `hints` until the connection ends; its end is a hint as well.
    pub async fn connect(
        user: bool,
        names: Names,
        hints: HintQueue,
    ) -> Result<Manager, ManagerError> {
        let builder = if user {
            Builder::session()
        } else {
            Builder::system()
        };
        let traces = (!user).then(|| Traces::new(names.clone()));
        let manager = Manager::over(builder, names, hints).await?;
        Ok(Manager { traces, ..manager })
    }

    /// The same over a connection that is made elsewhere.
    pub async fn over(
        builder: Builder<'static>,
        names: Names,
        hints: HintQueue,
    ) -> Result<Manager, ManagerError> {
        let queue = NonZeroUsize::new(QUEUE).expect("not zero");
        let connection = builder
            .max_queued(queue)
            .build()
            .await
            .map_err(|error| explain("connect to", "the service manager", &error))?;
        let (came_back, back) = watch::channel(());
        // From here on nothing is missed; what comes waits until it is known who systemd is.
        let stream = MessageStream::from(&connection);
        let manager = Manager {
            connection: connection.clone(),
            names: names.clone(),
            calls: Arc::new(Semaphore::new(CALLS)),
            back,
            guard: None,
            traces: None,
        };
        manager.watch().await?;
        let senders = manager.senders().await?;
        let listener = Listener::new(names, senders);
        tokio::spawn(listener.drain(stream, hints, came_back));
        manager.subscribe().await?;
        Ok(manager)
    }

    /// Asks `guard` right before every call that changes something.
    pub fn guarded_by(self, guard: Guard) -> Manager {
        let guard = Some(guard);
        Manager { guard, ..self }
    }

    async fn call<B>(&self, method: &'static str, body: &B) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        self.call_at(MANAGER_PATH, MANAGER, method, body).await
    }

    /// A call that does no harm when it is made twice.
    async fn call_again<B>(&self, method: &'static str, body: &B) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        self.again(MANAGER_PATH, MANAGER, method, body).await
    }

    /// A call that gets lost because systemd executes itself anew is made again when it is back.
    async fn again<B>(
        &self,
        path: &str,
        interface: &'static str,
        method: &'static str,
        body: &B,
    ) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let mut back = self.back.clone();
        loop {
            back.mark_unchanged();
            match self.call_at(path, interface, method, body).await {
                Err(error) if is_away(&error) && back.changed().await.is_ok() => {}
                answer => return answer,
            }
        }
    }

    async fn call_at<B>(
        &self,
        path: &str,
        interface: &'static str,
        method: &'static str,
        body: &B,
    ) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let _turn = self.calls.acquire().await;
        let changes = !matches!(
            method,
            "Subscribe" | "ListUnitsByNames" | "ListUnitsByPatterns" | "Get" | "GetAll"
        );
        if changes && self.guard.as_ref().is_some_and(|may| !may()) {
            return Err(zbus::Error::Failure(DISPLACED.to_owned()));
        }
        self.connection
            .call_method(Some(SYSTEMD), path, Some(interface), method, body)
            .await
    }

    /// Queues the start of a transient unit with `descriptors` for its streams, in the order
    /// stdin, stdout. That it started or failed arrives as hints. A start that got lost is made
    /// again, unless it turns out that it got through: then it is unknown what came of it.
    pub async fn start(
        &self,
        spec: &UnitSpec,
        descriptors: &[OwnedFd],
    ) -> Result<(), ManagerError> {
        let fail = |error: &zbus::Error| explain("start unit", &spec.name, error);
        let mut back = self.back.clone();
        let mut lost = None;
        loop {
            back.mark_unchanged();
            match (self.try_start(spec, descriptors).await, lost) {
                (Ok(_), _) => return Ok(()),
                (Err(error), _) if is_away(&error) => {
                    let error = fail(&error);
                    if back.changed().await.is_err() {
                        return Err(error);
                    }
                    lost = Some(error);
                }
                (Err(error), before) => {
                    let error = fail(&error);
                    let got_through = error.kind == ErrorKind::UnitExists;
                    return Err(before.filter(|_| got_through).unwrap_or(error));
                }
            }
        }
    }

    async fn try_start(&self, spec: &UnitSpec, descriptors: &[OwnedFd]) -> zbus::Result<Message> {
        let copies = descriptors.iter().map(OwnedFd::try_clone);
        let copies = copies.collect::<Result<Vec<_>, _>>()?;
        let properties = variants::encode(&properties(spec), copies);
        let auxiliary: Vec<(String, Vec<(String, zbus::Variant<'_>)>)> = Vec::new();
        let body = (spec.name.as_str(), "fail", properties, auxiliary);
        self.call("StartTransientUnit", &body).await
    }

    /// Reads what there is to know of a unit; one that is not there reads as `not-found`.
    pub async fn read(&self, unit: &str) -> Result<Reading, ManagerError> {
        let path = unit_path(unit);
        let fail = |error: zbus::Error| explain("read unit", unit, &error);
        let reading = self.read_parts(unit, &path).await.map_err(fail)?;
        if !reading.is_torn() {
            return Ok(reading);
        }
        tracing::debug!("{unit}: it ended while it was read, reading again");
        self.read_parts(unit, &path).await.map_err(fail)
    }

    /// systemd may go on between the answers: states come first, what is read after them is as new at least.
    async fn read_parts(&self, unit: &str, path: &str) -> zbus::Result<Reading> {
        let names = vec![unit];
        let invocation = ("org.freedesktop.systemd1.Unit", "InvocationID");
        let service = "org.freedesktop.systemd1.Service";
        let listed = self.call_again("ListUnitsByNames", &names);
        let invocation = self.again(path, PROPERTIES, "Get", &invocation);
        let service = self.again(path, PROPERTIES, "GetAll", &service);
        let (listed, invocation, service) =
            futures_util::future::try_join3(listed, invocation, service).await?;
        reading::parse(&listed, &invocation, &service)
    }

    /// Sends a signal, in rare cases twice. A unit without processes any more is not an error.
    pub async fn kill(&self, unit: &str, whom: Whom, signal: i32) -> Result<(), ManagerError> {
        let whom = match whom {
            Whom::Main => "main",
            Whom::All => "all",
        };
        match self.call_again("KillUnit", &(unit, whom, signal)).await {
            Ok(_) => Ok(()),
            Err(error) => match explain("signal unit", unit, &error) {
                e if e.kind == ErrorKind::NoSuchUnit || e.why.contains("No such process") => Ok(()),
                e => Err(e),
            },
        }
    }

    /// Lets a finished unit go. One that is gone already is not an error.
    pub async fn release(&self, unit: &str, how: Release) -> Result<(), ManagerError> {
        let result = match how {
            Release::Stop => self.call_again("StopUnit", &(unit, "replace")).await,
            Release::Reset => self.call_again("ResetFailedUnit", &unit).await,
        };
        self.gone_is_fine("release unit", unit, result)
    }

    /// Freezes the processes of a service. Answered when they stand still; an error where the
    /// kernel or the manager cannot do it.
    pub async fn freeze(&self, unit: &str) -> Result<(), ManagerError> {
        let result = self.call_again("FreezeUnit", &unit).await;
        result
            .map(drop)
            .map_err(|error| explain("freeze unit", unit, &error))
    }

    /// Lets them go on. One that is not frozen stays as it is.
    pub async fn thaw(&self, unit: &str) -> Result<(), ManagerError> {
        let result = self.call_again("ThawUnit", &unit).await;
        result
            .map(drop)
            .map_err(|error| explain("thaw unit", unit, &error))
    }

    /// Stops a slice with everything in it.
    pub async fn stop_slice(&self, slice: &str) -> Result<(), ManagerError> {
        let result = self.call_again("StopUnit", &(slice, "replace")).await;
        self.gone_is_fine("stop slice", slice, result)
    }

    fn gone_is_fine(
        &self,
        verb: &'static str,
        unit: &str,
        result: zbus::Result<Message>,
    ) -> Result<(), ManagerError> {
        match result.map_err(|error| explain(verb, unit, &error)) {
            Err(error) if error.kind == ErrorKind::NoSuchUnit => Ok(()),
            other => other.map(drop),
        }
    }

    /// Whether the whole system is on its way down, so that units end for that reason.
    pub async fn is_stopping(&self) -> Result<bool, ManagerError> {
        let state: String = self.property("SystemState").await?;
        Ok(state == "stopping")
    }

    /// systemd's version, as it says it.
    pub async fn version(&self) -> Result<String, ManagerError> {
        self.property("Version").await
    }

    async fn property(&self, name: &'static str) -> Result<String, ManagerError> {
        let fail = |error: zbus::Error| explain("read property", name, &error);
        let reply = self
            .again(MANAGER_PATH, PROPERTIES, "Get", &(MANAGER, name))
            .await
            .map_err(fail)?;
        let value: zbus::OwnedVariant = reply.body().deserialize().map_err(fail)?;
        String::try_from(value).map_err(fail)
    }
}

/// Path of a unit's object: everything but `[A-Za-z0-9]` as `_xx` (sd_bus_path_encode(3)).
fn unit_path(unit: &str) -> String {
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

/// What the bus answers for a service that left with a call unanswered, or is not there.
const AWAY: [&str; 4] = [
    "org.freedesktop.DBus.Error.NoReply",
    "org.freedesktop.DBus.Error.Disconnected",
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
];

/// Name and text of an error that came as an answer; no name when there was no answer.
fn name_and_text(error: &zbus::Error) -> (String, Option<String>) {
    match error {
        zbus::Error::MethodError(name, text, _) => (name.to_string(), text.clone()),
        zbus::Error::FDO(error) => (
            error.name().to_string(),
            error.description().map(Into::into),
        ),
        other => (String::new(), Some(other.to_string())),
    }
}

/// systemd left with this call, and the bus is still there.
fn is_away(error: &zbus::Error) -> bool {
    AWAY.contains(&name_and_text(error).0.as_str())
}

fn explain(verb: &'static str, object: &str, error: &zbus::Error) -> ManagerError {
    let (name, text) = name_and_text(error);
    let kind = match name.as_str() {
        "org.freedesktop.systemd1.UnitExists" => ErrorKind::UnitExists,
        "org.freedesktop.systemd1.NoSuchUnit" => ErrorKind::NoSuchUnit,
        "org.freedesktop.systemd1.UnitBusy" | "org.freedesktop.systemd1.UnitInactive" => {
            ErrorKind::Busy
        }
        "org.freedesktop.systemd1.TransactionIsDestructive"
        | "org.freedesktop.systemd1.ShuttingDown" => ErrorKind::GoingDown,
        name if name.is_empty() || AWAY.contains(&name) => ErrorKind::Unreachable,
        _ => ErrorKind::Refused,
    };
    let why = text.filter(|text| !text.is_empty()).unwrap_or(name);
    ManagerError {
        verb,
        object: object.to_owned(),
        why,
        kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_encoded_as_systemd_does() {
        assert_eq!(
            unit_path("archivist-hook-wget-s3.service"),
            "/org/freedesktop/systemd1/unit/archivist_2dhook_2dwget_2ds3_2eservice"
        );
    }
}
