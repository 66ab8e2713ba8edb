//! The clock and the identity of the machine.

use archivist_core::fleet::BootTime;
use libsystemd::id128;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;
use zbus::Connection;

const SYSTEMD: &str = "org.freedesktop.systemd1";
const SYSTEMD_PATH: &str = "/org/freedesktop/systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
/// When the service manager began, in microseconds of CLOCK_MONOTONIC. It stays the same when
/// systemd executes itself again.
const BEGAN: &str = "UserspaceTimestampMonotonic";

/// The identity of the machine could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read the {what} of this machine: {reason}")]
pub struct IdentityError {
    what: &'static str,
    reason: String,
}

/// The machine, and the life of its service manager. Containers share the boot id of the kernel, so
/// the identity of that life includes its begin.
pub(super) struct Identity {
    /// Stays the same over reboots.
    pub machine: String,
    /// Differs between two lives of the service manager.
    pub boot: String,
    began: BootTime,
}

impl Identity {
    pub async fn read(bus: &Connection) -> Result<Identity, IdentityError> {
        let began = began(bus)
            .await
            .map_err(|error| IdentityError { what: "start time", reason: error.to_string() })?;
        let boot = id("boot id", id128::get_boot())?;
        Ok(Identity {
            machine: id("machine id", id128::get_machine())?,
            boot: format!("{boot}/{began}"),
            began: BootTime(began / 1000),
        })
    }

    /// Returns the time since the service manager began; too long by the time that the machine was
    /// suspended before, which only lets a node wait longer after a reboot.
    pub fn uptime(&self, now: BootTime) -> Duration {
        now.until(self.began)
    }
}

/// Returns when the service manager began, in microseconds since the boot of the kernel.
async fn began(bus: &Connection) -> zbus::Result<u64> {
    let body = (MANAGER, BEGAN);
    let answer =
        bus.call_method(Some(SYSTEMD), SYSTEMD_PATH, Some(PROPERTIES), "Get", &body).await?;
    let value: zbus::OwnedVariant = answer.body().deserialize()?;
    u64::try_from(value)
}

fn id(
    what: &'static str,
    id: Result<id128::Id128, libsystemd::errors::SdError>,
) -> Result<String, IdentityError> {
    let id = id.map_err(|error| IdentityError { what, reason: error.to_string() })?;
    Ok(id.lower_hex())
}

/// Returns the time on CLOCK_BOOTTIME.
pub(super) fn now() -> BootTime {
    match clock_gettime(ClockId::CLOCK_BOOTTIME) {
        Ok(time) => BootTime((time.tv_sec() * 1000 + time.tv_nsec() / 1_000_000).unsigned_abs()),
        Err(error) => unreachable!("clock_gettime(CLOCK_BOOTTIME): {error}"),
    }
}

/// Returns a random number in 0..=1; 1 if the kernel has no random numbers.
pub(super) fn jitter() -> f64 {
    getrandom::u32().map_or(1.0, |random| f64::from(random) / f64::from(u32::MAX))
}
