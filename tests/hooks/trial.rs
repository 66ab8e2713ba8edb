//! `archivist hook trial`: what `archivist doctor` tries.

use crate::fixture::{archivist, as_ordinary_user, open_to_all};
use crate::replay::has_wall;
use serde_json::{Value, json};

/// The result of a trial, and the bytes that it leaves in its directory for temporary files.
fn trial(settings: &[(&str, &str)]) -> Value {
    let home = tempfile::tempdir().unwrap();
    open_to_all(home.path());
    let output = as_ordinary_user(&archivist())
        .args(["hook", "trial"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("TMPDIR", home.path())
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    let left = std::fs::read_dir(home.path()).unwrap().count();
    assert_eq!(left, 0, "temporary files are left: {log}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {log}"))
}

#[test]
fn page_of_the_loopback_is_recorded_and_replayed() {
    if !has_wall() {
        return;
    }
    let recorded = &trial(&[])["recorded"];
    let figures = |name: &str| recorded[name].clone();
    assert_eq!(figures("requests"), 4, "{recorded}");
    assert_eq!(figures("kept"), 4, "{recorded}");
    assert_eq!(figures("isStopped"), false, "{recorded}");
    let product = recorded["product"].as_str().unwrap();
    assert!(product.contains("Chrome/"), "{product}");
    let replay = &recorded["replay"]["Ok"];
    assert_eq!((&replay["exact"], &replay["missing"]), (&json!(4), &json!(0)));
    assert!(replay["fidelity"].as_f64().unwrap() > 0.99, "{replay}");
}

#[test]
fn trial_without_a_browser_that_works_has_the_reason() {
    let missing = trial(&[("CHROME_BINARY", "/nowhere/chromium")]);
    let reason = missing["noBrowser"].as_str().unwrap();
    assert!(reason.contains("/nowhere/chromium is not installed"), "{reason}");
    let broken = trial(&[("CHROME_BINARY", "/bin/false")]);
    let reason = broken["notRecorded"].as_str().unwrap();
    assert_eq!(reason, "chromium exited unexpectedly (exit 1)");
}
