//! `NAME.watch` → a timer for each kind of check. A timer starts an instance of the template
//! archivist-watch@.service, which does nothing but put the check into the orchestrator's queue; the bus
//! starts that if it does not run.

use super::Context;
use super::install;
use super::unit_file::{UnitFile, Units};
use archivist_core::model::CheckKind;
use archivist_core::text::exact_span;
use archivist_shared::declare::reader::Reader;
use archivist_shared::declare::watch::{KEYS, Missed, Problem, SECTION, Schedule, Watch, When};

/// Sections whose assignments are taken over: [Unit], [Timer] and [Install] by the timers,
/// [Service] by what they start.
const PASSED: [&str; 4] = ["Unit", "Service", "Timer", "Install"];

/// Name of the timer of one kind.
pub fn timer_name(watch: &str, kind: CheckKind) -> String {
    format!("archivist-watch-{watch}-{kind}.timer")
}

/// What a timer starts. The kind comes first: it has no '-', a watch may have.
pub fn service_name(watch: &str, kind: CheckKind) -> String {
    format!("archivist-watch@{kind}-{watch}.service")
}

/// The units of one watch.
pub fn units(reader: &mut Reader<'_>, _context: &Context) -> Units {
    reader.know(&KEYS, &PASSED);
    let entries: Vec<_> = reader.section(SECTION).collect();
    let (watch, problems) = Watch::read(reader.name(), entries.iter().copied());
    for Problem { place, what } in problems {
        let at = entries
            .iter()
            .find(|entry| Some(&entry.place) == place.as_ref());
        match at {
            Some(entry) => reader.refuse(entry, &what),
            None => reader.refuse_all(&what),
        }
    }
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
            let keep = if watch.missed == Missed::One {
                "yes"
            } else {
                "no"
            };
            file.set("Timer", "Persistent", keep);
        }
        When::Apart(span) => {
            let span = exact_span(*span);
            file.set("Timer", "OnActiveSec", &span);
            file.set("Timer", "OnUnitActiveSec", &span);
        }
        When::Never => {}
    }
    // The default is a minute: no good to who wants to know of every three.
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
