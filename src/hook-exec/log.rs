//! Bounds what a program writes to the journal: a process between its standard error and journald.
//!
//! journald limits the number of lines (`LogRateLimitBurst=`, systemd.exec(5)), of which it drops the last, and
//! a line may have 48 KiB. Therefore its limit is above what passes here: 8,192 lines at once and the last 2,176.
//! A journal namespace would be limited in bytes, but `journalctl -u UNIT` does not show it.
//!
//! The process is in the unit of the program, so that lines keep their fields. The program can kill
//! it, and loses its log, but can neither trace it nor open its files: it is not dumpable
//! (PR_SET_DUMPABLE(2const)).

use nix::sys::prctl::set_dumpable;
use nix::sys::signal::SigSet;
use nix::unistd::{daemon, dup2_stderr};
use std::io::{self, ErrorKind, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Argument that makes this program the relay from standard input to standard error.
pub const RELAY: &str = "--relay";

/// Bytes of the journal that a program may use at once.
const BUDGET: u64 = 4 << 20;
/// Time after which a used budget is complete again, for browsers that run for days.
const REFILL: Duration = Duration::from_secs(3600);
/// Bytes that count for each line in addition to its own: fields and indexes of the journal, which were
/// 350 bytes for a line of ten (systemd 257).
const LINE_COST: u64 = 512;
/// Available bytes at which lines are passed on again.
const RESUME: u64 = BUDGET / 16;
/// The end of the suppressed text, which is passed on when the program has ended: at most these bytes,
/// which are those that the worker keeps of a hook that failed and a line before them, and lines. It usually
/// says why the program failed.
const TAIL_BYTES: usize = (64 + 4) << 10;
const TAIL_LINES: usize = TAIL_BYTES / 32;

/// Connects standard error to a new relay, which writes to the present standard error.
///
/// The relay is no child of this process: a program that waits for all its children would wait for
/// it.
///
/// # Errors
/// If the relay does not start.
pub fn bound() -> io::Result<()> {
    let (reader, writer) = io::pipe()?;
    let status = Command::new(std::env::current_exe()?)
        .arg(RELAY)
        .env_clear()
        .stdin(reader)
        .stdout(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(io::Error::other(format!("the relay ended: {status}")));
    }
    Ok(dup2_stderr(writer)?)
}

/// Is the relay: its first process ends when the second can be neither traced nor stopped by SIGTERM.
pub fn relay() -> ExitCode {
    // systemd sends SIGTERM to all processes of a unit. What the program says then is passed on.
    let hidden = set_dumpable(false).and_then(|()| SigSet::all().thread_block());
    if let Err(error) = hidden.and_then(|()| daemon(true, true)) {
        eprintln!("archivist-hook-exec: failed to start the relay: {}", error.desc());
        return ExitCode::FAILURE;
    }
    let begin = Instant::now();
    let (mut input, mut relay) = (io::stdin().lock(), Relay::new(io::stderr().lock()));
    let mut chunk = vec![0; 64 << 10];
    loop {
        match input.read(&mut chunk) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(length) => relay.take(&chunk[..length], begin.elapsed()),
        }
    }
    relay.end();
    ExitCode::SUCCESS
}

/// Whether this byte ends a line for journald.
fn ends_line(byte: u8) -> bool {
    matches!(byte, b'\n' | 0)
}

struct Relay<W> {
    out: W,
    /// Bytes that may be written.
    available: u64,
    /// Time up to which `available` is filled.
    filled: Duration,
    /// The last byte that was written ended no line.
    in_line: bool,
    suppressed: Option<Suppressed>,
}

/// Text that is not passed on.
#[derive(Default)]
struct Suppressed {
    bytes: u64,
    tail: Vec<u8>,
}

impl Suppressed {
    fn add(&mut self, text: &[u8]) {
        self.bytes += text.len() as u64;
        self.tail.extend(&text[text.len().saturating_sub(TAIL_BYTES)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES));
    }

