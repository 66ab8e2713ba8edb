//! `lighthouse`: four scores of one page, from npm's lighthouse with Debian's chromium.

use super::Request;
use super::result::{CheckResult, Finding, Kind, Scores};
use archivist_core::model::{SNAP_HEAD_BYTES, is_of_snap};
use archivist_hooks::page::html::one_line;
use archivist_hooks::process::capture::OutputLimits;
use archivist_hooks::process::exit::{ExitReason, ProgramOutput};
use archivist_hooks::process::program::ProgramRunner;
use archivist_hooks::process::scratch::Scratch;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Deadline below the unit's limit of 180 s, which would lose the result.
const DEADLINE: Duration = Duration::from_secs(170);
/// Longest report, in bytes.
const REPORT: usize = 64 << 20;
/// Oldest node that this version of lighthouse supports: major and minor version.
pub const NODE_NEEDED: (u32, u32) = (18, 16);
/// How to install lighthouse: this version runs with Debian's node.
pub const INSTALL: &str = "apt install chromium npm && npm install --global lighthouse@12 (on Ubuntu, Google Chrome instead of chromium)";

/// Label of processes with the AppArmor profile of browsers.
const APPARMOR_LABEL: &str = "archivist-browser (unconfined)";

/// Hint if the check must not reach the loopback.
const CLOSED: &str = "; it reaches its browser on the loopback, which this check does not reach in the machine's network: \
                      install passt, see Network= in archivist.conf(5)";

pub fn check(request: &Request) -> CheckResult {
    let mut result = CheckResult::new(Kind::Lighthouse, request.url.as_str());
    if let Some(why) = request.settings.probe.closed_to_lighthouse() {
        result.skipped = true;
        return result.with_error(&format!("not measured, set Lighthouse=no: {why}"));
    }
    match look(request) {
        Ok(report) => {
            let ok = report.runtime_error.is_none();
            let error = report.runtime_error.as_ref().map(RuntimeError::text);
            result.final_url = report.final_displayed_url.as_deref().map(|url| one_line(url, 2048));
            result.scores = Some(report.scores());
            result.set_findings(report.findings(request.url.as_str()));
            result.ok = ok;
            match error {
                Some(error) => result.with_error(&error),
                None => result,
            }
        }
        Err(Trouble { missing, text }) => {
            result.skipped = missing;
            result.with_error(&text)
        }
    }
}

struct Trouble {
    /// A program is missing.
    missing: bool,
    text: String,
}

impl Trouble {
    fn failed(text: impl Into<String>) -> Trouble {
        Trouble { missing: false, text: text.into() }
    }
}

/// Returns the path of the lighthouse that a check with this library uses, if it is installed.
pub fn program(library: Option<&Path>) -> Option<PathBuf> {
    in_directories(&search(library))
}

fn in_directories(search: &[PathBuf]) -> Option<PathBuf> {
    let mut paths = search.iter().map(|directory| directory.join("lighthouse"));
    paths.find(|path| is_program(path))
}

