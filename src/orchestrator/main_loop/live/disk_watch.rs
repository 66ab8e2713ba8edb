//! Reads the free space of the archive while hooks run, more often the faster the disk could be full.

use crate::main_loop::event::Event;
use archivist_core::plan::{DiskPace, Load, LoadLimits, lack};
use archivist_shared::disk::FreeSpace;
use std::path::PathBuf;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// The task that reads, while there is one.
#[derive(Default)]
pub struct DiskWatch {
    running: Option<(LoadLimits, JoinHandle<()>)>,
}

impl DiskWatch {
    /// Begins to read, or continues.
    pub fn begin(&mut self, archive: PathBuf, limits: LoadLimits, events: &UnboundedSender<Event>) {
        let is_same =
            |(known, task): &(LoadLimits, JoinHandle<()>)| *known == limits && !task.is_finished();
        if self.running.as_ref().is_some_and(is_same) {
            return;
        }
        self.end();
        let task = tokio::spawn(read(archive, limits, events.clone()));
        self.running = Some((limits, task));
    }

    pub fn end(&mut self) {
        if let Some((_, task)) = self.running.take() {
            task.abort();
        }
    }
}

async fn read(archive: PathBuf, limits: LoadLimits, events: UnboundedSender<Event>) {
    let begin = Instant::now();
    let mut pace = DiskPace::default();
    loop {
        if let Ok(free) = FreeSpace::at(&archive) {
            pace.read(begin.elapsed(), free.bytes);
            let load = Load { free: Some(free.bytes), inodes: free.inodes, ..Load::default() };
            let is_short = lack(&load, &limits, None, pace.rate).is_some();
            if is_short && events.send(Event::DiskShort(pace.rate)).is_err() {
                return;
            }
        }
        sleep(pace.interval(&limits)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::sync::mpsc::unbounded_channel;

    fn limits(min_free: u64) -> LoadLimits {
        LoadLimits { min_free, memory_max: 60 }
    }

    #[tokio::test]
    async fn lack_of_space_is_reported_while_hooks_run() {
        let top = tempfile::tempdir().unwrap();
        let (sender, mut events) = unbounded_channel();
        let mut watch = DiskWatch::default();
        // No disk has so much free space.
        watch.begin(top.path().to_owned(), limits(u64::MAX), &sender);
        assert!(matches!(events.recv().await, Some(Event::DiskShort(_))));
        watch.begin(top.path().to_owned(), limits(1), &sender);
        tokio::task::yield_now().await;
        while events.try_recv().is_ok() {}
        let quiet = tokio::time::timeout(Duration::from_millis(300), events.recv()).await;
        assert!(quiet.is_err(), "enough is free for the new limit");
        watch.end();
        drop(sender);
        assert!(events.recv().await.is_none(), "the task has ended");
    }
}
