//! Logs problems so that they reach the journal. A generator must not wait (systemd.generator(7)):
//! early in the boot it writes to the kernel log, which journald reads later. Without a kernel log
//! (containers, a user's manager) it tries the socket of the journal without waiting, then standard
//! error.

use archivist_core::text::Problem;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;

const IDENTIFIER: &str = "archivist-generator";
const JOURNAL: &str = "/run/systemd/journal/socket";
const KERNEL_LOG: &str = "/dev/kmsg";
/// Longest line of the kernel log (LOG_LINE_MAX), less the prefix.
const KERNEL_LINE_MAX: usize = 900;

pub fn problems(problems: &[Problem]) {
    for problem in problems {
        let level = if problem.fatal { 3 } else { 4 };
        log(level, &problem.to_string());
    }
}

/// Logs a line; `level` is that of syslog(3).
fn log(level: u8, line: &str) {
    if to_kernel(level, line).is_err() && to_journal(level, line).is_err() {
        eprintln!("{line}");
    }
}

fn to_kernel(level: u8, line: &str) -> std::io::Result<()> {
    const DAEMON: u8 = 3 << 3;
    const O_NONBLOCK: i32 = nix::libc::O_NONBLOCK;
    let mut log = OpenOptions::new().write(true).custom_flags(O_NONBLOCK).open(KERNEL_LOG)?;
    // In containers, /dev/kmsg may be a link to the console or /dev/null.
    if !is_kernel_log(&log)? {
        return Err(std::io::ErrorKind::Unsupported.into());
    }
    let line = shortened(line, KERNEL_LINE_MAX);
    let pid = std::process::id();
    log.write_all(format!("<{}>{IDENTIFIER}[{pid}]: {line}\n", DAEMON | level).as_bytes())
}

fn is_kernel_log(log: &std::fs::File) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    /// Major 1, minor 11 (null(4), kernel's devices.txt).
    const DEVICE: u64 = (1 << 8) | 11;
    let about = log.metadata()?;
    Ok(about.file_type().is_char_device() && about.rdev() == DEVICE)
}

fn to_journal(level: u8, line: &str) -> std::io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    let line = shortened(line, 32 * 1024);
    let entry = format!("MESSAGE={line}\nPRIORITY={level}\nSYSLOG_IDENTIFIER={IDENTIFIER}\n");
    socket.send_to(entry.as_bytes(), JOURNAL).map(drop)
}

fn shortened(line: &str, max: usize) -> &str {
    let mut end = line.len().min(max);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_between_characters() {
        assert_eq!(shortened("aäö", 2), "a");
        assert_eq!(shortened("aäö", 3), "aä");
        assert_eq!(shortened("a", 9), "a");
    }
}
