//! Outcome of a unit, read from its properties. A missing unit also reads as `Result=success`,
//! status 0, so LoadState is checked first.

use super::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Resources that a unit used, as far as kernel and service manager account for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounting {
    /// CPU time in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_usec: Option<u64>,
    /// Peak memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_peak: Option<u64>,
    /// Bytes read from and written to block devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_read: Option<u64>,
    /// Bytes written to block devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_write: Option<u64>,
    /// Bytes received from and sent to the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_in: Option<u64>,
    /// Bytes sent to the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_out: Option<u64>,
}

/// Properties of a service unit that determine its outcome (org.freedesktop.systemd1(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// LoadState: `loaded`, or `not-found` for a unit that does not exist.
    pub load_state: String,
    /// ActiveState: `active`, `failed`, `inactive` and others.
    pub active_state: String,
    /// SubState: `exited` for an active unit whose process has ended.
    pub sub_state: String,
    /// Result: `success`, or why systemd regards the unit as failed.
    pub result: String,
    /// `CLD_EXITED` (1), `CLD_KILLED` (2), `CLD_DUMPED` (3); 0 while unknown.
    pub exec_main_code: i32,
    /// Exit code or signal number.
    pub exec_main_status: i32,
    /// ExecMainStartTimestamp; `None` before the start.
    pub started: Option<Time>,
    /// ExecMainExitTimestamp; `None` while the main process runs.
    pub ended: Option<Time>,
    /// InvocationID in hex; empty when unknown.
    pub invocation: String,
    pub kill_mode: String,
    /// CPU time, memory and traffic of all its processes.
    pub accounting: Accounting,
    /// A job of systemd stopped the unit while its main process ran.
    pub was_stopped: bool,
}

impl Reading {
    /// Returns whether the properties were read at different moments: the main process ended, but
    /// the unit still runs or starts. (A unit may fail between the two calls that read them.)
    pub fn is_torn(&self) -> bool {
        let at_work = matches!(
            (self.active_state.as_str(), self.sub_state.as_str()),
            ("active", "running") | ("activating", "start")
        );
        at_work && self.exec_main_code != 0
    }
}

/// Job result if a dependency failed to start (JobRemoved in org.freedesktop.systemd1(5)). Such a
/// unit leaves no other trace.
pub const DEPENDENCY: &str = "dependency";

const CLD_EXITED: i32 = 1;
const CLD_KILLED: i32 = 2;
const CLD_DUMPED: i32 = 3;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "detail")]
pub enum Outcome {
    Exit(i32),
    Signal(i32),
    /// The unit's own time limit (RuntimeMaxSec=) ended it.
    TimeLimit,
    /// It missed its watchdog (WatchdogSec=).
    Watchdog,
    OutOfMemory,
    /// The orchestrator stopped it, because the disk was nearly full and it had written most.
    DiskLimit,
    Interrupted,
    /// systemd stopped the unit of a hook, alone or with its slice, and not for the orchestrator.
    Stopped,
    /// Its crawl or snapshot was cancelled, and it did not end within its grace after SIGTERM.
    Killed,
    /// The lease of its host ended before the start, so the hook was not executed.
    Late,
    /// systemd failed to start it; the text says why.
    NotStarted(String),
    /// Unknown, and no longer knowable.
    Lost,
}

/// Exit codes of systemd for failures between fork and exec (systemd.exec(5)).
pub fn start_failure(code: i32) -> Option<&'static str> {
    Some(match code {
        200 => "its working directory cannot be entered",
        202 => "a descriptor could not be passed to it",
        203 => {
            "its program cannot be executed (missing, not executable, or its interpreter is missing)"
        }
        204 => "no memory for its arguments",
        205 => "a resource limit could not be set",
        206 => "its OOM score could not be set",
        208 => "its standard input could not be set up",
        209 => "its standard output could not be set up",
        214 => "its CPU scheduling could not be set",
        216 => "its group does not exist or cannot be set",
        217 => "its user does not exist, or a user namespace cannot be created",
        218 => "its capabilities could not be set",
        219 => "its cgroup could not be created",
        222 => "its standard error could not be set up",
        224 => "its PAM session could not be opened",
        225 => "its network namespace could not be created",
        226 => "its mount namespace could not be set up",
        227 => "no new privileges could not be set",
        228 => "its system call filter could not be set",
        231 => "its AppArmor profile could not be set",
        232 => "its address families could not be restricted",
        233 => "its runtime directory could not be created",
        235 => "the owner of a file could not be changed",
        238 => "its state directory could not be created",
        239 => "its cache directory could not be created",
        243 => "its credentials could not be set up",
        _ => return None,
    })
}

