//! Locks of orchestrators on bytes of one file in the data directory: the kernel releases them with
//! the process, they need no bus, and every PID namespace of the machine sees them (open file
//! description locks, fcntl_locking(2)). A change of the file's time makes the others read the
//! table of runners again (inotify(7)).

use archivist_core::model::Runner;
use inotify::{Inotify, WatchMask};
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::oneshot;

const FILE: &str = "runner.lock";

/// The locks of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The process is alive.
    Rank(i64),
    /// The process works: at most one of all ranks.
    Work(i64),
}

impl Lock {
    fn byte(self) -> libc::off_t {
        match self {
            Lock::Rank(rank) => rank * 2,
            Lock::Work(rank) => rank * 2 + 1,
        }
    }
}

#[derive(Clone, Debug)]
pub struct RunnerLocks {
    path: PathBuf,
    file: Arc<File>,
}

/// Changes of the file, as a stream.
pub type News = inotify::EventStream<[u8; 4096]>;

fn range(kind: libc::c_int, lock: Lock) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: lock.byte(),
        l_len: 1,
        l_pid: 0,
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).open(path)
}

impl RunnerLocks {
    pub fn open(data: &Path) -> io::Result<RunnerLocks> {
        let path = data.join(FILE);
        let file = Arc::new(open(&path)?);
        Ok(RunnerLocks { path, file })
    }

    /// Acquires a lock until the process ends or [`RunnerLocks::release`]. Returns false if another
    /// process holds it.
    pub fn hold(&self, lock: Lock) -> bool {
        let range = range(libc::F_WRLCK, lock);
        fcntl(&*self.file, FcntlArg::F_OFD_SETLK(&range)).is_ok()
    }

    /// Acquires a lock that no other process holds for long: a waiting process may hold it for an
    /// instant.
    pub fn hold_soon(&self, lock: Lock) -> bool {
        let range = range(libc::F_WRLCK, lock);
        fcntl(&*self.file, FcntlArg::F_OFD_SETLKW(&range)).is_ok()
    }

    /// Acquires all locks until the process ends: no orchestrator begins to work. Returns false if
    /// one holds a lock.
    pub fn hold_all(&self) -> bool {
        let all = libc::flock {
            l_len: 0, // to the end, wherever that is
            ..range(libc::F_WRLCK, Lock::Rank(0))
        };
        fcntl(&*self.file, FcntlArg::F_OFD_SETLK(&all)).is_ok()
    }

    /// Releases a lock of this process.
    pub fn release(&self, lock: Lock) {
        let range = range(libc::F_UNLCK, lock);
        let _ = fcntl(&*self.file, FcntlArg::F_OFD_SETLK(&range));
    }

    /// Whether another process holds this lock. Assume not if fcntl(2) fails.
    pub fn is_held(&self, lock: Lock) -> bool {
        // Waiting processes use read locks, which this does not see.
        let mut range = range(libc::F_RDLCK, lock);
        let asked = fcntl(&*self.file, FcntlArg::F_OFD_GETLK(&mut range));
        asked.is_ok() && range.l_type != libc::F_UNLCK as libc::c_short
    }

    pub fn is_alive(&self, runner: &Runner) -> bool {
        self.is_held(Lock::Rank(runner.rank))
    }

    /// Resolves when no process holds the lock: a thread waits in the kernel.
    pub fn until_free(&self, lock: Lock) -> oneshot::Receiver<io::Result<()>> {
        let (sender, receiver) = oneshot::channel();
        let path = self.path.clone();
        std::thread::spawn(move || {
            let _ = sender.send(wait(&path, lock));
        });
        receiver
    }

    /// Makes the other orchestrators read the table again.
    pub fn tell(&self) {
        if let Err(error) = self.file.set_modified(SystemTime::now()) {
            tracing::warn!(
                "failed to notify other orchestrators through '{}': {error}, ignoring",
                self.path.display()
            );
        }
    }

    pub fn news(&self) -> io::Result<News> {
        let inotify = Inotify::init()?;
        // The kernel reports a new time of modification as MODIFY, both times as ATTRIB.
        let changes = WatchMask::MODIFY | WatchMask::ATTRIB;
        inotify.watches().add(&self.path, changes)?;
        inotify.into_event_stream([0; 4096])
    }
}

/// Waits for a lock, and releases it with the descriptor.
fn wait(path: &Path, lock: Lock) -> io::Result<()> {
    let file = open(path)?;
    let range = range(libc::F_RDLCK, lock);
    loop {
        match fcntl(&file, FcntlArg::F_OFD_SETLKW(&range)) {
            Ok(_) => return Ok(()),
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;

    #[test]
    fn lock_is_visible_to_other_processes_only() {
        let directory = tempfile::tempdir().unwrap();
        let (one, two) = (
            RunnerLocks::open(directory.path()).unwrap(),
            RunnerLocks::open(directory.path()).unwrap(),
        );
        assert!(one.hold(Lock::Rank(3)) && one.hold(Lock::Rank(3)));
        assert!(!one.is_held(Lock::Rank(3)));
        assert!(two.is_held(Lock::Rank(3)) && !two.hold(Lock::Rank(3)));
        for free in [Lock::Work(3), Lock::Work(2), Lock::Rank(4), Lock::Rank(2)] {
            assert!(!two.is_held(free), "{free:?}");
        }
        one.release(Lock::Rank(3));
        assert!(!two.is_held(Lock::Rank(3)));
    }

    #[tokio::test]
    async fn waiting_ends_when_the_holder_ends() {
        let directory = tempfile::tempdir().unwrap();
        let one = RunnerLocks::open(directory.path()).unwrap();
        let two = RunnerLocks::open(directory.path()).unwrap();
        assert!(one.hold(Lock::Work(1)));
        let mut waiting = two.until_free(Lock::Work(1));
        assert!(waiting.try_recv().is_err());
        // A waiting process does not count as a holder.
        assert!(!one.is_held(Lock::Work(1)));
        drop(one);
        waiting.await.unwrap().unwrap();
        assert!(two.hold(Lock::Work(1)));
    }

    #[tokio::test]
    async fn notification_arrives() {
        let directory = tempfile::tempdir().unwrap();
        let one = RunnerLocks::open(directory.path()).unwrap();
        let two = RunnerLocks::open(directory.path()).unwrap();
        let mut news = two.news().unwrap();
        one.tell();
        assert!(news.next().await.unwrap().is_ok());
    }
}
