//! `archivist run` against the orchestrator of cardboard.

use super::{Bus, Cardboard, stream};
use archivist_core::model::{Outcome, Owner, ResultState, RunId, SnapshotId};
use archivist_shared::bus::documents::report::{AddOptions, Registration, Run};
use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;

/// The run of the hook in the streams.
pub fn run() -> Run {
    Run {
        id: RunId(7),
        unit: "archivist-hook-wget-s3.service".into(),
        kind: "hook".into(),
        owner: Owner::Snapshot(SnapshotId(3)),
        plugin: Some("wget".into()),
        hook: Some("on_Snapshot__06_wget.finite.bg".into()),
        attempt: 1,
        status: "ended".into(),
        outcome: Some(Outcome::Exit(8)),
        invocation: None,
        started_at: None,
        ended_at: None,
        argv: vec!["/x".into()],
        parent: None,
        directory: None,
        limit: None,
        environment: Default::default(),
        accounting: Default::default(),
    }
}

#[test]
fn run_passes_records_on_and_prints_its_own() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    // The times in a stream are those of this run: results from before the command started are not printed.
    let whole = stream(ResultState::Failed).concat();
    let whole = whole.replace(r#""ended_at":"1970-01-01T00:00:02.200Z""#, r#""ended_at":null"#);
    *cardboard.streams.lock().unwrap() = vec![whole];
    let mut child = bus
        .command(&["run", "--timeout", "9"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = b"# mine\n{\"type\":\"Odd\"}\nhttps://a/\n";
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let told = stdout.lines().map(|line| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let word = |key: &str| record[key].as_str().unwrap_or("-").to_owned();
        format!("{} {} {}", word("type"), word("id"), word("status"))
    });
    let told: Vec<String> = told.collect();
    assert_eq!(
        told,
        [
            "Odd - -",
            "Snapshot - -",
            "Snapshot s3 -",
            "Process r7 failed",
            "ArchiveResult s3/wget/on_Snapshot__06_wget.finite.bg failed",
        ]
    );
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(*cardboard.urls.lock().unwrap(), "https://a/\n");
    let options: AddOptions = serde_json::from_str(&cardboard.options.lock().unwrap()).unwrap();
    assert_eq!(options.config["TIMEOUT"], "9");
    let said = cardboard.said();
    let registered = said.iter().find_map(|call| call.strip_prefix("register "));
    let registered: Registration = serde_json::from_str(registered.unwrap()).unwrap();
    let directory = std::env::current_dir().unwrap();
    assert_eq!(registered.directory, directory.to_str().unwrap());
    assert_eq!(
        (registered.verb.as_str(), registered.targets),
        ("run", vec!["c1".parse().unwrap()])
    );

    let (code, stdout, stderr) = bus.run(&["run", "--snapshot-id", "s3"]);
    assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
    assert!(stderr.starts_with("s3 is complete"), "{stderr}");
    let (code, _, stderr) = bus.run(&["run"]);
    assert_eq!(code, 2, "{stderr}");
}
