//! `archivist hook trial`: tries whether this machine records and replays a page, for `archivist doctor`.
//!
//! The page is on the loopback and served by this process. The hooks that record and verify every page
//! run as a worker runs them, in a temporary directory. The server ends before the replay, so that all
//! answers come from the recording.

mod server;

use crate::chromium::recorder::{self, RECORDING};
use crate::process::scratch::Scratch;
use crate::visit::recording::Description;
use crate::visit::{self, BROWSER, BrowserInfo};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use server::TrialServer;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Settings of the hooks: a browser of its own, and time for a slow machine.
const SETTINGS: [(&str, &str); 6] = [
    ("CHROMIUM_ISOLATION", "snapshot"),
    ("CHROMIUM_TIMEOUT", "60"),
    ("VERIFY_ENABLED", "true"),
    ("VERIFY_PERCENT", "100"),
    ("VERIFY_TIMEOUT", "60"),
    ("WACZ_TIMEOUT", "30"),
];
const WITHOUT_RESULT: &str = "a hook has ended without a result";
/// Longest output of a hook in bytes.
const OUTPUT_MAX_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trial {
    NoBrowser(String),
    /// The page was not recorded, for this reason.
    NotRecorded(String),
    Recorded(TrialRecording),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialRecording {
    pub product: String,
    pub requests: usize,
    /// Requests that are in the recording.
    pub kept: usize,
    /// Whether the browser stopped all responses, because it cannot stream them.
    pub is_stopped: bool,
    /// Milliseconds from the start of the browser to its end.
    pub elapsed: u64,
    /// What its replay showed, or why there was none.
    pub replay: Result<TrialReplay, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrialReplay {
    /// Requests that were answered exactly.
    pub exact: u64,
    /// Requests that were not answered.
    pub missing: u64,
    /// The lowest share of answers, text and picture.
    pub fidelity: f64,
    /// Milliseconds from the start of the browser to its end.
    pub elapsed: u64,
}

/// Makes a trial and prints it as one line of JSON.
pub fn main() -> ExitCode {
    let trial = run().unwrap_or_else(|end| end);
    match serde_json::to_string(&trial) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("failed to write the result: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Trial, Trial> {
    let home = Scratch::new("trial").map_err(|finding| Trial::NotRecorded(finding.output_str))?;
    let server = TrialServer::start()
        .map_err(|error| Trial::NotRecorded(format!("failed to serve the page: {error}")))?;
    let hooks = TrialHooks { home: &home, url: server.url() };
    let start = Instant::now();
    let mut tab = hooks.spawn("chromium_tab", visit::PLUGIN)?;
    let recorded = ready(&mut tab).and_then(|()| hooks.run("wacz", recorder::PLUGIN));
    let closed = close(tab);
    let elapsed = milliseconds(start.elapsed());
    server.end();
    recorded.and(closed)?;
    let in_home = |plugin: &str, name: &str| home.path(plugin).join(name);
    let browser: Option<BrowserInfo> = visit::read(&in_home(visit::PLUGIN, BROWSER));
    let path = in_home(recorder::PLUGIN, RECORDING);
    let recording = Description::read(&path)
        .ok_or_else(|| Trial::NotRecorded(format!("failed to read '{}'", path.display())))?;
    let start = Instant::now();
    let replay = match hooks.run("verify", "verify") {
        Ok(record) => {
            let shown = TrialReplay::deserialize(&record["figures"]);
            let elapsed = milliseconds(start.elapsed());
            shown
                .map(|shown| TrialReplay { elapsed, ..shown })
                .map_err(|error| format!("its figures cannot be read: {error}"))
        }
        Err(Trial::NoBrowser(reason) | Trial::NotRecorded(reason)) => Err(reason),
        Err(Trial::Recorded(_)) => Err("it has no record".to_owned()),
    };
    Ok(Trial::Recorded(TrialRecording {
        product: browser.unwrap_or_default().product,
        requests: recording.requests,
        kept: recording.kept,
        is_stopped: recording.is_stopped,
        elapsed,
        replay,
    }))
}

struct TrialHooks<'a> {
    home: &'a Scratch,
    url: String,
}

impl TrialHooks<'_> {
    fn spawn(&self, name: &str, plugin: &str) -> Result<Child, Trial> {
        let failed = |error| Trial::NotRecorded(format!("failed to start '{name}': {error}"));
        // The tab records if the directory of that plugin is there.
        for plugin in [plugin, recorder::PLUGIN] {
            fs::create_dir_all(self.home.path(plugin)).map_err(failed)?;
        }
        Command::new(program().map_err(failed)?)
            .args(["hook", name])
            .arg(format!("--url={}", self.url))
            .env("SNAP_DIR", self.home.dir())
            .env("CRAWL_DIR", self.home.dir())
            .envs(SETTINGS)
            .current_dir(self.home.path(plugin))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)
    }

    /// Runs a hook until it ends. Returns its record.
    fn run(&self, name: &str, plugin: &str) -> Result<Value, Trial> {
        close_output(self.spawn(name, plugin)?)
    }
}

fn program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

/// Waits for the first line of a background hook, which says that it is ready.
fn ready(hook: &mut Child) -> Result<(), Trial> {
    let mut line = String::new();
    let Some(output) = &mut hook.stdout else {
        return Ok(());
    };
    // Lines that are read ahead are lost: what follows the first one is a record.
    let mut output = BufReader::with_capacity(1, output).take(OUTPUT_MAX_BYTES);
    if !output.read_line(&mut line).is_ok_and(|length| length > 0) {
        return Err(Trial::NotRecorded(WITHOUT_RESULT.to_owned()));
    }
    match serde_json::from_str::<Value>(&line) {
        Ok(record) => judge(record).map(drop),
        Err(_) => Ok(()),
    }
}

fn close(hook: Child) -> Result<(), Trial> {
    if let Ok(id) = i32::try_from(hook.id()) {
        // A hook that has ended needs no signal.
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    }
    close_output(hook).map(drop)
}

/// Waits until a hook ends. Returns its record.
fn close_output(mut hook: Child) -> Result<Value, Trial> {
    let mut text = String::new();
    if let Some(output) = hook.stdout.take() {
        let _ = output.take(OUTPUT_MAX_BYTES).read_to_string(&mut text);
    }
    let status = hook.wait();
    let mut last_first = text.lines().rev();
    match last_first.find_map(|line| serde_json::from_str::<Value>(line).ok()) {
        Some(record) => judge(record),
        None if status.is_ok_and(|status| status.success()) => Ok(Value::Null),
        None => Err(Trial::NotRecorded(WITHOUT_RESULT.to_owned())),
    }
}

/// The record of a hook that succeeded.
fn judge(record: Value) -> Result<Value, Trial> {
    let reason = || record["output_str"].as_str().unwrap_or_default().to_owned();
    match record["status"].as_str() {
        Some("succeeded") => Ok(record),
        Some("skipped") => Err(Trial::NoBrowser(reason())),
        _ => Err(Trial::NotRecorded(reason())),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
