//! What systemd answers about a unit → [`Reading`].

use crate::model::{Accounting, Reading, Time};
use zbus::{DeserializeDict, Message, OwnedObjectPath, OwnedVariant, Type};

/// Counters that are not kept read as the largest number.
const UNSET: u64 = u64::MAX;

/// A unit in the answers of ListUnitsByNames and ListUnitsByPatterns: its name, description, LoadState=,
/// ActiveState=, SubState= and the unit it follows, its path, and the id, type and path of its job.
pub type Row = (
    String,
    String,
    String,
    String,
    String,
    String,
    OwnedObjectPath,
    u32,
    String,
    OwnedObjectPath,
);

/// What matters to us of a service; the rest of some 300 properties is passed over unread.
#[derive(Debug, Default, DeserializeDict, Type)]
#[zbus(signature = "a{sv}", rename_all = "PascalCase")]
struct Service {
    result: Option<String>,
    exec_main_code: Option<i32>,
    exec_main_status: Option<i32>,
    exec_main_start_timestamp: Option<u64>,
    exec_main_exit_timestamp: Option<u64>,
    kill_mode: Option<String>,
    control_group: Option<String>,
    #[zbus(rename = "CPUUsageNSec")]
    cpu_usage_nsec: Option<u64>,
    memory_peak: Option<u64>,
    #[zbus(rename = "IOReadBytes")]
    io_read_bytes: Option<u64>,
    #[zbus(rename = "IOWriteBytes")]
    io_write_bytes: Option<u64>,
    #[zbus(rename = "IPIngressBytes")]
    ip_ingress_bytes: Option<u64>,
    #[zbus(rename = "IPEgressBytes")]
    ip_egress_bytes: Option<u64>,
}

impl Service {
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

    /// systemd before 254 has no MemoryPeak property; the kernel's figure can be read as long as the
    /// cgroup is there.
    fn memory_peak_of_kernel(&self) -> Option<u64> {
        let group = self.control_group.as_deref().filter(|g| !g.is_empty())?;
        let file = format!("/sys/fs/cgroup{group}/memory.peak");
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    }
}

/// A wall-clock timestamp in microseconds; 0 is none.
fn time(usec: Option<u64>) -> Option<Time> {
    let usec = usec.filter(|usec| *usec != 0 && *usec != UNSET)?;
    i64::try_from(usec / 1000).ok().map(Time)
}

/// Reads the answers of ListUnitsByNames for one unit, of Get for its InvocationID, and of GetAll for
/// the interface Service.
pub fn parse(listed: &Message, invocation: &Message, service: &Message) -> zbus::Result<Reading> {
    let rows: Vec<Row> = listed.body().deserialize()?;
    let row = rows.into_iter().next();
    let row = row.ok_or_else(|| zbus::Error::Failure("systemd lists no such unit".to_owned()))?;
    let invocation: OwnedVariant = invocation.body().deserialize()?;
    let invocation = Vec::<u8>::try_from(invocation).unwrap_or_default();
    let body = service.body();
    let service: Service = body.deserialize()?;
    let accounting = service.accounting();
    Ok(Reading {
        load_state: row.2,
        active_state: row.3,
        sub_state: row.4,
        result: service.result.unwrap_or_default(),
        exec_main_code: service.exec_main_code.unwrap_or(0),
        exec_main_status: service.exec_main_status.unwrap_or(0),
        started: time(service.exec_main_start_timestamp),
        ended: time(service.exec_main_exit_timestamp),
        invocation: invocation
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        kill_mode: service.kill_mode.unwrap_or_default(),
        accounting,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Manager;
    use super::*;
    use crate::model::Outcome;
    use crate::unit::Names;
    use futures_util::StreamExt;
    use std::collections::HashMap;
    use std::os::unix::net::UnixStream;
    use zbus::connection::Builder;
    use zbus::{Connection, MessageStream, Variant};

    const UNIT: &str = "archivist-hook-wget-s3.service";

    /// A service manager that answers with `states`, one after another, of a unit whose main process has failed.
    async fn answer(connection: Connection, states: [(&str, &str); 2]) {
        let mut states = states.into_iter();
        let mut calls = MessageStream::from(&connection);
        while let Some(Ok(call)) = calls.next().await {
            let header = call.header();
            match header.member().map(|member| member.as_str()) {
                Some("ListUnitsByNames") => {
                    let (active, sub) = states.next().expect("no more readings");
                    let path = OwnedObjectPath::try_from("/").unwrap();
                    let owned = |text: &str| text.to_owned();
                    let row: Row = (
                        owned(UNIT),
                        owned(""),
                        owned("loaded"),
                        owned(active),
                        owned(sub),
                        owned(""),
                        path.clone(),
                        0,
                        owned(""),
                        path,
                    );
                    connection.reply(&header, &vec![row]).await.unwrap();
                }
                Some("Get") => connection
                    .reply(&header, &Variant::from(vec![0xab_u8]))
                    .await
                    .unwrap(),
                Some("GetAll") => {
                    let failed = [
                        ("Result", Variant::from("exit-code")),
                        ("ExecMainCode", Variant::from(1_i32)),
                        ("ExecMainStatus", Variant::from(7_i32)),
                    ];
                    connection
                        .reply(&header, &HashMap::from(failed))
                        .await
                        .unwrap();
                }
                _ => connection.reply(&header, &()).await.unwrap(),
            }
        }
    }

    async fn read(states: [(&'static str, &'static str); 2]) -> Reading {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let guid = zbus::Guid::generate();
        let server = Builder::unix_stream(theirs).server(guid).p2p().build();
        let served = tokio::spawn(async move { answer(server.await.unwrap(), states).await });
        let (hints, _hints) = tokio::sync::mpsc::unbounded_channel();
        let builder = Builder::unix_stream(ours).p2p();
        let manager = Manager::over(builder, Names::new("archivist"), hints)
            .await
            .unwrap();
        let reading = manager.read(UNIT).await.unwrap();
        served.abort();
        reading
    }

    /// Released by StopUnit instead of ResetFailedUnit a unit would stay as failed for ever.
    #[tokio::test]
    async fn a_unit_that_fails_while_it_is_read_is_read_again() {
        let reading = read([("active", "running"), ("failed", "failed")]).await;
        assert_eq!(reading.active_state, "failed");
        assert_eq!(Outcome::of(&reading), Some(Outcome::Exit(7)));
        assert_eq!(reading.invocation, "ab");

        let reading = read([("activating", "start"), ("deactivating", "stop-sigterm")]).await;
        assert_eq!(Outcome::of(&reading), None);
    }
}
