//! Whether the browser of this machine records a page and replays it.
//!
//! `archivist hook trial` does both, in a unit: root must not run a browser, and a unit shows whether
//! the sandbox permits what the browser needs.

use super::Check;
use crate::client::transfer::run_words;
use crate::machine::browser;
use archivist_config::Scope;
use archivist_core::text::{clean, human_span};
use archivist_hooks::trial::{Trial, TrialRecording, TrialReplay};
use archivist_plugin::Values;
use nix::unistd::geteuid;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

const RECORDING: &str = "recording";
const REPLAY: &str = "replay";
/// Time limit of the unit in seconds.
const LIMIT_SECONDS: u64 = 120;
/// Start of the names of settings that say which browser is started, and how.
const OF_BROWSER: &str = "CHROME_";
const INSTALL: &str =
    "apt install chromium, or name another browser by CHROME_BINARY= in archivist.conf(5)";
const SEE_LOG: &str = "for the log of the browser, run as an ordinary user: archivist hook trial";

/// Returns the checks of recording and replay, or why they cannot run.
pub(super) async fn checks(scope: &Scope) -> Vec<Check> {
    if let Some(why) = obstacle(scope, geteuid().is_root()) {
        return vec![Check::skipped(RECORDING, why)];
    }
    match trial(scope).await {
        Ok(trial) => judge(&trial),
        Err(why) => vec![Check::warn(RECORDING, why, SEE_LOG)],
    }
}

/// Why this caller cannot start the unit.
fn obstacle(scope: &Scope, is_root: bool) -> Option<&'static str> {
    if !scope.rooted("/run/systemd/system").is_dir() {
        // sd_booted(3) looks for the directory.
        return Some("not tried: it needs a unit, and systemd does not run here");
    }
    match (scope.user, is_root) {
        (true, true) => Some("not tried: chromium does not run as root"),
        (false, false) => Some("not tried: it needs a unit with the user of hooks; run with sudo"),
        _ => None,
    }
}

async fn trial(scope: &Scope) -> Result<Trial, String> {
    let failed = |error: &dyn std::fmt::Display| format!("failed to run systemd-run: {error}");
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let settings = browser::settings(scope, true).map_err(|error| error.first_line().to_owned())?;
    let running = Command::new("systemd-run")
        .args(words(scope, &program, &assignments(&settings)))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    // The unit ends by itself before.
    let limit = Duration::from_secs(LIMIT_SECONDS + 30);
    let ended = tokio::time::timeout(limit, running).await;
    let output = ended
        .map_err(|_| format!("the trial did not end within {LIMIT_SECONDS} s"))?
        .map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(trial) = text.lines().rev().find_map(|line| serde_json::from_str(line).ok()) {
        return Ok(trial);
    }
    let log = String::from_utf8_lossy(&output.stderr);
    let last = log.lines().map(str::trim).rfind(|line| !line.is_empty());
    Err(format!("the trial ended without a result: {}", clean(last.unwrap_or("no message"))))
}

/// The settings of the browser with a value, as assignments of variables.
fn assignments(settings: &Values) -> Vec<String> {
    let of_browser =
        settings.iter().filter(|(name, value)| name.starts_with(OF_BROWSER) && !value.is_empty());
    of_browser.map(|(name, value)| format!("{name}={value}")).collect()
}

/// Returns the arguments of systemd-run(1). The drop-ins of replays apply to the name of the unit, and
/// make the sandbox. The page is on the loopback, so the unit needs no network.
fn words(scope: &Scope, program: &Path, variables: &[String]) -> Vec<String> {
    let mut words = run_words(scope);
    let id = std::process::id();
    words.push(format!("--unit=archivist-replay-trial-{id}.service"));
    words.push("--description=archivist: trial of recording and replay".to_owned());
    words.push("--property=Type=exec".to_owned());
    words.push(format!("--property=RuntimeMaxSec={LIMIT_SECONDS}"));
    words.push("--property=PrivateNetwork=yes".to_owned());
    if scope.user {
        words.push("--property=PrivateUsers=yes".to_owned());
    }
    let variables = variables.iter();
    words.extend(variables.map(|variable| format!("--setenv={variable}")));
    words.push("--".to_owned());
    words.push(program.display().to_string());
    words.extend(["hook", "trial"].map(str::to_owned));
    words
}

fn judge(trial: &Trial) -> Vec<Check> {
    match trial {
        Trial::NoBrowser(why) => vec![Check::warn(RECORDING, why, INSTALL)],
        Trial::NotRecorded(why) => vec![Check::fail(
            RECORDING,
            format!("failed to record a page of this machine: {why}"),
            SEE_LOG,
        )],
        Trial::Recorded(recorded) => vec![recording(recorded), replay(&recorded.replay)],
    }
}

