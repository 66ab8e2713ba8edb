//! Which hook is ended when the disk runs full while hooks write. [`super::pressure`] prevents new
//! starts; this is about hooks that run already.

use super::{Load, LoadLimits};
use crate::model::RunId;
use std::time::Duration;

/// Interval of reading the free space while hooks run, for which the kernel has no event: at the least,
/// and at the most.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// Bytes a second by which the free space may shrink. fallocate(2), which writes no data, took 53 GiB in
/// 0.6 s on a virtual machine of two processors; writing is limited by memory and disk.
const FASTEST_RATE: u64 = 128 << 30;
/// From a reading to the end of a hook: a turn, the measurement, the signal, and the next interval.
const REACTION: Duration = Duration::from_millis(300);

/// How fast the free space shrinks, from two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskPace {
    last: Option<(Duration, u64)>,
    /// Bytes a second; 0 if it does not shrink.
    pub rate: u64,
}

impl DiskPace {
    /// Takes `free` bytes, read at the time `at`.
    pub fn read(&mut self, at: Duration, free: u64) {
        if let Some((before, earlier)) = self.last.replace((at, free)) {
            let lost = u128::from(earlier.saturating_sub(free)) * 1000;
            let passed = at.saturating_sub(before).as_millis().max(1);
            self.rate = u64::try_from(lost / passed).unwrap_or(u64::MAX);
        }
    }

    /// Returns the time until the next reading: in that time, at most half of the space above the
    /// limit is lost at the fastest rate, and below the limit half of the rest at the rate of now.
    pub fn interval(&self, limits: &LoadLimits) -> Duration {
        let free = self.last.map_or(0, |(_, free)| free);
        let (space, rate) = match free.checked_sub(limits.min_free / 2) {
            Some(above) => (above, FASTEST_RATE),
            None => (free, self.rate),
        };
        let millis = (u128::from(space / 2) * 1000).checked_div(u128::from(rate));
        let millis = millis.and_then(|millis| u64::try_from(millis).ok());
        let interval = millis.map_or(INTERVAL_MAX, Duration::from_millis);
        interval.clamp(INTERVAL_MIN, INTERVAL_MAX)
    }
}
/// With fewer free inodes a hook is ended: half of what a start requires.
const MIN_FREE_INODES: u64 = 5_000;
/// A hook that has created fewer files is not the reason for a lack of inodes.
const MIN_FILES: u64 = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Free bytes.
    Bytes(u64),
    /// Free inodes.
    Inodes(u64),
}

/// What is short: less than half of what must stay free, or what will be at this `rate` before a hook
/// can be ended. After a hook was ended, at which time
/// `last` was free, it is short again when another eighth of the limit is gone: the files of that
/// hook stay, and the other hooks are not the reason.
pub fn lack(load: &Load, limits: &LoadLimits, last: Option<Lack>, rate: u64) -> Option<Lack> {
    if limits.min_free == 0 {
        return None;
    }
    let ahead = u128::from(rate) * REACTION.as_millis() / 1000;
    let ahead = u64::try_from(ahead).unwrap_or(u64::MAX);
    let bytes = (limits.min_free / 2).saturating_add(ahead);
    let (mut bytes, mut inodes) = (bytes, MIN_FREE_INODES);
    match last {
        Some(Lack::Bytes(free)) => bytes = bytes.min(free.saturating_sub(limits.min_free / 16)),
        Some(Lack::Inodes(free)) => inodes = inodes.min(free.saturating_sub(MIN_FREE_INODES / 8)),
        None => {}
    }
    let few = load.free.filter(|free| *free < bytes).map(Lack::Bytes);
    few.or(load.inodes.filter(|free| *free < inodes).map(Lack::Inodes))
}

/// The lack to remember; none once enough is free again.
pub fn still(load: &Load, limits: &LoadLimits, last: Option<Lack>) -> Option<Lack> {
    last.filter(|_| lack(load, limits, None, 0).is_some())
}

/// What was written since a hook started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Allocated bytes: a sparse file counts less than its size.
    pub bytes: u64,
    /// Files; directories are not counted.
    pub files: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    pub run: RunId,
    /// In the directory of its plugin.
    pub own: Amount,
    /// In the directories that it shares with other hooks: of its page, its crawl, and for
    /// temporary files.
    pub shared: Amount,
}

