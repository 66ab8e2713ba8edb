//! The standard output of a hook. The worker opens the file and passes the descriptor on: PID 1
//! must not open a path in a directory that the hook's user can change.

use crate::WorkerError;
use crate::output::growth::Follower;
use archivist_plugin::Directory;
use archivist_plugin::files::beneath::is_file;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

/// Number of failed attempts whose outputs are kept.
const EARLIER_MAX: u32 = 5;

/// Opens the file `name` for a hook's output: a new file, or, for a run that is joined, the file
/// that the run already writes to. Keeps outputs of earlier attempts with a number; 1 is the
/// newest. Follows no link or pipe that a hook put in its place.
pub fn open(directory: &Directory, name: &str, join: bool) -> Result<File, WorkerError> {
    let open = || -> io::Result<File> {
        if join && let Ok(file) = directory.append(name) {
            return Ok(file);
        }
        rotate(directory, name);
        directory.clear(name)?;
        directory.create(name, 0o640)
    };
    open().map_err(|source| WorkerError::File {
        verb: "open",
        path: directory.path().join(name),
        source,
    })
}

/// Name of the output of the `n`th attempt before this one.
fn earlier(name: &str, n: u32) -> String {
    format!("{name}.{n}")
}

/// Renames the outputs of earlier attempts: `name` becomes number 1, and each other number
/// increases. Empty outputs are not kept.
fn rotate(directory: &Directory, name: &str) {
    let found = directory.stat(name);
    if !found.is_ok_and(|found| is_file(&found) && found.st_size > 0) {
        return;
    }
    for n in (1..=EARLIER_MAX).rev() {
        let from = match n {
            1 => name.to_owned(),
            _ => earlier(name, n - 1),
        };
        match directory.rename(&from, earlier(name, n)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let path = directory.path().join(from);
                tracing::debug!("failed to rename '{}': {error}, ignoring", path.display());
            }
            _ => {}
        }
    }
}

/// Removes the outputs of earlier attempts after an attempt that did not fail.
pub fn remove_earlier(directory: &Directory, name: &str) {
    for n in 1..=EARLIER_MAX {
        match directory.unlink(earlier(name, n)) {
            Ok(()) => {}
            // The numbers have no gap.
            Err(_) => return,
        }
    }
}

/// Name under which other plugins read the output of a hook.
pub const NAME: &str = "stdout.log";

