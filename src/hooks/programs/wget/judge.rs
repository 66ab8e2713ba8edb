//! The result of the hook, by what was saved of the page.

use super::file_size_limit;
use crate::page::html::one_line;
use crate::process::exit::{ExitReason, ProgramOutput};
use crate::process::finding::Finding;
use crate::process::invocation::{ALLOWS_MORE, Invocation};
use nix::sys::signal::Signal;
use regex::Regex;
use std::fs;
use std::path::Path;
use std::time::Duration;

const NOTE_MAX_CHARS: usize = 1000;

/// Why wget cannot read a server's answer.
const HTTP2: &str = "the server speaks only HTTP/2, which wget does not";

#[derive(Debug, Default)]
pub struct Copied {
    /// Main file, relative to the working directory.
    pub file: Option<String>,
    pub status: Option<u16>,
    /// Whether the page's response ended before its end.
    pub is_cut_off: bool,
    /// Number of requisites that could not be saved.
    pub absent: usize,
    /// Which requisites are missing, if any.
    pub missing: Option<String>,
    /// How many of these are parts of the page on the web.
    pub lacking: usize,
    /// Other remarks.
    pub notes: Vec<String>,
}

/// Judges a run by its main file: missing requisites are not a failure, and error pages are pages.
/// The remark begins with what is missing of the page.
pub fn judge(
    ended: &ProgramOutput,
    invocation: &Invocation,
    budget: Duration,
    copied: &Copied,
) -> Finding {
    let reason = match ended.exit {
        ExitReason::Exited(127) if ended.log.contains("prlimit: failed to execute") => {
            return Finding::skipped("wget is not installed (Debian package wget)");
        }
        ExitReason::Killed(number) if number == Signal::SIGXFSZ as i32 => too_large(invocation),
        other => match last_error(&ended.log).or_else(|| meaning(other).map(String::from)) {
            Some(detail) => format!("{}: {detail}", other.describe("wget", budget)),
            None => other.describe("wget", budget),
        },
    };
    let is_late = ended.exit == ExitReason::TimedOut || reason.contains("Connection timed out");
    let size = |file: &String| fs::metadata(file).map_or(0, |file| file.len());
    let file = copied.file.clone().filter(|file| size(file) > 0);
    let reason = match (copied.status, &file) {
        (None, None) if is_late => format!("{reason} {ALLOWS_MORE}"),
        _ => reason,
    };
    let Some(file) = file else {
        let no_content = |status| format!("the answer has no content ({status})");
        return match copied.status {
            Some(status @ (200..300 | 304)) => {
                Finding::noresults(no_content(status)).with("http_status", status)
            }
            _ if ended.exit == ExitReason::Exited(0) => Finding::noresults("wget saved no file"),
            Some(status @ 400..) if matches!(ended.exit, ExitReason::Exited(_)) => {
                Finding::failed(no_content(status)).with("http_status", status)
            }
            _ => Finding::failed(reason),
        };
    };
    if is_http2(&file) {
        if let Err(error) = fs::remove_file(&file) {
            eprintln!("failed to remove '{file}': {error}, ignoring");
        }
        return Finding::failed(HTTP2);
    }
    let stopped = match ended.exit {
        ExitReason::Exited(0) => None,
        // A file could not be written, which was written afterwards.
        ExitReason::Exited(3) if copied.absent == 0 => None,
        ExitReason::Exited(3) => return Finding::failed(reason),
        ExitReason::Killed(_) if copied.is_cut_off => return Finding::failed(reason),
        // Of requests that failed, those that the page needs are listed as missing.
        ExitReason::Exited(4..=8) => None,
        _ => Some(reason),
    };
    let early = "the answer ended early";
    let stopped = match stopped {
        Some(reason) if copied.is_cut_off => Some(format!("{early}: {reason}")),
        None if copied.is_cut_off => Some(early.to_owned()),
        other => other,
    };
    let error = copied.status.filter(|status| *status >= 400);
    let notes: Vec<_> = error
        .map(|status| format!("the server answered {status}"))
        .into_iter()
        .chain(copied.missing.clone())
        .chain(stopped)
        .chain(copied.notes.iter().cloned())
        .collect();
    let note = (!notes.is_empty()).then(|| one_line(&notes.join("; "), NOTE_MAX_CHARS));
    let lacks = copied.lacking + usize::from(copied.is_cut_off);
    let finding = Finding::succeeded(file).with_note(note).with_lacks(lacks);
    match copied.status {
        Some(status) => finding.with("http_status", status),
        None => finding,
    }
}

/// Whether a file is the start of a connection of HTTP/2, which wget takes for a page of HTTP/0.9:
/// a frame with settings of the connection (RFC 9113, section 6.5).
fn is_http2(file: &str) -> bool {
    let start = crate::process::files::read_start(Path::new(file), 9).unwrap_or_default();
    start.len() == 9 && start[..2] == [0, 0] && start[3..] == [4, 0, 0, 0, 0, 0]
}

fn too_large(invocation: &Invocation) -> String {
    let (own, unit) = (invocation.settings.size("WGET_MAX_SIZE"), file_size_limit());
    if own == 0 || unit < own {
        return format!("wget was stopped: more than LimitFSIZE={unit} of its unit");
    }
    let own = invocation.settings.text("WGET_MAX_SIZE");
    format!("wget was stopped: more than WGET_MAX_SIZE={own}")
}

