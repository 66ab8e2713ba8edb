//! Whether the machine has room for more work.

use crate::model::Time;
use std::time::Duration;

/// Interval of measuring the load while something waits for resources.
pub const LOAD_INTERVAL: Duration = Duration::from_secs(10);
/// With fewer free inodes nothing is started.
const INODES_NEEDED: u64 = 10_000;

/// The measured load of the machine; none where it cannot be measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// Free bytes of the file system of the archive.
    pub free: Option<u64>,
    /// Free inodes of that file system, if it counts them.
    pub inodes: Option<u64>,
    /// Share of the last 10 s, in percent, in which some process of archivist waited for memory.
    pub memory: Option<f64>,
    /// The file system of the archive is read-only.
    pub read_only: bool,
    /// Why no page can be written to the archive, if so: the directory is missing, for example.
    pub archive: Option<String>,
}

const NO_ARCHIVE: &str = "the directory of the archive was missing or not usable";
const READ_ONLY: &str = "the file system of the data directory is read-only";

/// With fewer free bytes, most writes to a file system fail.
const MIN_FREE_BYTES: u64 = 64 << 10;

impl Load {
    /// Why no write can succeed, if so.
    pub fn stuck(&self) -> Option<&'static str> {
        if self.archive.is_some() {
            return Some(NO_ARCHIVE);
        }
        if self.read_only {
            return Some(READ_ONLY);
        }
        if self.free.is_some_and(|free| free < MIN_FREE_BYTES) {
            return Some("the file system of the data directory is full");
        }
        let none = self.inodes == Some(0);
        none.then_some("the file system of the data directory has no free inode")
    }
}

/// When writes failed for lack of space the last time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shortage {
    /// From the last measurement with free space to the last one without, and the reason.
    span: Option<(Time, Time, &'static str)>,
    /// The last measurement with free space.
    room: Option<Time>,
}

impl Shortage {
    /// Records a measurement.
    pub fn observe(&mut self, load: &Load, now: Time) {
        let before = self.span.filter(|(_, until, _)| Some(*until) > self.room);
        match load.stuck() {
            None => self.room = Some(now),
            Some(what) => {
                let since = before.map(|(since, ..)| since).or(self.room).unwrap_or(now);
                self.span = Some((since, now, what));
            }
        }
    }

    /// Why a run between these times may have failed to write.
    pub fn met(&self, started: Option<Time>, ended: Option<Time>) -> Option<&'static str> {
        let (since, until, what) = self.span?;
        let meets = started? <= until && ended? >= since;
        meets.then_some(what)
    }

    /// Whether no page could be written at all during a run between these times, however large. A full
    /// disk is no such reason: the page may have filled it.
    pub fn met_outage(&self, started: Option<Time>, ended: Option<Time>) -> Option<&'static str> {
        let what = self.met(started, ended);
        what.filter(|what| [NO_ARCHIVE, READ_ONLY].contains(what))
    }
}

/// The limits of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadLimits {
    /// Bytes that must stay free; 0 for no limit.
    pub min_free: u64,
    /// In percent.
    pub memory_max: u32,
}

/// Why nothing may be started, if so. `needed`: bytes that the running work will probably write.
pub fn pressure(load: &Load, needed: u64, limits: &LoadLimits) -> Option<String> {
    if let Some(why) = &load.archive {
        return Some(why.clone());
    }
    if load.read_only {
        return Some("the file system of the archive is read-only".to_owned());
    }
    if let Some(why) = disk(load, needed, limits.min_free) {
        return Some(why);
    }
    let memory = load.memory?;
    (memory >= f64::from(limits.memory_max)).then(|| {
        format!(
            "memory is short: processes waited for it in {memory:.0} % of the last 10 s (MemoryPressureMax={}%)",
            limits.memory_max
        )
    })
}