    /// The last lines. A first one that is not complete is left out if there are others.
    fn last_lines(&self) -> &[u8] {
        let tail = self.tail.strip_suffix(b"\n").unwrap_or(&self.tail);
        let ends = (0..tail.len()).rev().filter(|at| ends_line(tail[*at]));
        let mut starts = ends.map(|end| end + 1);
        let first = starts.by_ref().take(TAIL_LINES).last();
        let is_cut = self.bytes > self.tail.len() as u64 || starts.next().is_some();
        match first {
            Some(first) if is_cut => &self.tail[first..],
            _ => &self.tail,
        }
    }
}

impl<W: Write> Relay<W> {
    fn new(out: W) -> Relay<W> {
        Relay { out, available: BUDGET, filled: Duration::ZERO, in_line: false, suppressed: None }
    }

    fn take(&mut self, text: &[u8], now: Duration) {
        self.fill(now);
        if let Some(suppressed) = &mut self.suppressed {
            suppressed.add(text);
            if self.available >= RESUME {
                let bytes = suppressed.bytes;
                self.suppressed = None;
                self.say(&format!("suppressed {bytes} bytes of the log"));
            }
            return;
        }
        let mut length = 0;
        for line in text.split_inclusive(|byte| ends_line(*byte)) {
            let is_complete = line.last().is_some_and(|byte| ends_line(*byte));
            let cost = line.len() as u64 + if is_complete { LINE_COST } else { 0 };
            let Some(rest) = self.available.checked_sub(cost) else {
                break;
            };
            self.available = rest;
            length += line.len();
        }
        let (passed, rest) = text.split_at(length);
        self.write(passed);
        if !rest.is_empty() {
            self.available = 0;
            let limit = BUDGET >> 20;
            self.say(&format!(
                "the log reached its limit of {limit}M, suppressing all but the last lines"
            ));
            let mut suppressed = Suppressed::default();
            suppressed.add(rest);
            self.suppressed = Some(suppressed);
        }
    }

