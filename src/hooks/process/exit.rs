//! Why a program ended, and what it wrote.

use nix::sys::signal::Signal;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    Exited(i32),
    Killed(i32),
    /// The hook stopped the program at the time limit.
    TimedOut,
    /// The hook stopped the program because it received SIGTERM or SIGINT.
    HookStopped,
    /// The hook stopped the program because of its output limits.
    OutputLimit,
}

impl ExitReason {
    pub fn of(status: ExitStatus) -> ExitReason {
        match (status.code(), status.signal()) {
            (Some(code), _) => ExitReason::Exited(code),
            (None, signal) => ExitReason::Killed(signal.unwrap_or(0)),
        }
    }

    pub fn describe(self, program: &str, budget: Duration) -> String {
        match self {
            ExitReason::Exited(status) => format!("{program} failed (exit {status})"),
            ExitReason::Killed(number) => match Signal::try_from(number) {
                Ok(signal) => format!("{program} was killed ({signal})"),
                Err(_) => format!("{program} was killed (signal {number})"),
            },
            ExitReason::TimedOut => {
                format!("{program} was stopped after {} s: time limit", budget.as_secs())
            }
            ExitReason::HookStopped => format!("{program} was stopped: the hook received SIGTERM"),
            ExitReason::OutputLimit => format!("{program} was stopped: its output was too large"),
        }
    }
}

impl ProgramOutput {
    /// Result of a program that had nothing to do.
    pub fn succeeded() -> ProgramOutput {
        ProgramOutput { exit: ExitReason::Exited(0), output: Vec::new(), log: String::new() }
    }
}

#[derive(Debug)]
pub struct ProgramOutput {
    pub exit: ExitReason,
    /// The start of its standard output, up to the limit.
    pub output: Vec<u8>,
    /// The start of its standard error.
    pub log: String,
}
