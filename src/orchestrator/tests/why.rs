//! The reasons of `archivist why`, by the rules of the plan.

use super::bed::{Bed, DATABASE};
use crate::calls::requests::Request;
use crate::main_loop::rooms::Which;
use crate::query::orders::Query;
use archivist_core::model::{AnyId, CrawlId, IdMarks, Owner, SnapshotId};
use archivist_plugin::sample;
use archivist_shared::bus::documents::report::{AddOptions, Filter, Why, WhyRun};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

impl Bed {
    pub fn why(&mut self, id: &str) -> Vec<(String, String)> {
        let id: AnyId = id.parse().unwrap();
        let mut answer = self.call(Query::Why { id });
        let text = answer.try_recv().unwrap().unwrap();
        let reasons = match id {
            AnyId::Owner(id) => {
                let why: Why = serde_json::from_str(&text).unwrap();
                assert_eq!(why.id, id);
                why.reasons
            }
            AnyId::Run(id) => {
                let why: WhyRun = serde_json::from_str(&text).unwrap();
                assert_eq!(why.run, id);
                why.reasons
            }
        };
        let reasons = reasons.into_iter();
        reasons.map(|reason| (reason.code, reason.text)).collect()
    }

    pub fn codes(&mut self, id: &str) -> Vec<String> {
        self.why(id).into_iter().map(|(code, _)| code).collect()
    }
}

/// A crawl whose setup is done and whose first pages run.
fn ready(bed: &mut Bed) {
    bed.until_quiet();
    let setup = bed.running_hook().unwrap();
    bed.world.end(&setup, 1, 0, "success");
    bed.until_quiet();
}

#[test]
fn why_names_limits() {
    let mut bed = Bed::new();
    bed.add(4);
    assert_eq!(bed.codes("s1"), ["setup"]);
    bed.until_quiet();
    let why = bed.why("c1");
    assert_eq!(why[0].0, "running");
    assert!(why[0].1.contains("-hook-setup-"), "{why:?}");
    assert_eq!(why[1].1, "4 pages wait for the setup of the crawl");
    ready(&mut bed);
    assert_eq!(bed.codes("s1"), ["running"]);
    let why = bed.why("s3");
    let text = "waiting for a free slot: 2 of 2 pages of its crawl busy (SnapshotsPerCrawl=2)";
    assert_eq!(why, [("crawl-full".to_owned(), text.to_owned())]);
    bed.come_to_an_end();
    assert_eq!(bed.codes("s3"), ["done"]);
}

#[test]
fn missing_parts_of_a_page_come_before_anything_else() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.come_to_an_end();
    assert_eq!(bed.why("s1")[0].0, "done");
    let file = rusqlite::Connection::open(bed.directory.path().join(DATABASE)).unwrap();
    let lacks = r#"UPDATE result SET status = 'succeeded', error = 'no font', figures = '{"lacks": 1}'
        WHERE id = (SELECT min(id) FROM result WHERE snapshot_id = 1)"#;
    assert_eq!(file.execute(lacks, []).unwrap(), 1);
    let page = bed.why("s1");
    assert_eq!(page[0].0, "missing", "{page:?}");
    assert!(page[0].1.ends_with(": no font"), "{page:?}");
    let crawl = bed.why("c1");
    assert_eq!(crawl[0].0, "missing", "{crawl:?}");
    assert!([page, crawl].concat().iter().all(|(code, _)| code != "done"));
}

#[test]
fn a_crawl_whose_page_shows_an_error_is_not_done() {
    let mut bed = Bed::new();
    bed.add(2);
    bed.come_to_an_end();
    let file = rusqlite::Connection::open(bed.directory.path().join(DATABASE)).unwrap();
    let error = "UPDATE snapshot SET http_status = 404, unsaved = 'error' WHERE id = 1";
    assert_eq!(file.execute(error, []).unwrap(), 1);
    let text = "1 page shows an error of its server; to list them: archivist list snapshots c1 --http 400-599";
    assert_eq!(bed.why("c1"), [("errors".to_owned(), text.to_owned())]);
    assert_eq!(bed.why("s2")[0].0, "done");
}

