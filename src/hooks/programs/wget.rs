//! `wget`: the page with what it needs, as files under `HOST[+PORT]/` and as `warc/page.warc.gz`.

use crate::Outcome;
use crate::page::html::one_line;
use crate::process::invocation::Invocation;
use crate::process::output::Limits;
use crate::process::program::{Ended, Ending, Runner};
use crate::process::record::{Finding, progress};
use crate::process::scratch::Scratch;
use nix::sys::signal::Signal;
use regex::Regex;
use std::fs;
use std::path::{Component, Path};
use std::process::Command;
use std::time::Duration;
use url::Url;

const WARC: &str = "warc/page.warc.gz";

/// Runs wget and judges what it left.
pub fn run(it: &Invocation) -> Outcome {
    let url = it.web_url()?;
    let mut runner = Runner::new(it.budget())?;
    let scratch = Scratch::new("wget")?;
    progress("saving the page with wget");
    let mut command = command(it, &url, &scratch, runner.budget)?;
    let ended = runner.run(
        &mut command,
        "wget",
        Limits {
            output: 64 * 1024,
            ..Limits::default()
        },
    )?;
    let finding = judge(&ended, it, runner.budget);
    let warc = Path::new(WARC).metadata().is_ok_and(|file| file.len() > 0);
    Ok(if warc {
        finding.with("warc", WARC)
    } else {
        finding
    })
}

/// The whole of wget's command line. `prlimit` sets the size limit: wget's own quota does not
/// hold for the first file. One WARC file holds everything, so a limit per file is enough.
fn command(
    it: &Invocation,
    url: &Url,
    scratch: &Scratch,
    budget: Duration,
) -> Result<Command, Finding> {
    let settings = &it.settings;
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
    // The log is read by main_file and complaint, so it must be in English.
    command.env("LC_ALL", "C.UTF-8").env_remove("LANGUAGE");
    // Names like those of Windows have no quotes, colons or control characters in them.
    command.args([
        "--no-config",
        "--no-verbose",
        "--force-directories",
        "--restrict-file-names=windows",
    ]);
    command.args(["--execute", "robots=off", "--max-redirect=20", "--no-hsts"]);
    command.arg(format!("--timeout={}", (budget.as_secs() / 2).clamp(1, 60)));
    command.args(settings.list("WGET_ARGS"));
    for (option, key) in [
        ("--user-agent", "WGET_USER_AGENT"),
        ("--load-cookies", "WGET_COOKIES_FILE"),
    ] {
        let value = settings.text(key);
        if !value.is_empty() {
            command.arg(format!("{option}={value}"));
        }
    }
    if !settings.flag("WGET_CHECK_SSL_VALIDITY") {
        command.arg("--no-check-certificate");
    }
    if settings.flag("WGET_WARC_ENABLED") {
        fs::create_dir_all("warc")
            .map_err(|error| Finding::failed(format!("failed to make warc/: {error}")))?;
        command.arg(format!("--warc-file={}", WARC.trim_end_matches(".warc.gz")));
        command.arg("--warc-tempdir").arg(scratch.dir());
    }
    command
        .args(settings.list("WGET_ARGS_EXTRA"))
        .arg("--")
        .arg(url.as_str());
    Ok(command)
}

/// The limit that the unit sets with LimitFSIZE=, which nobody may raise; see proc(5).
fn file_size_limit() -> u64 {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max file size"));
    let hard = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    hard.unwrap_or(u64::MAX)
}

/// The main file is what counts: requisites that are missing do not make a page a failure.
fn judge(ended: &Ended, it: &Invocation, budget: Duration) -> Finding {
    let reason = match ended.ending {
        Ending::Exited(127) if ended.log.contains("prlimit: failed to execute") => {
            return Finding::skipped("wget is not installed (Debian package wget)");
        }
        Ending::Killed(number) if number == Signal::SIGXFSZ as i32 => too_large(it),
        other => match complaint(&ended.log).or_else(|| meaning(other).map(String::from)) {
            Some(said) => format!("{}: {said}", other.reason("wget", budget)),
            None => other.reason("wget", budget),
        },
    };
    match main_file(&ended.log) {
        // Status 3: a file could not be written.
        Some(_) if ended.ending == Ending::Exited(3) => Finding::failed(reason),
        Some(main) if ended.ending == Ending::Exited(0) => Finding::succeeded(main),
        Some(main) => Finding::succeeded(main).with("note", reason),
        None if ended.ending == Ending::Exited(0) => Finding::noresults("wget saved no file"),
        None => Finding::failed(reason),
    }
}