fn look(request: &Request) -> Result<Report, Trouble> {
    let settings = &request.settings;
    let search = search(settings.lib_dir.as_deref());
    let named = |program: &Option<PathBuf>| program.clone().filter(|path| is_program(path));
    let missing =
        |what: &str| Trouble { missing: true, text: format!("{what} is not installed: {INSTALL}") };
    let lighthouse = named(&settings.lighthouse)
        .or_else(|| in_directories(&search))
        .ok_or_else(|| missing("lighthouse"))?;
    let chromium = named(&settings.chromium).ok_or_else(|| missing("chromium"))?;
    let scratch =
        Scratch::new("lighthouse").map_err(|finding| Trouble::failed(finding.output_str))?;
    let slow = settings.read_s.filter(|seconds| (0.0..3600.0).contains(seconds)).unwrap_or(0.0);
    let budget = settings.deadline(DEADLINE + Duration::from_secs_f64(slow));
    let mut runner =
        ProgramRunner::new(budget).map_err(|finding| Trouble::failed(finding.output_str))?;
    let mut command = Command::new(&lighthouse);
    command
        .arg(request.url.as_str())
        .args(arguments(settings.user_agent.as_deref(), &settings.probe.headers));
    if slow > 0.0 {
        // By default, Lighthouse waits 45 s until a page is loaded.
        command.arg(format!("--max-wait-for-load={}", 45_000 + (slow * 1000.0) as u64));
    }
    command
        .env("CHROME_PATH", &chromium)
        .env("PATH", std::env::join_paths(&search).unwrap_or_default())
        .env("HOME", scratch.dir())
        .env("TMPDIR", scratch.dir())
        .env("CI", "1")
        .current_dir(scratch.dir());
    let limits = OutputLimits { output: REPORT, ..OutputLimits::default() };
    let ended = runner
        .run(&mut command, "npm", limits)
        .map_err(|finding| Trouble::failed(finding.output_str))?;
    judge(&ended, budget).map_err(|mut trouble| {
        if ended.exit == ExitReason::TimedOut && !settings.reach.loopback {
            trouble.text.push_str(CLOSED);
        }
        trouble
    })
}

fn arguments(user_agent: Option<&str>, headers: &[(String, String)]) -> Vec<String> {
    let mut flags = vec!["--headless=new", "--disable-dev-shm-usage", "--disable-gpu"];
    if !can_sandbox() {
        flags.push("--no-sandbox");
    }
    let mut arguments = vec![
        "--output=json".to_owned(),
        "--output-path=stdout".to_owned(),
        "--quiet".to_owned(),
        "--no-enable-error-reporting".to_owned(),
        "--only-categories=performance,accessibility,best-practices,seo".to_owned(),
        format!("--chrome-flags={}", flags.join(" ")),
    ];
    arguments
        .extend(user_agent.map(|agent| format!("--emulated-user-agent={}", one_line(agent, 300))));
    if !headers.is_empty() {
        let headers: BTreeMap<_, _> = headers.iter().map(|(name, value)| (name, value)).collect();
        let headers = serde_json::to_string(&headers).unwrap_or_default();
        arguments.push(format!("--extra-headers={headers}"));
    }
    arguments
}

/// Chromium keeps its own sandbox where it works: not as root, and not without user namespaces.
fn can_sandbox() -> bool {
    !nix::unistd::geteuid().is_root() && has_user_namespaces(Path::new("/proc"))
}

/// Whether this process can create user namespaces. Where AppArmor restricts them, the drop-in of
/// the unit selects a profile that permits them, if the profile is loaded.
fn has_user_namespaces(proc: &Path) -> bool {
    let is = |path: &str, value: &str| {
        std::fs::read_to_string(proc.join(path)).is_ok_and(|text| text.trim() == value)
    };
    let off = is("sys/user/max_user_namespaces", "0")
        || is("sys/kernel/unprivileged_userns_clone", "0")
        || (is("sys/kernel/apparmor_restrict_unprivileged_userns", "1")
            && !is("self/attr/current", APPARMOR_LABEL));
    !off
}

/// Search path: PATH, where npm installs global programs, and the library, which providers write.
fn search(library: Option<&Path>) -> Vec<PathBuf> {
    let library = library.map(|lib| [lib.join("bin"), lib.join("npm/node_modules/.bin")]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    for usual in ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from) {
        if !found.contains(&usual) {
            found.push(usual);
        }
    }
    found.extend(library.into_iter().flatten());
    found.retain(|dir| !dir.to_string_lossy().contains(':'));
    found
}

/// Whether a check can run this file: a program that does not belong to a snap.
fn is_program(path: &Path) -> bool {
    if !path.is_file() || nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_err() {
        return false;
    }
    let mut head = Vec::new();
    // A program without read permission has an empty start.
    let _ = File::open(path).and_then(|file| file.take(SNAP_HEAD_BYTES).read_to_end(&mut head));
    !is_of_snap(path.canonicalize().as_deref().unwrap_or(path), &head)
}

