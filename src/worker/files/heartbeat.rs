//! A crawl's heartbeat, passed on into a snapshot's directory, where hooks look for it as well.

use crate::files::write::replace;
use archivist_plugin::Directory;
use std::io::{ErrorKind, Read};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = ".heartbeat.json";
/// Largest heartbeat that is passed on.
const SIZE_MAX: u64 = 4096;
const EVERY: Duration = Duration::from_secs(5);

/// Passes the heartbeat on as long as the worker lives; does nothing where the crawl has none.
pub fn follow(from: &Rc<Directory>, to: &Arc<Directory>) {
    if !pass_on(from, to) {
        return;
    }
    let (from, to) = (from.clone(), to.clone());
    tokio::task::spawn_local(async move {
        let mut ticks = tokio::time::interval(EVERY);
        loop {
            ticks.tick().await;
            pass_on(&from, &to);
        }
    });
}

/// Takes the file away again: the snapshot is over.
pub fn end(to: &Directory) {
    let _ = to.unlink(NAME);
}

fn pass_on(from: &Directory, to: &Directory) -> bool {
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

fn ignore(error: &dyn std::fmt::Display, telling: bool) -> bool {
    if telling {
        tracing::debug!("cannot pass on the heartbeat: {error}, ignoring");
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_passed_on_whole_and_links_are_not_followed() {
        let (from_path, to_path) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (from_path, to_path) = (from_path.path(), to_path.path());
        let from = Directory::open(from_path).unwrap();
        let to = Directory::open(to_path).unwrap();
        assert!(!pass_on(&from, &to));
        std::fs::write(from_path.join(NAME), "{}").unwrap();
        let victim = to_path.join("victim");
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, to_path.join("..heartbeat.json.new")).unwrap();
        assert!(pass_on(&from, &to));
        assert_eq!(std::fs::read_to_string(to_path.join(NAME)).unwrap(), "{}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        std::fs::remove_file(from_path.join(NAME)).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", from_path.join(NAME)).unwrap();
        assert!(!pass_on(&from, &to));
    }
}
