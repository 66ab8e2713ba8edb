//! `archivist-hook-exec PROGRAM`: replaces itself by the hook that standard input describes.
//!
//! Every local user can read the properties of a unit (`systemctl show`, /run/systemd/transient).
//! Therefore the orchestrator passes arguments, variables and working directory in a file that only
//! root can open (`UnitSpec::launch` in archivist-core). The argument PROGRAM only shows users of
//! `systemctl status` what runs.
//!
//! In a fleet only the node that leases a host visits it. The orchestrator may have been stopped
//! between its decision and this start, so the program compares the end of the lease with the clock.
//!
//! Standard error of the hook goes through a relay that bounds its bytes (`log.rs`), and system calls
//! that the deny lists of its unit cannot name are refused (`calls.rs`).

mod calls;
mod log;

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{chdir, dup2_stdin, execve};
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

/// Exit statuses of systemd for failures before a program is executed (systemd.exec(5)). The
/// orchestrator treats them like failures of systemd.
const EXIT_CHDIR: u8 = 200;
const EXIT_EXEC: u8 = 203;
const EXIT_STDIN: u8 = 208;
const EXIT_STDERR: u8 = 222;
const EXIT_SECCOMP: u8 = 228;
/// The lease of the host has ended. Units may use the number (systemd.exec(5)). The orchestrator
/// starts the hook again: under the renewed lease, or with its page, which it queues again when it
/// sees the end of the lease.
const EXIT_LATE: u8 = 190;

#[derive(Debug, PartialEq, Eq)]
struct Launch {
    /// Nothing is executed from this time on: milliseconds on CLOCK_BOOTTIME.
    not_after: Option<u64>,
    /// Working directory; empty for that of the unit.
    directory: CString,
    argv: Vec<CString>,
    /// `NAME=value`.
    environment: Vec<CString>,
}

/// Parses the document: the latest time or nothing, the working directory, the number of arguments,
/// the arguments, and the variables, each terminated by a NUL. `None` if the document is incomplete
/// or names no program.
fn read(document: &[u8]) -> Option<Launch> {
    let mut parts = document.strip_suffix(&[0])?.split(|byte| *byte == 0);
    let not_after = match parts.next()? {
        b"" => None,
        time => Some(number(time)?),
    };
    let directory = CString::new(parts.next()?).ok()?;
    let count: usize = number(parts.next()?)?;
    let mut words = parts.map(|word| CString::new(word).ok());
    let argv: Vec<CString> = words.by_ref().take(count).collect::<Option<_>>()?;
    let environment = words.collect::<Option<_>>()?;
    (argv.len() == count && count > 0).then_some(Launch { not_after, directory, argv, environment })
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Returns the time on CLOCK_BOOTTIME in milliseconds. If the clock cannot be read, every deadline
/// has passed.
fn now() -> u64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map_or(u64::MAX, |time| (time.tv_sec() * 1000 + time.tv_nsec() / 1_000_000).unsigned_abs())
}

/// The variables in `set`, and those of `wanted` whose names are not in `set`: variables of the
/// service manager, such as an administrator's `Environment=`, take precedence. JOURNAL_STREAM, which
/// names the socket of standard error, is not true any more.
fn merge(set: impl Iterator<Item = (OsString, OsString)>, wanted: Vec<CString>) -> Vec<CString> {
    let set = set.filter(|(name, _)| name != "JOURNAL_STREAM");
    let set = set.map(|(name, value)| [name.into_vec(), value.into_vec()].join(&b'='));
    let mut all: Vec<CString> = set.filter_map(|pair| CString::new(pair).ok()).collect();
    let name = |pair: &CString| {
        let name = pair.to_bytes().split(|byte| *byte == b'=').next();
        name.unwrap_or_default().to_vec()
    };
    let names: std::collections::HashSet<Vec<u8>> = all.iter().map(name).collect();
    let missing = wanted.into_iter().filter(|pair| !names.contains(&name(pair)));
    all.extend(missing);
    all
}