/// Begins the reason of a start for which the machine lacked something.
const UNABLE: &str = "the machine was not able to start it";

impl Outcome {
    /// The outcome of a start for which the machine lacked something, such as space in `/run`.
    pub fn unable_to_start(why: &str) -> Outcome {
        Outcome::NotStarted(format!("{UNABLE}: {why}"))
    }

    /// Whether the machine lacked something for the start.
    pub fn is_unable_to_start(&self) -> bool {
        matches!(self, Outcome::NotStarted(why) if why.starts_with(UNABLE))
    }

    /// Whether the machine may be at fault, and not what was to run: it lacked something for the start,
    /// or systemd could not set up the mount namespace or enter the working directory. For a worker that
    /// is a directory that is missing; for a hook it may be a drop-in as well.
    pub fn is_failure_of_machine(&self) -> bool {
        const EXIT_CHDIR: i32 = 200;
        const EXIT_NAMESPACE: i32 = 226;
        let is_of_directories = matches!(self, Outcome::NotStarted(why)
            if [EXIT_CHDIR, EXIT_NAMESPACE].iter().any(|code| start_failure(*code) == Some(why)));
        self.is_unable_to_start() || is_of_directories
    }

    /// Whether systemd could not set up the credentials of the unit (EXIT_CREDENTIALS, systemd.exec(5)).
    pub fn lacks_credentials(&self) -> bool {
        const EXIT_CREDENTIALS: i32 = 243;
        matches!(self, Outcome::NotStarted(why) if start_failure(EXIT_CREDENTIALS) == Some(why))
    }

    /// Returns the outcome that `reading` shows, or `None` while the unit runs.
    pub fn of(reading: &Reading) -> Option<Outcome> {
        if reading.load_state == "not-found" && reading.exec_main_code == 0 {
            return Some(match reading.result.as_str() {
                DEPENDENCY => {
                    Outcome::NotStarted("a unit that it requires did not start".to_owned())
                }
                _ => Outcome::Lost,
            });
        }
        // The main process is gone, but other processes of the unit are still ending: the result is
        // not final, and the unit cannot be released. The next change of state decides.
        if reading.active_state == "deactivating" || reading.is_torn() {
            return None;
        }
        let failed = reading.active_state == "failed";
        match reading.result.as_str() {
            "timeout" if failed => return Some(Outcome::TimeLimit),
            "watchdog" if failed => return Some(Outcome::Watchdog),
            "oom-kill" if failed => return Some(Outcome::OutOfMemory),
            _ => {}
        }
        match reading.exec_main_code {
            CLD_EXITED => Some(match start_failure(reading.exec_main_status) {
                Some(why) if reading.result == "exit-code" => Outcome::NotStarted(why.to_owned()),
                _ => Outcome::Exit(reading.exec_main_status),
            }),
            CLD_KILLED | CLD_DUMPED => Some(Outcome::Signal(reading.exec_main_status)),
            _ if failed => Some(Outcome::NotStarted(format!("systemd says {}", reading.result))),
            _ => None,
        }
    }

    /// Returns whether the process exited with status 0.
    pub fn is_success(&self) -> bool {
        *self == Outcome::Exit(0)
    }

    /// Returns the exit code, if the process exited.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Outcome::Exit(code) => Some(*code),
            _ => None,
        }
    }

    /// Returns the signal number, if a signal ended the process.
    pub fn signal(&self) -> Option<i32> {
        match self {
            Outcome::Signal(signal) => Some(*signal),
            _ => None,
        }
    }
}

