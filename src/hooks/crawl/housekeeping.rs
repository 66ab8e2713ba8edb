//! What the hooks of one crawl share: a heartbeat that says the crawl is alive, and a temporary
//! directory, with a copy of the persona in use, that is emptied when it is over.
//!
//! Hooks of the package abx-plugins look for `.heartbeat.json` in a crawl's and a snapshot's
//! directory before they take a browser for abandoned, and they take EPERM from `kill(pid, 0)`
//! for a dead owner: so the process that the file names has to be one of the hooks' user.

use crate::Outcome;
use crate::crawl::persona::{BOUNDS, copy};
use crate::process::invocation::Invocation;
use crate::process::record::Finding;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use serde_json::json;
use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The file, and the name under which it is written first.
const HEARTBEAT: [&str; 2] = [".heartbeat.json", ".heartbeat.json.new"];
/// Milliseconds between two beats.
const BEAT: u16 = 5000;
/// Seconds without a beat after which the crawl counts as abandoned.
const KILL_AFTER: u32 = 180;

/// Beats until SIGTERM.
pub fn run(it: &Invocation) -> Outcome {
    let crawl_dir = crawl_dir(it)?;
    let mut ends = SigSet::empty();
    ends.add(Signal::SIGTERM);
    ends.add(Signal::SIGINT);
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        Finding::failed(format!("failed to {what}: {error}"))
    };
    ends.thread_block()
        .map_err(|error| failed("block signals", &error))?;
    let signals = SignalFd::new(&ends).map_err(|error| failed("wait for signals", &error))?;
    for name in ["personas", "semaphores"] {
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path)
            .map_err(|error| failed(&format!("make {}", path.display()), &error))?;
    }
    let crawl = it.settings.variable("CRAWL_ID").unwrap_or_default();
    let mut said = false;
    loop {
        beat(&crawl_dir, crawl).map_err(|error| failed("write the heartbeat", &error))?;
        if !said {
            println!("the crawl is alive");
            let _ = std::io::stdout().flush();
            said = true;
        }
        let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::from(BEAT)) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => break,
            Err(error) => return Err(failed("wait", &error)),
        }
    }
    for name in HEARTBEAT {
        let _ = fs::remove_file(crawl_dir.join(name));
    }
    Ok(Finding::succeeded("the crawl is over"))
}

/// Copies the persona for a crawl, or for a page that has a browser of its own.
pub fn persona(it: &Invocation) -> Outcome {
    take_persona(it)?;
    Ok(Finding::noresults("the persona is there"))
}

/// Copies the persona that is to be used, before any hook can look for it. One
/// that is there is at work: this hook was started again.
fn take_persona(it: &Invocation) -> Result<(), Finding> {
    let known = |name| it.settings.variable(name).filter(|text| !text.is_empty());
    let (Some(from), Some(all)) = (known("PERSONA_TEMPLATE"), known("PERSONAS_DIR")) else {
        return Ok(());
    };
    let from = Path::new(from);
    let Some(name) = from.file_name() else {
        return Ok(());
    };
    let to = Path::new(all).join(name);
    if to.exists() {
        return Ok(());
    }
    let failed = |error: &dyn std::fmt::Display| {
        Finding::failed(format!(
            "the persona {} is not used: {error}",
            name.display()
        ))
    };
    // Whoever finds it finds all of it.
    let scratch = Path::new(all).join(".new");
    fs::create_dir_all(all).map_err(|error| failed(&error))?;
    if scratch.exists() {
        fs::remove_dir_all(&scratch).map_err(|error| failed(&error))?;
    }
    copy(from, &scratch, BOUNDS)
        .inspect_err(|_| drop(fs::remove_dir_all(&scratch)))
        .map_err(|error| failed(&error))?;
    fs::rename(&scratch, &to).map_err(|error| failed(&error))
}

/// Empties the temporary directory, where everything is of the hooks' user.
///
/// Only as a hook of a crawl, which has a directory of its own: by hand it would empty the system's /tmp.
pub fn tidy(it: &Invocation) -> Outcome {
    crawl_dir(it)?;
    let Some(shared) = it.settings.variable("TMPDIR").map(PathBuf::from) else {
        return Err(Finding::failed("TMPDIR is not set"));
    };
    let failed = |error: std::io::Error| {
        Finding::failed(format!("failed to empty {}: {error}", shared.display()))
    };
    let mut count = 0;
    for entry in fs::read_dir(&shared).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            fs::remove_dir_all(entry.path())
        } else {
            fs::remove_file(entry.path())
        }
        .map_err(failed)?;
        count += 1;
    }
    Ok(match count {
        0 => Finding::noresults("nothing was left"),
        _ => Finding::succeeded("temporary files are removed"),
    })
}

fn crawl_dir(it: &Invocation) -> Result<PathBuf, Finding> {
    match it.settings.variable("CRAWL_DIR") {
        Some(path) if !path.is_empty() => Ok(path.into()),
        _ => Err(Finding::failed("CRAWL_DIR is not set")),
    }
}

/// Replaces the file in one step: whoever reads it finds a whole record.
fn beat(directory: &Path, crawl: &str) -> std::io::Result<()> {
    let [name, scratch] = HEARTBEAT.map(|name| directory.join(name));
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let record = json!({
        "runtime": "archivebox",
        "crawl_id": crawl,
        "owner_pid": std::process::id(),
        "last_alive_at": now.as_secs_f64(),
        "kill_after_seconds": KILL_AFTER,
    });
    fs::write(&scratch, record.to_string())?;
    fs::rename(&scratch, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persona_is_taken_once_and_whole() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("templates/office")).unwrap();
        fs::create_dir(at("personas")).unwrap();
        fs::write(at("templates/office/cookies.txt"), "one").unwrap();
        let text = |name: &str| at(name).into_os_string();
        let environment = [
            ("PERSONA_TEMPLATE".into(), text("templates/office")),
            ("PERSONAS_DIR".into(), text("personas")),
        ];
        let it = Invocation::read("housekeeping", "{}", &[], environment);
        take_persona(&it).unwrap();
        fs::write(at("templates/office/cookies.txt"), "two").unwrap();
        take_persona(&it).unwrap();
        let copy = fs::read_to_string(at("personas/office/cookies.txt")).unwrap();
        assert_eq!(copy, "one", "a browser may be at work on it");
        assert_eq!(fs::read_dir(at("personas")).unwrap().count(), 1);

        fs::remove_dir_all(at("personas/office")).unwrap();
        fs::remove_dir_all(at("templates")).unwrap();
        let why = take_persona(&it).unwrap_err().output_str;
        assert!(why.contains("the persona office is not used"), "{why}");
        take_persona(&Invocation::read("housekeeping", "{}", &[], [])).unwrap();
    }

    #[test]
    fn a_beat_names_a_process_and_a_time() {
        let directory = tempfile::tempdir().unwrap();
        beat(directory.path(), "c12").unwrap();
        let text = fs::read_to_string(directory.path().join(HEARTBEAT[0])).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(record["crawl_id"], "c12");
        assert_eq!(record["owner_pid"], std::process::id());
        assert!(record["last_alive_at"].as_f64().unwrap() > 1.7e9);
        assert!(!directory.path().join(HEARTBEAT[1]).exists());
    }
}
