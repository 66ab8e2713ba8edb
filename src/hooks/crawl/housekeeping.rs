//! Maintains what the hooks of one crawl share: a heartbeat file that shows that the crawl runs,
//! and a temporary directory with a copy of the persona, which is emptied when the crawl ends.
//!
//! Hooks of the package abx-plugins read `.heartbeat.json` in the directory of a crawl or snapshot
//! before they treat a browser as abandoned, and they take EPERM from `kill(pid, 0)` for a dead
//! owner. Therefore the process that the file names runs as the user of the hooks.

use crate::persona::{COPY_BOUNDS, copy};
use crate::process::files::MODE;
use crate::process::finding::Outcome;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use archivist_plugin::files::remove::remove_tree;
use archivist_plugin::files::whole::{Survives, replace};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use serde_json::json;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the heartbeat file.
const HEARTBEAT: &str = ".heartbeat.json";
/// Milliseconds between two heartbeats.
const HEARTBEAT_INTERVAL_MS: u16 = 5000;
/// Seconds without a heartbeat after which other hooks treat the crawl as abandoned.
const ABANDONED_AFTER_SECONDS: u32 = 180;

/// Writes heartbeats until SIGTERM.
pub fn run(invocation: &Invocation) -> Outcome {
    let crawl_dir = crawl_dir(invocation)?;
    let mut ends = SigSet::empty();
    ends.add(Signal::SIGTERM);
    ends.add(Signal::SIGINT);
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        Finding::failed(format!("failed to {what}: {error}"))
    };
    ends.thread_block().map_err(|error| failed("block signals", &error))?;
    let signals = SignalFd::new(&ends).map_err(|error| failed("wait for signals", &error))?;
    for name in ["personas", "semaphores"] {
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path)
            .map_err(|error| failed(&format!("create '{}'", path.display()), &error))?;
    }
    let crawl = invocation.settings.variable("CRAWL_ID").unwrap_or_default();
    let mut is_ready = false;
    loop {
        beat(&crawl_dir, crawl).map_err(|error| failed("write the heartbeat", &error))?;
        if !is_ready {
            progress("the crawl is running");
            is_ready = true;
        }
        let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::from(HEARTBEAT_INTERVAL_MS)) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => break,
            Err(error) => return Err(failed("wait for signals", &error)),
        }
    }
    let _ = fs::remove_file(crawl_dir.join(HEARTBEAT));
    Ok(Finding::succeeded("the crawl has ended"))
}

/// Copies the persona for a crawl, or for a snapshot with its own browser.
pub fn persona(invocation: &Invocation) -> Outcome {
    copy_persona(invocation)?;
    Ok(Finding::noresults("the persona is available"))
}

/// Copies the persona before any hook can read it. An existing copy stays, because a browser may
/// use it: then this hook was started again.
fn copy_persona(invocation: &Invocation) -> Result<(), Finding> {
    let known = |name| invocation.settings.variable(name).filter(|text| !text.is_empty());
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
        Finding::failed(format!("failed to copy the persona '{}': {error}", name.display()))
    };
    // The rename makes the copy appear complete.
    let scratch = Path::new(all).join(".new");
    fs::create_dir_all(all).map_err(|error| failed(&error))?;
    remove_tree(&scratch).map_err(|error| failed(&error))?;
    copy(from, &scratch, COPY_BOUNDS)
        .inspect_err(|_| drop(remove_tree(&scratch)))
        .map_err(|error| failed(&error))?;
    fs::rename(&scratch, &to).map_err(|error| failed(&error))
}

/// Empties the temporary directory, whose files belong to the user of the hooks.
///
/// Requires CRAWL_DIR, which only hooks of a crawl have: otherwise a call by hand would empty the
/// system's /tmp.
pub fn tidy(invocation: &Invocation) -> Outcome {
    crawl_dir(invocation)?;
    let Some(shared) = invocation.settings.variable("TMPDIR").map(PathBuf::from) else {
        return Err(Finding::failed("TMPDIR is not set"));
    };
    let failed = |error: std::io::Error| {
        Finding::failed(format!("failed to empty '{}': {error}", shared.display()))
    };
    let mut count = 0;
    for entry in fs::read_dir(&shared).map_err(failed)? {
        remove_tree(&entry.map_err(failed)?.path()).map_err(failed)?;
        count += 1;
    }
    Ok(match count {
        0 => Finding::noresults("there were no temporary files"),
        _ => Finding::succeeded("removed the temporary files"),
    })
}

fn crawl_dir(invocation: &Invocation) -> Result<PathBuf, Finding> {
    match invocation.settings.variable("CRAWL_DIR") {
        Some(path) if !path.is_empty() => Ok(path.into()),
        _ => Err(Finding::failed("CRAWL_DIR is not set")),
    }
}

/// Replaces the heartbeat file atomically, so that readers see a complete record.
fn beat(directory: &Path, crawl: &str) -> std::io::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let record = json!({
        "runtime": "archivebox",
        "crawl_id": crawl,
        "owner_pid": std::process::id(),
        "last_alive_at": now.as_secs_f64(),
        "kill_after_seconds": ABANDONED_AFTER_SECONDS,
    });
    let text = record.to_string();
    replace(&directory.join(HEARTBEAT), text.as_bytes(), MODE, Survives::Kill)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persona_is_copied_once_and_completely() {
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
        let invocation = Invocation::read("housekeeping", "{}", &[], environment);
        copy_persona(&invocation).unwrap();
        fs::write(at("templates/office/cookies.txt"), "two").unwrap();
        copy_persona(&invocation).unwrap();
        let copy = fs::read_to_string(at("personas/office/cookies.txt")).unwrap();
        assert_eq!(copy, "one", "a browser may use the copy");
        assert_eq!(fs::read_dir(at("personas")).unwrap().count(), 1);

        remove_tree(&at("personas/office")).unwrap();
        remove_tree(&at("templates")).unwrap();
        let why = copy_persona(&invocation).unwrap_err().output_str;
        assert!(why.contains("failed to copy the persona 'office'"), "{why}");
        copy_persona(&Invocation::read("housekeeping", "{}", &[], [])).unwrap();
    }

    #[test]
    fn heartbeat_names_process_and_time() {
        let directory = tempfile::tempdir().unwrap();
        beat(directory.path(), "c12").unwrap();
        let text = fs::read_to_string(directory.path().join(HEARTBEAT)).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(record["crawl_id"], "c12");
        assert_eq!(record["owner_pid"], std::process::id());
        assert!(record["last_alive_at"].as_f64().unwrap() > 1.7e9);
    }
}