/// The first file that wget says it has saved whole, if it is there and in our directory.
fn main_file(log: &str) -> Option<String> {
    let saved = Regex::new(r#"(?m)^\S+ \S+ URL:.* -> "([^"]+)" \[[0-9]+\]$"#).ok()?;
    let path = saved.captures(log)?.get(1)?.as_str().to_string();
    let inside = Path::new(&path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    (inside && Path::new(&path).is_file()).then_some(path)
}

fn too_large(it: &Invocation) -> String {
    let (own, unit) = (it.settings.size("WGET_MAX_SIZE"), file_size_limit());
    if own == 0 || unit < own {
        return format!("wget was stopped: more than LimitFSIZE={unit} of its unit");
    }
    let own = it.settings.text("WGET_MAX_SIZE");
    format!("wget was stopped: more than WGET_MAX_SIZE={own}")
}

/// What wget(1) says of its exit statuses; of some failures it logs nothing.
fn meaning(ending: Ending) -> Option<&'static str> {
    match ending {
        Ending::Exited(3) => Some("a file could not be written"),
        Ending::Exited(4) => Some("the network or the server broke off"),
        Ending::Exited(5) => Some("the certificate could not be verified"),
        Ending::Exited(6) => Some("the server asks for a password"),
        Ending::Exited(7) => Some("protocol error"),
        Ending::Exited(8) => Some("the server answered with an error"),
        _ => None,
    }
}

/// What wget says went wrong, in its own words: an error of the server, else its last line that
/// is neither about a saved file nor a summary.
fn complaint(log: &str) -> Option<String> {
    let server = Regex::new(r"(?m)^\S+ \S+ (ERROR [0-9]+: .*)$").ok()?;
    let other = || {
        let dull = [
            "URL:",
            "FINISHED --",
            "Total wall clock",
            "Downloaded:",
            "Converted ",
        ];
        log.lines()
            .rev()
            .find(|line| !line.is_empty() && !dull.iter().any(|text| line.contains(text)))
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

    const MISSING: &str = "http://a.test/missing:\n2026-11-21 09:00:00 ERROR 404: Not Found.\n";

    fn finding(ending: Ending, log: &str) -> Finding {
        let it = Invocation::read(
            "wget",
            include_str!("../../../plugins/wget/config.json"),
            &[],
            [],
        );
        let ended = Ended {
            ending,
            output: Vec::new(),
            log: log.into(),
        };
        judge(&ended, &it, Duration::from_secs(50))
    }

    /// A log that says it saved a file which is really there, relative to the crate's directory.
    fn saved(path: &str) -> String {
        format!(
            "2026-11-21 09:00:00 URL:http://a.test/?q=\"x\" [12/12] -> \"{path}\" [1]\n{MISSING}"
        )
    }

    #[test]
    fn a_page_is_judged_by_its_main_file() {
        for ending in [
            Ending::Exited(0),
            Ending::Exited(8),
            Ending::TimedOut,
            Ending::Killed(25),
        ] {
            let finding = finding(ending, &saved("lib.rs"));
            assert_eq!(
                (finding.exit_code(), finding.output_str.as_str()),
                (0, "lib.rs"),
                "{ending:?}"
            );
        }
        assert_eq!(finding(Ending::Exited(3), &saved("lib.rs")).exit_code(), 1);
    }

    #[test]
    fn files_elsewhere_or_missing_are_no_main_file() {
        for path in ["/etc/passwd", "../archivist/lib.rs", "src/nothing.rs"] {
            assert_eq!(
                finding(Ending::Exited(8), &saved(path)).exit_code(),
                1,
                "{path}"
            );
        }
    }

    #[test]
    fn failures_say_why() {
        let text = |ending, log| finding(ending, log).output_str;
        assert_eq!(
            text(Ending::Exited(8), MISSING),
            "wget failed (exit 8): ERROR 404: Not Found"
        );
        assert_eq!(
            text(Ending::TimedOut, ""),
            "wget was stopped after 50 s: time limit"
        );
        assert_eq!(
            text(Ending::Killed(25), ""),
            "wget was stopped: more than WGET_MAX_SIZE=1g"
        );
        assert_eq!(
            text(Ending::Exited(4), "failed: Connection refused.\n"),
            "wget failed (exit 4): failed: Connection refused"
        );
        let finding = finding(
            Ending::Exited(127),
            "prlimit: failed to execute wget: No such file or directory\n",
        );
        assert_eq!(finding.exit_code(), 10);
    }
}
