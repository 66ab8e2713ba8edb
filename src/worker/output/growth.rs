//! When the outputs of a worker's hooks grow: one instance of inotify(7) for all of them, since the
//! kernel gives a user 128 (`fs.inotify.max_user_instances`) and all workers are one user.

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

/// From one look at an output to the next where the kernel tells nothing.
const BLIND: Duration = Duration::from_secs(1);

pub struct Growth(Option<Sight>);

struct Sight {
    watches: Watches,
    followed: Rc<Followed>,
    task: JoinHandle<()>,
}

type Followed = RefCell<HashMap<WatchDescriptor, Rc<Notify>>>;

impl Growth {
    /// Where the kernel has no instance left, outputs are looked at from time to time.
    pub fn new() -> Growth {
        Growth::open().unwrap_or_else(|error| {
            tracing::warn!(
                "cannot be told when outputs grow: {error} (see fs.inotify.max_user_instances, \
                 sysctl(8)), looking every {} s",
                BLIND.as_secs()
            );
            Growth(None)
        })
    }

    fn open() -> io::Result<Growth> {
        let inotify = Inotify::init()?;
        let watches = inotify.watches();
        let mut events = inotify.into_event_stream([0; 4096])?;
        let followed = Rc::new(Followed::default());
        let told = followed.clone();
        let task = spawn_local(async move {
            while let Some(event) = events.next().await {
                let event = match event {
                    Ok(event) => event,
                    Err(error) => {
                        tracing::warn!("cannot watch outputs any more: {error}, ignoring");
                        return;
                    }
                };
                let followed = told.borrow();
                if event.mask.contains(EventMask::Q_OVERFLOW) {
                    followed.values().for_each(|it| it.notify_one());
                } else if let Some(one) = followed.get(&event.wd) {
                    one.notify_one();
                }
            }
        });
        Ok(Growth(Some(Sight {
            watches,
            followed,
            task,
        })))
    }

    /// Follows the file that is open; `path` is where it was, for messages.
    pub fn follow(&self, file: &File, path: &Path) -> Follower {
        let following = self.0.as_ref().map(|sight| sight.follow(file));
        Follower(following.transpose().unwrap_or_else(|error| {
            let (path, every) = (path.display(), BLIND.as_secs());
            tracing::warn!("cannot watch '{path}': {error}, looking every {every} s");
            None
        }))
    }
}

impl Sight {
    fn follow(&self, file: &File) -> io::Result<Following> {
        let mut watches = self.watches.clone();
        let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
        let watch = watches.add(opened, WatchMask::MODIFY)?;
        let news = Rc::new(Notify::new());
        let followed = self.followed.clone();
        followed.borrow_mut().insert(watch.clone(), news.clone());
        Ok(Following {
            watches,
            watch,
            followed,
            news,
        })
    }
}

impl Drop for Growth {
    fn drop(&mut self) {
        if let Some(sight) = &self.0 {
            sight.task.abort();
        }
    }
}

/// Follows one file until it is dropped.
pub struct Follower(Option<Following>);

struct Following {
    watches: Watches,
    watch: WatchDescriptor,
    followed: Rc<Followed>,
    news: Rc<Notify>,
}

impl Follower {
    /// Returns when the file may have changed since the last time.
    pub async fn more(&self) {
        match &self.0 {
            Some(following) => following.news.notified().await,
            None => tokio::time::sleep(BLIND).await,
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.followed.borrow_mut().remove(&self.watch);
        // The kernel has forgotten it already when the file is gone.
        let _ = self.watches.remove(self.watch.clone());
    }
}
