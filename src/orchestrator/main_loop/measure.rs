//! Measuring what hooks have written.

use archivist_core::model::{RunId, Time};
use archivist_core::plan::{Amount, Writer};
use archivist_plugin::files::allocation::{Allocation, allocations};
use std::collections::HashMap;
use std::path::PathBuf;

/// The directories that a running hook may have written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookDirs {
    pub run: RunId,
    pub since: Time,
    /// The directory of its page or crawl, and the name of its plugin's directory in it.
    pub own: (PathBuf, String),
    /// All directories, including that one.
    pub all: Vec<PathBuf>,
}

pub fn measured(reaches: &[HookDirs]) -> Vec<Writer> {
    let mut known: HashMap<(PathBuf, Option<String>), Vec<Allocation>> = HashMap::new();
    let mut amount = |dir: &PathBuf, part: Option<&String>, since: Time| {
        let place = (dir.clone(), part.cloned());
        let files =
            known.entry(place).or_insert_with_key(|(dir, part)| allocations(dir, part.as_deref()));
        let new = files.iter().filter(|(changed, _)| *changed >= since.0);
        new.fold(Amount::default(), |sum, (_, bytes)| Amount {
            bytes: sum.bytes.saturating_add(*bytes),
            files: sum.files + 1,
        })
    };
    let writers = reaches.iter().map(|reach| {
        let own = amount(&reach.own.0, Some(&reach.own.1), reach.since);
        let all = reach.all.iter().map(|dir| amount(dir, None, reach.since));
        let shared = all.fold(Amount::default(), |sum, part| Amount {
            bytes: sum.bytes.saturating_add(part.bytes),
            files: sum.files + part.files,
        });
        Writer {
            run: reach.run,
            own,
            shared: Amount {
                bytes: shared.bytes.saturating_sub(own.bytes),
                files: shared.files.saturating_sub(own.files),
            },
        }
    });
    writers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_files_do_not_count_for_a_hook() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("wget");
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join("a"), vec![1; 1 << 20]).unwrap();
        std::fs::write(top.path().join("beside"), vec![1; 2 << 20]).unwrap();
        let reach = |since| HookDirs {
            run: RunId(1),
            since: Time(since),
            own: (top.path().to_owned(), "wget".to_owned()),
            all: vec![top.path().to_owned()],
        };
        let found = measured(&[reach(0), reach(i64::MAX)]);
        let mib = |amount: Amount| (amount.bytes >> 20, amount.files);
        assert_eq!((mib(found[0].own), mib(found[0].shared)), ((1, 1), (2, 1)));
        assert_eq!((mib(found[1].own), mib(found[1].shared)), ((0, 0), (0, 0)));
    }
}
