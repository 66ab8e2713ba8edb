//! Makes the units of `NAME.pool`: a template service with one instance per worker, a target that
//! wants them all, and with a health check a timer and a service per worker. systemd supervises the
//! workers: it restarts those that fail or miss heartbeats, and none that is being stopped.

mod health;
mod restarts;
mod title;

use super::Context;
use super::install;
use super::unit_file::{UnitFile, Units, literal};
use archivist_config::declare::declaration::{Declaration, Kind};
use archivist_config::declare::reader::Reader;
use archivist_core::text::Problem;
use archivist_core::text::exact_span;
use restarts::Restarts;
use std::path::PathBuf;
use std::time::Duration;
use title::titled;

archivist_config::declared_keys! {
    /// The command line of a worker, as ExecStart= in systemd.service(5)
    ///
    /// Required. Its environment has ARCHIVIST_POOL, ARCHIVIST_WORKER_INDEX (from 0),
    /// ARCHIVIST_WORKER_NAME and ARCHIVIST_WORKER_UNIT.
    Exec;
    /// Number of workers, 0 to 1000
    Workers = WORKERS;
    /// Name of a worker
    WorkerName = WORKER_NAME;
    /// Whether ps(1) and similar programs show a worker as NAME[INDEX], with its arguments
    ///
    /// This is argv[0] of the program. Programs that derive their files from argv[0], such as
    /// python3 in a virtual environment, must not have it, and for scripts the kernel replaces it
    /// by the interpreter.
    ProcessTitle = shown(PROCESS_TITLE);
    /// Description of the pool
    Description;
    /// Environment of the workers, as in systemd.exec(5)
    Environment;
    /// Limit of the memory of each worker, as in systemd.resource-control(5)
    ///
    /// Limits of all workers together belong in the section [Slice].
    MemoryMax;
    /// Limit of the CPU time of each worker, as in systemd.resource-control(5)
    ///
    /// Limits of all workers together belong in the section [Slice].
    CPUQuota;
    /// If no, systemd neither restarts workers nor checks heartbeats and health
    Monitor = shown(MONITOR);
    /// Time without a heartbeat after which a worker is killed and restarted
    ///
    /// If a worker has sent at least one heartbeat and then sends none for this time, all processes
    /// in its control group are killed and it is restarted. A worker sends a heartbeat by running
    /// archivist heartbeat, or with sd_notify(3): the first message contains
    /// "WATCHDOG_USEC=$ARCHIVIST_HEARTBEAT_USEC" and "WATCHDOG=1", later ones only the latter. A
    /// worker that never sends a heartbeat is not restarted, because this is a fault of the
    /// program; archivist pool status reports it. Not set by default.
    HeartbeatSec;
    /// Command line of a health check
    ///
    /// It runs for each worker, in a unit of its own, with the Environment=, user and working
    /// directory of the worker. Exit status 0 means that the worker is healthy. After exit status
    /// 1, or if the check takes longer than HealthTimeoutSec=, this worker is stopped and
    /// restarted; other workers are not affected. archivist pool status prints this as the reason
    /// of the restart. Not set by default.
    ///
    /// Every other end says nothing about the worker, which continues: the check cannot be executed
    /// (its program, user or working directory is missing), exits with another status, or is killed
    /// by a signal. archivist pool status prints the reason. A check whose program has other exit
    /// statuses needs a shell: '/bin/sh -c "curl -f http://localhost/ || exit 1"'.
    HealthCheck;
    /// Time before the first health check, and from the end of one to the start of the next
    HealthIntervalSec = exact_span(health::INTERVAL);
    /// Time limit of a health check
    HealthTimeoutSec = exact_span(health::TIMEOUT);
    /// Delay before a worker that ended is restarted
    RestartSec = exact_span(restarts::FIRST);
    /// Longest delay before a worker that ended is restarted
    ///
    /// With systemd 254 or newer, the delay grows with each restart, up to this value after the
    /// fifth.
    ///
    /// A worker is restarted indefinitely, however often it crashes. Only if 20 consecutive starts
    /// each last less than a second on average, its unit fails; archivist pool restart starts it
    /// again.
    RestartMaxSec = format!("{}, or to RestartSec= if that is longer", exact_span(restarts::LONGEST));
    /// Time between SIGTERM to a worker that is stopped and SIGKILL to its remaining processes
    ///
    /// 'infinity' disables SIGKILL.
    StopSec = exact_span(STOP);
}

/// Sections whose assignments are passed on: [Unit] and [Service] to the workers, [Timer] to the
/// timers of health checks, [Slice] to the slice, [Install] to the target.
const PASSED: [&str; 5] = ["Unit", "Service", "Timer", "Slice", "Install"];

/// Most workers of a pool; more are a typing error, and slow down a slice.
pub const WORKERS_MAX: u32 = 1000;

const WORKERS: u32 = 1;
const WORKER_NAME: &str = "worker-%i";
const PROCESS_TITLE: bool = false;
const MONITOR: bool = true;
const STOP: Duration = Duration::from_secs(5);

