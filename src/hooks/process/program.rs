//! Runs the programs that do a hook's work, within the hook's time and under its signals.

use crate::process::output::{Limits, Seen, read_both};
use crate::process::record::Finding;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::{Instant, timeout_at};

/// How long a program may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// Why a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it, sent by somebody else.
    Killed(i32),
    /// It was stopped: the hook's time was over.
    TimedOut,
    /// It was stopped: the hook was told to end.
    Told,
    /// It was stopped: its output was enough.
    Enough,
}

impl Ending {
    /// The reason in words, for a program of this name.
    pub fn reason(self, program: &str, budget: Duration) -> String {
        match self {
            Ending::Exited(status) => format!("{program} failed (exit {status})"),
            Ending::Killed(number) => match Signal::try_from(number) {
                Ok(signal) => format!("{program} was killed ({signal})"),
                Err(_) => format!("{program} was killed (signal {number})"),
            },
            Ending::TimedOut => format!(
                "{program} was stopped after {} s: time limit",
                budget.as_secs()
            ),
            Ending::Told => format!("{program} was stopped: the hook was told to end"),
            Ending::Enough => format!("{program} was stopped: its output was too large"),
        }
    }
}

/// What is left of a program that ended.
#[derive(Debug)]
pub struct Ended {
    /// Why it ended.
    pub ending: Ending,
    /// The start of its standard output, as many bytes as were asked for.
    pub output: Vec<u8>,
    /// The start of its standard error.
    pub log: String,
}

/// SIGTERM and SIGINT: the hook is told to end.
pub struct Told {
    terminate: Signals,
    interrupt: Signals,
}

impl Told {
    /// Until one of them comes.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The hook's end of its programs: one deadline and one pair of signal handlers for all of them.
pub struct Runner {
    runtime: tokio::runtime::Runtime,
    told: Told,
    deadline: Instant,
    /// The whole time that was given.
    pub budget: Duration,
}

impl Runner {
    /// Starts the clock and catches SIGTERM and SIGINT: from now on the hook ends with a record.
    pub fn new(budget: Duration) -> Result<Runner, Finding> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let fail =
            |error: io::Error| Finding::failed(format!("failed to set up the hook: {error}"));
        let runtime = runtime.map_err(fail)?;
        let entered = runtime.enter();
        let terminate = signal(SignalKind::terminate()).map_err(fail)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(fail)?;
        drop(entered);
        Ok(Runner {
            runtime,
            told: Told {
                terminate,
                interrupt,
            },
            deadline: Instant::now() + budget,
            budget,
        })
    }

    /// What is left of the time.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Carries out `work`, which looks after signals and time itself.
    pub fn carry_out<T>(&mut self, work: impl AsyncFnOnce(&mut Told) -> T) -> T {
        self.runtime.block_on(work(&mut self.told))
    }

    /// Carries out `work` within the time that is left; `doing` names it if that is over, or if
    /// the hook is told to end.
    pub fn within<T>(
        &mut self,
        doing: &str,
        work: impl Future<Output = Result<T, Finding>>,
    ) -> Result<T, Finding> {
        let Runner {
            runtime,
            told,
            deadline,
            budget,
        } = self;
        runtime.block_on(async {
            tokio::select! {
                done = work => done,
                () = told.wait() => Err(Finding::failed(format!("stopped while {doing}: the hook was told to end"))),
                () = tokio::time::sleep_until(*deadline) => {
                    let seconds = budget.as_secs();
                    Err(Finding::failed(format!("stopped while {doing}: the time limit of {seconds} s")))
                }
            }
        })
    }

    /// Runs a program to its end or to the first limit it meets.
    ///
    /// It gets no standard input and a process group of its own. A program that cannot be found
    /// is a skip that names the Debian package; other failures to start are failures.
    pub fn run(
        &mut self,
        command: &mut Command,
        package: &str,
        limits: Limits,
    ) -> Result<Ended, Finding> {
        let Runner {
            runtime,
            told,
            deadline,
            ..
        } = self;
        let program = command.get_program().to_string_lossy().into_owned();
        runtime.block_on(async {
            let mut exited =
                signal(SignalKind::child()).map_err(|error| cannot(&program, &error, package))?;
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0);
            let mut child = command
                .spawn()
                .map_err(|error| cannot(&program, &error, package))?;
            let mut chunks = read_both(&mut child, limits.noise);
            let mut seen = Seen::new(limits);
            let stop = loop {
                tokio::select! {
                    _ = exited.recv() => if let Ok(Some(status)) = child.try_wait() {
                        seen.drain(&mut chunks).await;
                        return Ok(seen.ended(of(status)));
                    },
                    Some(chunk) = chunks.recv() => if seen.take(chunk) { break Ending::Enough },
                    () = told.wait() => break Ending::Told,
                    _ = tokio::time::sleep_until(*deadline) => break Ending::TimedOut,
                }
            };
            end(&mut child, &mut exited).await;
            seen.drain(&mut chunks).await;
            Ok(seen.ended(stop))
        })
    }
}

/// SIGTERM to the program alone, as browsers want it; after the grace SIGKILL to its group.
async fn end(child: &mut Child, exited: &mut Signals) {
    let pid = Pid::from_raw(child.id() as i32);
    let _ = kill(pid, Signal::SIGTERM);
    let deadline = Instant::now() + GRACE;
    while !matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
        if timeout_at(deadline, exited.recv()).await.is_err() {
            let _ = killpg(pid, Signal::SIGKILL);
            let _ = child.wait();
        }
    }
}

fn of(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, signal) => Ending::Killed(signal.unwrap_or(0)),
    }
}

/// Why a program did not start; one that is not there is a skip.
pub fn cannot(program: &str, error: &io::Error, package: &str) -> Finding {
    if error.kind() == io::ErrorKind::NotFound {
        return Finding::skipped(format!(
            "{program} is not installed (Debian package {package})"
        ));
    }
    Finding::failed(format!("failed to start {program}: {error}"))
}
