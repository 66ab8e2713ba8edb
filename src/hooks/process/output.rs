//! What a program writes: its output up to a limit, its log handed on line by line.

use crate::process::program::{Ended, Ending};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::Child;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout_at};

/// How long output may still come after the program has ended (its children may hold the pipe).
const DRAIN: Duration = Duration::from_millis(500);
/// How much of a program's log is kept in memory; all of it goes to our own standard error.
const LOG_KEPT: usize = 256 * 1024;

/// The longest piece of a program's log that is looked at as one line, in bytes.
const LINE: u64 = 16 * 1024;

/// What a program may write before it is stopped.
#[derive(Default)]
pub struct Limits {
    /// Bytes of standard output that are kept; one more and it has been enough.
    pub output: usize,
    /// Text in the log after which nothing useful can come.
    pub hopeless: Option<&'static str>,
    /// Lines of the log that have one of these in them are dropped.
    pub noise: &'static [&'static str],
}

/// A piece of what a program wrote.
pub enum Chunk {
    /// Standard output.
    Output(Vec<u8>),
    /// A line of standard error.
    Log(Vec<u8>),
}

/// What a program has written so far.
pub struct Seen {
    limits: Limits,
    output: Vec<u8>,
    log: Vec<u8>,
    full: bool,
}

impl Seen {
    /// Nothing yet.
    pub fn new(limits: Limits) -> Seen {
        Seen {
            limits,
            output: Vec::new(),
            log: Vec::new(),
            full: false,
        }
    }

    /// Keeps a chunk; true when it was enough.
    pub fn take(&mut self, chunk: Chunk) -> bool {
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

    /// Takes what still comes, for a moment at most.
    pub async fn drain(&mut self, chunks: &mut UnboundedReceiver<Chunk>) {
        let deadline = Instant::now() + DRAIN;
        while let Ok(Some(chunk)) = timeout_at(deadline, chunks.recv()).await {
            self.take(chunk);
        }
    }

    /// Everything, now that the program has ended.
    pub fn ended(self, ending: Ending) -> Ended {
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

/// Two threads read the pipes, so that neither can fill while the other is waited for.
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
        if sender
            .send(Chunk::Output(buffer[..count].to_vec()))
            .is_err()
        {
            return;
        }
    }
}

/// Hands the log on line by line, very long lines in pieces, and reads it to its end.
fn read_log(pipe: impl Read, noise: &[&str], sender: &UnboundedSender<Chunk>) {
    let mut reader = BufReader::new(pipe);
    loop {
        let mut line = Vec::new();
        match reader.by_ref().take(LINE).read_until(b'\n', &mut line) {
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
