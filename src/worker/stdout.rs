//! The standard output of a hook: a file that the worker opens and passes on, never a path that
//! PID 1 opens, since the directory belongs to the hook's user.

use super::WorkerError;
use super::growth::Follower;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Outputs of failed attempts that are kept.
const KEPT: u32 = 5;

/// Opens `path` for a hook's output: a new file, or for a run that is joined the one that it
/// writes already. What an attempt before wrote is kept under a number, the last one's is 1. A link
/// or a pipe that a hook put in its place is not followed.
pub fn open(path: &Path, join: bool) -> Result<File, WorkerError> {
    let fail = |source| WorkerError::File {
        verb: "open",
        path: path.to_owned(),
        source,
    };
    let mut options = File::options();
    options.read(true).append(true).mode(0o640);
    options.custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK);
    if join
        && let Ok(file) = options.open(path)
        && file.metadata().is_ok_and(|metadata| metadata.is_file())
    {
        return Ok(file);
    }
    rotate(path);
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) if error.kind() == ErrorKind::IsADirectory => {
            std::fs::remove_dir_all(path).map_err(fail)?;
        }
        other => other.map_err(fail)?,
    }
    options.create_new(true).open(path).map_err(fail)
}

/// Where the output of the `n`th attempt before this one is kept.
fn earlier(path: &Path, n: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}"));
    name.into()
}

/// Puts the outputs of earlier attempts one place further, and `path` where the last one's is.
/// One that says nothing is not kept.
fn rotate(path: &Path) {
    let says_something = |metadata: Metadata| metadata.is_file() && metadata.len() > 0;
    if !path.symlink_metadata().is_ok_and(says_something) {
        return;
    }
    for n in (1..=KEPT).rev() {
        let from = match n {
            1 => path.to_owned(),
            _ => earlier(path, n - 1),
        };
        match std::fs::rename(&from, earlier(path, n)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::debug!("cannot keep '{}': {error}, ignoring", from.display());
            }
            _ => {}
        }
    }
}

/// Removes the outputs of earlier attempts: the hook did not fail this time.
pub fn forget(path: &Path) {
    for n in 1..=KEPT {
        match std::fs::remove_file(earlier(path, n)) {
            Ok(()) => {}
            // They are numbered without a gap.
            Err(_) => return,
        }
    }
}

/// Where other plugins look for the standard output of a hook.
pub const NAME: &str = "stdout.log";

/// Has the output at `path` under that name too: a second link to it, in the place of an earlier one.
pub fn show(path: &Path) {
    let shown = path.with_file_name(NAME);
    if shown == path {
        return;
    }
    let linked = match std::fs::remove_file(&shown) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => std::fs::hard_link(path, &shown),
    };
    if let Err(error) = linked {
        tracing::debug!("cannot link '{}': {error}, ignoring", shown.display());
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
    use crate::worker::growth::Growth;
    use std::io::Write;
    use tokio::sync::mpsc;

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
                let (file, follower) = (writer.try_clone().unwrap(), growth.follow(&path));
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
