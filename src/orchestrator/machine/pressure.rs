//! Measuring the load of the machine: free space, and how long processes wait for memory.

use archivist_core::plan::Load;
use archivist_shared::disk::FreeSpace;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a figure is reused; the kernel updates it every 2 s.
const MEMORY_KEPT: Duration = Duration::from_secs(1);

pub struct Machine {
    places: Vec<PathBuf>,
    /// The file with the memory pressure of the slice, if the kernel has it.
    memory: Option<PathBuf>,
    seen: Option<(Instant, f64)>,
}

impl Machine {
    /// `places`: directories on the file systems to measure.
    pub fn new(places: Vec<PathBuf>) -> Machine {
        let cgroups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let slice = slice_of(&cgroups);
        let memory = slice.map(|slice| {
            let slice = Path::new("/sys/fs/cgroup").join(slice);
            slice.join("memory.pressure")
        });
        Machine { places, memory: memory.filter(|path| path.exists()), seen: None }
    }

    /// Measures the file systems and the memory pressure, with a few system calls. The file system
    /// with the least space counts.
    pub fn look(&mut self) -> Load {
        let places = self.places.iter();
        let found: Vec<FreeSpace> = places.filter_map(|at| FreeSpace::at(at).ok()).collect();
        Load {
            free: found.iter().map(|space| space.bytes).min(),
            inodes: found.iter().filter_map(|space| space.inodes).min(),
            memory: self.memory(),
            read_only: found.iter().any(|space| space.is_read_only),
            outage: None,
        }
    }

    fn memory(&mut self) -> Option<f64> {
        if let Some((when, figure)) = self.seen
            && when.elapsed() < MEMORY_KEPT
        {
            return Some(figure);
        }
        let text = std::fs::read_to_string(self.memory.as_ref()?).ok()?;
        let figure = some_avg10(&text)?;
        self.seen = Some((Instant::now(), figure));
        Some(figure)
    }
}

/// The slice of this process and all its units, relative to the root of the cgroups.
fn slice_of(cgroups: &str) -> Option<PathBuf> {
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let slice = Path::new(own).parent()?;
    let is_slice = slice.extension().is_some_and(|extension| extension == "slice");
    is_slice.then(|| slice.to_owned())
}

/// The figure of a file of the kernel's pressure stall information.
fn some_avg10(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let avg10 = some.split(' ').find_map(|word| word.strip_prefix("avg10="))?;
    avg10.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_file_and_cgroup_are_parsed() {
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
    fn free_space_is_measured() {
        let free = |places: &[&str]| {
            let places = places.iter().map(PathBuf::from).collect();
            Machine::new(places).look().free
        };
        assert!(free(&["/", "/nonexistent"]).is_some());
        assert_eq!(free(&["/nonexistent"]), None);
        // The kernel's own cannot be written to and has no room.
        assert_eq!(free(&["/", "/proc"]), Some(0));
    }
}
