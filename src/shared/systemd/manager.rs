//! The orchestrator's client of systemd: starts, reads, signals and releases units, and passes
//! signals on as hints.

use super::client::{PROPERTIES, gone_is_fine, killed, unit_path};
use super::error::{explain, is_away};
use super::hint_listener::Listener;
use super::log_field_files::LogFieldFiles;
use super::{ErrorKind, Guard, HintQueue, ManagerError, SystemdClient, Whom, encode, reading};
use crate::connection::builder;
use archivist_core::model::Reading;
use archivist_core::unit::{Names, UnitSpec, properties};
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use tokio::sync::watch;
use zbus::connection::Builder;
use zbus::{Message, MessageStream};

/// Signals that may queue before they are read. zbus stops the whole connection when the queue is
/// full.
const SIGNALS_MAX: NonZeroUsize = NonZeroUsize::new(16 * 1024).unwrap();

/// How a finished unit is released, so that systemd unloads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// StopUnit: for a unit that is active (exited). It also ends the processes left in the cgroup.
    Stop,
    /// ResetFailedUnit: for a unit that failed.
    Reset,
}

impl Release {
    /// Returns the way that fits the state of a unit.
    pub fn for_reading(reading: &Reading) -> Release {
        if reading.active_state == "failed" { Release::Reset } else { Release::Stop }
    }
}

/// The orchestrator's connection to the service manager: starts, reads and releases the units of
/// one instance.
#[derive(Clone)]
pub struct Manager {
    pub(super) client: SystemdClient,
    pub(super) names: Names,
    /// Changes when systemd is back on the bus; closes with the connection.
    back: watch::Receiver<()>,
    /// `None` for a user's manager, which leaves no files.
    pub(super) log_field_files: Option<LogFieldFiles>,
}

impl Manager {
    /// Connects over the system bus, or over the session bus to a user's own manager. Hints go to
    /// `hints` until the connection ends, which is a hint as well.
    pub async fn connect(
        user: bool,
        names: Names,
        hints: HintQueue,
    ) -> Result<Manager, ManagerError> {
        let log_field_files = (!user).then(|| LogFieldFiles::new(names.clone()));
        let manager = Manager::over(builder(user), names, hints).await?;
        Ok(Manager { log_field_files, ..manager })
    }

    /// Connects in another way.
    pub async fn over(
        builder: Builder<'static>,
        names: Names,
        hints: HintQueue,
    ) -> Result<Manager, ManagerError> {
        let client = SystemdClient::over(builder.max_queued(SIGNALS_MAX)).await?;
        let (came_back, back) = watch::channel(());
        // Signals queue from here on; they are read once the owner of systemd's name is known.
        let stream = MessageStream::from(client.connection());
        client.add_match_rules().await?;
        let senders = client.senders().await?;
        let listener = Listener::new(names.clone(), senders);
        tokio::spawn(listener.drain(stream, hints, came_back));
        client.subscribe().await?;
        Ok(Manager { client, names, back, log_field_files: None })
    }

    /// Asks `guard` right before every call that changes something, and fails the call if it
    /// returns false.
    pub fn guarded_by(self, guard: Guard) -> Manager {
        let client = self.client.guarded_by(guard);
        Manager { client, ..self }
    }