/// With `min_free` 0 free space is not checked.
fn disk(load: &Load, needed: u64, min_free: u64) -> Option<String> {
    if min_free == 0 {
        return None;
    }
    if let Some(free) = load.free
        && free < min_free.saturating_add(needed)
    {
        let running = match needed {
            0 => String::new(),
            needed => format!(", and the running pages may need {} MiB", needed >> 20),
        };
        return Some(format!(
            "{} MiB are free for the archive, {} MiB must stay free (MinFreeSpace=){running}",
            free >> 20,
            min_free >> 20,
        ));
    }
    if let Some(inodes) = load.inodes
        && inodes < INODES_NEEDED
    {
        return Some(format!(
            "the file system of the archive has only {inodes} free inodes"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LoadLimits = LoadLimits {
        min_free: 1 << 30,
        memory_max: 60,
    };

    fn of(load: Load, needed: u64) -> Option<String> {
        pressure(&load, needed, &LIMITS)
    }

    #[test]
    fn full_disk_is_ignored_without_a_minimum() {
        let full = Load {
            free: Some(0),
            inodes: Some(0),
            ..Load::default()
        };
        let limits = LoadLimits {
            min_free: 0,
            ..LIMITS
        };
        assert_eq!(pressure(&full, 1, &limits), None);
        let read_only = Load {
            read_only: true,
            ..Load::default()
        };
        let why = pressure(&read_only, 0, &limits).unwrap();
        assert!(why.ends_with("read-only"), "{why}");
        assert!(pressure(&full, 1, &LIMITS).is_some());
    }

    #[test]
    fn impossible_writes_differ_from_short_space() {
        let seen = |free, inodes, read_only| {
            let load = Load {
                free,
                inodes,
                memory: None,
                read_only,
                archive: None,
            };
            load.stuck().map(|why| why.rsplit(' ').next().unwrap_or(""))
        };
        assert_eq!(seen(None, None, false), None);
        assert_eq!(seen(Some(MIN_FREE_BYTES), Some(1), false), None);
        assert_eq!(seen(Some(MIN_FREE_BYTES - 1), Some(1), false), Some("full"));
        assert_eq!(seen(Some(MIN_FREE_BYTES), Some(0), false), Some("inode"));
        assert_eq!(seen(Some(1 << 40), Some(1 << 20), true), Some("read-only"));
    }

    #[test]
    fn runs_during_a_shortage_are_recognized() {
        let full = Load {
            free: Some(0),
            ..Load::default()
        };
        let mut shortage = Shortage::default();
        let met = |shortage: &Shortage, from, to| {
            shortage.met(Some(Time(from)), Some(Time(to))).is_some()
        };
        shortage.observe(&Load::default(), Time(10));
        assert!(!met(&shortage, 0, 20));
        shortage.observe(&full, Time(20));
        shortage.observe(&full, Time(30));
        shortage.observe(&Load::default(), Time(40));
        // It may have been full since just after 10.
        assert!(met(&shortage, 0, 15) && met(&shortage, 30, 50) && met(&shortage, 0, 50));
        assert!(!met(&shortage, 0, 9) && !met(&shortage, 31, 50));
        assert_eq!(shortage.met(None, Some(Time(20))), None);
        // Another one, later.
        shortage.observe(&full, Time(60));
        assert!(!met(&shortage, 20, 30) && met(&shortage, 45, 50));
    }

    #[test]
    fn missing_archive_blocks_and_explains_failures() {
        let gone = Load {
            archive: Some("the archive '/a' does not exist".to_owned()),
            ..Load::default()
        };
        assert_eq!(of(gone.clone(), 0), gone.archive);
        let full = Load {
            free: Some(0),
            ..Load::default()
        };
        for (load, is_outage) in [(&gone, true), (&full, false)] {
            let mut shortage = Shortage::default();
            shortage.observe(&Load::default(), Time(10));
            shortage.observe(load, Time(20));
            let times = (Some(Time(15)), Some(Time(18)));
            assert!(shortage.met(times.0, times.1).is_some());
            assert_eq!(shortage.met_outage(times.0, times.1).is_some(), is_outage);
            assert_eq!(shortage.met_outage(Some(Time(1)), Some(Time(9))), None);
        }
    }

    #[test]
    fn unknown_load_blocks_nothing() {
        assert_eq!(of(Load::default(), u64::MAX), None);
    }

    #[test]
    fn space_is_reserved_for_running_work() {
        let load = Load {
            free: Some(2 << 30),
            inodes: Some(1 << 20),
            memory: Some(59.9),
            read_only: false,
            archive: None,
        };
        assert_eq!(of(load.clone(), 1 << 30), None);
        let why = of(load.clone(), (1 << 30) + (1 << 20)).unwrap();
        assert!(why.starts_with("2048 MiB are free"), "{why}");
        assert!(why.ends_with("may need 1025 MiB"), "{why}");
        let few = Load {
            inodes: Some(9_999),
            ..load.clone()
        };
        assert!(of(few, 0).unwrap().contains("only 9999 free inodes"));
        let memory = Some(60.0);
        assert!(
            of(Load { memory, ..load }, 0)
                .unwrap()
                .starts_with("memory is short")
        );
    }
}
