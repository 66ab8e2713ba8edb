//! Looking at the machine before something is started: free space, and how long our processes
//! wait for memory.

use super::turn::{Turn, TurnResult};
use crate::plan::{Limits, Strain, View, pressure};
use crate::store::Sum;
use nix::sys::statvfs::{FsFlags, Statvfs, statvfs};
use std::path::{Path, PathBuf};

/// Looks at the file systems of `places` and at the pressure on our slice. Both are cheap: a system
/// call each and a small file of the kernel. The one with the least room counts.
pub fn look(places: &[&Path]) -> Strain {
    let found: Vec<Statvfs> = places.iter().filter_map(|at| statvfs(*at).ok()).collect();
    let free = |space: &Statvfs| {
        space
            .blocks_available()
            .saturating_mul(space.fragment_size())
    };
    let counted = found.iter().filter(|space| space.files() > 0);
    let slice = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let memory = slice_of(&slice).and_then(|slice| {
        let file = Path::new("/sys/fs/cgroup")
            .join(slice)
            .join("memory.pressure");
        some_avg10(&std::fs::read_to_string(file).ok()?)
    });
    Strain {
        free: found.iter().map(free).min(),
        inodes: counted.map(|space| space.files_available()).min(),
        memory,
        read_only: found.iter().any(|s| s.flags().contains(FsFlags::ST_RDONLY)),
    }
}

/// The slice that we and all of our work are in, relative to the root of the cgroups.
fn slice_of(cgroups: &str) -> Option<PathBuf> {
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let slice = Path::new(own).parent()?;
    let is_slice = slice
        .extension()
        .is_some_and(|extension| extension == "slice");
    is_slice.then(|| slice.to_owned())
}

/// From a file of the kernel's pressure stall information.
fn some_avg10(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let avg10 = some
        .split(' ')
        .find_map(|word| word.strip_prefix("avg10="))?;
    avg10.parse().ok()
}

impl Turn<'_> {
    /// What decisions are made from, now.
    pub(super) fn view(&self, limits: &Limits) -> TurnResult<View> {
        let pace = self.engine.settings.host_delay;
        let mut view = self.tx.view(limits, pace, self.now)?;
        let mut needed = 0u64;
        for crawl in &view.open_crawls {
            let pages = self.tx.used(crawl.id, Sum::Pages)?.max(1);
            let each = self.tx.used(crawl.id, Sum::Bytes)? / pages;
            needed = needed.saturating_add(each.saturating_mul(u64::from(crawl.running)));
        }
        view.pressure = pressure(&self.engine.strain, needed, &self.engine.strains());
        Ok(view)
    }
}

/// Why nothing is started although something is due.
pub fn blocked(view: &View) -> Option<&str> {
    let due = !view.due_crawls.is_empty()
        || !view.checks.slow.due.is_empty()
        || view.open_crawls.iter().any(|crawl| !crawl.due.is_empty());
    view.pressure.as_deref().filter(|_| due)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel() {
        let text =
            "some avg10=12.34 avg60=1.00 avg300=0.10 total=7\nfull avg10=1.00 avg60=0 total=0\n";
        assert_eq!(some_avg10(text), Some(12.34));
        assert_eq!(some_avg10("full avg10=1.00\n"), None);
        let own = "1:name=systemd:/x\n0::/archivist.slice/archivist-orchestrator.service\n";
        assert_eq!(slice_of(own), Some("archivist.slice".into()));
        assert_eq!(slice_of("0::/\n"), None);
        assert_eq!(slice_of("0::/init.scope\n"), None);
    }

    #[test]
    fn the_space_here_is_seen() {
        let (root, nowhere) = (Path::new("/"), Path::new("/nonexistent"));
        assert!(look(&[root, nowhere]).free.is_some());
        assert_eq!(look(&[nowhere]).free, None);
        // The kernel's own cannot be written to and has no room.
        assert_eq!(look(&[root, Path::new("/proc")]).free, Some(0));
    }
}
