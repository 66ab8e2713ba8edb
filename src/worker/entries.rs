//! The unit that writes the directories of entries of a list, which are kept without a visit: the identity,
//! `index.jsonl` and page of each, and their places in the lists of the archive, as a worker writes those of one page.
//! It may be killed at any time: the next one repeats it, and finds what is there.

use crate::WorkerError;
use crate::files::directory::failed;
use crate::files::identity;
use crate::files::write::sync_filesystem;
use crate::output::report;
use crate::page::pages;
use crate::page::snapshot_index::SnapshotIndex;
use crate::{mark_archive, note_ids};
use archivist_core::model::{Outcome, ResultState, Time, Verdict};
use archivist_shared::bus::documents::work::{DIRECTORY_TAKEN, Ended, EntriesToWrite, HookTask};
use std::io::Read;
use std::process::ExitCode;

/// Largest request in bytes: some hundred pages.
const REQUEST_MAX: u64 = 64 << 20;

/// Runs `archivist-orchestrator entries`. The exit status is 0 when everything is written and on disk.
pub fn main() -> ExitCode {
    archivist_shared::journal::init(None);
    match read_request().and_then(|request| write_all(&request)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            match error {
                WorkerError::Taken { .. } => ExitCode::from(DIRECTORY_TAKEN as u8),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn read_request() -> Result<EntriesToWrite, WorkerError> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(REQUEST_MAX).read_to_string(&mut text);
    read.map_err(|error| WorkerError::Assignment(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| WorkerError::Assignment(error.to_string()))
}

fn write_all(request: &EntriesToWrite) -> Result<(), WorkerError> {
    let Some(first) = request.pages.first() else {
        return Ok(());
    };
    mark_archive(first)?;
    note_ids(first);
    identity::open_crawl(first)?;
    let directories = identity::open_all(&request.pages)?;
    let (mut indexes, mut to_list) = (Vec::new(), Vec::new());
    for (assignment, own) in request.pages.iter().zip(&directories) {
        let index = SnapshotIndex::open(assignment, own)?;
        for task in &assignment.hooks {
            if !has_result(&index, task) {
                record(&index, task, &request.output)?;
            }
        }
        to_list.extend(pages::write_page(assignment, own, &index)?);
        indexes.push(index);
    }
    let lists = pages::list_all(&first.about.archive, &to_list, request.again)?;
    for (index, lists) in indexes.iter().zip(lists) {
        if index.known().listed != lists {
            index.listed(&lists)?;
        }
    }
    let own = directories.first();
    own.map_or(Ok(()), sync_filesystem).map_err(failed("sync", &first.about.archive))
}

/// Appends the result of the hook, which does not run.
fn record(index: &SnapshotIndex, task: &HookTask, output: &str) -> Result<(), WorkerError> {
    let verdict = Verdict { state: ResultState::NoResults, error: None };
    let report = report::not_started(&task.key, verdict, Some(output.to_owned()));
    let now: Time = jiff::Timestamp::now().into();
    let ended = Ended {
        started_at: Some(now),
        ended_at: Some(now),
        ..Ended::without_run(Outcome::Exit(0))
    };
    index.result(task, &report, &ended)
}

/// Whether an earlier unit has recorded the result.
fn has_result(index: &SnapshotIndex, task: &HookTask) -> bool {
    let known = index.known();
    let mut results = known.results.iter();
    results.any(|result| result.plugin == task.plugin && result.hook == task.hook)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::versions::{directory_of, list_of};
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};

    const INSTALLATION: &str = "0a0b0c0d0e0f00010203040506070809";

    /// Entries of two days of a crawl.
    fn request(archive: &Path, entries: usize) -> EntriesToWrite {
        let pages = (1..=entries).map(|n| {
            let day = if n % 2 == 0 { "20261121" } else { "20261122" };
            serde_json::from_value(serde_json::json!({
                "token": "", "bus_name": "", "user_scope": false, "owner": format!("s{n}"),
                "url": format!("http://{n}.test/"), "depth": 0, "max_depth": 0,
                "directory": archive.join(day).join(format!("{n}.test/s{n}")),
                "crawl_directory": archive.join("20261121/1.test/c1"),
                "identity": format!("{n:032}"), "crawl_identity": format!("{:032}", 1_000_000),
                "installation": INSTALLATION,
                "hooks": [HookTask::sonic("import", Default::default())], "last_hooks": [],
                "ready_limit": {"secs": 0, "nanos": 0}, "stop_limit": {"secs": 0, "nanos": 0},
                "output_limit": 0,
                "about": {"archive": archive, "crawl": "c1", "added_at": "2026-11-21T00:00:00Z",
                    "title": format!("Title {n}"), "tags": ["a"]},
            }))
            .unwrap()
        });
        EntriesToWrite { pages: pages.collect(), output: "an entry".to_owned(), again: false }
    }

    /// The snapshots in the chunks of each list, in their order.
    fn lists(archive: &Path) -> BTreeMap<String, Vec<i64>> {
        let mut lists = BTreeMap::new();
        for name in ["c1", "20261121", "20261122"] {
            let chunks = archive.join(".index").join(name);
            let paths = (1..).map(|page| chunks.join(format!("{page}.json")));
            let of_list: &mut Vec<i64> = lists.entry(name.to_owned()).or_default();
            for path in paths.take_while(|path| path.exists()) {
                let text = fs::read_to_string(path).unwrap();
                let entries: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
                let id = |entry: &serde_json::Value| entry["id"].as_str()?[1..].parse::<i64>().ok();
                of_list.extend(entries.iter().map(|entry| id(entry).unwrap()));
            }
        }
        lists
    }

    fn files(archive: &Path, request: &EntriesToWrite) -> Vec<(PathBuf, String)> {
        let names = [identity::NAME, "index.jsonl", "index.html"];
        let pages = request.pages.iter();
        let paths = pages.flat_map(|page| names.map(|name| page.directory.join(name)));
        paths
            .map(|path| {
                let text = fs::read_to_string(&path).unwrap();
                (path.strip_prefix(archive).unwrap().to_owned(), text)
            })
            .collect()
    }

    #[test]
    fn directories_and_lists_have_all_entries_once() {
        let top = tempfile::tempdir().unwrap();
        let mut request = request(top.path(), 230);
        write_all(&request).unwrap();
        let all: Vec<i64> = (1..=230).collect();
        let even = all.iter().copied().filter(|n| n % 2 == 0).collect();
        let odd = all.iter().copied().filter(|n| n % 2 == 1).collect();
        let expected: BTreeMap<String, Vec<i64>> =
            [("c1".to_owned(), all), ("20261121".to_owned(), even), ("20261122".to_owned(), odd)]
                .into();
        assert_eq!(lists(top.path()), expected);
        let written = files(top.path(), &request);
        assert!(written[2].1.contains("Title 1"), "{}", written[2].1);
        let results = |text: &str| text.matches("\"an entry\"").count();
        assert!(written[1].1.contains("\"noresults\"") && results(&written[1].1) == 1);
        let newest = fs::read_to_string(top.path().join("index.html")).unwrap();
        assert!(newest.contains("230 snapshots, the newest 100"), "{newest}");
        let crawl = top.path().join("20261121/1.test/c1");
        for name in ["index.html", "page-1.html", "page-2.html"] {
            assert!(crawl.join(name).exists(), "{name}");
        }

        // The unit is killed before it notes where the entries are, and before it names one of the directories.
        for page in &request.pages {
            let path = page.directory.join("index.jsonl");
            let text = fs::read_to_string(&path).unwrap();
            let kept = text.lines().filter(|line| !line.contains("\"Listed\""));
            fs::write(&path, kept.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        }
        let last = &request.pages[229];
        let new = last.directory.with_file_name(format!(".new-{:032}", 230));
        fs::rename(&last.directory, &new).unwrap();
        fs::remove_file(new.join("index.jsonl")).unwrap();
        fs::remove_file(new.join("index.html")).unwrap();
        request.again = true;
        write_all(&request).unwrap();
        assert_eq!(lists(top.path()), expected);
        let written = files(top.path(), &request);
        assert!(!new.exists());
        for (path, text) in written.iter().skip(1).step_by(3) {
            assert_eq!(results(text), 1, "{}", path.display());
        }
    }

    /// Entries with different URLs of one page, of which no other snapshot is known.
    #[test]
    fn entries_of_one_page_are_on_its_list() {
        let top = tempfile::tempdir().unwrap();
        let mut request = request(top.path(), 4);
        request.pages[0].url = "http://same.test/?utm_source=x".to_owned();
        request.pages[2].url = "https://www.same.test/".to_owned();
        for again in [false, true] {
            request.again = again;
            write_all(&request).unwrap();
            let list = top.path().join(directory_of(&list_of("http://same.test/")));
            let text = fs::read_to_string(list.join("index.html")).unwrap();
            let has = |id: &str| text.matches(&format!("id=\"{id}\"")).count();
            assert_eq!([has("s1"), has("s2"), has("s3")], [1, 0, 1], "{text}");
        }
    }

    #[test]
    fn directory_of_another_page_stays_as_it_is() {
        let top = tempfile::tempdir().unwrap();
        let request = request(top.path(), 3);
        let other = &request.pages[1].directory;
        fs::create_dir_all(other).unwrap();
        fs::write(other.join("index.html"), "another").unwrap();
        let error = write_all(&request).unwrap_err();
        assert!(matches!(error, WorkerError::Taken { .. }), "{error}");
        assert_eq!(fs::read_to_string(other.join("index.html")).unwrap(), "another");
        assert!(!other.join("index.jsonl").exists());
    }
}
