//! Whether the machine has room for more work.

use crate::model::Time;
use std::time::Duration;

/// Interval of measuring the load while something waits for resources.
pub const LOAD_INTERVAL: Duration = Duration::from_secs(10);
/// With fewer free inodes nothing is started.
pub const INODES_NEEDED: u64 = 10_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Why nothing may start that needs space or memory; `None` if there is enough.
    pub pressure: Option<String>,
    /// The machine can do no work at all.
    pub is_outage: bool,
}

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
    /// Why the machine can do no work at all, if so: the directory of the archive is missing, for
    /// example.
    pub outage: Option<String>,
}

/// Why no write can succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    pub why: String,
    /// Whether no page can cause it. A page may fill a disk, but it cannot remove the archive.
    pub is_outage: bool,
}

/// With fewer free bytes, most writes to a file system fail.
const MIN_FREE_BYTES: u64 = 64 << 10;

impl Load {
    /// Why no write can succeed, if so.
    pub fn stuck(&self) -> Option<Stuck> {
        let of = |why: &str, is_outage| {
            let why = why.to_owned();
            Some(Stuck { why, is_outage })
        };
        if let Some(why) = &self.outage {
            return of(why, true);
        }
        if self.read_only {
            return of("the file system of the data directory is read-only", true);
        }
        if self.free.is_some_and(|free| free < MIN_FREE_BYTES) {
            return of("the file system of the data directory is full", false);
        }
        if self.inodes == Some(0) {
            return of("the file system of the data directory has no free inode", false);
        }
        None
    }
}

/// When writes failed for lack of space the last time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shortage {
    /// From the last measurement with free space to the last one without, and the reason.
    span: Option<(Time, Time, Stuck)>,
    /// The last measurement with free space.
    room: Option<Time>,
}

impl Shortage {
    pub fn observe(&mut self, load: &Load, now: Time) {
        let Some(what) = load.stuck() else {
            self.room = Some(now);
            return;
        };
        let before = self.span.as_ref();
        let before = before.filter(|(_, until, _)| Some(*until) > self.room);
        let since = before.map(|(since, ..)| *since).or(self.room);
        self.span = Some((since.unwrap_or(now), now, what));
    }

    /// Why a run between these times may have failed to write.
    pub fn met(&self, started: Option<Time>, ended: Option<Time>) -> Option<&Stuck> {
        let (since, until, what) = self.span.as_ref()?;
        let meets = started? <= *until && ended? >= *since;
        meets.then_some(what)
    }

    /// Why no page could be written at all during a run between these times, however small.
    pub fn met_outage(&self, started: Option<Time>, ended: Option<Time>) -> Option<&str> {
        let what = self.met(started, ended).filter(|what| what.is_outage)?;
        Some(&what.why)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadLimits {
    /// Bytes that must stay free; 0 for no limit.
    pub min_free: u64,
    /// In percent.
    pub memory_max: u32,
}

/// Why nothing may be started, if so. `needed`: bytes that the running work will probably write.
pub fn pressure(load: &Load, needed: u64, limits: &LoadLimits) -> Option<String> {
    if let Some(why) = &load.outage {
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
        return Some(format!("the file system of the archive has only {inodes} free inodes"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LoadLimits = LoadLimits { min_free: 1 << 30, memory_max: 60 };

    fn of(load: Load, needed: u64) -> Option<String> {
        pressure(&load, needed, &LIMITS)
    }

    #[test]
    fn full_disk_is_ignored_without_a_minimum() {
        let full = Load { free: Some(0), inodes: Some(0), ..Load::default() };
        let limits = LoadLimits { min_free: 0, ..LIMITS };
        assert_eq!(pressure(&full, 1, &limits), None);
        let read_only = Load { read_only: true, ..Load::default() };
        let why = pressure(&read_only, 0, &limits).unwrap();
        assert!(why.ends_with("read-only"), "{why}");
        assert!(pressure(&full, 1, &LIMITS).is_some());
    }

    #[test]
    fn impossible_writes_differ_from_short_space() {
        let seen = |free, inodes, read_only| {
            let load = Load { free, inodes, memory: None, read_only, outage: None };
            let word = |stuck: Stuck| stuck.why.rsplit(' ').next().map(str::to_owned);
            load.stuck().and_then(word)
        };
        let said = |word: &str| Some(word.to_owned());
        assert_eq!(seen(None, None, false), None);
        assert_eq!(seen(Some(MIN_FREE_BYTES), Some(1), false), None);
        assert_eq!(seen(Some(MIN_FREE_BYTES - 1), Some(1), false), said("full"));
        assert_eq!(seen(Some(MIN_FREE_BYTES), Some(0), false), said("inode"));
        assert_eq!(seen(Some(1 << 40), Some(1 << 20), true), said("read-only"));
    }

    #[test]
    fn runs_during_a_shortage_are_recognized() {
        let full = Load { free: Some(0), ..Load::default() };
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
        let gone =
            Load { outage: Some("the archive '/a' does not exist".to_owned()), ..Load::default() };
        assert_eq!(of(gone.clone(), 0), gone.outage);
        let full = Load { free: Some(0), ..Load::default() };
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
            outage: None,
        };
        assert_eq!(of(load.clone(), 1 << 30), None);
        let why = of(load.clone(), (1 << 30) + (1 << 20)).unwrap();
        assert!(why.starts_with("2048 MiB are free"), "{why}");
        assert!(why.ends_with("may need 1025 MiB"), "{why}");
        let few = Load { inodes: Some(9_999), ..load.clone() };
        assert!(of(few, 0).unwrap().contains("only 9999 free inodes"));
        let memory = Some(60.0);
        assert!(of(Load { memory, ..load }, 0).unwrap().starts_with("memory is short"));
    }
}
