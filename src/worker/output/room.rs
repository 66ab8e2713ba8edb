//! Whether a hook had room for what it was to leave. Many programs pass over a write that fails, so
//! that on a full file system neither success nor failure is to be believed.

use archivist_core::model::{Outcome, ResultState, Verdict};
use archivist_plugin::Directory;
use nix::sys::statvfs::{FsFlags, fstatvfs};

/// With fewer free bytes a file system counts as full: what others just gave back does not help
/// who was refused.
const LEAST: u64 = 64 << 10;

/// What the file system of `directory` lacks now.
pub fn lack(directory: &Directory) -> Option<&'static str> {
    let found = fstatvfs(directory).ok()?;
    let free = found
        .blocks_available()
        .saturating_mul(found.fragment_size());
    if found.flags().contains(FsFlags::ST_RDONLY) {
        Some("its file system is read-only")
    } else if free < LEAST {
        Some("its file system is full")
    } else {
        (found.files() > 0 && found.files_available() == 0)
            .then_some("its file system has no room for another file")
    }
}

/// A hook that ended by itself while something was lacking is run once more, whatever it says: it
/// is not begun before there is room (plan/pressure.rs).
pub fn doubt(verdict: Verdict, outcome: &Outcome, lack: Option<String>) -> Verdict {
    let by_itself = matches!(outcome, Outcome::Exit(_) | Outcome::Signal(_));
    match lack {
        Some(lack) if by_itself && verdict.state != ResultState::Skipped => Verdict {
            state: ResultState::Backoff,
            error: Some(format!("what it left may be incomplete: {lack}")),
        },
        _ => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_without_room_is_neither_success_nor_failure() {
        let doubted = |outcome, state, full: bool| {
            let lack = full.then(|| "it is full".to_owned());
            doubt(Verdict { state, error: None }, &outcome, lack)
        };
        use ResultState::*;
        for state in [Succeeded, NoResults, Failed] {
            let verdict = doubted(Outcome::Exit(0), state, true);
            assert_eq!(verdict.state, Backoff);
            assert!(verdict.error.unwrap().ends_with("it is full"));
            assert_eq!(doubted(Outcome::Exit(0), state, false).state, state);
        }
        assert_eq!(
            doubted(Outcome::TimeLimit, Failed, true).state,
            Failed,
            "it had all its time"
        );
        assert_eq!(doubted(Outcome::Exit(10), Skipped, true).state, Skipped);
    }

    #[test]
    fn the_room_here_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let lack = |path| lack(&Directory::open(path).unwrap());
        assert_eq!(lack(directory.path()), None);
        // The kernel's own has no blocks at all.
        let kernel = std::path::Path::new("/proc/self");
        assert_eq!(lack(kernel), Some("its file system is full"));
    }
}
