//! The built binary without an orchestrator: usage, exit statuses, and errors that say what next.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The command, with bus addresses where no process listens, and a home directory of its own.
fn archivist(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archivist"));
    command
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/system")
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/session")
        .stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> (i32, String, String) {
    let home = tempfile::tempdir().unwrap();
    told(archivist(home.path()).args(args).output().unwrap())
}

fn told(output: Output) -> (i32, String, String) {
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn standard_error_that_is_closed_changes_no_exit_status() {
    let home = tempfile::tempdir().unwrap();
    for args in [&["status"][..], &["import", "--dry-run", "/etc/passwd"], &["add", "nonsense"]] {
        let expected = told(archivist(home.path()).args(args).output().unwrap()).0;
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = archivist(home.path());
        let status = command.args(args).stdout(Stdio::null()).stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(expected), "{args:?}");
    }
}

#[test]
fn help_of_a_verb_is_printed() {
    let (code, stdout, _) = run(&["help", "search"]);
    assert_eq!((code, stdout), (0, run(&["search", "--help"]).1));
}

#[test]
fn wrong_usage_exits_with_two_and_a_hint() {
    for (args, words) in [
        (&["add"][..], "<URL>"),
        (&["add", "--nonsense", "https://a/"], "--nonsense"),
        (&["add", "--set", "nonsense", "https://a/"], "KEY=VALUE"),
        (&["add", "--set", "wget=1", "https://a/"], "WGET_TIMEOUT"),
        (&["add", "--depth", "x", "https://a/"], "--depth"),
        (&["frobnicate"], "frobnicate"),
        (&[], "Usage"),
        (&["show", "12"], "c12 is a crawl, s345 a snapshot"),
        (&["show", "c012"], "c12 is a crawl, s345 a snapshot"),
        (&["cancel", "x3"], "c12 is a crawl, s345 a snapshot"),
        (&["list", "results", "12"], "c12 is a crawl"),
        (&["list", "pages"], "crawls"),
        (&["list", "crawls", "--status", "failed"], "queued, started, sealed"),
        (&["open", "12"], "c12 is a crawl, s345 a snapshot"),
        (&["list", "results", "--status", "nonsense"], "succeeded"),
        (&["show", "nonsense"], "c12 is a crawl, s345 a snapshot"),
        (&["--no-such-option"], "--no-such-option"),
        (&["logs", "s3", "-n", "x"], "--lines"),
        (&["status", "--instance", "a-b"], "lower-case letter"),
        (&["completions", "tcsh"], "bash"),
    ] {
        let (code, _, stderr) = run(args);
        assert_eq!(code, 2, "{args:?}\n{stderr}");
        assert!(stderr.contains(words), "{args:?}\n{stderr}");
    }
}

#[test]
fn no_orchestrator_exits_with_four_and_a_hint() {
    for args in [
        &["add", "https://example.com/"][..],
        &["add", "--no-install", "https://example.com/"],
        &["status"],
        &["run", "archivebox://update"],
        &["status", "c1"],
        &["list", "crawls", "--json"],
        &["show", "s3"],
        &["cancel", "c1"],
        &["retry", "s3", "--hook", "wget"],
        &["plugins"],
    ] {
        let (code, stdout, stderr) = run(args);
        assert_eq!((code, stdout.as_str()), (4, ""), "{args:?}\n{stderr}");
        assert!(stderr.starts_with("archivist: failed to connect to the system bus: "), "{stderr}");
        assert!(stderr.contains("systemctl status"), "{stderr}");
    }
    let (code, _, stderr) = run(&["--user", "status"]);
    assert_eq!(code, 4);
    assert!(stderr.contains("session bus"), "{stderr}");
}

#[test]
fn invalid_urls_are_refused_with_their_line() {
    let home = tempfile::tempdir().unwrap();
    let bad = OsStr::from_bytes(b"https://a/\xff");
    let output = archivist(home.path())
        .args([OsStr::new("add"), bad, OsStr::new("https://a/\nhttps://b/")])
        .output()
        .unwrap();
    let (code, _, stderr) = told(output);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("argument 1: "), "{stderr}");
    assert!(
        stderr.contains("argument 2: 'https://a/ https://b/' refused: it contains a line break")
    );
    assert!(stderr.ends_with("archivist: no URL to archive\n"), "{stderr}");

    let (code, _, stderr) = run(&["add", "--file", "/nonexistent"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("failed to read '/nonexistent': No such file"), "{stderr}");
}

#[test]
fn the_configuration_of_a_user() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join(".config/archivist");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("archivist.conf"), "[Hooks]\nTimeoutSec=5min\n").unwrap();
    let config = |args: &[&str]| told(archivist(home.path()).args(args).output().unwrap());

    let (code, stdout, stderr) = config(&["--user", "config", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let all: Vec<serde_json::Value> = serde_json::from_str(&stdout).unwrap();
    let timeout = all.iter().find(|one| one["key"] == "TimeoutSec").unwrap();
    assert_eq!(timeout["value"], "5min");
    assert!(timeout["from"].as_str().unwrap().ends_with("archivist.conf:2"));

    std::fs::write(dir.join("archivist.conf"), "[Hooks]\nTimeoutsec=5\n").unwrap();
    let (code, _, stderr) = config(&["config", "--user"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("archivist.conf:2: unknown key Timeoutsec="), "{stderr}");
    assert!(stderr.contains("did you mean TimeoutSec="), "{stderr}");
}

#[test]
fn only_valid_settings_are_written() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".config/archivist/archivist.conf.d/60-set.conf");
    let config = |args: &[&str]| {
        told(archivist(home.path()).args(["config", "--user"]).args(args).output().unwrap())
    };
    let (code, _, stderr) = config(&["--set", "WorkersMax=many"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains(file.to_str().unwrap()), "{stderr}");
    assert!(!file.exists());
    let (code, stdout, stderr) = config(&["--set", "WorkersMax=7"]);
    assert_eq!(code, 0, "{stderr}");
    let apply = "to apply: systemctl --user reload archivist-orchestrator.service\n";
    assert!(stdout.ends_with(apply), "{stdout}");
    assert_eq!(config(&["--get", "WorkersMax"]).1, "7\n");
}

#[test]
fn the_doctor_fails_without_a_bus_and_prints_a_fix() {
    let (code, stdout, _) = run(&["doctor"]);
    assert_eq!(code, 1);
    assert!(stdout.contains("FAIL  bus"), "{stdout}");
    assert!(stdout.contains("→ is the machine running systemd and D-Bus?"), "{stdout}");
    let (_, stdout, _) = run(&["doctor", "--json"]);
    let checks: Vec<serde_json::Value> = serde_json::from_str(&stdout).unwrap();
    assert!(checks.iter().any(|c| c["name"] == "bus" && c["verdict"] == "fail"));
}

#[test]
fn completions_know_the_verbs() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, stdout, _) = run(&["completions", shell]);
        assert_eq!(code, 0);
        assert!(stdout.contains("retry") && stdout.contains("instance"), "{shell}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let home = tempfile::tempdir().unwrap();
    let mut child = archivist(home.path())
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let (code, _, stderr) = told(child.wait_with_output().unwrap());
    assert_eq!((code, stderr.as_str()), (0, ""));
}

#[test]
fn an_orchestrator_is_the_other_program_in_its_scope() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_archivist"));
    let link = home.path().join("archivist");
    // Not a copy: another test that starts a program meanwhile has the copy open to write for a moment
    // (ETXTBSY of execve(2)).
    std::fs::hard_link(program, &link).unwrap();
    let other = home.path().join("archivist-orchestrator");
    std::os::unix::fs::symlink("/bin/echo", other).unwrap();
    let mut command = Command::new(link);
    command.args(["orchestrator", "--exit-on-idle", "--instance=second", "--user"]);
    let (status, words, errors) = told(command.output().unwrap());
    assert_eq!(status, 0, "{errors}");
    assert_eq!(words, "--user --instance second orchestrator --exit-on-idle\n");
}
