//! What a terminal shows.

use super::{Bus, Cardboard, ResultState, stream};
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

/// Reads from a terminal until it has shown `text`.
fn until(terminal: &mut File, shown: &mut String, text: &str) {
    let mut buffer = [0; 4096];
    while !shown.contains(text) {
        let length = terminal.read(&mut buffer).unwrap();
        shown.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
}

/// The progress is below the lines that stay, and gone at the end.
#[test]
fn wait_draws_its_progress_in_one_place() {
    let cardboard = Arc::<Cardboard>::default();
    let whole = stream(ResultState::Failed);
    *cardboard.streams.lock().unwrap() = vec![whole[..2].concat()];
    let Some(bus) = Bus::start(&cardboard) else { return };
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let pty = openpty(&size, None).unwrap();
    let mut command = bus.command(&["add", "--wait", "https://a/"]);
    command.env("TERM", "xterm");
    command.stdout(pty.slave.try_clone().unwrap()).stderr(pty.slave);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut terminal = File::from(pty.master);
    let mut shown = String::new();
    until(&mut terminal, &mut shown, "0/1 pages");
    let page = shown.find("s3 ").unwrap();
    assert!(shown[page..].contains("https://a/"), "{shown}");
    assert!(shown[page..].contains("[░░░"), "{shown}");

    *cardboard.streams.lock().unwrap() = vec![whole.concat()];
    cardboard.open.lock().unwrap().clear();
    until(&mut terminal, &mut shown, "see: archivist --user show c1");
    assert_eq!(child.wait().unwrap().code(), Some(3), "{shown}");
    let (progress, summary) = shown.split_at(shown.rfind("\u{1b}[J").unwrap());
    assert!(progress.contains("\u{1b}[2A"), "two lines were drawn again: {progress}");
    assert!(summary.contains("c1 sealed: 1 page"), "{summary}");
    assert!(!summary.contains('░'), "{summary}");
}
