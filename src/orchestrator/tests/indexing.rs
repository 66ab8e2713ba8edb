//! The queue of full text search, and the unit that works it off.

use super::bed::{Bed, DATABASE};
use crate::calls::tag::{ChangeTags, RenameTag};
use crate::database::UnitRow;
use crate::database::backup::DatabaseCopy;
use crate::indexing::Rebuild;
use crate::search::Ask;
use crate::search::files::answer_path;
use archivist_core::model::search::{REBUILD, SearchChange, SearchQuestion, SearchWork};
use archivist_core::model::{CrawlId, Owner, SnapshotId};
use archivist_core::unit::UnitKind;
use rusqlite::Connection;
use rusqlite::backup::Backup;
use std::time::Duration;

const UNIT: &str = "archivist-index-pages.service";

/// Lets everything end but the unit of the index.
fn until_archived(bed: &mut Bed) {
    loop {
        bed.until_quiet();
        let Some(hook) = bed.running_hook() else {
            return;
        };
        bed.world.end(&hook, 1, 0, "success");
    }
}

/// A machine with an index, which is complete, and a sealed crawl of so many pages.
fn archived(pages: usize) -> Bed {
    let mut bed = Bed::new();
    std::fs::create_dir_all(bed.engine.indexes()).unwrap();
    bed.pass(1);
    bed.until_quiet();
    assert!(work(&bed).build.is_some_and(|it| it.is_first && it.is_last));
    finish(&mut bed, 0);
    bed.add(pages);
    until_archived(&mut bed);
    bed
}

fn work(bed: &Bed) -> SearchWork {
    let unit = &bed.world.units[UNIT];
    serde_json::from_slice(unit.stdin.as_ref().unwrap()).unwrap()
}

