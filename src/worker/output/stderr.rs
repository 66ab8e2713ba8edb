//! The last lines that a hook wrote to standard error. They are in the journal, which journalctl(1)
//! reads: a parser of journal files in the worker would be code for five lines of text.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// Lines that are returned, and bytes of all of them together.
const LINES_MAX: usize = 5;
const TEXT_MAX: usize = 1024;
/// Journal entries that are read for these lines: some entries are empty.
const ENTRIES_MAX: usize = 50;
/// Bytes that are read from journalctl. One line has up to 48 KiB (`LineMax=`, journald.conf(5)).
const OUTPUT_MAX: u64 = 1 << 20;
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the last lines of an invocation (its id in hexadecimal digits), oldest first, separated
/// by line feeds; an empty text if it wrote nothing, or if this user may not read the journal.
pub async fn last_lines(invocation: &str) -> String {
    if invocation.is_empty() || !invocation.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return String::new();
    }
    match tokio::time::timeout(READ_TIMEOUT, read(invocation)).await {
        Ok(Ok(output)) => {
            let text = String::from_utf8_lossy(&output);
            shorten(text.split('\n'))
        }
        Ok(Err(error)) => {
            tracing::debug!("failed to run journalctl: {error}, ignoring");
            String::new()
        }
        Err(_) => {
            tracing::debug!("failed to read the journal: journalctl took longer than 5s, ignoring");
            String::new()
        }
    }
}

/// Returns the messages of the newest entries, newest first, each ended by a line feed.
async fn read(invocation: &str) -> io::Result<Vec<u8>> {
    let mut journalctl = Command::new("journalctl")
        .args(["--quiet", "--no-pager", "--output=cat", "--reverse"])
        .arg(format!("--lines={ENTRIES_MAX}"))
        // Standard output goes to a file.
        .arg("_TRANSPORT=stdout")
        .arg(format!("_SYSTEMD_INVOCATION_ID={invocation}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut output = Vec::new();
    if let Some(stdout) = journalctl.stdout.take() {
        stdout.take(OUTPUT_MAX).read_to_end(&mut output).await?;
    }
    // It has ended, or has more to print than is read.
    journalctl.kill().await?;
    Ok(output)
}

/// Returns at most [`LINES_MAX`] lines with [`TEXT_MAX`] bytes, oldest first. `lines` begin with
/// the newest. A single line that is longer loses its beginning.
fn shorten<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    let mut kept: VecDeque<String> = VecDeque::new();
    let mut left = TEXT_MAX;
    let lines = lines.into_iter().map(str::trim_end);
    let full = lines.filter(|line| !line.is_empty());
    for line in full.take(LINES_MAX) {
        match left.checked_sub(line.len() + 1) {
            Some(rest) => left = rest,
            None if kept.is_empty() => {
                let begin = line.ceil_char_boundary(line.len() - TEXT_MAX);
                kept.push_front(format!("…{}", &line[begin..]));
                break;
            }
            None => break,
        }
        kept.push_front(line.to_owned());
    }
    Vec::from(kept).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn last_lines_are_in_order() {
        assert_eq!(shorten(["last", "", "  ", "before"]), "before\nlast");
        assert_eq!(shorten(["7", "6", "5", "4", "3", "2"]), "3\n4\n5\n6\n7");
        assert_eq!(shorten([]), "");
    }

    #[test]
    fn long_lines_are_cut_to_the_length_of_a_reason() {
        let long = "é".repeat(TEXT_MAX) + "end";
        let cut = shorten([long.as_str(), "before"]);
        assert!(
            cut.starts_with("…é") && cut.ends_with("end") && cut.len() <= TEXT_MAX + 3,
            "{}",
            cut.len()
        );
        assert_eq!(shorten(["last", long.as_str(), "before"]), "last");
    }

    proptest! {
        #[test]
        fn any_text_is_cut_to_the_limits(text in "(\\PC{0,400}\n?){0,12}") {
            let cut = shorten(text.split('\n'));
            prop_assert!(cut.len() <= TEXT_MAX + '…'.len_utf8());
            prop_assert!(cut.lines().count() <= LINES_MAX);
        }
    }

    #[tokio::test]
    async fn invalid_invocation_is_not_passed_on() {
        for invocation in ["", "--flush", "0123 OBJECT_PID=1"] {
            assert_eq!(last_lines(invocation).await, "");
        }
    }
}
