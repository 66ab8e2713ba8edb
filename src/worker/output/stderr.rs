//! The end of what a hook wrote to standard error: the reason of a failure, and a file that outlasts
//! the journal. journalctl(1) reads the journal: a parser of journal files in the worker would be code
//! for a few lines of text.

use archivist_core::model::Time;
use archivist_plugin::Directory;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// Bytes that are kept in a file.
const KEPT_MAX: usize = 64 << 10;
/// Lines in the reason of a failure, and bytes of all of them together.
const LINES_MAX: usize = 5;
const TEXT_MAX: usize = 1024;
/// Bytes that are read from journalctl: those that are kept, and one more line, which has up to 48 KiB
/// (`LineMax=`, journald.conf(5)).
const OUTPUT_MAX: usize = KEPT_MAX + (48 << 10);
const READ_TIMEOUT: Duration = Duration::from_secs(15);

/// Reads the end of what a hook's run wrote, at most [`KEPT_MAX`] bytes; empty if it wrote nothing, or
/// if this user may not read the journal. `invocation` is the id of the unit's
/// invocation in hexadecimal digits, `unit` the name of the unit and the start of the run; `None` for the
/// unit of a user manager.
///
/// journald finds the invocation of a line in `/proc` and in `/run/systemd/units` when it processes the
/// line, not when the hook writes it. If the hook and its unit are gone by then, the line has neither
/// `_SYSTEMD_INVOCATION_ID=` nor the fields of `LogExtraFields=`, but still the unit that PID 1 named when
/// it opened the stream (seen with systemd 252 and 257).
pub async fn read(invocation: &str, unit: Option<(&str, Time)>) -> Vec<u8> {
    if invocation.is_empty() || !invocation.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Vec::new();
    }
    let end = of_query(&[format!("_SYSTEMD_INVOCATION_ID={invocation}")]).await;
    match unit {
        Some((unit, started_at)) if end.is_empty() => of_query(&of_unit(unit, started_at)).await,
        _ => end,
    }
}

/// Returns the last lines of a text, oldest first, separated by line feeds.
pub fn last_lines(end: &[u8]) -> String {
    shorten(String::from_utf8_lossy(end).rsplit('\n'))
}

/// Keeps this end of a hook's standard error as the file `name`, in place of that of an earlier run; no
/// file if it is empty. Follows no link that a hook put there.
pub fn keep(directory: &Directory, name: &str, end: &[u8]) {
    let kept = directory.clear(name).and_then(|()| match end {
        [] => Ok(()),
        end => directory.create(name, 0o640)?.write_all(end),
    });
    report(directory, name, "write", kept);
}

pub fn remove(directory: &Directory, name: &str) {
    report(directory, name, "remove", directory.unlink(name));
}

fn report(directory: &Directory, name: &str, verb: &str, done: io::Result<()>) {
    if let Err(error) = done
        && error.kind() != ErrorKind::NotFound
    {
        let path = directory.path().join(name);
        tracing::debug!("failed to {verb} '{}': {error}, ignoring", path.display());
    }
}

/// Arguments of journalctl for the lines of a unit since this time.
fn of_unit(unit: &str, since: Time) -> [String; 2] {
    let (seconds, millis) = (since.0.div_euclid(1000), since.0.rem_euclid(1000));
    [format!("--since=@{seconds}.{millis:03}"), format!("_SYSTEMD_UNIT={unit}")]
}

async fn of_query(query: &[String]) -> Vec<u8> {
    match tokio::time::timeout(READ_TIMEOUT, newest(query)).await {
        Ok(Ok(output)) => in_order(&output),
        Ok(Err(error)) => {
            tracing::debug!("failed to run journalctl: {error}, ignoring");
            Vec::new()
        }
        Err(_) => {
            tracing::debug!(
                "failed to read the journal: journalctl took longer than {} s, ignoring",
                READ_TIMEOUT.as_secs()
            );
            Vec::new()
        }
    }
}

/// Returns the messages of the newest entries, newest first, each ended by a line feed, up to
/// [`OUTPUT_MAX`] bytes.
async fn newest(query: &[String]) -> io::Result<Vec<u8>> {
    let mut journalctl = Command::new("journalctl")
        .args(["--quiet", "--no-pager", "--output=cat", "--reverse"])
        // Of empty lines, too.
        .arg(format!("--lines={KEPT_MAX}"))
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
        stdout.take(OUTPUT_MAX as u64).read_to_end(&mut output).await?;
    }
    // It has ended, or has more to print than is read.
    journalctl.kill().await?;
    Ok(output)
}

/// Returns lines, which begin with the newest, oldest first, and of these the last [`KEPT_MAX`] bytes.
fn in_order(output: &[u8]) -> Vec<u8> {
    let lines = output.split_inclusive(|byte| *byte == b'\n');
    // A line that is not complete lacks its end.
    let lines: Vec<&[u8]> = lines.filter(|line| line.ends_with(b"\n")).collect();
    let mut text = lines.into_iter().rev().collect::<Vec<_>>().concat();
    text.drain(..text.len().saturating_sub(KEPT_MAX));
    text
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
            assert!(read(invocation, None).await.is_empty());
        }
    }

    #[test]
    fn the_end_is_in_order_and_bounded() {
        assert_eq!(in_order(b"last\n\nbefore\nfirst\n"), b"first\nbefore\n\nlast\n");
        assert_eq!(in_order(b""), b"");
        assert_eq!(in_order(b"last\nline that is cut"), b"last\n");
        let long = [b"last\n".to_vec(), vec![b'x'; KEPT_MAX - 8], b"\ncut\n".to_vec()].concat();
        let end = in_order(&long);
        assert_eq!(end.len(), KEPT_MAX);
        assert!(end.starts_with(b"t\nxx") && end.ends_with(b"x\nlast\n"));
        assert_eq!(last_lines(b"first\n\xff\nlast\n"), "first\n\u{fffd}\nlast");
    }

    /// Whatever a hook put in the place of the file.
    #[test]
    fn the_end_is_kept_and_no_link_is_followed() {
        let top = tempfile::tempdir().unwrap();
        let directory = Directory::open(top.path()).unwrap();
        let at = |name: &str| top.path().join(name);
        let text = |name: &str| std::fs::read_to_string(at(name)).ok();
        std::fs::write(at("victim"), "precious").unwrap();
        std::os::unix::fs::symlink(at("victim"), at("link")).unwrap();
        std::fs::hard_link(at("victim"), at("same")).unwrap();
        std::fs::create_dir_all(at("directory/full")).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for name in ["link", "same", "directory", "pipe", "none"] {
            keep(&directory, name, b"reason\n");
            assert_eq!(text(name).as_deref(), Some("reason\n"), "{name}");
            assert!(std::fs::symlink_metadata(at(name)).unwrap().is_file());
        }
        assert_eq!(text("victim").as_deref(), Some("precious"));
        keep(&directory, "link", b"another\n");
        assert_eq!(text("link").as_deref(), Some("another\n"));
        keep(&directory, "link", b"");
        remove(&directory, "same");
        remove(&directory, "same");
        assert_eq!((text("link"), text("same")), (None, None));
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
