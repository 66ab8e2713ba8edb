//! Captures the output of a program up to a limit, and copies its log line by line.

use crate::process::exit::{ExitReason, ProgramOutput};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::Child;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout_at};

/// Time for which output is read after the program has exited, because its children may keep the
/// pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// Bytes of a program's log that are kept in memory. All of the log goes to standard error.
const LOG_MAX_BYTES: usize = 256 * 1024;

/// Longest log line in bytes; longer lines are processed in parts.
const LOG_LINE_MAX_BYTES: u64 = 16 * 1024;

/// Output at which a program is stopped.
#[derive(Default)]
pub struct OutputLimits {
    /// Bytes of standard output that are kept. The program is stopped when it writes more.
    pub output: usize,
    /// Log text that means that the program cannot succeed any more.
    pub fatal_text: Option<&'static str>,
    /// Log lines that contain one of these texts are dropped.
    pub noise: &'static [&'static str],
}

/// A part of a program's output.
pub enum Chunk {
    Output(Vec<u8>),
    /// A line of standard error.
    Log(Vec<u8>),
}

pub struct Capture {
    limits: OutputLimits,
    output: Vec<u8>,
    log: Vec<u8>,
    full: bool,
}

impl Capture {
    /// Creates an empty capture.
    pub fn new(limits: OutputLimits) -> Capture {
        Capture { limits, output: Vec::new(), log: Vec::new(), full: false }
    }

    /// Stores a chunk. Returns true when the program should be stopped.
    pub fn take(&mut self, chunk: Chunk) -> bool {
        match chunk {
            Chunk::Output(bytes) => {
                let room = self.limits.output - self.output.len();
                self.output.extend_from_slice(&bytes[..bytes.len().min(room)]);
                self.full |= bytes.len() > room;
                self.full
            }
            Chunk::Log(bytes) => {
                let room = LOG_MAX_BYTES - self.log.len();
                let start = self.log.len().saturating_sub(256);
                self.log.extend_from_slice(&bytes[..bytes.len().min(room)]);
                let news = String::from_utf8_lossy(&self.log[start..]);
                self.limits.fatal_text.is_some_and(|text| news.contains(text))
            }
        }
    }

    /// Stores the chunks that arrive within [`DRAIN_TIMEOUT`].
    pub async fn drain(&mut self, chunks: &mut UnboundedReceiver<Chunk>) {
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        while let Ok(Some(chunk)) = timeout_at(deadline, chunks.recv()).await {
            self.take(chunk);
        }
    }

    /// Combines the captured output with the reason for the program's exit.
    pub fn finish(self, exit: ExitReason) -> ProgramOutput {
        let exit =
            if self.full && exit == ExitReason::Exited(0) { ExitReason::OutputLimit } else { exit };
        ProgramOutput {
            exit,
            output: self.output,
            log: String::from_utf8_lossy(&self.log).into_owned(),
        }
    }
}

/// Starts two threads that read the pipes, so that neither pipe can fill up while the other is
/// read.
pub fn read_both(child: &mut Child, noise: &'static [&'static str]) -> UnboundedReceiver<Chunk> {
    let (sender, receiver) = unbounded_channel();
    if let Some(pipe) = child.stdout.take() {
        let sender = sender.clone();
        std::thread::spawn(move || read_output(pipe, &sender));
    }
    if let Some(pipe) = child.stderr.take() {
        std::thread::spawn(move || read_log(pipe, noise, &sender));
    }
    receiver
}

fn read_output(mut pipe: impl Read, sender: &UnboundedSender<Chunk>) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        if sender.send(Chunk::Output(buffer[..count].to_vec())).is_err() {
            return;
        }
    }
}

/// Sends the log line by line until its end. Very long lines are sent in parts.
fn read_log(pipe: impl Read, noise: &[&str], sender: &UnboundedSender<Chunk>) {
    let mut reader = BufReader::new(pipe);
    loop {
        let mut line = Vec::new();
        match reader.by_ref().take(LOG_LINE_MAX_BYTES).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => return,
        }
        let text = String::from_utf8_lossy(&line);
        if !noise.iter().any(|noise| text.contains(noise)) {
            let _ = io::stderr().write_all(&line);
            let _ = sender.send(Chunk::Log(line));
        }
    }
}