/// The changes of the running unit, such as `+1 -2`.
fn changes(bed: &Bed) -> String {
    let shown = work(bed).changes.into_iter().map(|change| match change {
        SearchChange::Put(entry) => format!("+{}", entry.id.0),
        SearchChange::Delete(id) => format!("-{}", id.0),
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn finish(bed: &mut Bed, status: i32) {
    let result = if status == 0 { "success" } else { "exit-code" };
    bed.world.end(UNIT, 1, status, result);
    bed.until_quiet();
    bed.pass(1_000);
    bed.until_quiet();
}

fn is_idle(bed: &mut Bed) -> bool {
    !bed.world.units.contains_key(UNIT) && !bed.look(|tx| tx.has_search_work())
}

/// Ends units of the index until there is none, and returns all of their changes.
fn all_changes(bed: &mut Bed) -> Vec<String> {
    let mut all = Vec::new();
    while bed.world.units.contains_key(UNIT) {
        all.extend(changes(bed).split_whitespace().map(str::to_owned));
        finish(bed, 0);
    }
    assert!(is_idle(bed));
    all
}

#[test]
fn sealed_pages_are_indexed_once() {
    let mut bed = archived(3);
    let mut all = all_changes(&mut bed);
    all.sort();
    all.dedup();
    assert_eq!(all, ["+1", "+2", "+3"]);
}

#[test]
fn pages_that_end_within_a_second_share_a_unit() {
    let mut bed = archived(4);
    assert_eq!(changes(&bed), "+1");
    bed.world.end(UNIT, 1, 0, "success");
    bed.until_quiet();
    assert!(!bed.world.units.contains_key(UNIT) && bed.look(|tx| tx.has_search_work()));
    bed.pass(999);
    bed.until_quiet();
    assert!(!bed.world.units.contains_key(UNIT));
    bed.pass(1);
    bed.until_quiet();
    assert_eq!(changes(&bed), "+2 +3 +4");
}

#[test]
fn deleted_and_tagged_pages_are_changed() {
    let mut bed = archived(2);
    all_changes(&mut bed);
    let tx = bed.database.begin().unwrap();
    tx.tag_snapshot(SnapshotId(2), "later").unwrap();
    tx.commit().unwrap();
    bed.pass(1);
    bed.until_quiet();
    assert_eq!(changes(&bed), "+2");
    let entry = work(&bed).changes.pop();
    assert!(matches!(entry, Some(SearchChange::Put(entry)) if entry.tags == ["later"]));
    // The page changes again while the unit works on it.
    bed.delete_these(&["s2".parse().unwrap()], false);
    bed.until_quiet();
    finish(&mut bed, 0);
    assert_eq!(changes(&bed), "-2");
    assert_eq!(all_changes(&mut bed), ["-2"]);
}

#[test]
fn pages_of_a_crawl_with_other_tags_are_changed() {
    let mut bed = archived(2);
    all_changes(&mut bed);
    let mut tags_after = |order: ChangeTags| {
        bed.request(order);
        bed.pass(1);
        bed.until_quiet();
        let entries = work(&bed).changes.into_iter().map(|change| match change {
            SearchChange::Put(entry) => format!("{} {:?}", entry.id, entry.tags),
            SearchChange::Delete(id) => format!("-{id}"),
        });
        let entries = entries.collect::<Vec<_>>();
        finish(&mut bed, 0);
        entries
    };
    let change = |add: &[&str], remove: &[&str]| {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let id = Owner::Crawl(CrawlId(1));
        ChangeTags { id, add: words(add), remove: words(remove), user: 0 }
    };
    assert_eq!(tags_after(change(&["a", "b"], &[])), [r#"s1 ["a", "b"]"#, r#"s2 ["a", "b"]"#]);
    assert_eq!(tags_after(change(&["c"], &["a"])), [r#"s1 ["b", "c"]"#, r#"s2 ["b", "c"]"#]);
    bed.request(RenameTag { old: "b".to_owned(), new: "z".to_owned(), user: 0 });
    bed.pass(1);
    bed.until_quiet();
    assert_eq!(changes(&bed), "+1 +2");
}

#[test]
fn killed_unit_loses_nothing() {
    let mut bed = archived(1);
    let before = changes(&bed);
    bed.world.end(UNIT, 2, 9, "signal");
    bed.until_quiet();
    assert!(!is_idle(&mut bed));
    bed.pass(3_600_000);
    bed.until_quiet();
    assert_eq!(changes(&bed), before);
    assert!(work(&bed).build.is_none());
    finish(&mut bed, 0);
    assert!(is_idle(&mut bed) || changes(&bed) != before);
}

/// A backup is made while a unit changes the index, and its database is put into place later.
#[test]
fn restored_database_builds_the_index_again() {
    let mut bed = archived(2);
    assert_eq!(changes(&bed), "+1");
    let database = bed.directory.path().join(DATABASE);
    let copy = bed.directory.path().join("copy.sqlite3");
    DatabaseCopy::make(&database, &copy).unwrap();
    finish(&mut bed, 0);
    all_changes(&mut bed);
    let (from, mut to) = (Connection::open(copy).unwrap(), Connection::open(database).unwrap());
    let put = Backup::new(&from, &mut to).unwrap();
    put.run_to_completion(i32::MAX, Duration::ZERO, None).unwrap();
    drop(put);
    drop(to);
    bed.restart(0);
    bed.until_quiet();
    bed.pass(1_000);
    bed.until_quiet();
    assert!(work(&bed).build.is_some_and(|it| it.is_first && it.is_last));
    assert_eq!(changes(&bed), "+1 +2");
    finish(&mut bed, 0);
    assert!(is_idle(&mut bed));
}

/// Exit status 75: the index is missing, damaged or of another version.
#[test]
fn unusable_index_is_built_again() {
    let mut bed = archived(2);
    all_changes(&mut bed);
    bed.delete_these(&["s1".parse().unwrap()], false);
    bed.until_quiet();
    finish(&mut bed, 75);
    let build = work(&bed).build.unwrap();
    assert_eq!((build.number, build.is_first, build.is_last), (2, true, true));
    assert_eq!(all_changes(&mut bed), ["+2"]);
}

#[test]
fn user_has_the_index_built_again() {
    let mut bed = archived(1);
    all_changes(&mut bed);
    bed.request(Rebuild { user: 0 });
    bed.until_quiet();
    // Another request while the unit runs does not begin again.
    bed.request(Rebuild { user: 0 });
    bed.until_quiet();
    assert_eq!(work(&bed).build.unwrap().number, 2);
    assert_eq!(all_changes(&mut bed), ["+1"]);
}

#[test]
fn retried_page_is_indexed_when_it_ends() {
    let mut bed = archived(1);
    all_changes(&mut bed);
    let tx = bed.database.begin().unwrap();
    tx.tag_crawl(CrawlId(1), "of-crawl").unwrap();
    tx.commit().unwrap();
    bed.request(Rebuild { user: 0 });
    bed.until_quiet();
    let SearchChange::Put(entry) = work(&bed).changes.remove(0) else {
        panic!("nothing is deleted");
    };
    assert_eq!(entry.tags, ["of-crawl"]);
}

#[test]
fn nothing_starts_without_a_directory() {
    let mut bed = Bed::new();
    bed.add(1);
    until_archived(&mut bed);
    assert!(!bed.world.units.contains_key(UNIT));
}

/// Asks the index. Returns the unit, and the answer once there is one.
fn ask(bed: &mut Bed, words: &str) -> (String, super::requests::Pending) {
    let question =
        SearchQuestion { words: words.to_owned(), limit: 0, ..SearchQuestion::default() };
    let answer = bed.call(Ask { question });
    bed.until_quiet();
    let units = bed.world.units.keys().rev();
    let mut units = units.filter(|unit| unit.starts_with("archivist-search-"));
    (units.next().cloned().unwrap_or_default(), answer)
}

#[test]
fn users_of_the_bus_are_answered_by_a_unit() {
    let mut bed = archived(1);
    let (unit, mut answer) = ask(&mut bed, "chain");
    let question = bed.world.units[&unit].stdin.clone().unwrap();
    let question: SearchQuestion = serde_json::from_slice(&question).unwrap();
    assert_eq!((question.words.as_str(), question.limit), ("chain", 1));
    let run = bed.look(|tx| tx.open_unit(&unit)).unwrap().id;
    let path = answer_path(&bed.engine.scope, run);
    std::fs::write(&path, "{\"hits\":[]}\n").unwrap();
    bed.world.end(&unit, 1, 0, "success");
    bed.until_quiet();
    assert_eq!(answer.try_recv().unwrap().unwrap(), "{\"hits\":[]}");
    assert!(!path.exists() && !bed.world.units.contains_key(&unit));
}

#[test]
fn pages_that_were_deleted_are_left_out_before_the_index_changes() {
    let mut bed = archived(2);
    all_changes(&mut bed);
    bed.delete_these(&["s2".parse().unwrap()], false);
    bed.until_quiet();
    assert_eq!(changes(&bed), "-2", "a unit takes it out, and has not ended");
    let (unit, _answer) = ask(&mut bed, "chain");
    let question = bed.world.units[&unit].stdin.clone().unwrap();
    let question: SearchQuestion = serde_json::from_slice(&question).unwrap();
    assert_eq!(question.without, [SnapshotId(2)]);
}

#[test]
fn search_that_fails_says_why() {
    let mut bed = archived(1);
    all_changes(&mut bed);
    for (status, why) in [(1, "journalctl"), (i32::from(REBUILD), "is built again")] {
        let (unit, mut answer) = ask(&mut bed, "chain");
        bed.world.end(&unit, 1, status, "exit-code");
        bed.until_quiet();
        let refusal = answer.try_recv().unwrap().unwrap_err();
        assert!(refusal.to_string().contains(why), "{refusal}");
    }
    bed.pass(1_000);
    bed.until_quiet();
    assert!(work(&bed).build.is_some());
}

#[test]
fn searches_at_one_time_are_few() {
    let mut bed = archived(1);
    let mut waiting: Vec<_> = (0..8).map(|_| ask(&mut bed, "chain")).collect();
    let (_, mut ninth) = ask(&mut bed, "chain");
    let refusal = ninth.try_recv().unwrap().unwrap_err();
    assert!(refusal.to_string().contains("8 searches"), "{refusal}");
    // It was the only one when its unit was looked up.
    let (unit, mut answer) = waiting.swap_remove(0);
    bed.world.end(&unit, 2, 9, "signal");
    bed.until_quiet();
    assert!(answer.try_recv().unwrap().is_err());
    let (_, mut tenth) = ask(&mut bed, "chain");
    assert!(tenth.try_recv().is_err(), "it is not answered yet");
}

/// The caller is gone with the connection of the orchestrator; the unit ends, and leaves nothing.
#[test]
fn killed_orchestrator_forgets_searches() {
    for heard in 0..4 {
        let mut bed = archived(1);
        let (_, _answer) = ask(&mut bed, "chain");
        bed.restart(heard);
        bed.until_quiet();
        let unit = bed.world.units.keys().find(|unit| unit.contains("-search-"));
        if let Some(unit) = unit.cloned() {
            bed.world.end(&unit, 1, 0, "success");
            bed.until_quiet();
        }
        let is_open = |row: &UnitRow| row.kind == UnitKind::Search;
        assert!(!bed.look(|tx| tx.open_units()).iter().any(is_open));
    }
}
