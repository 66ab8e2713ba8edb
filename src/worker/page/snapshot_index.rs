//! `index.jsonl` in the directory of a snapshot: what was done, one record a line, for people and
//! programs that have only the directory. A worker that continues a snapshot reads the results of
//! earlier attempts from it.

use crate::WorkerError;
use crate::files::write::open_to_append;
use archivist_core::model::{
    Figures, HttpAnswer, Owner, PAGE_TAGS_MAX, ResultState, TAG_MAX, Time, cut, without_userinfo,
};
use archivist_core::plan::{Treatment, VisitRules, shows_document};
use archivist_plugin::Directory;
use archivist_shared::bus::documents::record;
use archivist_shared::bus::documents::report::{File as OutputFile, HookResult};
use archivist_shared::bus::documents::work::{Assignment, Ended, HookTask, Report};
use serde::Deserialize;
use serde_json::json;
use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;

/// Bytes of the existing file that are read. Hooks can write to the file.
const READ_MAX_BYTES: u64 = 16 << 20;
/// Largest number of hooks whose results are read.
const HOOKS_MAX: usize = 1000;

#[derive(Clone, Debug, Default)]
pub struct IndexContent {
    pub title: Option<String>,
    pub tags: Vec<String>,
    visit: VisitRules,
    pub answer: Option<HttpAnswer>,
    /// Why the page could not be visited, if the machine is to blame.
    pub network_fault: Option<String>,
    pub results: Vec<HookResult>,
    /// For each list, the number of the list page that contains the snapshot.
    pub listed: BTreeMap<String, usize>,
}

