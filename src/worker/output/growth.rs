//! Reports growth of hooks' outputs. All outputs of a worker share one inotify(7) instance, because
//! the kernel limits a user to 128 instances (`fs.inotify.max_user_instances`) and all workers have
//! the same user.

use futures_util::StreamExt;
use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask, Watches};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_local};

/// Interval at which outputs are checked without inotify.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub struct GrowthMonitor(Option<InotifyMonitor>);

struct InotifyMonitor {
    watches: Watches,
    followed: Rc<Followed>,
    task: JoinHandle<()>,
}

type Followed = RefCell<HashMap<WatchDescriptor, Rc<Notify>>>;

impl GrowthMonitor {
    /// Creates a monitor. If the kernel refuses an inotify instance, outputs are checked at
    /// intervals.
    pub fn new() -> GrowthMonitor {
        GrowthMonitor::open().unwrap_or_else(|error| {
            tracing::warn!(
                "failed to watch outputs: {error} (see fs.inotify.max_user_instances in sysctl(8)), \
                checking every {} s",
                CHECK_INTERVAL.as_secs()
            );
            GrowthMonitor(None)
        })
    }

    fn open() -> io::Result<GrowthMonitor> {
        let inotify = Inotify::init()?;
        let watches = inotify.watches();
        let mut events = inotify.into_event_stream([0; 4096])?;
        let followed = Rc::new(Followed::default());
        let targets = followed.clone();
        let task = spawn_local(async move {
            while let Some(event) = events.next().await {
                let event = match event {
                    Ok(event) => event,
                    Err(error) => {
                        tracing::warn!("failed to read inotify events: {error}, ignoring");
                        return;
                    }
                };
                let followed = targets.borrow();
                if event.mask.contains(EventMask::Q_OVERFLOW) {
                    followed.values().for_each(|target| target.notify_one());
                } else if let Some(one) = followed.get(&event.wd) {
                    one.notify_one();
                }
            }
        });
        Ok(GrowthMonitor(Some(InotifyMonitor { watches, followed, task })))
    }

    /// Follows an open file. `path` is used in messages.
    pub fn follow(&self, file: &File, path: &Path) -> Follower {
        let following = self.0.as_ref().map(|monitor| monitor.follow(file));
        Follower(following.transpose().unwrap_or_else(|error| {
            let (path, every) = (path.display(), CHECK_INTERVAL.as_secs());
            tracing::warn!("failed to watch '{path}': {error}, checking every {every} s");
            None
        }))
    }
}

impl InotifyMonitor {
    fn follow(&self, file: &File) -> io::Result<Following> {
        let mut watches = self.watches.clone();
        let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
        let watch = watches.add(opened, WatchMask::MODIFY)?;
        let changes = Rc::new(Notify::new());
        let followed = self.followed.clone();
        followed.borrow_mut().insert(watch.clone(), changes.clone());
        Ok(Following { watches, watch, followed, changes })
    }
}

impl Drop for GrowthMonitor {
    fn drop(&mut self) {
        if let Some(monitor) = &self.0 {
            monitor.task.abort();
        }
    }
}

/// Follows one file until it is dropped.
pub struct Follower(Option<Following>);

struct Following {
    watches: Watches,
    watch: WatchDescriptor,
    followed: Rc<Followed>,
    changes: Rc<Notify>,
}

impl Follower {
    /// Waits until the file may have changed since the last call.
    pub async fn changed(&self) {
        match &self.0 {
            Some(following) => following.changes.notified().await,
            None => tokio::time::sleep(CHECK_INTERVAL).await,
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.followed.borrow_mut().remove(&self.watch);
        // The kernel has removed the watch already if the file was deleted.
        let _ = self.watches.remove(self.watch.clone());
    }
}
