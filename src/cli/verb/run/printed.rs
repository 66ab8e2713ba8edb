//! Records on standard output: each page when it starts, each process and result when it has ended,
//! once.

use crate::client::exit::Failure;
use crate::display::style;
use archivist_core::model::{Lifecycle, Outcome, Owner, RunId, SnapshotId, Time};
use archivist_shared::bus::documents::record;
use archivist_shared::bus::documents::report::{HookResult, Run, Snapshot};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

#[derive(Debug)]
pub struct Printed {
    /// Results that ended before the command started are not printed.
    since: Time,
    pages: BTreeSet<SnapshotId>,
    runs: BTreeSet<RunId>,
    results: BTreeSet<(Owner, String, String, Option<Time>)>,
}

impl Printed {
    pub fn new(since: Time) -> Printed {
        Printed { since, pages: BTreeSet::new(), runs: BTreeSet::new(), results: BTreeSet::new() }
    }

    /// Returns the record of a page that started, or that ended without a start.
    pub fn page(&mut self, snapshot: &Snapshot) -> Option<Value> {
        let message = snapshot.status == Lifecycle::Started || snapshot.status.is_final();
        if !message || !self.pages.insert(snapshot.id) {
            return None;
        }
        let owner = Owner::Snapshot(snapshot.id);
        let mut record = record::owner(owner, &snapshot.url, snapshot.depth);
        record["crawl_id"] = snapshot.crawl.to_string().into();
        if let Some(title) = &snapshot.title {
            record["title"] = title.as_str().into();
        }
        record["tags"] = snapshot.tags.clone().into();
        Some(record)
    }

    /// Returns the records of a final result, after those of its runs.
    pub fn result(&mut self, result: &HookResult, runs: &[Run]) -> Vec<Value> {
        let mut records = Vec::new();
        let before = |time: Option<Time>| time.is_some_and(|time| time.0 < self.since.0);
        if !result.status.is_final() || before(result.ended_at) {
            return records;
        }
        let key = (result.owner, result.plugin.clone(), result.hook.clone(), result.ended_at);
        if !self.results.insert(key) {
            return records;
        }
        let of_hook = |run: &&Run| {
            run.owner == result.owner
                && run.plugin.as_ref() == Some(&result.plugin)
                && run.hook.as_ref() == Some(&result.hook)
        };
        let mut runs: Vec<&Run> = runs.iter().filter(of_hook).collect();
        runs.sort_by_key(|run| run.id);
        let mut last = None;
        for run in runs {
            let Some(outcome) = run.outcome.as_ref().filter(|_| run.status == "ended") else {
                continue;
            };
            if run.ended_at.is_some_and(|time| time.0 < self.since.0) {
                continue;
            }
            last = Some(outcome);
            if self.runs.insert(run.id) {
                records.push(process(run, outcome, result));
            }
        }
        records.push(record::ArchiveResult::of(result, last).record());
        records
    }
}

fn process(run: &Run, outcome: &Outcome, result: &HookResult) -> Value {
    let process = record::Process {
        run: Some(run.id),
        owner: run.owner,
        plugin: &result.plugin,
        hook: &result.hook,
        unit: Some(&run.unit),
        argv: &run.argv,
        parent: run.parent,
        pwd: run.directory.as_deref().map(Path::new),
        limit: run.limit.map(Duration::from_secs),
        outcome,
        started_at: run.started_at,
        ended_at: run.ended_at,
    };
    process.record()
}

/// Prints one record per line.
pub fn print(record: &Value) -> Result<(), Failure> {
    style::print_document(&format!("{record}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, NOW};

    #[test]
    fn each_record_is_printed_once_and_none_from_before() {
        let mut records = Printed::new(Time(NOW.0 - 70_000));
        let page = records.page(&sample::snapshot(3)).unwrap();
        assert_eq!((&page["type"], &page["id"]), (&"Snapshot".into(), &"s3".into()));
        assert_eq!(records.page(&sample::snapshot(3)), None);

        let result = sample::result(3, "wget", "wget");
        let runs = [sample::run(8, "wget", "wget"), sample::run(7, "wget", "wget")];
        let message = records.result(&result, &runs);
        let kinds: Vec<_> = message.iter().map(|r| (&r["type"], &r["id"])).collect();
        assert_eq!(kinds[0], (&"Process".into(), &"r7".into()));
        assert_eq!(kinds[1], (&"Process".into(), &"r8".into()));
        let id: Value = "s3/wget/wget".into();
        assert_eq!(kinds[2], (&"ArchiveResult".into(), &id));
        assert!(records.result(&result, &runs).is_empty());

        assert!(Printed::new(NOW).result(&result, &runs).is_empty());
    }
}
