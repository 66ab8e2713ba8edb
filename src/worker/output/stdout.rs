//! The standard output of a hook: a file that the worker opens and passes on, never a path that
//! PID 1 opens, since the directory belongs to the hook's user.

use crate::WorkerError;
use crate::output::growth::Follower;
use archivist_plugin::Directory;
use archivist_plugin::files::beneath::is_file;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

/// Outputs of failed attempts that are kept.
const KEPT: u32 = 5;

/// Opens `name` for a hook's output: a new file, or for a run that is joined the one that it
/// writes already. What an attempt before wrote is kept under a number, the last one's is 1. A link
/// or a pipe that a hook put in its place is not followed.
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

/// Where the output of the `n`th attempt before this one is kept.
fn earlier(name: &str, n: u32) -> String {
    format!("{name}.{n}")
}

/// Puts the outputs of earlier attempts one place further, and `name` where the last one's is.
/// One that says nothing is not kept.
fn rotate(directory: &Directory, name: &str) {
    let found = directory.look(name);
    if !found.is_ok_and(|found| is_file(&found) && found.st_size > 0) {
        return;
    }
    for n in (1..=KEPT).rev() {
        let from = match n {
            1 => name.to_owned(),
            _ => earlier(name, n - 1),
        };
        match directory.rename(&from, &earlier(name, n)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let path = directory.path().join(from);
                tracing::debug!("cannot keep '{}': {error}, ignoring", path.display());
            }
            _ => {}
        }
    }
}

/// Removes the outputs of earlier attempts: the hook did not fail this time.
pub fn forget(directory: &Directory, name: &str) {
    for n in 1..=KEPT {
        match directory.unlink(&earlier(name, n)) {
            Ok(()) => {}
            // They are numbered without a gap.
            Err(_) => return,
        }
    }
}

/// Where other plugins look for the standard output of a hook.
pub const NAME: &str = "stdout.log";

/// Has the output `name` under that name too: a second link to it, in the place of an earlier one.
pub fn show(directory: &Directory, name: &str) {
    if name == NAME {
        return;
    }
    let linked = match directory.unlink(NAME) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => directory.link(name, NAME),
    };
    if let Err(error) = linked {
        let path = directory.path().join(NAME);
        tracing::debug!("cannot link '{}': {error}, ignoring", path.display());
    }
}

/// What can be seen of an output that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A first whole line is there.
    FirstLine,
    /// It has become larger than allowed.
    TooLarge,
}

/// Tells of the first line and of an output above `limit` bytes, each once, as it happens.
pub async fn watch(
    file: File,
    growth: Follower,
    limit: u64,
    mut seen: impl FnMut(Seen),
) -> std::io::Result<()> {
    let mut first_line = false;
    loop {
        if !first_line && has_line(&file) {
            first_line = true;
            seen(Seen::FirstLine);
        }
        if file.metadata()?.len() > limit {
            seen(Seen::TooLarge);
            return Ok(());
        }
        growth.more().await;
    }
}

/// Whether the first line is complete; one above this length counts as complete.
fn has_line(file: &File) -> bool {
    let mut head = [0; 4096];
    let length = file.read_at(&mut head, 0).unwrap_or(0);
    length == head.len() || head[..length].contains(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::growth::Growth;
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

    fn show(path: &Path) {
        let (directory, name) = parts(path);
        super::show(&directory, name);
    }

    fn forget(path: &Path) {
        let (directory, name) = parts(path);
        super::forget(&directory, name);
    }

    fn earlier(path: &Path, n: u32) -> PathBuf {
        let (directory, name) = parts(path);
        directory.path().join(super::earlier(name, n))
    }

    #[test]
    fn a_planted_link_is_replaced_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (victim, path) = (
            directory.path().join("victim"),
            directory.path().join("stdout.log"),
        );
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        for join in [true, false] {
            open(&path, join).unwrap().write_all(b"hook").unwrap();
            assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "hook");
    }

    #[test]
    fn the_newest_of_several_is_shown() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("victim"), "precious").unwrap();
        std::os::unix::fs::symlink(at("victim"), at(NAME)).unwrap();
        for name in ["one", "two"] {
            let path = at(&format!("{name}.{NAME}"));
            let mut file = open(&path, false).unwrap();
            show(&path);
            file.write_all(name.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(at(NAME)).unwrap(), name);
        }
        assert_eq!(
            std::fs::read_to_string(at("one.stdout.log")).unwrap(),
            "one"
        );
        assert_eq!(std::fs::read_to_string(at("victim")).unwrap(), "precious");
        std::fs::remove_file(at(NAME)).unwrap();
        std::fs::create_dir(at(NAME)).unwrap();
        show(&at("one.stdout.log"));
    }

    #[test]
    fn outputs_of_failed_attempts_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stdout.log");
        let read = |n| std::fs::read_to_string(earlier(&path, n)).ok();
        for n in 0..KEPT + 3 {
            let mut file = open(&path, false).unwrap();
            file.write_all(n.to_string().as_bytes()).unwrap();
        }
        let kept: Vec<_> = (1..=KEPT + 1).map(read).collect();
        assert_eq!(kept.len(), 6);
        assert_eq!(kept[0].as_deref(), Some("6"), "7 is the newest");
        assert_eq!(kept[4].as_deref(), Some("2"));
        assert_eq!(kept[5], None);
        open(&path, false).unwrap();
        assert_eq!(read(1).as_deref(), Some("7"));
        open(&path, false).unwrap();
        assert_eq!(read(1).as_deref(), Some("7"), "an attempt without a word");
        forget(&path);
        assert!((1..=KEPT).all(|n| read(n).is_none()));
        assert!(path.exists());
    }

    /// What a hook puts there is no reason for the next attempt to fail.
    #[test]
    fn nothing_is_in_the_way_of_an_attempt() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stdout.log");
        std::fs::create_dir_all(earlier(&path, 1).join("full")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", earlier(&path, 2)).unwrap();
        for _ in 0..3 {
            open(&path, false).unwrap().write_all(b"hook").unwrap();
        }
        forget(&path);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "hook");
    }

    #[test]
    fn a_joined_output_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stdout.log");
        open(&path, false).unwrap().write_all(b"one\n").unwrap();
        open(&path, true).unwrap().write_all(b"two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }

    /// More of them than there are instances of inotify(7) for a user.
    #[tokio::test]
    async fn tells_of_the_first_line_and_of_too_much_of_each_of_many() {
        let directory = tempfile::tempdir().unwrap();
        let local = tokio::task::LocalSet::new();
        let all = local.run_until(async {
            let growth = Growth::new();
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
                assert_eq!(receiver.recv().await, Some(Seen::FirstLine));
            }
            for (mut writer, mut receiver, watching) in outputs {
                writer.write_all(&[b'x'; 200]).unwrap();
                assert_eq!(receiver.recv().await, Some(Seen::TooLarge));
                watching.await.unwrap().unwrap();
            }
        });
        let limit = std::time::Duration::from_secs(30);
        tokio::time::timeout(limit, all).await.unwrap();
    }
}