    /// Calls a method of the manager object, see [`Manager::again`].
    pub(super) async fn call_again<B>(
        &self,
        method: &'static str,
        body: &B,
    ) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        self.again(None, method, body).await
    }

    /// Makes a call that may be made twice. If it is lost because systemd re-executes itself, it is
    /// repeated when systemd is back. `path` is that of a unit whose properties are read, `None`
    /// for the manager object.
    async fn again<B>(
        &self,
        path: Option<&str>,
        method: &'static str,
        body: &B,
    ) -> zbus::Result<Message>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let mut back = self.back.clone();
        loop {
            back.mark_unchanged();
            let answer = match path {
                None => self.client.call(method, body).await,
                Some(path) => self.client.call_at(path, PROPERTIES, method, body).await,
            };
            match answer {
                Err(error) if is_away(&error) && back.changed().await.is_ok() => {}
                answer => return answer,
            }
        }
    }

    /// Queues the start of a transient unit, with `stdout` as its standard output. Hints report
    /// whether it started or failed. A call that is lost is repeated when systemd is back. If the
    /// unit exists by then, the first call had an effect, and its error is returned: the result is
    /// unknown.
    pub async fn start(
        &self,
        spec: &UnitSpec,
        stdout: Option<&OwnedFd>,
    ) -> Result<(), ManagerError> {
        let fail = |error: &zbus::Error| explain("start unit", &spec.name, error);
        let mut back = self.back.clone();
        let mut lost = None;
        loop {
            back.mark_unchanged();
            match (self.try_start(spec, stdout).await, lost) {
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

    async fn try_start(&self, spec: &UnitSpec, stdout: Option<&OwnedFd>) -> zbus::Result<Message> {
        let copy = stdout.map(OwnedFd::try_clone).transpose()?;
        let properties = encode(&properties(spec), copy);
        let auxiliary: Vec<(String, Vec<(String, zbus::Variant<'_>)>)> = Vec::new();
        let body = (spec.name.as_str(), "fail", properties, auxiliary);
        self.client.call("StartTransientUnit", &body).await
    }

    /// Reads the state, result and accounting of a unit; a unit that is not loaded has the state
    /// `not-found`.
    pub async fn read(&self, unit: &str) -> Result<Reading, ManagerError> {
        let path = unit_path(unit);
        let fail = |error: zbus::Error| explain("read unit", unit, &error);
        let (mut reading, mut exited) = self.read_parts(unit, &path).await.map_err(fail)?;
        if reading.is_torn() {
            tracing::debug!("unit {unit} ended while it was read, reading it again");
            (reading, exited) = self.read_parts(unit, &path).await.map_err(fail)?;
        }
        if reading.active_state == "failed" && exited != 0 {
            let left = self.left_active_state(&path).await.map_err(fail)?;
            reading.was_stopped = left != 0 && left < exited;
        }
        Ok(reading)
    }

    /// Returns when a unit ceased to be active, in microseconds of CLOCK_MONOTONIC. A stop job ends that
    /// state before it ends the main process; otherwise the end of the process comes first.
    async fn left_active_state(&self, path: &str) -> zbus::Result<u64> {
        let property = ("org.freedesktop.systemd1.Unit", "ActiveExitTimestampMonotonic");
        reading::number(&self.again(Some(path), "Get", &property).await?)
    }

    /// The unit may change between the answers. The state is read first, so that the rest is at
    /// least as new.
    async fn read_parts(&self, unit: &str, path: &str) -> zbus::Result<(Reading, u64)> {
        let names = vec![unit];
        let invocation = ("org.freedesktop.systemd1.Unit", "InvocationID");
        let service = "org.freedesktop.systemd1.Service";
        let listed = self.call_again("ListUnitsByNames", &names);
        let invocation = self.again(Some(path), "Get", &invocation);
        let service = self.again(Some(path), "GetAll", &service);
        let (listed, invocation, service) =
            futures_util::future::try_join3(listed, invocation, service).await?;
        reading::parse(&listed, &invocation, &service)
    }

    /// Sends a signal to processes of a unit; twice if systemd re-executes itself meanwhile. A unit
    /// without processes is not an error.
    pub async fn kill(&self, unit: &str, whom: Whom, signal: i32) -> Result<(), ManagerError> {
        killed(unit, self.call_again("KillUnit", &(unit, whom.as_str(), signal)).await)
    }

    /// Releases a finished unit. A unit that is not loaded is not an error.
    pub async fn release(&self, unit: &str, how: Release) -> Result<(), ManagerError> {
        let result = match how {
            Release::Stop => self.call_again("StopUnit", &(unit, "replace")).await,
            Release::Reset => self.call_again("ResetFailedUnit", &unit).await,
        };
        gone_is_fine("release unit", unit, result)
    }

    /// Freezes the processes of a service. Returns when they are frozen.
    ///
    /// # Errors
    /// Also if the kernel or the service manager has no freezer.
    pub async fn freeze(&self, unit: &str) -> Result<(), ManagerError> {
        let result = self.call_again("FreezeUnit", &unit).await;
        result.map(drop).map_err(|error| explain("freeze unit", unit, &error))
    }

    /// Thaws the processes of a service. A service that is not frozen is not an error.
    pub async fn thaw(&self, unit: &str) -> Result<(), ManagerError> {
        let result = self.call_again("ThawUnit", &unit).await;
        result.map(drop).map_err(|error| explain("thaw unit", unit, &error))
    }

    /// Stops a slice with everything in it.
    pub async fn stop_slice(&self, slice: &str) -> Result<(), ManagerError> {
        let result = self.call_again("StopUnit", &(slice, "replace")).await;
        gone_is_fine("stop slice", slice, result)
    }

    /// Whether the system is shutting down, or the slice of all units is being stopped, so that units
    /// end for that reason.
    pub async fn is_stopping(&self) -> Result<bool, ManagerError> {
        let state: String = self.property("SystemState").await?;
        if state == "stopping" {
            return Ok(true);
        }
        let slice = self.names.top_slice();
        let fail = |error: zbus::Error| explain("read unit", &slice, &error);
        let listed = self.call_again("ListUnitsByNames", &vec![&slice]).await;
        reading::is_being_stopped(&listed.map_err(fail)?).map_err(fail)
    }

    pub async fn version(&self) -> Result<String, ManagerError> {
        self.property("Version").await
    }

    async fn property(&self, name: &'static str) -> Result<String, ManagerError> {
        let mut back = self.back.clone();
        loop {
            back.mark_unchanged();
            match self.client.manager_property(name).await {
                Err(error) if is_away(&error) && back.changed().await.is_ok() => {}
                answer => return answer.map_err(|error| explain("read property", name, &error)),
            }
        }
    }
}
