//! The highest ids that a database has handed out, which every archive remembers.

use super::{CrawlId, Owner, RunId, SnapshotId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The highest ids that were handed out; 0 if none was. The archive has empty files with these names in
/// [`IdMarks::DIRECTORY`], so that any database that is used with it later can be compared. Documents
/// have the names as an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<String>", from = "Vec<String>")]
pub struct IdMarks {
    pub crawl: CrawlId,
    pub snapshot: SnapshotId,
    /// Of runs. Each start of a unit has one, so that a database is known to be older than the archive
    /// even if it lacks no crawl and no snapshot.
    pub run: RunId,
}

impl Default for IdMarks {
    fn default() -> IdMarks {
        IdMarks { crawl: CrawlId(0), snapshot: SnapshotId(0), run: RunId(0) }
    }
}

impl IdMarks {
    pub const DIRECTORY: &str = ".ids";
    /// Higher numbers are not believed: with ids near the largest integer, no id would be left. A
    /// thousand pages a second reach it after 34 years.
    const MAX: i64 = 1 << 40;

    /// Returns the highest ids among these names of files and directories; other names are ignored.
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> IdMarks {
        let mut marks = IdMarks::default();
        for name in names {
            marks = marks.or_higher(IdMarks::of_name(name));
        }
        marks
    }

    /// Returns the id of a crawl or snapshot.
    pub fn of_owner(owner: Owner) -> IdMarks {
        let mut mark = IdMarks::default();
        match owner {
            Owner::Crawl(id) => mark.crawl = id,
            Owner::Snapshot(id) => mark.snapshot = id,
        }
        mark.believed()
    }

    fn of_name(name: &str) -> IdMarks {
        let of_run = |run| IdMarks { run, ..IdMarks::default() };
        Owner::from_str(name)
            .map_or_else(
                |_| RunId::from_str(name).map(of_run).unwrap_or_default(),
                IdMarks::of_owner,
            )
            .believed()
    }

    /// Returns these, or none if one is too high.
    fn believed(self) -> IdMarks {
        if self.highest() < IdMarks::MAX { self } else { IdMarks::default() }
    }

    fn highest(self) -> i64 {
        self.crawl.0.max(self.snapshot.0).max(self.run.0)
    }

    /// Returns the higher id of each kind.
    pub fn or_higher(self, other: IdMarks) -> IdMarks {
        IdMarks {
            crawl: self.crawl.max(other.crawl),
            snapshot: self.snapshot.max(other.snapshot),
            run: self.run.max(other.run),
        }
    }

    pub fn names(self) -> Vec<String> {
        [
            (self.crawl.0, self.crawl.to_string()),
            (self.snapshot.0, self.snapshot.to_string()),
            (self.run.0, self.run.to_string()),
        ]
        .into_iter()
        .filter(|(id, _)| *id > 0)
        .map(|(_, name)| name)
        .collect()
    }
}

impl From<IdMarks> for Vec<String> {
    fn from(marks: IdMarks) -> Vec<String> {
        marks.names()
    }
}

impl From<Vec<String>> for IdMarks {
    fn from(names: Vec<String>) -> IdMarks {
        IdMarks::of_names(names.iter().map(String::as_str))
    }
}

/// Such as `c12, s345, r678`.
impl fmt::Display for IdMarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names() {
            names if names.is_empty() => f.write_str("no id"),
            names => f.write_str(&names.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(crawl: i64, snapshot: i64, run: i64) -> IdMarks {
        IdMarks { crawl: CrawlId(crawl), snapshot: SnapshotId(snapshot), run: RunId(run) }
    }

    #[test]
    fn highest_id_of_each_kind_counts() {
        let found = IdMarks::of_names(["c3", "s12", "s9", "c4", "r100"]);
        assert_eq!(found, marks(4, 12, 100));
        assert_eq!(found.to_string(), "c4, s12, r100");
        let names = found.names();
        assert_eq!(IdMarks::of_names(names.iter().map(String::as_str)), found);
        assert_eq!(marks(5, 1, 0).or_higher(found), marks(5, 12, 100));
        for marks in [found, marks(1, 0, 1), IdMarks::default()] {
            let text = serde_json::to_string(&marks).unwrap();
            assert_eq!(serde_json::from_str::<IdMarks>(&text).unwrap(), marks);
        }
    }

    #[test]
    fn other_names_are_no_marks() {
        let names =
            ["c", "s-1", "s01", "x7", "c5", "s6.tmp", "s7-0a1b2c3d", "s9223372036854775807"];
        assert_eq!(IdMarks::of_names(names), marks(5, 0, 0));
        assert_eq!(IdMarks::default().to_string(), "no id");
    }
}
