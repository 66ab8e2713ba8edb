//! Makes space after a hook was ended because the disk was nearly full: removes what it wrote.

use archivist_core::model::Time;
use archivist_core::text::human_size;
use archivist_plugin::Directory;
use archivist_plugin::files::output::Listing;
use archivist_plugin::files::removal::{Removed, Suspects, remove_own};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// In directories that hooks share, files are removed only if they have more bytes than this part of
/// those in the hook's own directory. A hook that hides less there gains little, and files that other
/// hooks created meanwhile stay.
const SHARED_PART: u64 = 16;
/// The same for their number, which must also exceed this.
const SHARED_FILES: u64 = 500;

/// Where a hook may have written.
pub struct Reach {
    pub own: Arc<Directory>,
    /// Content of `own` before the run, if known.
    pub before: Option<Listing>,
    /// Start of the run.
    pub since: Time,
    /// Directory of its crawl or snapshot, which contains `own`.
    pub of_owner: Arc<Directory>,
    /// Plugins that have directories in `of_owner` and whose hooks ran meanwhile, including its own.
    pub busy: BTreeSet<String>,
    /// Other directories that it shares with hooks: of its crawl, and for temporary files.
    pub shared: Vec<PathBuf>,
}

impl Reach {
    /// Removes what the hook wrote. No process of the hook may be left.
    pub fn clear(&self) -> Removed {
        let nothing = BTreeSet::new();
        let opened = self.shared.iter().filter_map(|path| {
            let opened = Directory::open(path);
            Some((opened.ok()?, Suspects::new(self.since, &nothing)))
        });
        let shared: Vec<_> = opened.collect();
        let of_owner = Suspects::new(self.since, &self.busy);
        let places = || {
            let others = shared.iter().map(|(place, suspects)| (place, suspects));
            others.chain([(self.of_owner.as_ref(), &of_owner)])
        };
        let mut removed =
            remove_own(&self.own, self.since, self.before.as_ref()).unwrap_or_default();
        let mut elsewhere = Removed::default();
        for (place, suspects) in places() {
            elsewhere += suspects.measure(place).unwrap_or_default();
        }
        if elsewhere.bytes > removed.bytes / SHARED_PART
            || elsewhere.files > removed.files / SHARED_PART + SHARED_FILES
        {
            for (place, suspects) in places() {
                removed += suspects.remove(place).unwrap_or_default();
            }
        }
        removed
    }
}

/// Describes what was removed, for the result of the hook.
pub fn describe(removed: Removed) -> String {
    let files = |count: u64| match count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let said =
        format!("removed what it wrote: {} in {}", human_size(removed.bytes), files(removed.files));
    match removed.failed {
        0 => said,
        failed => format!("{said}; failed to remove {}", files(failed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    /// All files here are the worker's, so that only those of the hook's own directory count.
    #[test]
    fn page_keeps_what_was_there_and_loses_what_the_hook_wrote() {
        let top = tempfile::tempdir().unwrap();
        let page = crate::files::directory::make(&top.path().join("s1")).unwrap();
        for plugin in ["title", "fills"] {
            page.make(plugin, 0o770).unwrap();
            fs::write(page.path().join(plugin).join("before"), "x").unwrap();
        }
        let own = Arc::new(page.enter("fills").unwrap());
        let before = Listing::of(&own);
        // The clock of files is a tick behind.
        std::thread::sleep(Duration::from_millis(20));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        fs::write(page.path().join("title/meanwhile"), "x").unwrap();
        fs::write(own.path().join("full"), vec![1; 4 << 20]).unwrap();
        let reach = Reach {
            own: own.clone(),
            before: Some(before),
            since: Time(now.as_millis() as i64),
            of_owner: Arc::new(page),
            busy: BTreeSet::from(["fills".to_owned()]),
            shared: vec![top.path().join("missing")],
        };
        let removed = reach.clear();
        assert_eq!((removed.files, removed.failed), (1, 0));
        let left = |plugin: &str| {
            let mut names = reach.of_owner.enter(plugin).unwrap().names().unwrap();
            names.sort();
            names
        };
        assert_eq!(left("fills"), ["before"]);
        assert_eq!(left("title"), ["before", "meanwhile"]);
    }

    #[test]
    fn result_says_what_was_removed() {
        let removed = |files, bytes, failed| describe(Removed { files, bytes, failed });
        assert_eq!(removed(14, 57 << 30, 0), "removed what it wrote: 57.0G in 14 files");
        assert_eq!(
            removed(1, 1 << 20, 2),
            "removed what it wrote: 1.0M in 1 file; failed to remove 2 files"
        );
    }
}
