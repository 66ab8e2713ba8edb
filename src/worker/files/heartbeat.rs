//! Copies the crawl's heartbeat file to the directory of a snapshot, where hooks also read it.

use crate::files::write::replace;
use archivist_plugin::Directory;
use std::io::{ErrorKind, Read};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = ".heartbeat.json";
/// Largest heartbeat file that is copied, in bytes.
const SIZE_MAX: u64 = 4096;
const COPY_INTERVAL: Duration = Duration::from_secs(5);

/// Copies the heartbeat repeatedly until the worker exits. Does nothing if the crawl has no
/// heartbeat.
pub fn follow(from: &Rc<Directory>, to: &Arc<Directory>) {
    if !copy(from, to) {
        return;
    }
    let (from, to) = (from.clone(), to.clone());
    tokio::task::spawn_local(async move {
        let mut ticks = tokio::time::interval(COPY_INTERVAL);
        loop {
            ticks.tick().await;
            copy(&from, &to);
        }
    });
}

/// Removes the copy at the end of the snapshot.
pub fn end(to: &Directory) {
    let _ = to.unlink(NAME);
}

fn copy(from: &Directory, to: &Directory) -> bool {
    let read = || -> std::io::Result<String> {
        let mut text = String::new();
        let file = from.read(NAME)?;
        file.take(SIZE_MAX).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = match read() {
        Ok(text) => text,
        Err(error) => return ignore(&error, error.kind() != ErrorKind::NotFound),
    };
    match replace(to, NAME, &text) {
        Ok(()) => true,
        Err(error) => ignore(&error, true),
    }
}

fn ignore(error: &dyn std::fmt::Display, is_logged: bool) -> bool {
    if is_logged {
        tracing::debug!("failed to copy the heartbeat: {error}, ignoring");
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeat_is_copied_completely_without_following_links() {
        let (from_path, to_path) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (from_path, to_path) = (from_path.path(), to_path.path());
        let from = Directory::open(from_path).unwrap();
        let to = Directory::open(to_path).unwrap();
        assert!(!copy(&from, &to));
        std::fs::write(from_path.join(NAME), "{}").unwrap();
        let victim = to_path.join("victim");
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, to_path.join("..heartbeat.json.part")).unwrap();
        assert!(copy(&from, &to));
        assert_eq!(std::fs::read_to_string(to_path.join(NAME)).unwrap(), "{}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        std::fs::remove_file(from_path.join(NAME)).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", from_path.join(NAME)).unwrap();
        assert!(!copy(&from, &to));
    }
}