fn judge(ended: &ProgramOutput, budget: Duration) -> Result<Report, Trouble> {
    let report = serde_json::from_slice::<Report>(&ended.output);
    match (ended.exit, report) {
        // It exits with 1 for a page that failed to load, and explains that in its report.
        (ExitReason::Exited(_), Ok(report)) => Ok(report),
        (ExitReason::Exited(0), Err(error)) => {
            Err(Trouble::failed(format!("lighthouse wrote no report: {error}")))
        }
        (exit, _) => {
            let reason = exit.describe("lighthouse", budget);
            Err(Trouble::failed(match last_words(&ended.log) {
                Some(said) => format!("{reason}: {said}"),
                None => reason,
            }))
        }
    }
}

/// Returns the most useful line of the log: the first with an error, else the last one.
fn last_words(log: &str) -> Option<String> {
    let lines =
        || log.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("at "));
    let error = lines().find(|line| line.contains("rror"));
    error.or_else(|| lines().next_back()).map(|line| one_line(line, 300))
}

/// The used part of lighthouse's report.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    categories: BTreeMap<String, Category>,
    #[serde(default)]
    audits: BTreeMap<String, Audit>,
    runtime_error: Option<RuntimeError>,
    final_displayed_url: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Category {
    score: Option<f64>,
    #[serde(default)]
    audit_refs: Vec<AuditRef>,
}

#[derive(Debug, Deserialize)]
struct AuditRef {
    id: String,
    #[serde(default)]
    weight: f64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Audit {
    #[serde(default)]
    title: String,
    score: Option<f64>,
    display_value: Option<String>,
}

#[derive(Debug, Deserialize)]
struct RuntimeError {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl RuntimeError {
    fn text(&self) -> String {
        format!("lighthouse: {} ({})", self.message, self.code)
    }
}

impl Report {
    /// Scores out of 100 in whole numbers, as lighthouse shows them.
    fn scores(&self) -> Scores {
        let of = |name: &str| {
            let score = self.categories.get(name)?.score?;
            Some((score * 100.0).round().clamp(0.0, 100.0))
        };
        Scores {
            performance: of("performance"),
            accessibility: of("accessibility"),
            best_practices: of("best-practices"),
            seo: of("seo"),
        }
    }

    /// Returns audits that lowered a score, the most expensive first.
    fn findings(&self, url: &str) -> Vec<Finding> {
        let mut lost: Vec<(f64, &str, &Audit)> = Vec::new();
        for reference in self.categories.values().flat_map(|it| &it.audit_refs) {
            let Some(audit) = self.audits.get(&reference.id) else {
                continue;
            };
            let cost = reference.weight * (1.0 - audit.score.unwrap_or(1.0));
            // An audit may count in several categories.
            let known = lost.iter().any(|(_, id, _)| *id == reference.id);
            if !known
                && cost.is_finite()
                && cost > 0.0
                && audit.score.is_some_and(|score| score < 0.9)
            {
                lost.push((cost, &reference.id, audit));
            }
        }
        lost.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        let text = |audit: &Audit| match &audit.display_value {
            Some(value) => format!("{}: {value}", audit.title),
            None => audit.title.clone(),
        };
        let finding = |id: &str, audit: &Audit| Finding::new(&one_line(id, 100), url, &text(audit));
        lost.into_iter().map(|(_, id, audit)| finding(id, audit)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_with_the_profile_keeps_its_sandbox_under_apparmor() {
        let proc = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = proc.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert!(has_user_namespaces(proc.path()));
        write("sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
        assert!(!has_user_namespaces(proc.path()));
        write("self/attr/current", "unconfined\n");
        assert!(!has_user_namespaces(proc.path()));
        write("self/attr/current", "archivist-browser (unconfined)\n");
        assert!(has_user_namespaces(proc.path()));
        write("sys/user/max_user_namespaces", "0\n");
        assert!(!has_user_namespaces(proc.path()));
    }
}
