//! A restart of the bus: commands that wait connect again.

use super::{Bus, Cardboard, ResultState, stream};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::Arc;

#[test]
fn wait_survives_a_restart_of_the_bus() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("bus");
    let address = format!("--address=unix:path={}", socket.display());
    let cardboard = Arc::<Cardboard>::default();
    let whole = stream(ResultState::Succeeded);
    *cardboard.streams.lock().unwrap() = vec![whole[..2].concat()];
    let Some(bus) = Bus::start_with(&cardboard, std::slice::from_ref(&address)) else {
        return;
    };
    let mut child = bus
        .command(&["add", "--wait", "https://a/"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("s3 https://a/ started") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the command ended");
    }
    *cardboard.streams.lock().unwrap() = vec![whole.concat()];
    drop(bus);
    // The orchestrator ends with its connection, and its stream with it.
    cardboard.open.lock().unwrap().clear();
    let _bus = Bus::start_with(&cardboard, &[address]).unwrap();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{rest}{stderr}");
    assert!(rest.contains("c1 sealed: 1 page"), "{rest}");
}
