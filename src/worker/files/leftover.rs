//! The end of a crawl or snapshot: waits until no process of its hooks runs, and makes its
//! directory safe to read.

use archivist_plugin::files::tidy;
use archivist_plugin::{Directory, PathProblem};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that processes may outlive their hook: longer than TimeoutStopSec= of hooks.
const LEFTOVER_TIMEOUT: Duration = Duration::from_secs(45);
const CGROUPS: &str = "/sys/fs/cgroup";

/// EndedUnits of hooks that have ended. systemd stops a unit after the end of its main process, so
/// other processes of the hook may still run.
#[derive(Clone, Default)]
pub struct EndedUnits(Rc<RefCell<BTreeSet<String>>>);

impl EndedUnits {
    pub fn add(&self, unit: Option<&str>) {
        self.0.borrow_mut().extend(unit.map(str::to_owned));
    }
}

/// Waits until no process of a hook's unit is left.
pub async fn unit_end(unit: &str) {
    let Some(group) = slice().map(|slice| slice.join(unit)) else {
        return;
    };
    let deadline = Instant::now() + LEFTOVER_TIMEOUT;
    let waiting = tokio::task::spawn_blocking(move || wait_for_end(&group, deadline)).await;
    if let Ok(Err(error)) = waiting {
        tracing::warn!("failed to wait for {unit}: {error}, ignoring");
    }
}

/// Waits for processes that hooks left, and removes dangerous files from the directory. If that
/// fails, only the worker's user keeps access to the directory.
pub async fn end(own: &Arc<Directory>, units: &EndedUnits) {
    let (units, directory) = (units.0.take(), own.clone());
    // Runs in a thread, so that the worker keeps notifying systemd's watchdog.
    let ending = tokio::task::spawn_blocking(move || wait_and_clean(&directory, &units)).await;
    let problems = ending.unwrap_or_else(|error| vec![problem(own, &error)]);
    restrict(own, &problems);
}

fn problem(own: &Directory, what: &dyn std::fmt::Display) -> PathProblem {
    PathProblem { path: own.path().to_owned(), what: what.to_string() }
}

fn wait_and_clean(own: &Directory, units: &BTreeSet<String>) -> Vec<PathProblem> {
    let mut problems = Vec::new();
    if let Some(slice) = slice() {
        let deadline = Instant::now() + LEFTOVER_TIMEOUT;
        for unit in units {
            if let Err(error) = wait_for_end(&slice.join(unit), deadline) {
                problems.push(problem(own, &format!("failed to wait for {unit}: {error}")));
            }
        }
    }
    match tidy::sweep(own) {
        Ok(found) => {
            if let Some(remark) = found.beyond.remark() {
                tracing::warn!("'{}': {remark}", own.path().display());
            }
            problems.extend(found.problems);
        }
        Err(error) => problems.push(problem(own, &error)),
    }
    problems
}

fn restrict(own: &Directory, problems: &[PathProblem]) {
    if problems.is_empty() {
        return;
    }
    for problem in problems {
        tracing::error!("'{}': {}", problem.path.display(), problem.what);
    }
    let path = own.path().display();
    match own.restrict_to_owner() {
        Ok(()) => tracing::error!(
            "restricted '{path}' to its owner (mode 0700): it may contain links out of it, or programs; inspect it before \
            copying it, and before serving it in a way that follows links"
        ),
        Err(error) => tracing::error!("failed to restrict '{path}': {error}, ignoring"),
    }
}

/// Control group of the crawl's slice, which contains the units of its workers and hooks.
fn slice() -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(CGROUPS).join(own).parent()?.to_owned())
}

/// Waits until the control group contains no process or does not exist.
///
/// # Errors
/// TimedOut at the deadline.
fn wait_for_end(group: &Path, deadline: Instant) -> io::Result<()> {
    let events = match File::open(group.join("cgroup.events")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    while is_populated(&events)? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        // cgroups(7): poll(2) reports a change of this file as an exceptional condition.
        let mut fds = [PollFd::new(events.as_fd(), PollFlags::POLLPRI)];
        match poll(&mut fds, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn is_populated(events: &File) -> io::Result<bool> {
    let mut text = [0; 256];
    let length = match events.read_at(&mut text, 0) {
        // systemd removed the control group.
        Err(error) if error.raw_os_error() == Some(Errno::ENODEV as i32) => 0,
        other => other?,
    };
    let mut lines = text[..length].split(|byte| *byte == b'\n');
    Ok(lines.any(|line| line == b"populated 1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    fn mode(directory: &Directory) -> u32 {
        std::fs::metadata(directory.path()).unwrap().mode() & 0o777
    }

    #[tokio::test]
    async fn unsafe_directory_is_restricted_to_its_owner() {
        let top = tempfile::tempdir().unwrap();
        let own = crate::files::directory::make(&top.path().join("s1")).unwrap();
        std::fs::create_dir(own.path().join("wget")).unwrap();
        symlink("/etc", own.path().join("wget/etc")).unwrap();
        symlink("/etc", own.path().join("etc")).unwrap();
        let (own, before) =
            (Arc::new(own), mode(&Directory::open(&top.path().join("s1")).unwrap()));
        end(&own, &EndedUnits::default()).await;
        assert_eq!(mode(&own), before);
        for path in ["etc", "wget/etc"] {
            assert!(!own.path().join(path).is_symlink());
        }
        let problem = PathProblem {
            path: own.path().join("wget"),
            what: "too many levels of directories".to_owned(),
        };
        restrict(&own, &[problem]);
        assert_eq!(mode(&own), 0o700);
    }

    #[test]
    fn wait_for_a_control_group_ends_at_the_deadline() {
        let past = Instant::now();
        wait_for_end(Path::new("/nonexistent"), past).unwrap();
        let top = tempfile::tempdir().unwrap();
        let events = |text| std::fs::write(top.path().join("cgroup.events"), text).unwrap();
        events("populated 0\nfrozen 0\n");
        wait_for_end(top.path(), past).unwrap();
        events("populated 1\nfrozen 0\n");
        let error = wait_for_end(top.path(), past).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    /// `cargo test --lib cost_of_twenty -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement"]
    fn cost_of_twenty_plugins() {
        let top = tempfile::tempdir().unwrap();
        let own = crate::files::directory::make(&top.path().join("s1")).unwrap();
        let begin = Instant::now();
        let names: Vec<String> =
            (0..20).map(|n| format!("archivist-hook-p{n}-s1.service")).collect();
        for name in &names {
            let plugin = crate::files::directory::enter(&own, name).unwrap();
            for file in ["stdout.log", "output.html", "more.json"] {
                plugin.create(file, 0o640).unwrap();
            }
        }
        let made = begin.elapsed();
        let problems = wait_and_clean(&own, &names.into_iter().collect());
        println!("made in {made:?}, waited for and directory in {:?}", begin.elapsed() - made);
        assert!(problems.is_empty(), "{problems:?}");
    }
}
