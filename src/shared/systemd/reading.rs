//! Makes a [`Reading`] of systemd's answers about a unit.

use super::property_reader;
use archivist_core::model::{Accounting, Reading, Time};
use zbus::{Message, OwnedObjectPath, OwnedVariant};

/// Value of a counter that systemd does not keep.
const UNSET: u64 = u64::MAX;

/// A unit in the answers of ListUnitsByNames and ListUnitsByPatterns: its name, description,
/// LoadState=, ActiveState=, SubState= and the unit it follows, its path, and the id, type and path
/// of its job.
pub type Row =
    (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);

/// The properties of a service that a [`Reading`] has.
#[derive(Debug, Default)]
struct Service {
    result: Option<String>,
    exec_main_code: Option<i32>,
    exec_main_status: Option<i32>,
    exec_main_start_timestamp: Option<u64>,
    exec_main_exit_timestamp: Option<u64>,
    exec_main_exit_timestamp_monotonic: Option<u64>,
    kill_mode: Option<String>,
    control_group: Option<String>,
    cpu_usage_nsec: Option<u64>,
    memory_peak: Option<u64>,
    io_read_bytes: Option<u64>,
    io_write_bytes: Option<u64>,
    ip_ingress_bytes: Option<u64>,
    ip_egress_bytes: Option<u64>,
}

impl Service {
    fn of(message: &Message) -> Option<Service> {
        let mut service = Service::default();
        property_reader::each(&message.body(), 0, |name, value| match name {
            "Result" => service.result = value.text(),
            "ExecMainCode" => service.exec_main_code = value.signed(),
            "ExecMainStatus" => service.exec_main_status = value.signed(),
            "ExecMainStartTimestamp" => service.exec_main_start_timestamp = value.number(),
            "ExecMainExitTimestamp" => service.exec_main_exit_timestamp = value.number(),
            "ExecMainExitTimestampMonotonic" => {
                service.exec_main_exit_timestamp_monotonic = value.number();
            }
            "KillMode" => service.kill_mode = value.text(),
            "ControlGroup" => service.control_group = value.text(),
            "CPUUsageNSec" => service.cpu_usage_nsec = value.number(),
            "MemoryPeak" => service.memory_peak = value.number(),
            "IOReadBytes" => service.io_read_bytes = value.number(),
            "IOWriteBytes" => service.io_write_bytes = value.number(),
            "IPIngressBytes" => service.ip_ingress_bytes = value.number(),
            "IPEgressBytes" => service.ip_egress_bytes = value.number(),
            _ => {}
        })?;
        Some(service)
    }

    fn accounting(&self) -> Accounting {
        let kept = |counter: Option<u64>| counter.filter(|counter| *counter != UNSET);
        Accounting {
            cpu_usec: kept(self.cpu_usage_nsec).map(|nsec| nsec / 1000),
            memory_peak: kept(self.memory_peak).or_else(|| self.memory_peak_of_kernel()),
            io_read: kept(self.io_read_bytes),
            io_write: kept(self.io_write_bytes),
            ip_in: kept(self.ip_ingress_bytes),
            ip_out: kept(self.ip_egress_bytes),
        }
    }

    /// Reads the peak from the kernel: systemd before 255 has no property MemoryPeak. Works as long
    /// as the cgroup exists.
    fn memory_peak_of_kernel(&self) -> Option<u64> {
        let group = self.control_group.as_deref().filter(|g| !g.is_empty())?;
        let file = format!("/sys/fs/cgroup{group}/memory.peak");
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    }
}

/// Converts a wall-clock timestamp in microseconds; 0 is none.
fn time(usec: Option<u64>) -> Option<Time> {
    let usec = usec.filter(|usec| *usec != 0 && *usec != UNSET)?;
    i64::try_from(usec / 1000).ok().map(Time)
}

/// Parses the answers of ListUnitsByNames for one unit, of Get for its InvocationID, and of GetAll
/// for the interface Service. Returns the time at which its main process ended in addition, in
/// microseconds of CLOCK_MONOTONIC; 0 if it has not.
pub fn parse(
    listed: &Message,
    invocation: &Message,
    service: &Message,
) -> zbus::Result<(Reading, u64)> {
    let rows: Vec<Row> = listed.body().deserialize()?;
    let row = rows
        .into_iter()
        .next()
        .ok_or_else(|| zbus::Error::Failure("systemd lists no such unit".to_owned()))?;
    let value: OwnedVariant = invocation.body().deserialize()?;
    let invocation = Vec::<u8>::try_from(value).unwrap_or_default();
    let odd = || zbus::Error::Failure("its properties are not those of a service".to_owned());
    let service = Service::of(service).ok_or_else(odd)?;
    let accounting = service.accounting();
    let exited = service.exec_main_exit_timestamp_monotonic.unwrap_or(0);
    let reading = Reading {
        load_state: row.2,
        active_state: row.3,
        sub_state: row.4,
        result: service.result.unwrap_or_default(),
        exec_main_code: service.exec_main_code.unwrap_or(0),
        exec_main_status: service.exec_main_status.unwrap_or(0),
        started: time(service.exec_main_start_timestamp),
        ended: time(service.exec_main_exit_timestamp),
        invocation: invocation.iter().map(|byte| format!("{byte:02x}")).collect(),
        kill_mode: service.kill_mode.unwrap_or_default(),
        accounting,
        was_stopped: false,
    };
    Ok((reading, exited))
}

/// Parses the answer of Get for a number of 64 bits.
pub fn number(answer: &Message) -> zbus::Result<u64> {
    let value: OwnedVariant = answer.body().deserialize()?;
    u64::try_from(value)
}

/// Parses the answer of ListUnitsByNames for one unit: whether a job that stops it is queued or runs.
pub fn is_being_stopped(listed: &Message) -> zbus::Result<bool> {
    let rows: Vec<Row> = listed.body().deserialize()?;
    let job = |row: &Row| row.7 != 0 && matches!(row.8.as_str(), "stop" | "restart");
    Ok(rows.iter().any(job))
}