fn shown(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

/// Unit names of one pool.
struct Names<'a>(&'a str);

impl Names<'_> {
    fn template(&self) -> String {
        format!("archivist-pool-{}@.service", self.0)
    }

    fn worker(&self, index: u32) -> String {
        format!("archivist-pool-{}@{index}.service", self.0)
    }

    fn worker_pattern(&self) -> String {
        format!("archivist-pool-{}@*.service", self.0)
    }

    /// Name of the worker of the same instance, within a template.
    fn this_worker(&self) -> String {
        format!("archivist-pool-{}@%i.service", self.0)
    }

    fn target(&self) -> String {
        format!("archivist-pool-{}.target", self.0)
    }

    fn slice(&self) -> String {
        format!("archivist-pool-{}.slice", self.0)
    }

    fn health(&self, instance: &str, end: &str) -> String {
        format!("archivist-pool-{}-health@{instance}.{end}", self.0)
    }
}

/// Returns the units of one pool.
pub fn units(reader: &mut Reader<'_>, context: &Context) -> Units {
    reader.know(KEYS, &PASSED);
    let names = Names(reader.name());
    let mut units = Units::default();
    let monitored = reader.flag("Monitor").unwrap_or(MONITOR);
    let health = health::Check::read(reader);
    let checked = health.as_ref().filter(|_| monitored);
    let worker = worker(reader, &names, context, monitored, checked.is_some());
    units.unit(&names.template(), &worker);
    units.unit(&names.target(), &target(reader, &names));
    install::links(reader, &names.target(), &mut units);
    if let Some(check) = checked {
        check.units(reader, &names, &mut units);
    }
    if reader.section("Slice").next().is_some() {
        units.unit(&names.slice(), &slice(reader));
    }
    units
}

fn target(reader: &mut Reader<'_>, names: &Names<'_>) -> UnitFile {
    let count = reader.number("Workers", 0..=WORKERS_MAX).unwrap_or(WORKERS);
    let description = match reader.last("Description") {
        Some(entry) => entry.value.clone(),
        None => format!("archivist: pool {}", reader.name()),
    };
    let mut file = UnitFile::new(reader.path(), &description);
    file.set("Unit", "Documentation", "man:archivist.pool(5)");
    let workers: Vec<_> = (0..count).map(|index| names.worker(index)).collect();
    if !workers.is_empty() {
        file.set("Unit", "Wants", &workers.join(" "));
    }
    file
}

fn slice(reader: &Reader<'_>) -> UnitFile {
    let description = format!("archivist: pool {}", reader.name());
    let mut file = UnitFile::new(reader.path(), &description);
    file.pass("Slice", reader.section("Slice"));
    file
}

fn worker(
    reader: &mut Reader<'_>,
    names: &Names<'_>,
    context: &Context,
    monitored: bool,
    checked: bool,
) -> UnitFile {
    let restarts = Restarts::read(reader, context);
    let description = format!("archivist: worker %i of pool {}", reader.name());
    let mut file = UnitFile::new(reader.path(), &description);
    file.set("Unit", "Documentation", "man:archivist.pool(5)");
    // Stops and restarts with the target, whose Wants= starts it.
    file.set("Unit", "PartOf", &names.target());
    if checked {
        file.set("Unit", "Wants", &names.health("%i", "timer"));
    }
    if monitored {
        restarts.set_limit(&mut file);
    }
    file.pass("Unit", reader.section("Unit"));
    file.set("Service", "Type", "exec");
    file.set("Service", "Slice", &names.slice());
    if let Some(exec) = reader.required("Exec", "/usr/bin/my-worker --number %i") {
        let titled = if reader.flag("ProcessTitle").unwrap_or(PROCESS_TITLE) {
            titled(&exec.value, reader.name())
        } else {
            Ok(exec.value.clone())
        };
        match titled {
            Ok(start) => {
                file.set("Service", "ExecStart", &start);
            }
            Err(error) => reader.refuse(exec, &error),
        }
    }
    set_environment(reader, names, &mut file);
    if monitored {
        restarts.set_delays(&mut file);
        set_heartbeat(reader, &mut file);
    }
    let stop = match reader.last("StopSec") {
        Some(entry) if entry.value == "infinity" => entry.value.clone(),
        _ => exact_span(reader.span("StopSec").unwrap_or(STOP)),
    };
    file.set("Service", "TimeoutStopSec", &stop);
    for key in ["MemoryMax", "CPUQuota"] {
        if let Some(entry) = reader.last(key) {
            file.set("Service", key, &entry.value);
        }
    }
    file.pass("Service", reader.section("Service"));
    file
}

