//! Detects a lack of disk space at the end of a hook. Many programs ignore failed writes, so on a
//! full file system neither success nor failure of a hook is reliable.

use archivist_core::model::{Outcome, ResultState, Verdict};
use archivist_plugin::Directory;
use archivist_shared::disk::FreeSpace;

/// A file system with fewer free bytes counts as full: the hook's writes may have failed before
/// another process freed this space.
const FREE_MIN_BYTES: u64 = 64 << 10;

/// What the file system of `directory` lacks at present, as a reason.
pub fn lack(directory: &Directory) -> Option<&'static str> {
    let free = FreeSpace::of(directory).ok()?;
    if free.is_read_only {
        Some("its file system is read-only")
    } else if free.bytes < FREE_MIN_BYTES {
        Some("its file system is full")
    } else {
        (free.inodes == Some(0)).then_some("its file system has no free inodes")
    }
}

/// Replaces the verdict on a hook that ended by itself while disk space was lacking, or that the machine
/// was not able to start: the hook is retried. The orchestrator does not start it before there is space
/// (archivist_core::plan).
pub fn retry_if_lacking(verdict: Verdict, outcome: &Outcome, lack: Option<String>) -> Verdict {
    let by_itself = matches!(outcome, Outcome::Exit(_) | Outcome::Signal(_));
    match lack {
        Some(lack) if outcome.is_failure_of_machine() => {
            Verdict { state: ResultState::Backoff, error: Some(lack) }
        }
        Some(lack) if by_itself && verdict.state != ResultState::Skipped => Verdict {
            state: ResultState::Backoff,
            error: Some(format!("its output may be incomplete: {lack}")),
        },
        _ => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hook_that_ended_on_a_full_disk_is_retried() {
        let judged = |outcome, state, full: bool| {
            let lack = full.then(|| "it is full".to_owned());
            retry_if_lacking(Verdict { state, error: None }, &outcome, lack)
        };
        use ResultState::*;
        let unable = Outcome::unable_to_start("No space left on device");
        assert_eq!(judged(unable, Failed, true).state, Backoff);
        for state in [Succeeded, NoResults, Failed] {
            let verdict = judged(Outcome::Exit(0), state, true);
            assert_eq!(verdict.state, Backoff);
            assert!(verdict.error.unwrap().ends_with("it is full"));
            assert_eq!(judged(Outcome::Exit(0), state, false).state, state);
        }
        assert_eq!(judged(Outcome::TimeLimit, Failed, true).state, Failed, "it used all its time");
        assert_eq!(judged(Outcome::Exit(10), Skipped, true).state, Skipped);
    }

    #[test]
    fn free_space_is_detected() {
        let directory = tempfile::tempdir().unwrap();
        let lack = |path| lack(&Directory::open(path).unwrap());
        assert_eq!(lack(directory.path()), None);
        // The proc file system has no blocks.
        let kernel = std::path::Path::new("/proc/self");
        assert_eq!(lack(kernel), Some("its file system is full"));
    }
}
