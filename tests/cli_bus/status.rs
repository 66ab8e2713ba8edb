//! `archivist status --watch`, and the options for which systemd has commands.

use super::{Bus, Cardboard, json};
use archivist_shared::bus::documents::report::Status;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::Arc;

/// Each answer has the next line; the last one stays.
pub fn answer(cardboard: &Cardboard) -> String {
    cardboard.say("status".to_owned());
    let mut lines = cardboard.lines.lock().unwrap();
    let line = match lines.len() {
        0 | 1 => lines.first().cloned(),
        _ => lines.pop(),
    };
    json(&Status { line: line.unwrap_or_default(), ..Status::default() })
}

#[test]
fn watch_prints_a_line_for_each_change_until_it_is_interrupted() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    // The first stream ends, as with an orchestrator that restarts; the second one stays open.
    *cardboard.streams.lock().unwrap() = vec!["\n".to_owned(), "\n".to_owned()];
    let lines = ["three", "two", "two", "one"].map(str::to_owned);
    *cardboard.lines.lock().unwrap() = lines.to_vec();
    let mut child =
        bus.command(&["status", "--watch", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for expected in ["one", "two", "three"] {
        let mut text = String::new();
        output.read_line(&mut text).unwrap();
        let status: Status = serde_json::from_str(&text).unwrap();
        assert_eq!(status.line, expected);
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!((child.wait().unwrap().code(), rest.as_str()), (Some(0), ""));
}

#[test]
fn watch_prints_a_text_for_each_change() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    *cardboard.streams.lock().unwrap() = vec!["\n".to_owned()];
    *cardboard.lines.lock().unwrap() = vec!["two\u{1b}[2J".to_owned(), "one".to_owned()];
    let mut child = bus.command(&["status", "--watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("two") {
        assert_ne!(output.read_line(&mut text).unwrap(), 0, "{text}");
    }
    let heads = text.matches("● archivist-orchestrator.service\n").count();
    assert_eq!(heads, 2, "{text}");
    assert!(text.contains("Status: one\n") && text.contains("\n\n● "), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn daemon_is_answered_with_the_command_of_systemd() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    for args in [&["run", "--daemon"][..], &["orchestrator", "--daemon"]] {
        let (code, _, stderr) = bus.run(args);
        let command = "systemctl --user enable --now archivist-orchestrator.service\n";
        assert!(code == 2 && stderr.contains(command), "{code} {stderr}");
    }
    let (code, _, stderr) = bus.run(&["orchestrator", "--watch"]);
    assert!(code == 2 && stderr.contains("archivist --user status --watch"), "{stderr}");
    assert!(cardboard.said().is_empty());
}