/// Executes the program. Returns only on failure: the exit status and the message.
fn launch() -> (u8, String) {
    let mut document = Vec::new();
    if let Err(error) = std::io::stdin().read_to_end(&mut document) {
        return (EXIT_STDIN, format!("failed to read standard input: {error}"));
    }
    let Some(Launch { not_after, directory, argv, environment }) = read(&document) else {
        let what = "failed to read standard input: it does not describe a program";
        return (EXIT_STDIN, what.to_owned());
    };
    if not_after.is_some_and(|end| now() >= end) {
        let what = "the lease of the host ended before the start";
        return (EXIT_LATE, what.to_owned());
    }
    let null = File::open("/dev/null").and_then(|null| Ok(dup2_stdin(null)?));
    if let Err(error) = null {
        let what = format!("failed to open '/dev/null' as standard input: {error}");
        return (EXIT_STDIN, what);
    }
    if !directory.is_empty()
        && let Err(error) = chdir(directory.as_c_str())
    {
        let shown = directory.to_string_lossy();
        let what = format!("failed to change to '{}': {}", shown.escape_debug(), error.desc());
        return (EXIT_CHDIR, what);
    }
    let environment = merge(std::env::vars_os(), environment);
    if let Err(error) = log::bound() {
        let what = format!("failed to bound the log: {error}");
        return (EXIT_STDERR, what);
    }
    if let Err(error) = calls::refuse_newer() {
        let what = format!("failed to refuse newer system calls: {error}");
        return (EXIT_SECCOMP, what);
    }
    let Err(error) = execve(&argv[0], &argv, &environment);
    let program = argv[0].to_string_lossy();
    let what = format!("failed to execute '{}': {}", program.escape_debug(), error.desc());
    (EXIT_EXEC, what)
}

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == log::RELAY) {
        return log::relay();
    }
    let (code, what) = launch();
    eprintln!("archivist-hook-exec: {what}");
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(words: &[&str]) -> Vec<CString> {
        let word = |word: &&str| CString::new(*word).unwrap();
        words.iter().map(word).collect()
    }

    #[test]
    fn arguments_come_before_variables() {
        let launch = read(b"\0/dir\x002\0/bin/x\0\0A=1\0B=\0").unwrap();
        assert_eq!(launch.not_after, None);
        assert_eq!(launch.directory.to_bytes(), b"/dir");
        assert_eq!(launch.argv, words(&["/bin/x", ""]));
        assert_eq!(launch.environment, words(&["A=1", "B="]));
        let late = read(b"5000\0\x001\0/bin/x\0").unwrap();
        assert_eq!((late.not_after, late.environment), (Some(5000), vec![]));
        for bad in [
            &b""[..],
            b"\0",
            b"\0\0\0",
            b"\0\x000\0",
            b"\0\x002\0/bin/x\0",
            b"\0\x001\0/bin/x",
            b"\0\0-1\0x\0",
            b"\0\0x\0",
            b"\x001\0/bin/x\0",
            b"\0\x0099999999999999999999\0x\0",
            b"soon\0\x001\0/bin/x\0",
            b"-1\0\x001\0/bin/x\0",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn variables_of_the_service_manager_take_precedence() {
        let set = [("A", "drop-in"), ("JOURNAL_STREAM", "8:1"), ("C", "x=y")]
            .map(|(n, v)| (n.into(), v.into()));
        let merged = merge(set.into_iter(), words(&["A=ours", "B=2", "AA=3"]));
        assert_eq!(merged, words(&["A=drop-in", "C=x=y", "B=2", "AA=3"]));
    }

    proptest! {
        #[test]
        fn any_document_is_parsed(document: Vec<u8>, rest in "(9?\0)?(\0[0-3]?)?(\0[a=]{0,3}){0,5}") {
            for document in [document, rest.into_bytes()] {
                if let Some(launch) = read(&document) {
                    prop_assert!(!launch.argv.is_empty());
                }
            }
        }
    }
}
