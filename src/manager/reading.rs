//! Properties of a unit → [`Reading`].

use crate::model::{Accounting, Reading, Time};
use std::collections::HashMap;
use zbus::{Message, OwnedVariant};

type Properties = HashMap<String, OwnedVariant>;

/// Counters that are not kept read as the largest number.
const UNSET: u64 = u64::MAX;

fn text(properties: &Properties, key: &str) -> String {
    let value = properties
        .get(key)
        .and_then(|value| <&str>::try_from(value).ok());
    value.unwrap_or_default().to_owned()
}

fn number(properties: &Properties, key: &str) -> i32 {
    properties
        .get(key)
        .and_then(|value| i32::try_from(value).ok())
        .unwrap_or(0)
}

fn counter(properties: &Properties, key: &str) -> Option<u64> {
    let value = properties
        .get(key)
        .and_then(|value| u64::try_from(value).ok())?;
    (value != UNSET).then_some(value)
}

/// A wall-clock timestamp in microseconds; 0 is none.
fn time(properties: &Properties, key: &str) -> Option<Time> {
    let usec = counter(properties, key).filter(|usec| *usec != 0)?;
    i64::try_from(usec / 1000).ok().map(Time)
}

fn invocation(properties: &Properties) -> String {
    let bytes: Vec<u8> = properties
        .get("InvocationID")
        .and_then(|value| value.try_clone().ok())
        .and_then(|value| Vec::<u8>::try_from(value).ok())
        .unwrap_or_default();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads the answers of GetAll for the interfaces Unit and Service.
pub fn parse(of_unit: &Message, of_service: &Message) -> zbus::Result<Reading> {
    let (unit_body, service_body) = (of_unit.body(), of_service.body());
    let unit: Properties = unit_body.deserialize()?;
    let service: Properties = service_body.deserialize()?;
    Ok(Reading {
        load_state: text(&unit, "LoadState"),
        active_state: text(&unit, "ActiveState"),
        sub_state: text(&unit, "SubState"),
        result: text(&service, "Result"),
        exec_main_code: number(&service, "ExecMainCode"),
        exec_main_status: number(&service, "ExecMainStatus"),
        started: time(&service, "ExecMainStartTimestamp"),
        ended: time(&service, "ExecMainExitTimestamp"),
        invocation: invocation(&unit),
        kill_mode: text(&service, "KillMode"),
        accounting: Accounting {
            cpu_usec: counter(&service, "CPUUsageNSec").map(|nsec| nsec / 1000),
            memory_peak: counter(&service, "MemoryPeak"),
            io_read: counter(&service, "IOReadBytes"),
            io_write: counter(&service, "IOWriteBytes"),
            ip_in: counter(&service, "IPIngressBytes"),
            ip_out: counter(&service, "IPEgressBytes"),
        },
    })
}

/// systemd before 254 has no MemoryPeak property; the kernel's figure can be read as long as the
/// cgroup is there.
pub fn complete_memory_peak(reading: &mut Reading, of_service: &Message) {
    if reading.accounting.memory_peak.is_some() {
        return;
    }
    let body = of_service.body();
    let Ok(service) = body.deserialize::<Properties>() else {
        return;
    };
    let group = text(&service, "ControlGroup");
    if group.is_empty() {
        return;
    }
    let file = format!("/sys/fs/cgroup{group}/memory.peak");
    let peak = std::fs::read_to_string(file)
        .ok()
        .and_then(|text| text.trim().parse().ok());
    reading.accounting.memory_peak = peak;
}
