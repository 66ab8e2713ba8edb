//! Runs the programs that do a hook's work, within the hook's time and under its signals.

use super::record::Finding;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout, timeout_at};

/// How long a program may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// How long output may still come after the program has ended (its children may hold the pipe).
const DRAIN: Duration = Duration::from_millis(500);
/// How much of a program's log is kept in memory; all of it goes to our own standard error.
const LOG_KEPT: usize = 256 * 1024;

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

/// What a program may write before it is stopped.
pub struct Limits {
    /// Bytes of standard output that are kept; one more and it has been enough.
    pub output: usize,
    /// Text in the log after which nothing useful can come.
    pub hopeless: Option<&'static str>,
}

enum Chunk {
    Output(Vec<u8>),
    Log(Vec<u8>),
}

/// The hook's end of its programs: one deadline and one pair of signal handlers for all of them.
pub struct Runner {
    runtime: tokio::runtime::Runtime,
    terminate: Signals,
    interrupt: Signals,
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
            terminate,
            interrupt,
            deadline: Instant::now() + budget,
            budget,
        })
    }

    /// What is left of the time.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
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
            terminate,
            interrupt,
            deadline,
            ..
        } = self;
        runtime.block_on(async {
            let mut exited =
                signal(SignalKind::child()).map_err(|error| cannot(command, &error, package))?;
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0);
            let mut child = command
                .spawn()
                .map_err(|error| cannot(command, &error, package))?;
            let mut chunks = read_both(&mut child);
            let mut seen = Seen {
                limits,
                output: Vec::new(),
                log: Vec::new(),
                full: false,
            };
            let stop = loop {
                tokio::select! {
                    _ = exited.recv() => if let Ok(Some(status)) = child.try_wait() {
                        seen.drain(&mut chunks).await;
                        return Ok(seen.ended(of(status)));
                    },
                    Some(chunk) = chunks.recv() => if seen.take(chunk) { break Ending::Enough },
                    _ = terminate.recv() => break Ending::Told,
                    _ = interrupt.recv() => break Ending::Told,
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

struct Seen {
    limits: Limits,
    output: Vec<u8>,
    log: Vec<u8>,
    full: bool,
}

impl Seen {
    /// Keeps a chunk; true when it was enough.
    fn take(&mut self, chunk: Chunk) -> bool {
        match chunk {
            Chunk::Output(bytes) => {
                let room = self.limits.output - self.output.len();
                self.output
                    .extend_from_slice(&bytes[..bytes.len().min(room)]);
                self.full |= bytes.len() > room;
                self.full
            }
            Chunk::Log(bytes) => {
                let room = LOG_KEPT - self.log.len();
                let start = self.log.len().saturating_sub(256);
                self.log.extend_from_slice(&bytes[..bytes.len().min(room)]);
                let news = String::from_utf8_lossy(&self.log[start..]);
                self.limits.hopeless.is_some_and(|text| news.contains(text))
            }
        }
    }

    async fn drain(&mut self, chunks: &mut UnboundedReceiver<Chunk>) {
        let deadline = Instant::now() + DRAIN;
        while let Ok(Some(chunk)) = timeout(
            deadline.saturating_duration_since(Instant::now()),
            chunks.recv(),
        )
        .await
        {
            self.take(chunk);
        }
    }

    fn ended(self, ending: Ending) -> Ended {
        let ending = if self.full && ending == Ending::Exited(0) {
            Ending::Enough
        } else {
            ending
        };
        Ended {
            ending,
            output: self.output,
            log: String::from_utf8_lossy(&self.log).into_owned(),
        }
    }
}

fn of(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, signal) => Ending::Killed(signal.unwrap_or(0)),
    }
}

fn cannot(command: &Command, error: &io::Error, package: &str) -> Finding {
    let program = command.get_program().to_string_lossy();
    if error.kind() == io::ErrorKind::NotFound {
        return Finding::skipped(format!(
            "{program} is not installed (Debian package {package})"
        ));
    }
    Finding::failed(format!("failed to start {program}: {error}"))
}

/// Two threads read the pipes, so that neither can fill while the other is waited for.
fn read_both(child: &mut Child) -> UnboundedReceiver<Chunk> {
    let (sender, receiver) = unbounded_channel();
    if let Some(pipe) = child.stdout.take() {
        let sender = sender.clone();
        std::thread::spawn(move || read(pipe, |bytes| sender.send(Chunk::Output(bytes)).is_ok()));
    }
    if let Some(pipe) = child.stderr.take() {
        std::thread::spawn(move || read(pipe, |bytes| log(&sender, bytes)));
    }
    receiver
}

fn log(sender: &UnboundedSender<Chunk>, bytes: Vec<u8>) -> bool {
    let _ = io::stderr().write_all(&bytes);
    let _ = sender.send(Chunk::Log(bytes));
    true
}

fn read(mut pipe: impl Read, mut take: impl FnMut(Vec<u8>) -> bool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        if !take(buffer[..count].to_vec()) {
            return;
        }
    }
}