/// The hook that has written most of what is short: in its own directory, or else in shared
/// directories, of several hooks the one that started last. None if no hook has written enough to
/// matter.
pub fn worst<'a>(lack: Lack, writers: &'a [Writer], limits: &LoadLimits) -> Option<&'a Writer> {
    let (least, of): (u64, fn(Amount) -> u64) = match lack {
        Lack::Bytes(_) => (limits.min_free / 16, |amount| amount.bytes),
        Lack::Inodes(_) => (MIN_FILES, |amount| amount.files),
    };
    let most = |of_writer: &dyn Fn(&Writer) -> u64| {
        let enough = writers.iter().filter(|writer| of_writer(writer) >= least.max(1));
        enough.max_by_key(|writer| (of_writer(writer), writer.run))
    };
    most(&|writer| of(writer.own)).or_else(|| most(&|writer| of(writer.shared)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const LIMITS: LoadLimits = LoadLimits { min_free: 1024 * MIB, memory_max: 60 };

    fn seen(free: u64, inodes: u64) -> Load {
        Load { free: Some(free), inodes: Some(inodes), ..Load::default() }
    }

    #[test]
    fn space_is_short_below_half_of_the_minimum() {
        let many = 1 << 20;
        let none = LoadLimits { min_free: 0, ..LIMITS };
        let table = [
            (seen(512 * MIB, many), None, None),
            (seen(511 * MIB, many), None, Some(Lack::Bytes(511 * MIB))),
            (seen(9999 * MIB, 4_999), None, Some(Lack::Inodes(4_999))),
            (Load::default(), None, None),
            // One was ended: the next not before there is less by another sixteenth of a GiB.
            (seen(500 * MIB, many), Some(Lack::Bytes(511 * MIB)), None),
            (seen(446 * MIB, many), Some(Lack::Bytes(511 * MIB)), Some(Lack::Bytes(446 * MIB))),
            (seen(0, many), Some(Lack::Bytes(0)), None),
            (seen(9999 * MIB, 4_800), Some(Lack::Inodes(4_999)), None),
            (seen(9999 * MIB, 4_300), Some(Lack::Inodes(4_999)), Some(Lack::Inodes(4_300))),
        ];
        for (load, last, want) in table {
            assert_eq!(lack(&load, &LIMITS, last, 0), want, "{load:?} after {last:?}");
            assert_eq!(lack(&load, &none, last, 0), None);
        }
        let last = Some(Lack::Bytes(3));
        assert_eq!(still(&seen(4, many), &LIMITS, last), last);
        assert_eq!(still(&seen(512 * MIB, many), &LIMITS, last), None);
    }

    #[test]
    fn interval_is_shorter_than_the_time_to_fill_the_disk() {
        const GIB: u64 = 1 << 30;
        let interval = |free| {
            let mut pace = DiskPace::default();
            pace.read(Duration::ZERO, free);
            pace.interval(&LIMITS).as_millis()
        };
        let free = [8000 * GIB, 57 * GIB, 27 * GIB, GIB, 0];
        assert_eq!(free.map(interval), [2000, 220, 103, 100, 2000]);
        // A hook that preallocates all of the disk at the rate that was seen is ended before.
        let rate = 90 * GIB;
        for whole in [57 * GIB, 570 * GIB, 40 * GIB, 20 * GIB] {
            let (mut pace, mut now, mut free) = (DiskPace::default(), Duration::ZERO, whole);
            pace.read(now, free);
            while lack(&seen(free, 1 << 20), &LIMITS, None, pace.rate).is_none() {
                let interval = pace.interval(&LIMITS);
                let lost = u128::from(rate) * interval.as_millis() / 1000;
                (now, free) = (now + interval, free.saturating_sub(lost as u64));
                pace.read(now, free);
            }
            // 100 ms for the turn, the measurement and the signal.
            assert!(free > rate / 10, "{free} of {whole} are left");
        }
        // Below the limit, the present rate decides.
        let mut pace = DiskPace::default();
        pace.read(Duration::ZERO, 400 * MIB);
        pace.read(Duration::from_secs(1), 300 * MIB);
        assert_eq!(pace.rate, 100 * MIB);
        assert_eq!(pace.interval(&LIMITS).as_millis(), 1500);
        pace.read(Duration::from_secs(2), 900 * MIB);
        assert_eq!(pace.rate, 0);
    }

    #[test]
    fn shrinking_space_is_short_before_it_is_gone() {
        let gib = |count: u64| seen(count << 30, 1 << 20);
        assert_eq!(lack(&gib(8), &LIMITS, None, 20 << 30), None);
        assert_eq!(lack(&gib(6), &LIMITS, None, 20 << 30), Some(Lack::Bytes(6 << 30)));
        assert_eq!(lack(&gib(6), &LIMITS, None, 0), None);
    }

    #[test]
    fn hook_that_wrote_most_is_chosen() {
        let writer = |run, own, shared| Writer {
            run: RunId(run),
            own: Amount { bytes: own, files: own / MIB * 8 },
            shared: Amount { bytes: shared, files: 0 },
        };
        let of = |writers: &[Writer], lack| worst(lack, writers, &LIMITS).map(|w| w.run.0);
        let bytes = Lack::Bytes(0);
        let (small, large) = (writer(1, 70 * MIB, 900 * MIB), writer(2, 90 * MIB, 0));
        assert_eq!(of(&[small.clone(), large.clone()], bytes), Some(2));
        assert_eq!(of(&[small, large], Lack::Inodes(0)), Some(2));
        // If several hooks may have written to a shared directory, the one that started last.
        let beside = [writer(4, 3, 80 * MIB), writer(3, 9, 80 * MIB), writer(2, 1, 0)];
        assert_eq!(of(&beside, bytes), Some(4));
        assert_eq!(of(&beside, Lack::Inodes(0)), None);
        let nobody = [writer(1, 60 * MIB, 63 * MIB)];
        assert_eq!(of(&nobody, bytes), None, "something else fills the disk");
        assert_eq!(of(&[], bytes), None);
    }
}