/// Creates a hard link [`NAME`] to the output `name`, and replaces an existing one.
pub fn link_newest(directory: &Directory, name: &str) {
    if name == NAME {
        return;
    }
    let linked = match directory.unlink(NAME) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => directory.link(name, NAME),
    };
    if let Err(error) = linked {
        let path = directory.path().join(NAME);
        tracing::debug!("failed to link '{}': {error}, ignoring", path.display());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputEvent {
    /// The first complete line was written.
    FirstLine,
    /// The output exceeds its limit.
    TooLarge,
}

/// Reports the first line and an output above `limit` bytes, each once.
pub async fn watch(
    file: File,
    growth: Follower,
    limit: u64,
    mut report: impl FnMut(OutputEvent),
) -> std::io::Result<()> {
    let mut first_line = false;
    loop {
        if !first_line && has_line(&file) {
            first_line = true;
            report(OutputEvent::FirstLine);
        }
        if file.metadata()?.len() > limit {
            report(OutputEvent::TooLarge);
            return Ok(());
        }
        growth.changed().await;
    }
}

/// Whether the first line is complete. A line of 4096 bytes or more counts as complete.
fn has_line(file: &File) -> bool {
    let mut head = [0; 4096];
    let length = file.read_at(&mut head, 0).unwrap_or(0);
    length == head.len() || head[..length].contains(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::growth::GrowthMonitor;
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use tokio::sync::mpsc;

    fn parts(path: &Path) -> (Directory, &str) {
        let directory = Directory::open(path.parent().unwrap()).unwrap();
        (directory, path.file_name().unwrap().to_str().unwrap())
    }

    fn open(path: &Path, join: bool) -> Result<File, WorkerError> {
        let (directory, name) = parts(path);
        super::open(&directory, name, join)
    }

    fn link_newest(path: &Path) {
        let (directory, name) = parts(path);
        super::link_newest(&directory, name);
    }

    fn remove_earlier(path: &Path) {
        let (directory, name) = parts(path);
        super::remove_earlier(&directory, name);
    }

    fn earlier(path: &Path, n: u32) -> PathBuf {
        let (directory, name) = parts(path);
        directory.path().join(super::earlier(name, n))
    }

    #[test]
    fn planted_link_is_replaced_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (victim, path) = (directory.path().join("victim"), directory.path().join("stdout.log"));
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        for join in [true, false] {
            open(&path, join).unwrap().write_all(b"hook").unwrap();
            assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "hook");
    }

    #[test]
    fn newest_of_several_outputs_is_linked() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("victim"), "precious").unwrap();
        std::os::unix::fs::symlink(at("victim"), at(NAME)).unwrap();
        for name in ["one", "two"] {
            let path = at(&format!("{name}.{NAME}"));
            let mut file = open(&path, false).unwrap();
            link_newest(&path);
            file.write_all(name.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(at(NAME)).unwrap(), name);
        }
        assert_eq!(std::fs::read_to_string(at("one.stdout.log")).unwrap(), "one");
        assert_eq!(std::fs::read_to_string(at("victim")).unwrap(), "precious");
        std::fs::remove_file(at(NAME)).unwrap();
        std::fs::create_dir(at(NAME)).unwrap();
        link_newest(&at("one.stdout.log"));
    }

    #[test]
    fn outputs_of_failed_attempts_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stdout.log");
        let read = |n| std::fs::read_to_string(earlier(&path, n)).ok();
        for n in 0..EARLIER_MAX + 3 {
            let mut file = open(&path, false).unwrap();
            file.write_all(n.to_string().as_bytes()).unwrap();
        }
        let kept: Vec<_> = (1..=EARLIER_MAX + 1).map(read).collect();
        assert_eq!(kept.len(), 6);
        assert_eq!(kept[0].as_deref(), Some("6"), "7 is the newest");
        assert_eq!(kept[4].as_deref(), Some("2"));
        assert_eq!(kept[5], None);
        open(&path, false).unwrap();
        assert_eq!(read(1).as_deref(), Some("7"));
        open(&path, false).unwrap();
        assert_eq!(read(1).as_deref(), Some("7"), "an attempt without output");
        remove_earlier(&path);
        assert!((1..=EARLIER_MAX).all(|n| read(n).is_none()));
        assert!(path.exists());
    }

    /// Whatever a hook puts there, the next attempt can open its output.
    #[test]
    fn planted_files_do_not_prevent_an_attempt() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stdout.log");
        std::fs::create_dir_all(earlier(&path, 1).join("full")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", earlier(&path, 2)).unwrap();
        for _ in 0..3 {
            open(&path, false).unwrap().write_all(b"hook").unwrap();
        }
        remove_earlier(&path);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "hook");
    }

    #[test]
    fn joined_output_is_appended_to() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stdout.log");
        open(&path, false).unwrap().write_all(b"one\n").unwrap();
        open(&path, true).unwrap().write_all(b"two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }

    /// Uses more outputs than a user may have inotify(7) instances.
    #[tokio::test]
    async fn first_line_and_excess_of_each_of_many_outputs_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let local = tokio::task::LocalSet::new();
        let all = local.run_until(async {
            let growth = GrowthMonitor::new();
            let mut outputs = Vec::new();
            for n in 0..300 {
                let path = directory.path().join(n.to_string());
                let writer = open(&path, false).unwrap();
                let (sender, receiver) = mpsc::unbounded_channel();
                let (file, follower) = (writer.try_clone().unwrap(), growth.follow(&writer, &path));
                let watching = tokio::task::spawn_local(watch(file, follower, 100, move |seen| {
                    let _ = sender.send(seen);
                }));
                outputs.push((writer, receiver, watching));
            }
            for (writer, receiver, _) in &mut outputs {
                writer.write_all(b"half a line").unwrap();
                writer.write_all(b", and its end\n").unwrap();
                assert_eq!(receiver.recv().await, Some(OutputEvent::FirstLine));
            }
            for (mut writer, mut receiver, watching) in outputs {
                writer.write_all(&[b'x'; 200]).unwrap();
                assert_eq!(receiver.recv().await, Some(OutputEvent::TooLarge));
                watching.await.unwrap().unwrap();
            }
        });
        let limit = std::time::Duration::from_secs(30);
        tokio::time::timeout(limit, all).await.unwrap();
    }
}
