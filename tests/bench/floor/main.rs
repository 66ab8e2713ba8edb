//! The floor of tests/bench: the cost of a unit and of a process in systemd and the kernel alone,
//! without queue, decisions and records. Units are built by the code that the orchestrator uses; a
//! signal reports the end of each.
//!
//! usage: floor units DIRECTORY COUNT AT-ONCE    units as hooks, which run one after another or so many at once
//!        floor seam DIRECTORY COUNT AT-ONCE    the same units, and what the orchestrator reads of each
//!        floor processes DIRECTORY COUNT AT-ONCE    the same program, started by fork and exec
//!
//! DIRECTORY has `argv` and `environ` as a hook saw them (/proc/PID/cmdline, /proc/PID/environ), and `binds`:
//! a line each, the hook's working directory first, then what it may write, then `-` and what it may read.
//! The answer is a JSON object: each start in milliseconds until its end was known, all of them, and
//! our own CPU time.

mod seam;
mod units;

use archivist_core::model::{CrawlId, Owner, SnapshotId};
use archivist_core::unit::{HookSpec, Names, UnitSpec};
use nix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

type Answer<T> = Result<T, Box<dyn std::error::Error>>;

/// What every start has in common.
struct Hook {
    argv: Vec<String>,
    environment: Vec<(String, String)>,
    working_directory: PathBuf,
    bind: Vec<PathBuf>,
    bind_read_only: Vec<PathBuf>,
    /// Standard output of each goes to a file of its own here.
    output: PathBuf,
}

/// Where the package has what starts hooks.
const LAUNCHER: &str = "/usr/lib/archivist/archivist-hook-exec";

/// What systemd sets by itself; passing it again would be a difference.
const SYSTEMDS: &[&str] = &[
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LANG",
    "LOGNAME",
    "MEMORY_PRESSURE_WATCH",
    "MEMORY_PRESSURE_WRITE",
    "SHELL",
    "SYSTEMD_EXEC_PID",
    "USER",
];

impl Hook {
    fn read(directory: &Path) -> Answer<Hook> {
        let binds = read(directory, "binds")?;
        let mut places = binds.lines().map(PathBuf::from);
        let working_directory = places.next().ok_or("binds: no working directory")?;
        let (mut bind, mut bind_read_only) = (Vec::new(), Vec::new());
        let mut into = &mut bind;
        for place in places {
            if place.as_os_str() == "-" { into = &mut bind_read_only } else { into.push(place) }
        }
        let environment = words(&read(directory, "environ")?)
            .filter_map(|pair| pair.split_once('='))
            .filter(|(name, _)| !SYSTEMDS.contains(name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Ok(Hook {
            argv: words(&read(directory, "argv")?).map(str::to_owned).collect(),
            environment,
            working_directory,
            bind,
            bind_read_only,
            output: directory.join("output"),
        })
    }

    fn spec(&self, number: usize) -> UnitSpec {
        let id = SnapshotId(i64::try_from(number).unwrap_or(i64::MAX));
        let hook = HookSpec {
            owner: Owner::Snapshot(id),
            crawl: CrawlId(1),
            snapshot: Some(id),
            url: "http://bench.test/1",
            plugin: "benchtrivial",
            hook: "on_Snapshot__20_hook01",
            unit_part: "hook01",
            argv: self.argv.clone(),
            environment: self.environment.clone(),
            launcher: Some(LAUNCHER.into()),
            not_after: None,
            working_directory: self.working_directory.clone(),
            limit: Duration::from_secs(60),
            bind: self.bind.clone(),
            bind_read_only: self.bind_read_only.clone(),
            tmp: None,
            network: None,
            addresses: Default::default(),
            user: Some("archivist-hook-1".into()),
        };
        UnitSpec {
            stdin: Some(self.output.join(format!("{number}.input"))),
            ..UnitSpec::hook(&Names::new("floor"), hook)
        }
    }

    /// Writes the standard input of a unit, and returns its standard output.
    fn prepare(&self, spec: &UnitSpec, number: usize) -> io::Result<OwnedFd> {
        if let (Some(file), Some(launch)) = (&spec.stdin, spec.launch()) {
            std::fs::write(file, launch)?;
        }
        Ok(self.output(number)?.into())
    }

    fn output(&self, number: usize) -> io::Result<std::fs::File> {
        std::fs::File::create(self.output.join(number.to_string()))
    }
}

fn read(directory: &Path, name: &str) -> Answer<String> {
    let path = directory.join(name);
    let text = std::fs::read_to_string(&path);
    Ok(text.map_err(|error| format!("{}: {error}", path.display()))?)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split('\0').filter(|word| !word.is_empty())
}

/// Starts `count` processes, `at_once` at a time; the milliseconds that each took.
fn processes(hook: &Hook, count: usize, at_once: usize) -> Answer<Vec<f64>> {
    let (next, each) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
    std::thread::scope(|scope| {
        let hand = || -> io::Result<()> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(());
                }
                let began = Instant::now();
                process(hook, number)?;
                let took = millis(began.elapsed());
                each.lock().expect("no hand panics").push(took);
            }
        };
        let hands: Vec<_> = (0..at_once).map(|_| scope.spawn(hand)).collect();
        let ends = hands.into_iter().map(|hand| hand.join());
        ends.flatten().collect::<io::Result<Vec<()>>>()
    })?;
    Ok(each.into_inner().expect("no hand panicked"))
}

fn process(hook: &Hook, number: usize) -> io::Result<()> {
    let (program, arguments) = hook.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let status = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(hook.environment.iter().cloned())
        .current_dir(&hook.working_directory)
        .stdin(Stdio::null())
        .stdout(hook.output(number)?)
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{program}: {status}"))) }
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

/// CPU time of this process so far in milliseconds, without its children's.
fn own_cpu() -> Answer<f64> {
    let spent = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?;
    Ok(millis(Duration::from(spent)))
}

fn main() -> Answer<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, directory, count, at_once] = arguments.as_slice() else {
        return Err("usage: floor units|seam|processes DIRECTORY COUNT AT-ONCE".into());
    };
    let hook = Hook::read(Path::new(directory))?;
    let (count, at_once) = (count.parse()?, at_once.parse()?);
    let (began, cpu_before) = (Instant::now(), own_cpu()?);
    let each = match what.as_str() {
        "units" => units::run(&hook, count, at_once)?,
        "seam" => seam::run(&hook, count, at_once)?,
        "processes" => processes(&hook, count, at_once)?,
        other => return Err(format!("neither units, seam nor processes: '{other}'").into()),
    };
    let (all, cpu) = (millis(began.elapsed()), own_cpu()? - cpu_before);
    println!("{}", json!({ "each_ms": each, "all_ms": all, "cpu_ms": cpu }));
    Ok(())
}