pub struct SnapshotIndex {
    owner: Owner,
    path: PathBuf,
    file: RefCell<File>,
    known: RefCell<IndexContent>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum IndexLine {
    ArchiveResult(Box<ResultLine>),
    Listed {
        lists: BTreeMap<String, usize>,
    },
    /// The records that follow are of this visit.
    Visit {
        number: u32,
    },
    /// The machine does not reach the Internet: nothing of the visit is kept.
    NoNetwork {
        reason: String,
    },
    /// The server refused the visit: nothing of it is kept.
    Refused {
        #[serde(default)]
        is_whole: bool,
    },
    /// A retry lost a result: the results before it follow, and those since are forgotten.
    Restored {
        http_status: Option<u16>,
        http_plugin: Option<String>,
    },
    /// The document is an HTTP error, and the results that show it failed.
    Failed {
        reason: String,
    },
}

#[derive(Deserialize)]
struct ResultLine {
    plugin: String,
    hook_name: String,
    status: ResultState,
    output_str: Option<String>,
    error: Option<String>,
    start_ts: Option<Time>,
    end_ts: Option<Time>,
    #[serde(default)]
    output_size: u64,
    #[serde(default)]
    output_files: Vec<OutputFile>,
    #[serde(default)]
    figures: Figures,
    title: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    http_status: Option<u16>,
    http_plugin: Option<String>,
}

impl IndexContent {
    /// Adds a record. The newest record of a hook counts.
    fn take(&mut self, owner: Owner, line: IndexLine) {
        let line = match line {
            IndexLine::ArchiveResult(line) => *line,
            IndexLine::Listed { lists } => {
                self.listed = lists;
                return;
            }
            IndexLine::Visit { number } => {
                if number != self.visit.number {
                    self.answer = None;
                }
                self.visit.number = number;
                return;
            }
            IndexLine::NoNetwork { reason } => {
                self.network_fault = Some(reason);
                return;
            }
            IndexLine::Refused { is_whole } => {
                (self.answer, self.network_fault) = (None, None);
                if is_whole {
                    self.results.clear();
                    (self.title, self.tags) = (None, Vec::new());
                }
                return;
            }
            IndexLine::Restored { http_status, http_plugin } => {
                self.results.clear();
                self.answer = http_status
                    .map(|status| HttpAnswer { status, plugin: http_plugin.unwrap_or_default() });
                return;
            }
            IndexLine::Failed { reason } => return self.fail_document(&reason),
        };
        self.title = line.title.or(self.title.take());
        for tag in line.tags {
            let fits = self.tags.len() < PAGE_TAGS_MAX && tag.len() <= TAG_MAX;
            if fits && !self.tags.contains(&tag) {
                self.tags.push(tag);
            }
        }
        if let Some(status) = line.http_status {
            let plugin = line.http_plugin.unwrap_or_else(|| line.plugin.clone());
            let answer = HttpAnswer { status, plugin };
            self.answer = Some(self.visit.newer(self.answer.take(), answer));
        }
        let result = HookResult {
            id: None,
            owner,
            plugin: line.plugin,
            hook: line.hook_name,
            status: line.status,
            output: line.output_str,
            error: line.error,
            files: line.output_files,
            size: line.output_size,
            attempts: 1,
            started_at: line.start_ts,
            ended_at: line.end_ts,
            figures: line.figures.bounded(),
        };
        let is_full = self.results.len() >= HOOKS_MAX;
        let same =
            |known: &&mut HookResult| known.plugin == result.plugin && known.hook == result.hook;
        match self.results.iter_mut().find(same) {
            Some(known) => {
                let attempts = known.attempts + 1;
                *known = HookResult { attempts, ..result };
            }
            None if is_full => {}
            None => self.results.push(result),
        }
    }
}

impl IndexContent {
    fn fail_document(&mut self, reason: &str) {
        for result in &mut self.results {
            if result.status == ResultState::Succeeded && shows_document(&result.plugin) {
                result.status = ResultState::Failed;
                result.error = Some(cut(reason.to_owned()));
            }
        }
    }
}

impl SnapshotIndex {
    /// Opens the index in a directory, and appends a record about the crawl or snapshot and one for
    /// each skipped hook. Existing records stay; the newest record of a hook counts.
    pub fn open(assignment: &Assignment, own: &Directory) -> Result<SnapshotIndex, WorkerError> {
        const NAME: &str = "index.jsonl";
        let path = own.path().join(NAME);
        let file = open_to_append(own, NAME)?;
        let about = &assignment.about;
        // The number in the file is that of the visit before, if this one is new.
        let visit = VisitRules { number: 0, ..assignment.visit };
        let mut known = IndexContent {
            title: about.title.clone(),
            tags: about.tags.clone(),
            visit,
            ..IndexContent::default()
        };
        for line in BufReader::new((&file).take(READ_MAX_BYTES)).split(b'\n').map_while(Result::ok)
        {
            if let Ok(line) = serde_json::from_slice(&line) {
                known.take(assignment.owner, line);
            }
        }
        // The orchestrator knows titles and tags that the file may have lost.
        known.title = known.title.or_else(|| about.title.clone());
        for tag in &about.tags {
            if !known.tags.contains(tag) {
                known.tags.push(tag.clone());
            }
        }
        let index = SnapshotIndex {
            owner: assignment.owner,
            path,
            file: RefCell::new(file),
            known: RefCell::new(known),
        };
        let url = without_userinfo(&assignment.url);
        let mut first = record::owner(assignment.owner, &url, assignment.depth);
        first["crawl"] = json!(about.crawl);
        first["title"] = json!(about.title);
        first["tags"] = json!(about.tags);
        first["added_at"] = json!(about.added_at);
        index.line(&first)?;
        if matches!(assignment.owner, Owner::Snapshot(_)) {
            index.note(json!({ "type": "Visit", "number": assignment.visit.number }))?;
        }
        for skipped in &about.skipped {
            index.note(json!({
                "type": "ArchiveResult",
                "plugin": skipped.plugin,
                "hook_name": skipped.hook,
                "status": ResultState::Skipped,
                "error": skipped.why,
            }))?;
        }
        Ok(index)
    }

