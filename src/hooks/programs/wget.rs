//! `wget`: saves the page and its requisites under `HOST[+PORT]/` and in `warc/page.warc.gz`.

mod address;
mod attributes;
mod body;
mod copy;
mod departure;
mod markup;
mod names;
mod style;
mod transfer;
mod warc;

use crate::Outcome;
use crate::chromium::HTTP_ONLY;
use crate::page;
use crate::page::html::one_line;
use crate::page::identity;
use crate::process::exit::{ExitReason, ProgramOutput};
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::process::scratch::Scratch;
use nix::sys::signal::Signal;
use regex::Regex;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use transfer::Transfer;

const WARC: &str = "warc/page.warc.gz";
/// Largest cookie file in bytes.
const COOKIES_MAX_BYTES: u64 = 4 << 20;

/// Runs wget, completes its copy of the page, and judges the result by the saved files.
pub fn run(invocation: &Invocation) -> Outcome {
    let url = invocation.web_url()?;
    let runner = ProgramRunner::new(invocation.budget())?;
    let scratch = Scratch::new("wget")?;
    progress("saving the page with wget");
    let is_kept = invocation.settings.flag("WGET_WARC_ENABLED");
    let warc = if is_kept {
        fs::create_dir_all("warc")
            .map_err(|error| Finding::failed(format!("failed to create 'warc': {error}")))?;
        PathBuf::from(WARC)
    } else {
        scratch.path("page.warc.gz")
    };
    let mut transfer = Transfer {
        invocation,
        reserve: (runner.budget / 10).min(Duration::from_secs(5)),
        runner,
        scratch,
        warc,
        log: String::new(),
    };
    let (ended, copied) = transfer.save(&url)?;
    let finding = judge(&ended, invocation, transfer.runner.budget, &copied);
    let has_warc = is_kept && transfer.warc.metadata().is_ok_and(|file| file.len() > 0);
    Ok(if has_warc {
        finding.with("warc", WARC)
    } else {
        finding
    })
}

/// What was saved of a page.
#[derive(Debug, Default)]
struct Copied {
    /// Main file, relative to the working directory.
    file: Option<String>,
    /// Status code of the page.
    status: Option<u16>,
    /// Whether the page's response ended before its end.
    is_cut_off: bool,
    /// Number of requisites that could not be saved.
    absent: usize,
    notes: Vec<String>,
}

/// Builds wget's command line. `prlimit` limits the size of each file, because wget's own quota
/// does not apply to the first file; the WARC file contains all responses, so this also limits
/// their total.
fn command(
    invocation: &Invocation,
    scratch: &Scratch,
    budget: Duration,
) -> Result<Command, Finding> {
    let settings = &invocation.settings;
    let wget = settings.text("WGET_BINARY");
    let mut command = match settings.size("WGET_MAX_SIZE") {
        0 => Command::new(wget),
        most => {
            let most = most.min(file_size_limit());
            let mut command = Command::new("prlimit");
            command.args([&format!("--fsize={most}"), "--core=0", "--", &wget]);
            command
        }
    };
    // The log is parsed, so it must be in English.
    command.env("LC_ALL", "C.UTF-8").env_remove("LANGUAGE");
    // Names in the Windows style contain no quotes, colons or control characters.
    command.args([
        "--no-config",
        "--no-verbose",
        "--force-directories",
        "--restrict-file-names=windows",
    ]);
    if let Some(credentials) = &invocation.credentials {
        // Neither the command line nor the WARC file contains what wget reads from there.
        scratch.write(".netrc", &credentials.netrc())?;
        command.env("HOME", scratch.dir());
    }
    command.args(["--execute", "robots=off", "--max-redirect=20", "--no-hsts"]);
    command.arg(format!("--timeout={}", (budget.as_secs() / 2).clamp(1, 60)));
    let agent = identity::user_agent(invocation, "WGET_USER_AGENT");
    command.arg(format!("--user-agent={agent}"));
    let languages = identity::accept_language(invocation);
    if !languages.is_empty() {
        command.arg(format!("--header=Accept-Language: {languages}"));
    }
    let cookies = settings.text("WGET_COOKIES_FILE");
    if !cookies.is_empty() {
        let cookies = readable_cookies(Path::new(&cookies), scratch)?;
        command.arg("--load-cookies").arg(cookies);
    }
    if !settings.flag("WGET_CHECK_SSL_VALIDITY") {
        command.arg("--no-check-certificate");
    }
    Ok(command)
}

