//! The end of an owner's work: when nothing of its hooks runs any more, its directory is made harmless.

use archivist_plugin::files::tidy;
use archivist_plugin::{Directory, Problem};
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

/// How long processes may outlive their hook: longer than systemd leaves them (TimeoutStopSec= of hooks).
const LEFT_MAX: Duration = Duration::from_secs(45);
const CGROUPS: &str = "/sys/fs/cgroup";

/// Units of the hooks that have ended. A unit is stopped after that, so processes that its hook left may run for a while.
#[derive(Clone, Default)]
pub struct Units(Rc<RefCell<BTreeSet<String>>>);

impl Units {
    pub fn note(&self, unit: Option<&str>) {
        self.0.borrow_mut().extend(unit.map(str::to_owned));
    }
}

/// Waits for what hooks left running, and makes the owner's directory harmless. A directory of which that cannot be said is
/// closed to everybody but the worker's user.
pub async fn end(own: &Arc<Directory>, units: &Units) {
    let (units, swept) = (units.0.take(), own.clone());
    // The watchdog is to be told of a worker that waits.
    let ending = tokio::task::spawn_blocking(move || wait_and_sweep(&swept, &units)).await;
    let problems = ending.unwrap_or_else(|error| vec![problem(own, &error)]);
    close(own, &problems);
}

fn problem(own: &Directory, what: &dyn std::fmt::Display) -> Problem {
    Problem {
        path: own.path().to_owned(),
        what: what.to_string(),
    }
}

fn wait_and_sweep(own: &Directory, units: &BTreeSet<String>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(slice) = slice() {
        let deadline = Instant::now() + LEFT_MAX;
        for unit in units {
            if let Err(error) = wait_for_end(&slice.join(unit), deadline) {
                problems.push(problem(own, &format!("cannot wait for {unit}: {error}")));
            }
        }
    }
    match tidy::sweep(own) {
        Ok(found) => problems.extend(found),
        Err(error) => problems.push(problem(own, &error)),
    }
    problems
}

fn close(own: &Directory, problems: &[Problem]) {
    if problems.is_empty() {
        return;
    }
    for problem in problems {
        tracing::error!("'{}': {}", problem.path.display(), problem.what);
    }
    let path = own.path().display();
    match own.close() {
        Ok(()) => tracing::error!(
            "closed '{path}' (mode 0700): it may hold links out of it, or programs; look through it before it is \
             copied or served with links followed"
        ),
        Err(error) => tracing::error!("cannot close '{path}': {error}, ignoring"),
    }
}

/// The control group of the crawl's slice, where the units of its workers and hooks are.
fn slice() -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(CGROUPS).join(own).parent()?.to_owned())
}

/// Returns when no process is in the control group, or there is none.
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
        // cgroups(7): a change of the file is an exceptional condition.
        let mut fds = [PollFd::new(events.as_fd(), PollFlags::POLLPRI)];
        match poll(
            &mut fds,
            PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX),
        ) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn is_populated(events: &File) -> io::Result<bool> {
    let mut text = [0; 256];
    let length = match events.read_at(&mut text, 0) {
        // The group was removed.
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
    async fn a_directory_that_is_not_harmless_is_closed() {
        let top = tempfile::tempdir().unwrap();
        let own = crate::files::directory::make(&top.path().join("s1")).unwrap();
        std::fs::create_dir(own.path().join("wget")).unwrap();
        symlink("/etc", own.path().join("wget/etc")).unwrap();
        symlink("/etc", own.path().join("etc")).unwrap();
        let (own, before) = (
            Arc::new(own),
            mode(&Directory::open(&top.path().join("s1")).unwrap()),
        );
        end(&own, &Units::default()).await;
        assert_eq!(mode(&own), before);
        for path in ["etc", "wget/etc"] {
            assert!(!own.path().join(path).is_symlink());
        }
        let problem = Problem {
            path: own.path().join("wget"),
            what: "it lies too deep".to_owned(),
        };
        close(&own, &[problem]);
        assert_eq!(mode(&own), 0o700);
    }

    #[test]
    fn processes_of_a_group_are_waited_for_until_the_deadline() {
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
        let names: Vec<String> = (0..20)
            .map(|n| format!("archivist-hook-p{n}-s1.service"))
            .collect();
        for name in &names {
            let plugin = crate::files::directory::enter(&own, name).unwrap();
            for file in ["stdout.log", "output.html", "more.json"] {
                plugin.create(file, 0o640).unwrap();
            }
        }
        let made = begin.elapsed();
        let problems = wait_and_sweep(&own, &names.into_iter().collect());
        println!(
            "made in {made:?}, waited for and swept in {:?}",
            begin.elapsed() - made
        );
        assert!(problems.is_empty(), "{problems:?}");
    }
}