#[test]
fn networks_explain_no_failure_of_a_page_that_was_answered() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.come_to_an_end();
    let file = rusqlite::Connection::open(bed.directory.path().join(DATABASE)).unwrap();
    let failed = "UPDATE result SET status = 'failed', error = 'curl failed: Operation timed out'
        WHERE id = (SELECT min(id) FROM result WHERE snapshot_id = 1)";
    assert_eq!(file.execute(failed, []).unwrap(), 1);
    for id in ["s1", "c1"] {
        assert!(bed.codes(id).contains(&"reach".to_owned()), "{id}");
    }
    file.execute("UPDATE snapshot SET http_status = 200, http_plugin = 'chromium'", []).unwrap();
    for id in ["s1", "c1"] {
        assert!(!bed.codes(id).contains(&"reach".to_owned()), "{id}");
    }
}

#[test]
fn page_without_hooks_says_so() {
    let mut bed = Bed::new();
    let options = AddOptions { plugins: vec!["setup".to_owned()], ..AddOptions::default() };
    bed.request(Request::Add {
        lines: Arc::new(b"http://a.example/\n".to_vec()),
        options,
        user: 0,
        joins: false,
        so_far: None,
    });
    bed.come_to_an_end();
    let why = bed.why("s1");
    assert_eq!(why[0].0, "done");
    assert!(why[0].1.contains("nothing was archived"), "{why:?}");
}

#[test]
fn full_disk_blocks_starts_until_space_is_free() {
    let mut bed = Bed::new();
    bed.fill_disk(true);
    bed.add(1);
    bed.until_quiet();
    assert!(bed.world.units.is_empty());
    let why = bed.why("c1");
    assert_eq!(why[0].0, "pressure");
    assert!(why[0].1.contains("MinFreeSpace="), "{why:?}");
    // Nothing is added: the orchestrator measures again after its interval.
    bed.fill_disk(false);
    bed.until_woken();
    bed.until_quiet();
    assert!(!bed.world.units.is_empty());
    bed.come_to_an_end();
}

#[test]
fn why_names_hosts() {
    let mut bed = Bed::with_pace(Duration::from_secs(60));
    bed.add(1);
    ready(&mut bed);
    bed.add(1);
    bed.until_quiet();
    let running = bed.world.running();
    let setup = running.iter().find(|unit| unit.contains("-hook-setup-"));
    bed.world.end(setup.unwrap(), 1, 0, "success");
    bed.until_quiet();
    let why = bed.why("s2");
    assert_eq!(why[0].0, "host-delay", "{why:?}");
    assert!(bed.why("c2").iter().any(|(_, text)| text.starts_with("0.example: ")));
    bed.come_to_an_end();
}

#[test]
fn why_names_actions_of_users_and_workers() {
    let mut bed = Bed::new();
    bed.add(2);
    ready(&mut bed);
    let id = Owner::Snapshot(SnapshotId(1));
    bed.request(Request::Pause { id });
    let why = bed.why("s1");
    let text = "paused by request; to continue: archivist resume s1";
    assert_eq!(why, [("paused".to_owned(), text.to_owned())]);
    bed.request(Request::Cancel { id });
    assert_eq!(bed.why("s1")[0].1, "cancelled by request");
    assert!(bed.codes("s1").contains(&"failed".to_owned()));

    // Its worker dies: the next attempt is named, and the quarantine after the last.
    let worker = "archivist-snapshot-2.service";
    for attempt in 1..=3 {
        bed.until_quiet();
        bed.world.end(worker, 2, 9, "signal");
        bed.until_quiet();
        let why = bed.why("s2");
        match attempt {
            3 => assert_eq!(why[0].0, "quarantined", "{why:?}"),
            n => {
                assert_eq!(why[0].0, "back-off", "{why:?}");
                assert!(why[0].1.contains(&format!("attempt {n} of 3")), "{why:?}");
                assert!(why[0].1.contains("next attempt after 19"), "{why:?}");
            }
        }
        bed.pass(7_200_000);
    }
    bed.come_to_an_end();
}

