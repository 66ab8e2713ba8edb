//! The highest ids in a store that is a directory: transfers leave marks there, as workers do in the
//! archive. Objects of an older version, which left none, have ids in their names.

use archivist_core::model::IdMarks;
use archivist_shared::id_marks;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Longest wait for the store. A file server that does not answer must not delay the orchestrator.
const WAIT: Duration = Duration::from_secs(3);

/// Reads the highest ids of a store.
///
/// # Errors
/// If it cannot be read, or not in time.
pub fn read(store: &Path) -> io::Result<IdMarks> {
    within(WAIT, store.to_owned(), |store| id_marks::read(&store, || ()))
}

/// Calls `read` on a thread, which outlasts the wait while the kernel does.
fn within<T: Send + 'static>(
    wait: Duration,
    input: T,
    read: impl FnOnce(T) -> io::Result<IdMarks> + Send + 'static,
) -> io::Result<IdMarks> {
    let (to, from) = mpsc::channel();
    thread::Builder::new().spawn(move || to.send(read(input)))?;
    from.recv_timeout(wait).unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::SnapshotId;
    use std::fs;

    #[test]
    fn objects_are_marks_if_the_store_has_no_others() {
        let top = tempfile::tempdir().unwrap();
        let host = top.path().join("20261124/a.test");
        fs::create_dir_all(&host).unwrap();
        for name in ["s7-00.tar", "s31-1f0c9a3e-00.tar", ".s90-00.tar.x.part"] {
            fs::write(host.join(name), "").unwrap();
        }
        let highest = |ids: IdMarks| ids.snapshot;
        assert_eq!(read(top.path()).map(highest).unwrap(), SnapshotId(31));
        fs::create_dir(top.path().join(".ids")).unwrap();
        fs::write(top.path().join(".ids/s40"), "").unwrap();
        assert_eq!(read(top.path()).map(highest).unwrap(), SnapshotId(40));
        let missing = read(&top.path().join("missing"));
        assert_eq!(missing.unwrap(), IdMarks::default());
    }

    #[test]
    fn store_that_does_not_answer_is_not_waited_for() {
        let (answer, never) = mpsc::channel::<IdMarks>();
        let wait = Duration::from_millis(1);
        let read = within(wait, never, |never| Ok(never.recv().unwrap_or_default()));
        assert_eq!(read.unwrap_err().kind(), ErrorKind::TimedOut);
        drop(answer);
    }
}
