//! Makes a timer for each kind of check of `NAME.watch`. A timer starts an instance of the template
//! archivist-watch@.service, which only adds the check to the orchestrator's queue; the bus starts
//! the orchestrator if necessary.

use super::Context;
use super::install;
use super::unit_file::{UnitFile, Units};
use archivist_config::declare::reader::Reader;
use archivist_config::declare::watch::{KEYS, Missed, Schedule, Watch, When};
use archivist_core::model::CheckKind;
use archivist_core::text::exact_span;

/// Sections whose assignments are passed on: [Unit], [Timer] and [Install] to the timers, [Service]
/// to the services that they start.
const PASSED: [&str; 4] = ["Unit", "Service", "Timer", "Install"];

pub fn timer_name(watch: &str, kind: CheckKind) -> String {
    format!("archivist-watch-{watch}-{kind}.timer")
}

/// Returns the service that a timer starts. The kind comes first: it has no '-', and a watch may
/// have one.
pub fn service_name(watch: &str, kind: CheckKind) -> String {
    format!("archivist-watch@{kind}-{watch}.service")
}

pub fn units(reader: &mut Reader<'_>, _context: &Context) -> Units {
    reader.know(KEYS, &PASSED);
    let watch = Watch::read(reader);
    let mut units = Units::default();
    for kind in watch.kinds() {
        let name = timer_name(&watch.name, kind);
        units.unit(&name, &timer(reader, &watch, kind, &watch.schedule(kind)));
        match reader.section("Install").next() {
            Some(_) => install::links(reader, &name, &mut units),
            None => units.link(format!("timers.target.wants/{name}"), format!("../{name}")),
        }
        if reader.section("Service").next().is_some() {
            let path = format!("{}.d/50-watch.conf", service_name(&watch.name, kind));
            let mut file = UnitFile::drop_in();
            file.pass("Service", reader.section("Service"));
            units.unit(&path, &file);
        }
    }
    units
}

fn timer(reader: &Reader<'_>, watch: &Watch, kind: CheckKind, schedule: &Schedule) -> UnitFile {
    let description = format!("archivist: {kind} of watch {}", watch.name);
    let mut file = UnitFile::new(reader.path(), &description);
    file.set("Unit", "Documentation", "man:archivist.watch(5)");
    file.pass("Unit", reader.section("Unit"));
    match &schedule.when {
        When::Calendar(expression) => {
            file.set("Timer", "OnCalendar", expression);
            let keep = if watch.missed == Missed::One { "yes" } else { "no" };
            file.set("Timer", "Persistent", keep);
        }
        When::Apart(span) => {
            let span = exact_span(*span);
            file.set("Timer", "OnActiveSec", &span);
            file.set("Timer", "OnUnitActiveSec", &span);
        }
        When::Never => {}
    }
    // The default accuracy of a minute is too coarse for checks every three minutes.
    let accuracy = match kind {
        CheckKind::Status => "100ms",
        _ => "1s",
    };
    file.set("Timer", "AccuracySec", accuracy);
    if !watch.spread.is_zero() {
        let spread = exact_span(watch.spread);
        file.set("Timer", "RandomizedDelaySec", &spread);
        file.set("Timer", "FixedRandomDelay", "yes");
    }
    file.set("Timer", "Unit", &service_name(&watch.name, kind));
    file.pass("Timer", reader.section("Timer"));
    file
}
