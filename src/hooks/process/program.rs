//! Runs the programs of a hook within the hook's time limit, and stops them when the hook receives
//! a signal.

use crate::process::capture::{Capture, OutputLimits, read_both};
use crate::process::exit::{ExitReason, ProgramOutput};
use crate::process::finding::Finding;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{AccessFlags, Pid, access};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::{Instant, timeout_at};

/// Time that a program gets to exit after SIGTERM.
const EXIT_GRACE: Duration = Duration::from_secs(2);

pub struct StopSignals {
    terminate: Signals,
    interrupt: Signals,
}

impl StopSignals {
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Runs programs one after another. They share one deadline and one pair of signal handlers.
pub struct ProgramRunner {
    runtime: tokio::runtime::Runtime,
    stop_signals: StopSignals,
    deadline: Instant,
    /// Total time of the hook.
    pub budget: Duration,
}

impl ProgramRunner {
    /// Starts the time limit and catches SIGTERM and SIGINT: from now on the hook ends with a
    /// record.
    pub fn new(budget: Duration) -> Result<ProgramRunner, Finding> {
        let fail =
            |error: io::Error| Finding::failed(format!("failed to set up the hook: {error}"));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fail)?;
        let entered = runtime.enter();
        let terminate = signal(SignalKind::terminate()).map_err(fail)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(fail)?;
        drop(entered);
        Ok(ProgramRunner {
            runtime,
            stop_signals: StopSignals { terminate, interrupt },
            deadline: Instant::now() + budget,
            budget,
        })
    }

    /// Time until the deadline.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Runs `work`, which handles signals and time limits itself.
    pub fn block_on<T>(&mut self, work: impl AsyncFnOnce(&mut StopSignals) -> T) -> T {
        self.runtime.block_on(work(&mut self.stop_signals))
    }

    /// Runs `work` until the deadline or a signal. `doing` names the work in messages.
    pub fn within<T>(
        &mut self,
        doing: &str,
        work: impl Future<Output = Result<T, Finding>>,
    ) -> Result<T, Finding> {
        let ProgramRunner { runtime, stop_signals, deadline, budget } = self;
        runtime.block_on(async {
            tokio::select! {
                done = work => done,
                () = stop_signals.wait() => Err(Finding::failed(format!("stopped while {doing}: the hook received SIGTERM"))),
                () = tokio::time::sleep_until(*deadline) => {
                    let seconds = budget.as_secs();
                    Err(Finding::failed(format!("stopped while {doing}: the time limit of {seconds} s")))
                }
            }
        })
    }

    /// Runs a program until it exits or reaches a limit.
    ///
    /// The program gets no standard input and its own process group. A missing program skips the
    /// hook and the message names its Debian package; other failures to start are failures of the
    /// hook.
    pub fn run(
        &mut self,
        command: &mut Command,
        package: &str,
        limits: OutputLimits,
    ) -> Result<ProgramOutput, Finding> {
        self.run_before(Duration::ZERO, command, package, limits)
    }

    /// Like [`ProgramRunner::run`], but stops the program `reserve` before the deadline.
    pub fn run_before(
        &mut self,
        reserve: Duration,
        command: &mut Command,
        package: &str,
        limits: OutputLimits,
    ) -> Result<ProgramOutput, Finding> {
        let ProgramRunner { runtime, stop_signals, deadline, .. } = self;
        let deadline = *deadline - reserve;
        let program = command.get_program().to_string_lossy().into_owned();
        runtime.block_on(async {
            let mut exited =
                signal(SignalKind::child()).map_err(|error| start_failure(&program, &error, package))?;
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0);
            let mut child = command
                .spawn()
                .map_err(|error| start_failure(&program, &error, package))?;
            let mut chunks = read_both(&mut child, limits.noise);
            let mut captured = Capture::new(limits);
            let stop = loop {
                tokio::select! {
                    _ = exited.recv() => if let Ok(Some(status)) = child.try_wait() {
                        captured.drain(&mut chunks).await;
                        return Ok(captured.finish(ExitReason::of(status)));
                    },
                    Some(chunk) = chunks.recv() => if captured.take(chunk) { break ExitReason::OutputLimit },
                    () = stop_signals.wait() => break ExitReason::HookStopped,
                    _ = tokio::time::sleep_until(deadline) => break ExitReason::TimedOut,
                }
            };
            end(&mut child, &mut exited).await;
            captured.drain(&mut chunks).await;
            Ok(captured.finish(stop))
        })
    }
}

/// Sends SIGTERM to the program alone, because browsers end their children in order, and SIGKILL to
/// its process group after [`EXIT_GRACE`].
async fn end(child: &mut Child, exited: &mut Signals) {
    let pid = Pid::from_raw(child.id() as i32);
    let _ = kill(pid, Signal::SIGTERM);
    let deadline = Instant::now() + EXIT_GRACE;
    while !matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
        if timeout_at(deadline, exited.recv()).await.is_err() {
            let _ = killpg(pid, Signal::SIGKILL);
            let _ = child.wait();
        }
    }
}

/// Whether a program can be executed: a path, or a name that is looked up in PATH.
pub fn is_installed(program: &str) -> bool {
    let may_run = |path: &Path| access(path, AccessFlags::X_OK).is_ok();
    if program.contains('/') {
        return may_run(Path::new(program));
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&search).any(|directory| may_run(&directory.join(program)))
}

/// Finding for a program that failed to start. A missing program skips the hook.
pub fn start_failure(program: &str, error: &io::Error, package: &str) -> Finding {
    if error.kind() == io::ErrorKind::NotFound {
        return Finding::skipped(format!("{program} is not installed (Debian package {package})"));
    }
    Finding::failed(format!("failed to start {program}: {error}"))
}