/// Sets the environment of a worker and of its health check.
fn set_environment(reader: &Reader<'_>, names: &Names<'_>, file: &mut UnitFile) {
    let name = reader.last("WorkerName").map_or(WORKER_NAME, |entry| entry.value.as_str());
    for (key, value) in [
        ("ARCHIVIST_POOL", reader.name()),
        ("ARCHIVIST_WORKER_INDEX", "%i"),
        ("ARCHIVIST_WORKER_NAME", name),
        ("ARCHIVIST_WORKER_UNIT", &names.this_worker()),
    ] {
        file.set("Service", "Environment", &quoted(&format!("{key}={value}")));
    }
    for entry in reader.all("Environment") {
        file.set("Service", "Environment", &entry.value);
    }
}

/// The first heartbeat arms the watchdog and sets its limit (WATCHDOG_USEC= of sd_notify(3)). With
/// WatchdogSec=, systemd would repeatedly kill a program that never sends one, which is a mistake
/// to report and not one that restarts fix.
fn set_heartbeat(reader: &mut Reader<'_>, file: &mut UnitFile) {
    let Some(limit) = reader.span("HeartbeatSec") else {
        return;
    };
    if limit.is_zero() {
        return;
    }
    let limit = format!("ARCHIVIST_HEARTBEAT_USEC={}", limit.as_micros());
    file.set("Service", "Environment", &limit);
    file.set("Service", "NotifyAccess", "all");
    file.set("Service", "WatchdogSignal", "SIGTERM");
}

/// Returns one word of a unit file's value that may contain specifiers.
fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_=.:/@%+,".contains(&b);
    if word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

/// Returns a command line in which systemd expands neither specifiers nor variables.
pub fn command_line(argv: &[String]) -> String {
    let word = |word: &String| {
        let plain = literal(word).replace('$', "$$");
        if plain.is_empty() { "\"\"".to_owned() } else { quoted(&plain) }
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A declared pool, as far as known without systemd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Name of the declaration.
    pub name: String,
    /// `Description=`; empty without it.
    pub description: String,
    /// The main file.
    pub path: PathBuf,
    /// Number of workers (`Workers=`).
    pub workers: u32,
    /// Whether its target starts with another unit, such as multi-user.target.
    pub at_boot: bool,
    /// Longest time between two heartbeats of a worker; `None` without monitoring.
    pub heartbeat: Option<Duration>,
    /// Whether its workers have health checks.
    pub checked: bool,
    /// Problems of the file; none of its workers starts while one is fatal.
    pub problems: Vec<Problem>,
}

impl Pool {
    /// Returns the pools among the declarations.
    pub fn all(declarations: &[Declaration]) -> Vec<Pool> {
        let pools = declarations.iter().filter(|d| d.kind == Kind::Pool);
        pools.map(Pool::of).collect()
    }

    fn of(declaration: &Declaration) -> Pool {
        let mut reader = Reader::new(declaration);
        units(&mut reader, &Context::default());
        let problems = reader.finish();
        let mut reader = Reader::new(declaration);
        let monitored = reader.flag("Monitor").unwrap_or(MONITOR);
        let heartbeat = reader.span("HeartbeatSec").filter(|span| !span.is_zero());
        Pool {
            name: declaration.name.clone(),
            description: reader.last("Description").map_or_else(String::new, |e| e.value.clone()),
            path: declaration.path.clone(),
            workers: reader.number("Workers", 0..=WORKERS_MAX).unwrap_or(WORKERS),
            at_boot: reader.section("Install").next().is_some(),
            heartbeat: heartbeat.filter(|_| monitored),
            checked: monitored && reader.last("HealthCheck").is_some(),
            problems,
        }
    }

    /// Returns the name of the target that starts and stops all workers.
    pub fn target(&self) -> String {
        Names(&self.name).target()
    }

    /// Returns the unit name of the worker with this instance number.
    pub fn worker(&self, index: u32) -> String {
        Names(&self.name).worker(index)
    }

    /// Returns the service of the health check of a worker.
    pub fn health_service(&self, index: u32) -> String {
        Names(&self.name).health(&index.to_string(), "service")
    }

    /// Returns its timer.
    pub fn health_timer(&self, index: u32) -> String {
        Names(&self.name).health(&index.to_string(), "timer")
    }

    /// Returns the index of the worker whose unit has this name.
    pub fn index_of(&self, unit: &str) -> Option<u32> {
        let template = Names(&self.name).template();
        let rest = unit.strip_prefix(template.strip_suffix(".service")?)?;
        let index = rest.strip_suffix(".service")?.parse().ok()?;
        (self.worker(index) == unit).then_some(index)
    }

    /// Returns the pattern of all workers of this pool, whatever their index.
    pub fn pattern(&self) -> String {
        Names(&self.name).worker_pattern()
    }

    /// Returns the patterns of all units that log for the pool, or for one worker.
    pub fn log_patterns(&self, index: Option<u32>) -> Vec<String> {
        let names = Names(&self.name);
        let instance = index.map_or("*".to_owned(), |index| index.to_string());
        vec![
            format!("archivist-pool-{}@{instance}.service", self.name),
            names.health(&instance, "service"),
            format!("archivist-unhealthy@{}-{instance}.service", self.name),
        ]
    }
}