/// Meaning of wget's exit statuses according to wget(1), for failures without a message in the log.
fn meaning(exit: ExitReason) -> Option<&'static str> {
    match exit {
        ExitReason::Exited(3) => Some("failed to write a file"),
        ExitReason::Exited(4) => Some("the network or the server interrupted the transfer"),
        ExitReason::Exited(5) => Some("failed to verify the certificate"),
        ExitReason::Exited(6) => Some("the server requires a password"),
        ExitReason::Exited(7) => Some("protocol error"),
        ExitReason::Exited(8) => Some("the server answered with an error"),
        _ => None,
    }
}

/// The error in wget's log: an error of the server, else the last line that is neither about a
/// saved file nor a summary.
pub fn last_error(log: &str) -> Option<String> {
    let server = Regex::new(r"(?m)^\S+ \S+ (ERROR [0-9]+: .*)$").ok()?;
    let other = || {
        let irrelevant = ["URL:", "FINISHED --", "Total wall clock", "Downloaded:", "Converted "];
        log.lines()
            .rev()
            .find(|line| !line.is_empty() && !irrelevant.iter().any(|text| line.contains(text)))
    };
    let text = server
        .captures(log)
        .and_then(|found| found.get(1))
        .map(|found| found.as_str())
        .or_else(other)?;
    Some(one_line(text.trim_end_matches('.'), 300))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::finding::EXIT_SKIPPED;

    const MISSING: &str = "http://a.test/missing:\n2026-11-21 09:00:00 ERROR 404: Not Found.\n";

    fn finding(exit: ExitReason, log: &str, copied: &Copied) -> Finding {
        let invocation =
            Invocation::read("wget", include_str!("../../../../plugins/wget/config.json"), &[], []);
        let ended = ProgramOutput { exit, output: Vec::new(), log: log.into() };
        judge(&ended, &invocation, Duration::from_secs(50), copied)
    }

    /// A page whose main file is a file of the package's directory.
    fn saved() -> Copied {
        Copied { file: Some("lib.rs".to_owned()), ..Copied::default() }
    }

    #[test]
    fn page_is_judged_by_its_main_file() {
        for exit in [
            ExitReason::Exited(0),
            ExitReason::Exited(3),
            ExitReason::Exited(8),
            ExitReason::TimedOut,
            ExitReason::Killed(25),
        ] {
            let finding = finding(exit, MISSING, &saved());
            assert_eq!(
                (finding.exit_code(), finding.output_str.as_str()),
                (0, "lib.rs"),
                "{exit:?}"
            );
        }
    }

    #[test]
    fn file_that_could_not_be_written_is_a_failure() {
        let mut copied = saved();
        copied.absent = 1;
        let finding = finding(ExitReason::Exited(3), "No space left on device\n", &copied);
        assert_eq!(finding.output_str, "wget failed (exit 3): No space left on device");
    }

    #[test]
    fn note_begins_with_what_is_missing_instead_of_the_exit_of_wget() {
        let copied = Copied {
            missing: Some(
                "2 of 31 files of the page are missing: http://a.test/x (404)".to_owned(),
            ),
            notes: vec!["another remark".to_owned()],
            ..saved()
        };
        let note =
            |exit, copied: &Copied| finding(exit, MISSING, copied).note().unwrap_or_default();
        assert_eq!(
            note(ExitReason::Exited(8), &copied),
            "2 of 31 files of the page are missing: http://a.test/x (404); another remark"
        );
        let late = note(ExitReason::TimedOut, &copied);
        assert!(late.starts_with("2 of 31 files") && late.contains("time limit"), "{late}");
        assert_eq!(note(ExitReason::Exited(8), &saved()), "");
    }

    #[test]
    fn error_page_is_a_page_with_a_note() {
        for status in [403, 404, 500] {
            let copied = Copied { status: Some(status), ..saved() };
            let finding = finding(ExitReason::Exited(8), MISSING, &copied);
            assert_eq!(finding.exit_code(), 0);
            assert_eq!(finding.note(), Some(format!("the server answered {status}")));
            let empty = Copied { status: Some(status), ..Copied::default() };
            let finding = self::finding(ExitReason::Exited(8), MISSING, &empty);
            assert_eq!(finding.output_str, format!("the answer has no content ({status})"));
            assert_eq!(finding.exit_code(), 1);
        }
    }

    #[test]
    fn answer_without_content_has_a_reason() {
        for (exit, status) in [(0, 204), (8, 304), (0, 200)] {
            let copied = Copied { status: Some(status), ..Copied::default() };
            let finding = finding(ExitReason::Exited(exit), MISSING, &copied);
            let expected = format!("the answer has no content ({status})");
            assert_eq!((finding.exit_code(), finding.output_str), (0, expected));
        }
    }

    #[test]
    fn failures_have_a_reason() {
        let text = |exit, log| finding(exit, log, &Copied::default()).output_str;
        assert_eq!(
            text(ExitReason::Exited(8), MISSING),
            "wget failed (exit 8): ERROR 404: Not Found"
        );
        assert_eq!(
            text(ExitReason::TimedOut, ""),
            "wget was stopped after 50 s: time limit (ANSWER_TIMEOUT= allows more)"
        );
        assert_eq!(
            text(ExitReason::Killed(25), ""),
            "wget was stopped: more than WGET_MAX_SIZE=1g"
        );
        assert_eq!(
            text(ExitReason::Exited(4), "failed: Connection refused.\n"),
            "wget failed (exit 4): failed: Connection refused"
        );
        let finding = finding(
            ExitReason::Exited(127),
            "prlimit: failed to execute wget: No such file or directory\n",
            &Copied::default(),
        );
        assert_eq!(finding.exit_code(), EXIT_SKIPPED);
    }
}