#[test]
fn why_explains_a_single_run() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.until_quiet();
    assert_eq!(bed.codes("r2"), ["running"]);
    let id = Owner::Crawl(CrawlId(1));
    bed.request(Request::Pause { id });
    assert_eq!(bed.codes("r2"), ["paused", "running"]);
    bed.request(Request::Resume { id });
    ready(&mut bed);
    let ended = bed.why("r2");
    assert_eq!(ended[0].0, "done", "{ended:?}");
    assert!(ended[0].1.contains("-hook-setup-"), "{ended:?}");

    let hook = bed.running_hook().unwrap();
    bed.world.end(&hook, 1, 8, "exit-code");
    bed.until_quiet();
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    let failed = runs.iter().find(|run| run.unit == hook).unwrap().id;
    let why = bed.why(&failed.to_string());
    assert_eq!((why[0].0.as_str(), why[1].0.as_str()), ("exit", "failed"), "{why:?}");
    assert!(why[0].1.ends_with(": exit code 8"), "{why:?}");
    assert!(why[1].1.ends_with(&format!("archivist logs {failed}")), "{why:?}");

    // The next run of the hook has the result.
    bed.come_to_an_end();
    let id = Some(Owner::Snapshot(SnapshotId(1)));
    assert_eq!(bed.retry_some(id, Which::Failed), Some(1));
    bed.come_to_an_end();
    assert_eq!(bed.codes(&failed.to_string()), ["exit", "later"]);
    assert_eq!(bed.codes("r1"), ["done", "worker"]);

    let id = "r999".parse().unwrap();
    let mut answer = bed.call(Query::Why { id });
    assert!(answer.try_recv().unwrap().is_err());
}

#[test]
fn hooks_that_were_skipped_for_the_same_reason_are_one_line() {
    let mut bed = Bed::new();
    let plugins = ["a", "b", "c"]
        .map(|name| sample::plugin(name, json!({}), &[&format!("on_Snapshot__50_{name}.py")]));
    let settings = bed.engine.settings.clone();
    bed.engine.replace(settings, sample::catalogue(plugins));
    bed.add(1);
    for code in [1, 10, 10] {
        bed.until_quiet();
        let hook = bed.running_hook().unwrap();
        bed.world.end(&hook, 1, code, "exit-code");
    }
    bed.come_to_an_end();
    let reason = "UPDATE result SET error = 'exit code 1' WHERE status = 'skipped'";
    let file = rusqlite::Connection::open(bed.directory.path().join(DATABASE)).unwrap();
    assert_eq!(file.execute(reason, []).unwrap(), 2);
    let why = bed.why("c1");
    let skipped: Vec<&str> =
        why.iter().filter(|(code, _)| code == "skipped").map(|(_, text)| text.as_str()).collect();
    assert_eq!(skipped, ["2 hooks of s1 skipped: b, c"], "{why:?}");
}

#[test]
fn page_whose_directory_was_removed_is_named() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.come_to_an_end();
    let is_named = |bed: &mut Bed| bed.why("s1").iter().any(|(code, _)| code == "removed");
    assert!(!is_named(&mut bed), "the archive cannot be read");
    let marks = bed.engine.archive().join(IdMarks::DIRECTORY);
    std::fs::create_dir_all(marks).unwrap();
    let why = bed.why("s1");
    let text = "was removed; to archive it again: archivist retry s1";
    assert!(why.iter().any(|(code, said)| code == "removed" && said.ends_with(text)), "{why:?}");
    let page = bed.look(|tx| tx.snapshot(SnapshotId(1))).unwrap();
    std::fs::create_dir_all(page.directory.unwrap()).unwrap();
    assert!(!is_named(&mut bed));
}