fn recording(recorded: &TrialRecording) -> Check {
    let TrialRecording { product, requests, kept, is_stopped, elapsed, .. } = recorded;
    if kept < requests || *kept == 0 {
        let what = format!("{product} recorded {kept} of {requests} requests of a page");
        return Check::fail(RECORDING, what, SEE_LOG);
    }
    if *is_stopped {
        return Check::warn(
            RECORDING,
            format!(
                "{product} cannot stream responses (Network.streamResourceContent): each is stopped \
                 until it is recorded, and those without a length are read after their end"
            ),
            "install a newer chromium",
        );
    }
    let time = human_span(Duration::from_millis(*elapsed));
    Check::ok(RECORDING, format!("{product} recorded a page with {requests} requests in {time}"))
}

fn replay(replay: &Result<TrialReplay, String>) -> Check {
    match replay {
        Err(why) => {
            Check::fail(REPLAY, format!("failed to replay the recorded page: {why}"), SEE_LOG)
        }
        Ok(shown) if shown.missing > 0 || shown.fidelity < 0.99 => Check::warn(
            REPLAY,
            format!(
                "the recorded page is not the same: {} requests answered, {} not",
                shown.exact, shown.missing
            ),
            SEE_LOG,
        ),
        Ok(shown) => {
            let time = human_span(Duration::from_millis(shown.elapsed));
            let exact = shown.exact;
            Check::ok(
                REPLAY,
                format!(
                    "{exact} requests were answered from the recording, without a network, in {time}"
                ),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    fn recorded() -> TrialRecording {
        TrialRecording {
            product: "Chrome/156.0".to_owned(),
            requests: 4,
            kept: 4,
            is_stopped: false,
            elapsed: 1_100,
            replay: Ok(TrialReplay { exact: 4, missing: 0, fidelity: 1.0, elapsed: 900 }),
        }
    }

    fn verdicts(trial: &Trial) -> Vec<Verdict> {
        judge(trial).iter().map(Check::verdict).collect()
    }

    #[test]
    fn each_end_of_a_trial_is_reported() {
        let good = judge(&Trial::Recorded(recorded()));
        assert_eq!(
            good,
            [
                Check::ok(RECORDING, "Chrome/156.0 recorded a page with 4 requests in 1.1s"),
                Check::ok(
                    REPLAY,
                    "4 requests were answered from the recording, without a network, in 0.9s"
                ),
            ]
        );
        let none = judge(&Trial::NoBrowser("chromium is not installed".to_owned()));
        assert_eq!(none[0].verdict(), Verdict::Warn);
        assert_eq!(none[0].fix(), Some(INSTALL));
        assert_eq!(verdicts(&Trial::NotRecorded("no sandbox".to_owned())), [Verdict::Fail]);
        let stopped = TrialRecording { is_stopped: true, ..recorded() };
        assert_eq!(verdicts(&Trial::Recorded(stopped)), [Verdict::Warn, Verdict::Ok]);
        let lacking = TrialRecording {
            kept: 3,
            replay: Ok(TrialReplay { exact: 3, missing: 1, ..TrialReplay::default() }),
            ..recorded()
        };
        assert_eq!(verdicts(&Trial::Recorded(lacking)), [Verdict::Fail, Verdict::Warn]);
        let unseen = TrialRecording { replay: Err("no namespace".to_owned()), ..recorded() };
        assert_eq!(verdicts(&Trial::Recorded(unseen)), [Verdict::Ok, Verdict::Fail]);
    }

    #[test]
    fn trial_is_skipped_where_no_unit_may_run_a_browser() {
        let root = tempfile::tempdir().unwrap();
        let system = Scope::system(root.path());
        let skipped = |scope: &Scope, is_root| obstacle(scope, is_root).unwrap_or_default();
        assert!(skipped(&system, true).ends_with("systemd does not run here"));
        std::fs::create_dir_all(root.path().join("run/systemd/system")).unwrap();
        assert_eq!(obstacle(&system, true), None);
        assert!(skipped(&system, false).ends_with("run with sudo"));
        let user = Scope { user: true, ..system };
        assert_eq!(obstacle(&user, false), None);
        assert!(skipped(&user, true).ends_with("does not run as root"));
    }

    #[test]
    fn unit_has_the_sandbox_of_replays_and_the_browser_of_the_configuration() {
        let settings = Values::from(
            [
                ("CHROME_BINARY", "/opt/b"),
                ("CHROME_ARGS_EXTRA", "[\"--a\"]"),
                ("CHROME_USER_AGENT", ""),
                ("TIMEOUT", "9"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let scope = Scope::system("/");
        let program = Path::new("/usr/bin/archivist");
        let words = words(&scope, program, &assignments(&settings)).join(" ");
        let unit = format!("--unit=archivist-replay-trial-{}.service", std::process::id());
        for part in [
            &unit[..],
            "--property=PrivateNetwork=yes",
            "--setenv=CHROME_BINARY=/opt/b",
            "--setenv=CHROME_ARGS_EXTRA=[\"--a\"]",
        ] {
            assert!(words.contains(part), "{part} in {words}");
        }
        assert!(!words.contains("TIMEOUT="), "{words}");
        assert!(words.ends_with(" -- /usr/bin/archivist hook trial"), "{words}");
    }
}