    pub fn result(
        &self,
        hook: &HookTask,
        report: &Report,
        ended: &Ended,
    ) -> Result<(), WorkerError> {
        let result = record::ArchiveResult {
            owner: self.owner,
            plugin: &hook.plugin,
            hook: &hook.hook,
            status: report.verdict.state,
            output: report.output.as_deref(),
            error: report.verdict.error.as_deref(),
            outcome: Some(&ended.outcome),
            started_at: ended.started_at,
            ended_at: ended.ended_at,
            size: report.size,
            files: &report.files,
            figures: &report.figures,
        };
        let mut record = result.record();
        record["title"] = json!(report.title);
        record["tags"] = json!(report.tags);
        if let Some(answer) = report.answer() {
            record["http_status"] = json!(answer.status);
            record["http_plugin"] = json!(answer.plugin);
        }
        self.note(record)
    }

    /// Appends a finished run of a hook, which may be followed by another run.
    pub fn process(&self, hook: &HookTask, ended: &Ended) -> Result<(), WorkerError> {
        let directory = self.path.parent().map(|page| page.join(&hook.plugin));
        let process = record::Process {
            run: ended.run,
            owner: self.owner,
            plugin: &hook.plugin,
            hook: &hook.hook,
            unit: ended.unit.as_deref(),
            argv: &ended.argv,
            parent: ended.parent,
            pwd: directory.as_deref(),
            limit: Some(hook.limit),
            outcome: &ended.outcome,
            started_at: ended.started_at,
            ended_at: ended.ended_at,
        };
        self.line(&process.record())
    }

    /// Appends the pages of the archive's lists that contain the snapshot.
    pub fn listed(&self, lists: &BTreeMap<String, usize>) -> Result<(), WorkerError> {
        self.note(json!({ "type": "Listed", "lists": lists }))
    }

    /// Appends that the machine does not reach the Internet, for this reason.
    pub fn lacks_network(&self, reason: &str) -> Result<(), WorkerError> {
        self.note(json!({ "type": "NoNetwork", "reason": reason }))
    }

    /// Appends that the server refused the visit, of which nothing is kept.
    pub fn refused(&self) -> Result<(), WorkerError> {
        let (status, is_whole) = {
            let known = self.known();
            let status = known.answer.as_ref().map(|answer| answer.status);
            (status, known.visit.is_whole)
        };
        self.note(json!({ "type": "Refused", "http_status": status, "is_whole": is_whole }))
    }

    /// Appends that the results before a retry stay, and these results.
    pub fn restored(
        &self,
        results: &[HookResult],
        answer: Option<&HttpAnswer>,
    ) -> Result<(), WorkerError> {
        self.note(json!({
            "type": "Restored",
            "http_status": answer.map(|answer| answer.status),
            "http_plugin": answer.map(|answer| &answer.plugin),
        }))?;
        for result in results {
            self.note(record::ArchiveResult::of(result, None).record())?;
        }
        Ok(())
    }

    /// Appends that the document is an HTTP error, so that the results that show it failed.
    pub fn failed(&self) -> Result<(), WorkerError> {
        let status = self.known().answer.as_ref().map(|answer| answer.status);
        let reason = format!("http {}", status.unwrap_or_default());
        self.note(json!({ "type": "Failed", "http_status": status, "reason": reason }))
    }

    pub fn treatment(&self) -> Treatment {
        let known = self.known();
        known.visit.treatment(known.answer.as_ref())
    }

    /// All that was read or appended.
    pub fn known(&self) -> Ref<'_, IndexContent> {
        self.known.borrow()
    }

    fn note(&self, record: serde_json::Value) -> Result<(), WorkerError> {
        self.line(&record)?;
        if let Ok(line) = serde_json::from_value(record) {
            self.known.borrow_mut().take(self.owner, line);
        }
        Ok(())
    }

