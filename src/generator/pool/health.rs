//! HealthCheck=: a command for each worker, run repeatedly by a timer that lives as long as the
//! worker. If it fails or takes too long, the worker is stopped, by SIGTERM and then SIGKILL, and
//! systemd restarts it like any failed worker. The check only ever stops workers, so it cannot
//! start a worker that an administrator is stopping.

use super::{Names, set_environment};
use crate::unit_file::{UnitFile, Units};
use archivist_config::declare::reader::Reader;
use archivist_config::ini::IniEntry;
use archivist_core::text::exact_span;
use std::time::Duration;

pub const INTERVAL: Duration = Duration::from_secs(30);
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// Keys of [Service] that apply to the check as to the worker, because both run as the same user.
const SHARED: [&str; 10] = [
    "User",
    "Group",
    "DynamicUser",
    "SupplementaryGroups",
    "WorkingDirectory",
    "Environment",
    "EnvironmentFile",
    "PassEnvironment",
    "UMask",
    "NetworkNamespacePath",
];

pub struct Check<'a> {
    command: &'a IniEntry,
    interval: Duration,
    timeout: Duration,
}

impl<'a> Check<'a> {
    pub fn read(reader: &mut Reader<'a>) -> Option<Check<'a>> {
        let interval = reader.span("HealthIntervalSec").unwrap_or(INTERVAL);
        let timeout = reader.span("HealthTimeoutSec").unwrap_or(TIMEOUT);
        for (key, span) in [("HealthIntervalSec", interval), ("HealthTimeoutSec", timeout)] {
            if let Some(entry) = reader.last(key).filter(|_| span.is_zero()) {
                reader.refuse(
                    entry,
                    &format!("{key}= is 0; write a time like 10s, or Monitor=no for none"),
                );
            }
        }
        Some(Check { command: reader.last("HealthCheck")?, interval, timeout })
    }

    pub fn units(&self, reader: &Reader<'_>, names: &Names<'_>, units: &mut Units) {
        let timer = names.health("", "timer");
        units.unit(&timer, &self.timer(reader, names));
        let service = names.health("", "service");
        units.unit(&service, &self.service(reader, names));
    }

    fn timer(&self, reader: &Reader<'_>, names: &Names<'_>) -> UnitFile {
        let description =
            format!("archivist: timer of health checks of worker %i of pool {}", reader.name());
        let mut file = with_worker(reader, names, &description);
        let interval = exact_span(self.interval);
        file.set("Timer", "OnActiveSec", &interval);
        file.set("Timer", "OnUnitInactiveSec", &interval);
        file.set("Timer", "AccuracySec", "100ms");
        file.pass("Timer", reader.section("Timer"));
        file
    }

    fn service(&self, reader: &Reader<'_>, names: &Names<'_>) -> UnitFile {
        let description = format!("archivist: health check of worker %i of pool {}", reader.name());
        let mut file = with_worker(reader, names, &description);
        let ending = format!("archivist-unhealthy@{}-%i.service", reader.name());
        file.set("Unit", "OnFailure", &ending);
        // A failed check must not make the system degraded.
        file.set("Unit", "CollectMode", "inactive-or-failed");
        file.set("Service", "Type", "oneshot");
        file.set("Service", "Slice", &names.slice());
        file.set("Service", "ExecStart", &self.command.value);
        file.set("Service", "TimeoutStartSec", &exact_span(self.timeout));
        file.set("Service", "TimeoutStopSec", "1s");
        // A check stops with its worker, and has not failed then.
        file.set("Service", "SuccessExitStatus", "SIGTERM");
        set_environment(reader, names, &mut file);
        let shared = reader.section("Service");
        file.pass("Service", shared.filter(|entry| SHARED.contains(&entry.key.as_str())));
        file
    }
}

/// A unit that exists only while the worker does.
fn with_worker(reader: &Reader<'_>, names: &Names<'_>, description: &str) -> UnitFile {
    let mut file = UnitFile::new(reader.path(), description);
    file.set("Unit", "Documentation", "man:archivist.pool(5)");
    file.set("Unit", "BindsTo", &names.this_worker());
    file.set("Unit", "After", &names.this_worker());
    // The start limit of the worker limits these starts too.
    file.set("Unit", "StartLimitIntervalSec", "0");
    file
}