/// Returns a cookie file that wget reads completely: it takes the cookies that scripts cannot read,
/// which logins mostly use, for comments. Those lines lose their mark in a copy.
fn readable_cookies(file: &Path, scratch: &Scratch) -> Result<PathBuf, Finding> {
    let content = page::read_start(file, COOKIES_MAX_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&content);
    if !text.contains(HTTP_ONLY) {
        return Ok(file.to_owned());
    }
    let unmarked = |line: &str| line.strip_prefix(HTTP_ONLY).unwrap_or(line).to_owned() + "\n";
    let copy = scratch.path("cookies.txt");
    fs::write(&copy, text.lines().map(unmarked).collect::<String>())
        .map_err(|error| Finding::failed(format!("failed to copy the cookie file: {error}")))?;
    Ok(copy)
}

/// Hard limit of file sizes in bytes, which the unit sets with LimitFSIZE= (proc_pid_limits(5)).
fn file_size_limit() -> u64 {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max file size"));
    let hard = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    hard.unwrap_or(u64::MAX)
}

/// Judges a run by its main file: missing requisites are not a failure.
fn judge(
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
    let size = |file: &String| fs::metadata(file).map_or(0, |file| file.len());
    let file = copied.file.clone().filter(|file| size(file) > 0);
    let Some(file) = file else {
        return match copied.status {
            Some(status @ (200..300 | 304)) => {
                Finding::noresults(format!("the answer has no content ({status})"))
            }
            _ if ended.exit == ExitReason::Exited(0) => Finding::noresults("wget saved no file"),
            _ => Finding::failed(reason),
        };
    };
    let mut notes = copied.notes.clone();
    match ended.exit {
        ExitReason::Exited(0) if copied.is_cut_off => {
            notes.insert(0, "the answer ended early".to_owned());
        }
        ExitReason::Exited(0) => {}
        // A file could not be written, which was written afterwards.
        ExitReason::Exited(3) if copied.absent == 0 => {}
        ExitReason::Exited(3) => return Finding::failed(reason),
        ExitReason::Killed(_) if copied.is_cut_off => return Finding::failed(reason),
        _ if copied.is_cut_off => notes.insert(0, format!("the answer ended early: {reason}")),
        _ => notes.insert(0, reason),
    }
    let note = (!notes.is_empty()).then(|| one_line(&notes.join("; "), 1000));
    let finding = Finding::succeeded(file).with_note(note);
    match copied.status {
        Some(status) => finding.with("http_status", status),
        None => finding,
    }
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
fn last_error(log: &str) -> Option<String> {
    let server = Regex::new(r"(?m)^\S+ \S+ (ERROR [0-9]+: .*)$").ok()?;
    let other = || {
        let irrelevant = [
            "URL:",
            "FINISHED --",
            "Total wall clock",
            "Downloaded:",
            "Converted ",
        ];
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

    #[test]
    fn cookies_of_logins_are_readable_for_wget() {
        let top = tempfile::tempdir().unwrap();
        let (file, scratch) = (top.path().join("c.txt"), Scratch::new("test").unwrap());
        let plain = "a.test\tFALSE\t/\tFALSE\t0\tid\tone\n";
        fs::write(&file, plain).unwrap();
        assert_eq!(readable_cookies(&file, &scratch).unwrap(), file);
        fs::write(&file, format!("# c\n#HttpOnly_{plain}")).unwrap();
        let copy = readable_cookies(&file, &scratch).unwrap();
        assert_eq!(fs::read_to_string(copy).unwrap(), format!("# c\n{plain}"));
    }
    use crate::process::finding::EXIT_SKIPPED;

    const MISSING: &str = "http://a.test/missing:\n2026-11-21 09:00:00 ERROR 404: Not Found.\n";

    fn finding(exit: ExitReason, log: &str, copied: &Copied) -> Finding {
        let invocation = Invocation::read(
            "wget",
            include_str!("../../../plugins/wget/config.json"),
            &[],
            [],
        );
        let ended = ProgramOutput {
            exit,
            output: Vec::new(),
            log: log.into(),
        };
        judge(&ended, &invocation, Duration::from_secs(50), copied)
    }

    /// A page whose main file is a file of the package's directory.
    fn saved() -> Copied {
        Copied {
            file: Some("lib.rs".to_owned()),
            ..Copied::default()
        }
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
        assert_eq!(
            finding.output_str,
            "wget failed (exit 3): No space left on device"
        );
    }

    #[test]
    fn answer_without_content_has_a_reason() {
        for (exit, status) in [(0, 204), (8, 304), (0, 200)] {
            let copied = Copied {
                status: Some(status),
                ..Copied::default()
            };
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
            "wget was stopped after 50 s: time limit"
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