    fn line(&self, record: &serde_json::Value) -> Result<(), WorkerError> {
        let line = format!("{record}\n");
        self.file.borrow_mut().write_all(line.as_bytes()).map_err(|source| WorkerError::File {
            verb: "write",
            path: self.path.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::SnapshotId;
    use proptest::prelude::*;

    proptest! {
        /// Hooks can write to the file: each hook has one result, and invalid lines are ignored.
        #[test]
        fn any_file_is_read(lines in prop::collection::vec(("[ab]", "[xy]", "succeeded|failed|nonsense", ".{0,20}"), 0..30), noise in ".{0,60}") {
            let mut known = IndexContent::default();
            let mut understood = 0;
            for (plugin, hook, status, title) in lines {
                let record = json!({"type": "ArchiveResult", "plugin": plugin, "hook_name": hook, "status": status, "title": title});
                let broken = format!("{{\"type\": \"Listed\", \"lists\": {noise}");
                for line in [record.to_string(), noise.clone(), broken] {
                    if let Ok(line) = serde_json::from_str(&line) {
                        known.take(Owner::Snapshot(SnapshotId(1)), line);
                        understood += 1;
                    }
                }
            }
            let mut keys: Vec<_> = known.results.iter().map(|r| (&r.plugin, &r.hook)).collect();
            keys.sort();
            keys.dedup();
            prop_assert_eq!(keys.len(), known.results.len());
            let attempts: u64 = known.results.iter().map(|r| u64::from(r.attempts)).sum();
            prop_assert_eq!(attempts, understood);
        }
    }

    /// Lines as a worker writes them.
    fn read(lines: &[serde_json::Value], rules: VisitRules) -> IndexContent {
        let mut known = IndexContent { visit: rules, ..IndexContent::default() };
        for line in lines {
            let line = serde_json::from_value(line.clone()).unwrap();
            known.take(Owner::Snapshot(SnapshotId(1)), line);
        }
        known
    }

    fn result(plugin: &str, status: u16) -> serde_json::Value {
        json!({"type": "ArchiveResult", "plugin": plugin, "hook_name": plugin, "status": "succeeded",
               "title": "SLOW DOWN", "tags": ["slow"], "http_status": status})
    }

    #[test]
    fn nothing_is_kept_of_a_refused_visit() {
        let refused =
            |is_whole| json!({"type": "Refused", "http_status": 429, "is_whole": is_whole});
        let visit = |number| json!({"type": "Visit", "number": number});
        let lines = |is_whole| {
            [visit(0), result("wget", 429), refused(is_whole), visit(1), result("title", 200)]
        };
        let whole = read(&lines(true), VisitRules::default());
        assert_eq!(whole.results.len(), 1);
        assert_eq!(whole.answer.unwrap().status, 200);
        let part = read(&lines(false), VisitRules::default());
        assert_eq!(part.results.len(), 2, "results of earlier visits stay");
        let only = read(&lines(true)[..3], VisitRules::default());
        assert_eq!((only.title, only.tags.len(), only.answer), (None, 0, None));
        // The answer of an earlier visit does not count.
        let next = read(&[result("chromium", 404), visit(1)], VisitRules::default());
        assert_eq!(next.answer, None);
    }

    #[test]
    fn results_that_show_an_error_fail() {
        let failed = json!({"type": "Failed", "http_status": 404, "reason": "http 404"});
        let lines = [result("wget", 404), result("headers", 404), failed];
        let known = read(&lines, VisitRules::default());
        let states = known.results.iter().map(|result| (result.status, result.error.as_deref()));
        assert_eq!(
            states.collect::<Vec<_>>(),
            [(ResultState::Failed, Some("http 404")), (ResultState::Succeeded, None)]
        );
    }

    /// The search for a hook or tag takes time proportional to their number, so the number is
    /// bounded.
    #[test]
    fn file_with_many_hooks_and_tags_is_read_quickly() {
        let mut known = IndexContent::default();
        let page = Owner::Snapshot(SnapshotId(1));
        for n in 0..200_000 {
            let hook = format!("h{n}");
            let tags = [format!("t{n}"), "x".repeat(TAG_MAX + 1)];
            let record = json!({"type": "ArchiveResult", "plugin": "p", "hook_name": hook, "status": "failed", "tags": tags});
            known.take(page, serde_json::from_value(record).unwrap());
        }
        assert_eq!((known.results.len(), known.tags.len()), (HOOKS_MAX, PAGE_TAGS_MAX));
    }
}
