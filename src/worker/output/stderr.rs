//! The last lines that a hook wrote to standard error. They are in the journal, which journalctl(1)
//! reads: a parser of journal files in the worker would be code for five lines of text.

use archivist_core::model::Time;
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
const READ_TIMEOUT: Duration = Duration::from_secs(15);

/// Returns the last lines of a hook's run, oldest first, separated by line feeds; an empty text if it
/// wrote nothing, or if this user may not read the journal. `invocation` is the id of the unit's
/// invocation in hexadecimal digits, `unit` the name of the unit and the start of the run; `None` for the
/// unit of a user manager.
///
/// journald finds the invocation of a line in `/proc` and in `/run/systemd/units` when it processes the
/// line, not when the hook writes it. If the hook and its unit are gone by then, the line has neither
/// `_SYSTEMD_INVOCATION_ID=` nor the fields of `LogExtraFields=`, but still the unit that PID 1 named when
/// it opened the stream (seen with systemd 252 and 257).
pub async fn last_lines(invocation: &str, unit: Option<(&str, Time)>) -> String {
    if invocation.is_empty() || !invocation.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return String::new();
    }
    let lines = of_query(&[format!("_SYSTEMD_INVOCATION_ID={invocation}")]).await;
    match unit {
        Some((unit, started_at)) if lines.is_empty() => of_query(&of_unit(unit, started_at)).await,
        _ => lines,
    }
}

/// Arguments of journalctl for the lines of a unit since this time.
fn of_unit(unit: &str, since: Time) -> [String; 2] {
    let (seconds, millis) = (since.0.div_euclid(1000), since.0.rem_euclid(1000));
    [
        format!("--since=@{seconds}.{millis:03}"),
        format!("_SYSTEMD_UNIT={unit}"),
    ]
}

async fn of_query(query: &[String]) -> String {
    match tokio::time::timeout(READ_TIMEOUT, read(query)).await {
        Ok(Ok(output)) => {
            let text = String::from_utf8_lossy(&output);
            shorten(text.split('\n'))
        }
        Ok(Err(error)) => {
            tracing::debug!("failed to run journalctl: {error}, ignoring");
            String::new()
        }
        Err(_) => {
            tracing::debug!(
                "failed to read the journal: journalctl took longer than {} s, ignoring",
                READ_TIMEOUT.as_secs()
            );
            String::new()
        }
    }
}

/// Returns the messages of the newest entries, newest first, each ended by a line feed.
async fn read(query: &[String]) -> io::Result<Vec<u8>> {
    let mut journalctl = Command::new("journalctl")
        .args(["--quiet", "--no-pager", "--output=cat", "--reverse"])
        .arg(format!("--lines={ENTRIES_MAX}"))
        // Standard output goes to a file.
        .arg("_TRANSPORT=stdout")
        .args(query)
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
            assert_eq!(last_lines(invocation, None).await, "");
        }
    }

    #[test]
    fn lines_of_an_earlier_run_of_the_unit_are_left_out() {
        let unit = "archivist-hook-wget-s3.service";
        let query = of_unit(unit, Time(1_764_115_200_042));
        let [since, of] = query.each_ref().map(String::as_str);
        assert_eq!(since, "--since=@1764115200.042");
        assert_eq!(of, "_SYSTEMD_UNIT=archivist-hook-wget-s3.service");
    }
}
