//! `wget`: saves the page and its requisites under `HOST[+PORT]/` and in `warc/page.warc.gz`, unless
//! the browser records the page.

mod address;
mod attributes;
mod body;
mod copy;
mod departure;
mod judge;
mod markup;
mod names;
mod needs;
mod recording;
mod transfer;
mod unfinished;
mod warc;

use crate::certificates::client_certificate;
use crate::process::exit::ExitReason;
use crate::process::files;
use crate::process::finding::Outcome;
use crate::process::finding::{Finding, FindingStatus, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::process::scratch::Scratch;
use crate::visit;
use crate::visit::identity;
use archivist_core::model::cookies::HTTP_ONLY;
use recording::{RecordingLimits, WgetRecording};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;
use transfer::Transfer;

const WARC: &str = "warc/page.warc.gz";
/// Bytes of a document in which its title is looked for.
const DOCUMENT_MAX_BYTES: u64 = 4 << 20;
/// Largest cookie file in bytes.
const COOKIES_MAX_BYTES: u64 = 4 << 20;

/// Runs wget, completes its copy of the page, and judges the result by the saved files.
pub fn run(invocation: &Invocation) -> Outcome {
    let url = invocation.web_url()?;
    let mut runner = ProgramRunner::new(invocation.budget())?;
    let scratch = Scratch::new("wget")?;
    if !invocation.settings.flag("WGET_ALWAYS") {
        leave_to_browser(invocation, &mut runner)?;
    }
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
    let mut finding = judge::judge(&ended, invocation, transfer.runner.budget, &copied);
    if finding.exit_code() == 1 && matches!(ended.exit, ExitReason::Exited(4 | 5)) {
        if let Some(skip) = transfer.unanswered() {
            finding = skip;
        } else if !client_certificate::is_demanded(&finding.output_str)
            && let Some(why) = transfer.explain(&url)
        {
            finding = finding.because(why);
        }
    }
    let has_warc = is_kept && transfer.warc.metadata().is_ok_and(|file| file.len() > 0);
    if !has_warc {
        return Ok(finding);
    }
    if finding.status == FindingStatus::Succeeded {
        record(&mut transfer, copied.file.as_deref());
    }
    Ok(finding.with("warc", WARC))
}

/// Makes the recording of a page that no browser has recorded. The page is saved without it.
fn record(transfer: &mut Transfer<'_>, file: Option<&str>) {
    let invocation = transfer.invocation;
    let warc = transfer.warc.clone();
    // The file is completed after the last answer.
    let time = transfer.runner.remaining().saturating_sub(transfer.reserve / 2);
    let limits = RecordingLimits { bytes: transfer.size_max(), until: Instant::now() + time };
    let Some(recording) = WgetRecording::of(invocation, &warc, limits) else {
        return;
    };
    let title = file.map(|file| recording::title_of(Path::new(file), DOCUMENT_MAX_BYTES));
    let writing = recording.write(title.unwrap_or_default());
    if let Err(finding) = transfer.runner.within("recording the page", writing) {
        eprintln!("{}, ignoring", finding.output_str.escape_debug());
    }
}

/// Ends the hook if the browser of this visit has requested the page and records it, or could not reach
/// the site. A browser that failed otherwise leaves the page to wget.
fn leave_to_browser(invocation: &Invocation, runner: &mut ProgramRunner) -> Result<(), Finding> {
    let within = (runner.remaining() / 2).min(invocation.answer_time());
    // A result that succeeded in an earlier visit is not lost by this one: not skipped.
    if visit::is_recorded(invocation, runner, within)? {
        return Err(Finding::noresults(
            "the browser records the page; WGET_ALWAYS=true requests it again",
        ));
    }
    // The options may select another way to the server.
    if invocation.settings.list("WGET_ARGS_EXTRA").is_empty() {
        visit::skip_if_unreachable(invocation)?;
    }
    Ok(())
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
    let answer = (budget / 2).min(invocation.answer_time());
    command.arg(format!("--timeout={}", answer.as_secs().max(1)));
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
    let content = files::read_start(file, COOKIES_MAX_BYTES).unwrap_or_default();
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
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file size"));
    let hard = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    hard.unwrap_or(u64::MAX)
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
}
