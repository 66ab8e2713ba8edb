//! Whether the machine has room for more work.

use std::time::Duration;

/// How long to wait before the machine is looked at again while something waits for room.
pub const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// With fewer free inodes than this nothing more is begun.
const INODES_NEEDED: u64 = 10_000;

/// What was seen of the machine; nothing where it cannot be seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strain {
    /// Free bytes of the file system of the archive.
    pub free: Option<u64>,
    /// Free inodes of it, where it counts them.
    pub inodes: Option<u64>,
    /// Share of the last 10 s, in percent, in which some of our processes waited for memory.
    pub memory: Option<f64>,
}

/// How much strain is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strains {
    /// Bytes that are to stay free; 0 for any.
    pub min_free: u64,
    /// In percent.
    pub memory_max: u32,
}

/// Why nothing more is to be started, if so. `needed` is how many bytes the work that runs is
/// likely to write still.
pub fn pressure(strain: &Strain, needed: u64, limits: &Strains) -> Option<String> {
    if let Some(why) = disk(strain, needed, limits.min_free) {
        return Some(why);
    }
    let memory = strain.memory?;
    (memory >= f64::from(limits.memory_max)).then(|| {
        format!(
            "memory is short, {memory:.0} % of the last 10 s passed waiting for it (MemoryPressureMax={}%)",
            limits.memory_max
        )
    })
}

/// With `min_free` 0 nobody minds a full disk.
fn disk(strain: &Strain, needed: u64, min_free: u64) -> Option<String> {
    if min_free == 0 {
        return None;
    }
    if let Some(free) = strain.free
        && free < min_free.saturating_add(needed)
    {
        let running = match needed {
            0 => String::new(),
            needed => format!(", and the pages at work may need {} MiB", needed >> 20),
        };
        return Some(format!(
            "{} MiB are free for the archive, {} MiB are to stay free (MinFreeSpace=){running}",
            free >> 20,
            min_free >> 20,
        ));
    }
    if let Some(inodes) = strain.inodes
        && inodes < INODES_NEEDED
    {
        return Some(format!(
            "the file system of the archive has room for {inodes} more files only"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Strains = Strains {
        min_free: 1 << 30,
        memory_max: 60,
    };

    fn of(strain: Strain, needed: u64) -> Option<String> {
        pressure(&strain, needed, &LIMITS)
    }

    #[test]
    fn nobody_minds_a_full_disk() {
        let full = Strain {
            free: Some(0),
            inodes: Some(0),
            memory: None,
        };
        let limits = Strains {
            min_free: 0,
            ..LIMITS
        };
        assert_eq!(pressure(&full, 1, &limits), None);
        assert!(pressure(&full, 1, &LIMITS).is_some());
    }

    #[test]
    fn what_cannot_be_seen_is_no_strain() {
        assert_eq!(of(Strain::default(), u64::MAX), None);
    }

    #[test]
    fn space_is_kept_for_the_work_that_runs() {
        let strain = Strain {
            free: Some(2 << 30),
            inodes: Some(1 << 20),
            memory: Some(59.9),
        };
        assert_eq!(of(strain.clone(), 1 << 30), None);
        let why = of(strain.clone(), (1 << 30) + (1 << 20)).unwrap();
        assert!(why.starts_with("2048 MiB are free"), "{why}");
        assert!(why.ends_with("may need 1025 MiB"), "{why}");
        let few = Strain {
            inodes: Some(9_999),
            ..strain.clone()
        };
        assert!(of(few, 0).unwrap().contains("9999 more files"));
        let memory = Some(60.0);
        assert!(
            of(Strain { memory, ..strain }, 0)
                .unwrap()
                .starts_with("memory is short")
        );
    }
}