    fn fill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.filled).as_millis() as u64;
        let gained = passed.saturating_mul(BUDGET) / REFILL.as_millis() as u64;
        if gained > 0 {
            self.available = BUDGET.min(self.available.saturating_add(gained));
            self.filled = now;
        }
    }

    /// Writes the last lines of text that was suppressed.
    fn end(&mut self) {
        if let Some(suppressed) = self.suppressed.take() {
            self.say(&format!("suppressed {} bytes, at the end:", suppressed.bytes));
            self.write(suppressed.last_lines());
        }
    }

    fn say(&mut self, what: &str) {
        let begin = if self.in_line { "\n" } else { "" };
        self.write(format!("{begin}archivist-hook-exec: {what}\n").as_bytes());
    }

    /// Writes to the journal. If that fails, the program continues without a log.
    fn write(&mut self, text: &[u8]) {
        let Some(last) = text.last() else { return };
        self.in_line = !ends_line(*last);
        let _ = self.out.write_all(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn relay() -> Relay<Vec<u8>> {
        Relay::new(Vec::new())
    }

    fn said(relay: &Relay<Vec<u8>>) -> String {
        String::from_utf8_lossy(&relay.out).into_owned()
    }

    #[test]
    fn text_within_the_budget_is_unchanged() {
        let mut relay = relay();
        for text in ["one\nt", "wo\n", "\u{1b}[31m", "three"] {
            relay.take(text.as_bytes(), Duration::ZERO);
        }
        relay.end();
        assert_eq!(said(&relay), "one\ntwo\n\u{1b}[31mthree");
    }

    #[test]
    fn long_lines_are_bounded_and_the_last_lines_follow() {
        let mut relay = relay();
        let long = vec![b'x'; 47_000];
        for _ in 0..1000 {
            relay.take(&long, Duration::ZERO);
            relay.take(b"\n", Duration::ZERO);
        }
        relay.take(b"error: the reason\nhint\n", Duration::ZERO);
        relay.end();
        let said = said(&relay);
        assert!(
            (BUDGET - 200_000..BUDGET + TAIL_BYTES as u64 + 4096).contains(&(said.len() as u64))
        );
        assert!(said.contains("\narchivist-hook-exec: the log reached its limit of 4M, "));
        let (_, end) = said.rsplit_once("archivist-hook-exec: ").unwrap();
        assert!(end.starts_with("suppressed 42"), "{end}");
        let last =
            format!(" bytes, at the end:\n{}\nerror: the reason\nhint\n", "x".repeat(47_000));
        assert!(end.ends_with(&last), "{end}");
    }

    /// What the worker keeps of a hook that failed, whatever was suppressed before.
    #[test]
    fn the_last_64_kib_of_many_lines_are_passed_on() {
        let lines = |from: u32, to| -> String {
            (from..to).map(|n| format!("line {n:06} of what is long enough\n")).collect()
        };
        let mut relay = relay();
        for part in lines(0, 100_000).as_bytes().chunks(64 << 10) {
            relay.take(part, Duration::ZERO);
        }
        relay.take(b"error: the reason\n", Duration::ZERO);
        relay.end();
        let expected = lines(90_000, 100_000) + "error: the reason\n";
        let (said, kept) = (said(&relay), 64 << 10);
        assert!(said[said.len() - kept..] == expected[expected.len() - kept..]);
        assert!(said.lines().count() < 20_000, "LogRateLimitBurst= of the units");
    }

    #[test]
    fn short_lines_count_for_what_the_journal_needs() {
        for end in [b"x\n", b"x\0"] {
            let mut relay = relay();
            for _ in 0..100 {
                relay.take(&end.repeat(1000), Duration::ZERO);
            }
            relay.end();
            let lines = relay.out.iter().filter(|byte| ends_line(**byte)).count();
            let most = (BUDGET / LINE_COST) as usize + TAIL_LINES + 3;
            assert!((4000..=most).contains(&lines), "{lines}");
        }
    }

    #[test]
    fn used_budget_returns_with_time() {
        let mut relay = relay();
        let flood = vec![b'x'; 2 * BUDGET as usize];
        relay.take(&flood, Duration::ZERO);
        let minute = Duration::from_secs(60);
        relay.take(b"lost\n", minute);
        relay.take(b"lost, too\n", 4 * minute);
        relay.take(b"seen\n", 5 * minute);
        let end = "suppressed 8388623 bytes of the log\nseen\n";
        assert!(said(&relay).ends_with(end), "{}", said(&relay));
        // No more than one budget is saved.
        let before = relay.out.len();
        for part in flood.chunks(64 << 10) {
            relay.take(part, 30 * 60 * minute);
        }
        let passed = (relay.out.len() - before) as u64;
        assert!((BUDGET..BUDGET + 512).contains(&passed), "{passed}");
    }

    proptest! {
        #[test]
        fn no_text_exceeds_the_budget(
            parts in prop::collection::vec((0usize..200_000, prop::sample::select(&b"x\n\0"[..]), 0u64..600), 1..60),
        ) {
            let (mut relay, mut now) = (relay(), Duration::ZERO);
            for (length, byte, seconds) in parts {
                now += Duration::from_secs(seconds);
                relay.take(&vec![byte; length], now);
            }
            relay.end();
            let lines = relay.out.iter().filter(|byte| ends_line(**byte)).count() as u64;
            let used = relay.out.len() as u64 + lines * LINE_COST;
            let refilled = BUDGET * (now.as_secs() + 1) / REFILL.as_secs();
            let own = 100 * (now.as_secs() / 225 + 2) + lines.min(TAIL_LINES as u64 + 100) * LINE_COST + TAIL_BYTES as u64;
            prop_assert!(used <= BUDGET + refilled + own, "{used} in {now:?}");
        }
    }
}