/// Names of the signals 1 to 31 on Linux (signal(7)) on x86, ARM and most other architectures.
const SIGNAL_NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// Returns the name of a signal; `None` for realtime and unknown signals.
fn signal_name(number: i32) -> Option<&'static str> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    SIGNAL_NAMES.get(index).copied()
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Exit(code) => write!(f, "exit code {code}"),
            Outcome::Signal(number) => match signal_name(*number) {
                Some(name) => write!(f, "ended by {name}"),
                None => write!(f, "ended by signal {number}"),
            },
            Outcome::TimeLimit => f.write_str("time limit reached"),
            Outcome::Watchdog => f.write_str("stopped responding (watchdog)"),
            Outcome::OutOfMemory => f.write_str("out of memory"),
            Outcome::DiskLimit => {
                f.write_str("ended because the disk was nearly full (limit: disk)")
            }
            Outcome::Interrupted => f.write_str("interrupted by user"),
            Outcome::Stopped => f.write_str("stopped with systemctl"),
            Outcome::Killed => {
                f.write_str("cancelled, ignored SIGTERM and was killed after its grace")
            }
            Outcome::Late => f.write_str("not executed: the lease of its host had ended"),
            Outcome::NotStarted(why) => write!(f, "could not be started: {why}"),
            Outcome::Lost => f.write_str("lost: it is unknown how it ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EXIT_SKIPPED;

    fn reading(load: &str, active: &str, result: &str, code: i32, status: i32) -> Reading {
        Reading {
            load_state: load.into(),
            active_state: active.into(),
            result: result.into(),
            exec_main_code: code,
            exec_main_status: status,
            ..Reading::default()
        }
    }

    /// The table of what can be read after a run, row by row.
    #[test]
    fn every_way_to_end() {
        let not_started = |status| match start_failure(status) {
            Some(why) => Outcome::NotStarted(why.to_owned()),
            None => panic!("{status}"),
        };
        let table = [
            (reading("not-found", "inactive", "success", 0, 0), Some(Outcome::Lost)),
            (
                reading("not-found", "failed", "dependency", 0, 0),
                Some(Outcome::NotStarted("a unit that it requires did not start".to_owned())),
            ),
            (reading("loaded", "active", "success", 1, 0), Some(Outcome::Exit(0))),
            (reading("loaded", "failed", "exit-code", 1, 1), Some(Outcome::Exit(1))),
            (reading("loaded", "failed", "timeout", 2, 15), Some(Outcome::TimeLimit)),
            (reading("loaded", "failed", "exit-code", 1, 203), Some(not_started(203))),
            (reading("loaded", "failed", "watchdog", 2, 6), Some(Outcome::Watchdog)),
            (reading("loaded", "failed", "oom-kill", 2, 9), Some(Outcome::OutOfMemory)),
            (reading("loaded", "failed", "core-dump", 3, 11), Some(Outcome::Signal(11))),
            (reading("loaded", "active", "success", 2, 15), Some(Outcome::Signal(15))),
            (reading("loaded", "active", "success", 0, 0), None),
            // It was killed at its limit after its state was read: this does not show that it was the limit.
            (
                Reading {
                    sub_state: "running".into(),
                    ..reading("loaded", "active", "timeout", 2, 15)
                },
                None,
            ),
            // At its limit the main process ended at once, a child of it did not.
            (reading("loaded", "deactivating", "timeout", 2, 15), None),
            (reading("loaded", "deactivating", "exit-code", 1, 1), None),
            (reading("loaded", "activating", "success", 0, 0), None),
            (reading("loaded", "inactive", "success", 0, 0), None),
            (
                reading("loaded", "failed", "resources", 0, 0),
                Some(Outcome::NotStarted("systemd says resources".into())),
            ),
            // A signal seen while the unit was going away is evidence, a missing unit is not.
            (reading("not-found", "inactive", "success", 2, 15), Some(Outcome::Signal(15))),
        ];
        for (reading, want) in table {
            assert_eq!(Outcome::of(&reading), want, "{reading:?}");
        }
    }

    #[test]
    fn failures_of_the_machine_differ_from_others() {
        let unable = Outcome::unable_to_start("No space left on device");
        assert!(unable.is_failure_of_machine());
        assert!(unable.to_string().ends_with("start it: No space left on device"));
        let mounts = Outcome::of(&reading("loaded", "failed", "exit-code", 1, 226));
        assert!(unable.is_unable_to_start());
        let mounts = mounts.unwrap();
        assert!(mounts.is_failure_of_machine() && !mounts.is_unable_to_start());
        for other in [
            Outcome::of(&reading("loaded", "failed", "exit-code", 1, 203)).unwrap(),
            Outcome::NotStarted("access denied".to_owned()),
            Outcome::Exit(226),
            Outcome::Lost,
        ] {
            assert!(!other.is_failure_of_machine(), "{other}");
        }
    }

    #[test]
    fn only_exit_zero_is_success() {
        assert!(Outcome::Exit(0).is_success());
        for other in
            [Outcome::Exit(EXIT_SKIPPED), Outcome::Signal(15), Outcome::Lost, Outcome::TimeLimit]
        {
            assert!(!other.is_success(), "{other}");
        }
    }

    #[test]
    fn signal_names_are_those_of_the_c_library() {
        for number in -1..=64 {
            let expected = nix::sys::signal::Signal::try_from(number).ok();
            assert_eq!(signal_name(number), expected.map(|signal| signal.as_str()));
        }
    }
}
