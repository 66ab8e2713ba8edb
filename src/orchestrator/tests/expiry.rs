//! `Retention=`: which pages it deletes, and when.

use super::bed::{Bed, DATABASE};
use crate::calls::requests::Request;
use crate::calls::tag::ChangeTags;
use crate::database::Durability;
use crate::expiry::RetentionCall;
use crate::house::House;
use crate::main_loop::event::Event;
use crate::main_loop::transaction::{self, Moment};
use crate::query::orders::Query;
use archivist_core::model::{CrawlId, IdMarks, Owner, SnapshotId, Time};
use archivist_core::plan::RetentionRule;
use archivist_core::store::{Copy, CopyStatus};
use archivist_plugin::files::remove::remove_tree;
use archivist_shared::bus::documents::report::{AddOptions, Added, Details, Expired, Filter, Why};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Crawls of the same pages that have ended, a day apart.
pub fn archived(crawls: usize, pages: usize) -> Bed {
    let mut bed = Bed::new();
    bed.now = Time(20_000 * 24 * 3_600_000);
    for _ in 0..crawls {
        add(&mut bed, pages);
        bed.now = bed.now.after(DAY);
    }
    bed
}

pub fn add(bed: &mut Bed, pages: usize) {
    bed.add(pages);
    until_over(bed);
}

fn until_over(bed: &mut Bed) {
    until_over_with(bed, true);
}

/// Archives pages whose hooks succeed or fail.
fn until_over_with(bed: &mut Bed, succeeds: bool) {
    loop {
        bed.until_quiet();
        let Some(unit) = bed.running_hook() else {
            return;
        };
        if succeeds || !unit.contains("snapshot") && !unit.contains("-s") {
            bed.world.end(&unit, 1, 0, "success");
        } else {
            bed.world.end(&unit, 1, 1, "exit-code");
        }
    }
}

/// Archives a version of a page, and returns its id.
pub fn add_version(bed: &mut Bed, is_good: bool) -> i64 {
    bed.add(1);
    until_over_with(bed, is_good);
    let id = *pages(bed).last().unwrap();
    let page = bed.look(|tx| tx.list_snapshots(&Filter::default())).remove(0);
    assert_eq!((page.id.0, page.is_saved()), (id, is_good), "{page:?}");
    id
}

fn directory(bed: &mut Bed, id: i64) -> String {
    let filter = Filter::of(Owner::Snapshot(SnapshotId(id)));
    bed.look(|tx| tx.list_snapshots(&filter)).remove(0).directory.unwrap()
}

/// Makes the directories of pages, which no worker of the bed does, and the marks of an archive.
pub fn make_files(bed: &mut Bed, ids: &[i64]) {
    std::fs::create_dir_all(bed.engine.archive().join(IdMarks::DIRECTORY)).unwrap();
    for id in ids {
        let directory = PathBuf::from(directory(bed, *id));
        for result in bed.look(|tx| tx.results(Owner::Snapshot(SnapshotId(*id)))) {
            std::fs::create_dir_all(directory.join(result.plugin)).unwrap();
        }
    }
}

/// A user removes the directory of a page by hand.
pub fn remove_files(bed: &mut Bed, id: i64) {
    remove_tree(&PathBuf::from(directory(bed, id))).unwrap();
}

fn set(bed: &mut Bed, rules: &[&str]) {
    let read = rules.iter().map(|text| RetentionRule::parse(text).unwrap());
    bed.engine.settings.retention = read.collect();
    expire(bed);
    confirm(bed);
}

/// An administrator lets the rules delete what is due.
pub fn confirm(bed: &mut Bed) {
    let answer = bed.request(RetentionCall::Confirm { user: 0 });
    assert_eq!(answer, Some(Ok(String::new())));
    expire(bed);
}

/// The orchestrator works until nothing is due.
pub fn expire(bed: &mut Bed) {
    bed.turn(vec![Event::Due]);
    while bed.performer.wake_at.is_some_and(|time| time <= bed.now) {
        bed.performer.wake_at = None;
        bed.turn(vec![Event::Due]);
    }
    bed.until_quiet();
}

pub fn pages(bed: &mut Bed) -> Vec<i64> {
    let rows = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    rows.iter().rev().map(|page| page.id.0).collect()
}

fn next(bed: &mut Bed) -> Option<Time> {
    bed.look(|tx| tx.next_expiry())
}

/// What `archivist why` says about the rules.
fn why(bed: &mut Bed, id: i64) -> String {
    let id = SnapshotId(id).to_string().parse().unwrap();
    let why: Why = bed.document(Query::Why { id });
    let codes = ["retention", "pinned"];
    let reason = why.reasons.into_iter();
    let mut reason = reason.filter(|reason| codes.contains(&reason.code.as_str()));
    reason.next().map(|reason| reason.text).unwrap_or_default()
}

pub fn pin(bed: &mut Bed, id: &str, pinned: bool) {
    let id = id.parse().unwrap();
    let dry_run = false;
    let answer = bed.request(Request::Pin { id, pinned, dry_run, user: 0 });
    assert_eq!(answer.unwrap().unwrap(), "1");
    expire(bed);
}

#[test]
fn age_deletes_older_versions_when_they_are_due() {
    let mut bed = archived(3, 2);
    set(&mut bed, &["age=36h"]);
    assert_eq!(pages(&mut bed), [5, 6], "the newest versions stay");
    assert_eq!(next(&mut bed), None, "and nothing is due until there is a newer one");
    assert_eq!(why(&mut bed, 5), "");
    add(&mut bed, 2);
    expire(&mut bed);
    assert_eq!(pages(&mut bed), [5, 6, 7, 8]);
    let due = next(&mut bed).unwrap();
    assert_eq!(why(&mut bed, 5), format!("Retention=age=36h deletes it after {due}"));
    assert_eq!(why(&mut bed, 7), "");
    bed.turn(vec![Event::Due]);
    assert_eq!(bed.performer.wake_at, Some(due), "no turn before that");
    bed.until_woken();
    expire(&mut bed);
    assert_eq!(pages(&mut bed), [7, 8]);
}

#[test]
fn newest_version_goes_if_the_rule_says_so() {
    let mut bed = archived(2, 1);
    set(&mut bed, &["age=36h newest=no"]);
    assert_eq!(pages(&mut bed), [2]);
    bed.until_woken();
    expire(&mut bed);
    assert_eq!(pages(&mut bed), [0; 0]);
    assert_eq!(bed.look(|tx| tx.list_crawls(&Filter::default())).len(), 0);
}

#[test]
fn versions_beyond_the_number_go() {
    let mut bed = archived(4, 1);
    set(&mut bed, &["versions=2"]);
    assert_eq!(pages(&mut bed), [3, 4]);
    add(&mut bed, 1);
    expire(&mut bed);
    assert_eq!(pages(&mut bed), [4, 5]);
}

/// A newer version whose directory is gone replaces no page, whatever its row says.
#[test]
fn versions_without_files_replace_none() {
    for (rule, gone, left) in [
        ("versions=1", &[3][..], &[2][..]),
        ("versions=1", &[2, 3], &[1]),
        ("versions=2", &[3], &[1, 2]),
        ("age=1h", &[3], &[2]),
        ("age=1h", &[2, 3], &[1]),
        ("age=1h newest=no", &[3], &[]),
    ] {
        let mut bed = archived(3, 1);
        make_files(&mut bed, &[1, 2, 3]);
        gone.iter().for_each(|id| remove_files(&mut bed, *id));
        set(&mut bed, &[rule]);
        let rows = bed.look(|tx| tx.list_snapshots(&Filter::default()));
        let saved = rows.iter().rev().filter(|page| page.is_saved()).map(|page| page.id.0);
        assert_eq!(saved.collect::<Vec<_>>(), left, "{rule} without {gone:?}");
    }
    // An archive whose file system is not mounted has lost nothing.
    let mut bed = archived(2, 1);
    set(&mut bed, &["versions=1"]);
    assert_eq!(pages(&mut bed), [2]);
    assert!(bed.look(|tx| tx.list_snapshots(&Filter::default()))[0].is_saved());
}

/// What deletes, leaves out and opens pages asks for the same.
#[test]
fn page_without_files_is_archived_again() {
    let mut bed = archived(2, 1);
    make_files(&mut bed, &[1, 2]);
    let url = bed.look(|tx| tx.list_snapshots(&Filter::default())).remove(0).url;
    let known = |bed: &mut Bed| {
        let options = AddOptions { only_new: true, ..AddOptions::default() };
        let answer = bed.request(Request::Add {
            lines: Arc::new(url.clone().into_bytes()),
            options,
            user: 0,
            joins: false,
            so_far: None,
        });
        serde_json::from_str::<Added>(&answer.unwrap().unwrap()).unwrap().known
    };
    let is_saved = |bed: &mut Bed, id| {
        let id = Owner::Snapshot(SnapshotId(id));
        let answer = bed.request(Query::Show { id });
        match serde_json::from_str(&answer.unwrap().unwrap()).unwrap() {
            Details::Snapshot { snapshot, .. } => snapshot.is_saved(),
            _ => panic!("no page"),
        }
    };
    remove_files(&mut bed, 2);
    assert_eq!(known(&mut bed), 1, "the older version");
    assert!(is_saved(&mut bed, 1) && !is_saved(&mut bed, 2));
    remove_files(&mut bed, 1);
    assert!(!is_saved(&mut bed, 1));
    assert_eq!(known(&mut bed), 0);
}

#[test]
fn pinned_pages_stay_until_they_are_unpinned() {
    let mut bed = archived(4, 1);
    pin(&mut bed, "s1", true);
    pin(&mut bed, "c2", true);
    set(&mut bed, &["age=1d"]);
    assert_eq!(pages(&mut bed), [1, 2, 4]);
    let text = "it is pinned, otherwise Retention=age=1d would delete it";
    assert_eq!(why(&mut bed, 1), text);
    pin(&mut bed, "s1", false);
    assert_eq!(pages(&mut bed), [2, 4]);
    pin(&mut bed, "c2", false);
    assert_eq!(pages(&mut bed), [4]);
}

#[test]
fn pages_of_an_open_crawl_stay_until_its_end() {
    let mut bed = archived(1, 2);
    set(&mut bed, &["age=1us newest=no", "tag:kept forever"]);
    assert_eq!(pages(&mut bed), [0; 0]);
    bed.add(2);
    bed.until_quiet();
    let hook = bed.running_hook().unwrap();
    bed.world.end(&hook, 1, 0, "success");
    bed.until_quiet();
    while !bed.look(|tx| tx.counts("snapshot", None)).contains_key("sealed") {
        let hook = bed.running_hook().unwrap();
        bed.world.end(&hook, 1, 0, "success");
        bed.until_quiet();
    }
    let sealed = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    let sealed = sealed.iter().find(|page| page.status.is_final()).unwrap().id.0;
    bed.now = bed.now.after(DAY);
    expire(&mut bed);
    assert_eq!(pages(&mut bed).len(), 2);
    let text = why(&mut bed, sealed);
    assert_eq!(text, "Retention=age=1us newest=no deletes it after the end of c2");
    until_over(&mut bed);
    bed.now = bed.now.after(DAY);
    expire(&mut bed);
    assert_eq!(pages(&mut bed), [0; 0]);
}

#[test]
fn page_stays_until_its_copy_is_complete() {
    let mut bed = archived(2, 1);
    let set_copy = |bed: &mut Bed, status| {
        let copy = Copy { status, ..Copy::default() };
        let tx = bed.database.begin().unwrap();
        tx.set_copy(SnapshotId(1), &copy).unwrap();
        tx.commit().unwrap();
    };
    set_copy(&mut bed, CopyStatus::Running);
    set(&mut bed, &["age=1d"]);
    assert_eq!(pages(&mut bed), [1, 2]);
    let text = "Retention=age=1d deletes it once its copy to the store is complete";
    assert_eq!(why(&mut bed, 1), text);
    set_copy(&mut bed, CopyStatus::Idle);
    expire(&mut bed);
    assert_eq!(pages(&mut bed), [2]);
}

#[test]
fn tags_have_rules_of_their_own() {
    let mut bed = archived(4, 1);
    let tx = bed.database.begin().unwrap();
    tx.tag_crawl(CrawlId(1), "kept").unwrap();
    tx.tag_snapshot(SnapshotId(2), "news").unwrap();
    tx.commit().unwrap();
    set(&mut bed, &["age=10d", "tag:news age=2d", "tag:kept forever"]);
    assert_eq!(pages(&mut bed), [1, 3, 4]);
    // A tag that comes later counts, too.
    let tx = bed.database.begin().unwrap();
    tx.tag_snapshot(SnapshotId(3), "news").unwrap();
    tx.commit().unwrap();
    expire(&mut bed);
    assert_eq!(pages(&mut bed), [1, 4]);
    // So does one that goes.
    let remove = vec!["kept".to_owned()];
    let id = Owner::Crawl(CrawlId(1));
    bed.request(ChangeTags { id, add: Vec::new(), remove, user: 0 });
    set(&mut bed, &["age=3d", "tag:news age=2d", "tag:kept forever"]);
    confirm(&mut bed);
    assert_eq!(pages(&mut bed), [4]);
}

/// A version that was not saved replaces none that was.
#[test]
fn versions_that_were_not_saved_replace_none() {
    let mut bed = Bed::new();
    let versions: Vec<i64> = [true, true, false, false]
        .into_iter()
        .map(|is_good| {
            bed.pass(3_600_000);
            add_version(&mut bed, is_good)
        })
        .collect();
    set(&mut bed, &["versions=1"]);
    assert_eq!(pages(&mut bed), [versions[1], versions[3]]);
    set(&mut bed, &["age=1h versions=1"]);
    bed.pass(DAY.as_millis() as u64);
    expire(&mut bed);
    confirm(&mut bed);
    assert_eq!(pages(&mut bed), [versions[1]]);
}

/// The archive stays if the clock of the machine is a year wrong.
#[test]
fn wrong_clock_deletes_nothing() {
    const YEAR: i64 = 365 * 24 * 3_600_000;
    let mut bed = archived(3, 4);
    set(&mut bed, &["age=30d newest=no"]);
    let all = pages(&mut bed);
    assert_eq!(all.len(), 12);
    for by in [YEAR, -YEAR] {
        bed.set_clock(by);
        expire(&mut bed);
        assert_eq!(pages(&mut bed), all, "{by}");
        let held = bed.look(|tx| tx.clock_state()).doubt.unwrap().why;
        assert!(held.contains("the clock is"), "{held}");
        bed.set_clock(-by);
        expire(&mut bed);
        assert_eq!(pages(&mut bed), all, "{by}");
        assert_eq!(bed.look(|tx| tx.clock_state()).doubt, None);
    }
    // What ends while the clock is wrong has no age.
    bed.set_clock(-YEAR);
    add(&mut bed, 1);
    bed.set_clock(YEAR);
    expire(&mut bed);
    assert_eq!(pages(&mut bed).len(), 13);
    assert!(why(&mut bed, 13).contains("cannot be believed"));
    // A program whose clocks are all wrong, or a machine that was off.
    bed.pass(YEAR as u64);
    expire(&mut bed);
    assert_eq!(pages(&mut bed).len(), 13);
    let now = bed.now;
    let held = bed.look(|tx| tx.retention_review()).unwrap().held.unwrap();
    assert_eq!(held, "Retention=age=30d newest=no would delete 12 of 13 pages at once");
    assert!(bed.performer.wake_at.is_none_or(|at| at > now));
    confirm(&mut bed);
    assert_eq!(pages(&mut bed), [13]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// Whatever versions are archived, however the clock is set and whichever rules apply, the newest version
    /// that was saved stays, unless a rule says that it goes.
    #[test]
    fn newest_saved_version_stays(steps in prop::collection::vec((0..7u8, 0..6usize), 1..14)) {
        const DAYS: i64 = 24 * 3_600_000;
        let rules = ["versions=1", "versions=2", "age=1d", "age=2d versions=3", "age=400d", "forever"];
        let mut bed = Bed::new();
        bed.now = Time(20_000 * DAYS);
        let (mut saved, mut wrong_by) = (Vec::new(), 0);
        for (step, which) in steps {
            match step {
                0 | 1 => {
                    bed.pass(3_600_000);
                    let is_good = which < 3;
                    let id = add_version(&mut bed, is_good);
                    make_files(&mut bed, &[id]);
                    saved.extend(is_good.then_some(id));
                }
                2 => bed.pass((which as u64 + 1) * DAYS as u64),
                3 => {
                    let by = [-800, -40, -2, 2, 40, 800][which] * DAYS;
                    let by = if wrong_by == 0 { by } else { -wrong_by };
                    bed.set_clock(by);
                    wrong_by += by;
                }
                4 => {
                    bed.engine.settings.retention = vec![RetentionRule::parse(rules[which]).unwrap()];
                }
                5 => {
                    // An older one may be deleted already.
                    if let Some(id) = saved.pop() {
                        remove_files(&mut bed, id);
                    }
                    saved.retain(|id| pages(&mut bed).contains(id));
                }
                _ if wrong_by == 0 => confirm(&mut bed),
                _ => {}
            }
            expire(&mut bed);
            let left = pages(&mut bed);
            let newest = saved.last();
            prop_assert!(newest.is_none_or(|newest| left.contains(newest)), "{newest:?} of {left:?}");
        }
    }
}

/// A crawl of many pages is deleted in short transactions, and an orchestrator that is killed meanwhile loses
/// nothing.
#[test]
fn many_pages_go_in_pieces() {
    let mut bed = Bed::new();
    bed.add(250);
    bed.abort(0);
    until_over(&mut bed);
    bed.now = bed.now.after(DAY);
    let rule = RetentionRule::parse("age=1h newest=no").unwrap();
    bed.engine.settings.retention = vec![rule.clone()];
    expire(&mut bed);
    assert_eq!(pages(&mut bed).len(), 250, "held");
    bed.restart(0);
    bed.engine.settings.retention = vec![rule.clone()];
    let answer = bed.request(RetentionCall::Confirm { user: 0 });
    assert_eq!(answer, Some(Ok(String::new())));
    bed.turn(vec![Event::Due]);
    let left = pages(&mut bed).len();
    assert!((1..250).contains(&left), "{left}");
    bed.restart(0);
    bed.engine.settings.retention = vec![rule];
    expire(&mut bed);
    assert_eq!(pages(&mut bed), [0; 0]);
}

#[test]
fn without_rules_nothing_is_queued() {
    let mut bed = archived(3, 2);
    expire(&mut bed);
    set(&mut bed, &["age=10d"]);
    assert!(next(&mut bed).is_some());
    set(&mut bed, &[]);
    assert_eq!(next(&mut bed), None);
    add(&mut bed, 2);
    expire(&mut bed);
    assert_eq!(next(&mut bed), None);
    assert_eq!(bed.look(|tx| tx.aging_crawl()), None);
    assert_eq!(bed.performer.wake_at, None);
    // A node of a fleet deletes nothing.
    bed.engine.settings.fleet_database = "postgresql://db.test/archive".to_owned();
    set(&mut bed, &["age=1d newest=no"]);
    assert_eq!(pages(&mut bed).len(), 8);
}

#[test]
fn pages_that_a_rule_would_delete_are_listed() {
    let mut bed = archived(3, 1);
    let mut listed = |rules: &[&str]| {
        let rules = rules.iter().map(|text| RetentionRule::parse(text).unwrap());
        let rules = rules.collect();
        let expired: Expired = bed.document(RetentionCall::Expired { rules, after: 0 });
        assert_eq!(expired.next, None);
        let ids = expired.pages.iter().map(|page| page.id.0);
        ids.collect::<Vec<_>>()
    };
    assert_eq!(listed(&[]), [0; 0]);
    assert_eq!(listed(&["age=60h"]), [1]);
    assert_eq!(listed(&["versions=1"]), [1, 2]);
    assert_eq!(pages(&mut bed), [1, 2, 3]);
}

/// Crawls of a hundred pages each, ten of the same pages, with three results and a run per page. Each is a second
/// older than the next.
const FILL: &str = "
    INSERT INTO runner (epoch, rank, state, unit, pid, machine, boot, namespace, components, restarts, since)
        VALUES (1000000, 0, 'ended', '', 0, '', '', '', '', 0, 0);
    INSERT INTO host (id, name) VALUES (1, 'a.test');
    INSERT INTO crawl (id, status, url, max_depth, plugins, config, created_at, ended_at, users)
        WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
        SELECT n, 'sealed', 'https://a.test/', 0, '[]', '{}', n * 1000, n * 1000, '[0]' FROM n;
    INSERT INTO snapshot (id, crawl_id, host_id, url, url_key, depth, status, created_at, ended_at, directory, identity, unsaved)
        WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 99)
        SELECT (crawl.id - 1) * 100 + n + 1, crawl.id, 1, 'https://a.test/' || (crawl.id / 10 * 100 + n),
            'test,a)/' || (crawl.id / 10 * 100 + n), 0, 'sealed', crawl.created_at, crawl.ended_at,
            '/archive/20270101/a.test/s' || ((crawl.id - 1) * 100 + n + 1), 'identity', NULL
        FROM crawl, n;
    INSERT INTO result (owner, crawl_id, snapshot_id, plugin, hook, status, size, attempts, started_at, ended_at)
        SELECT 's' || id, crawl_id, id, plugin.column1, plugin.column1, 'succeeded', 1000, 1, created_at, ended_at
        FROM snapshot, (VALUES ('dom'), ('wacz'), ('text')) AS plugin;
    INSERT INTO run (kind, status, unit, outcome, recorded_at, owner, crawl_id, snapshot_id, attempt)
        SELECT 'snapshot', 'ended', 'archivist-snapshot-' || id || '.service', '0', created_at, 's' || id, crawl_id, id, 1
        FROM snapshot;
";

/// RETENTION_CRAWLS=10000 measures an archive of a million pages; the times are printed, because those of a busy
/// machine prove nothing. The removal of the files does not take place.
#[test]
fn transactions_stay_short() {
    let crawls = std::env::var("RETENTION_CRAWLS").ok();
    let crawls = crawls.map_or(20, |text| text.parse().unwrap());
    let mut bed = Bed::new();
    let file = rusqlite::Connection::open(bed.directory.path().join(DATABASE)).unwrap();
    for statement in FILL.split_inclusive(";\n") {
        let mut statement = file.prepare(statement).unwrap();
        match statement.parameter_count() {
            0 => statement.execute([]).unwrap(),
            _ => statement.execute([crawls]).unwrap(),
        };
    }
    drop(file);
    bed.now = Time(1_000 * (crawls + 1));
    let rules = ["age=5s versions=3"].map(|text| RetentionRule::parse(text).unwrap());
    bed.engine.settings.retention = rules.into();
    let (mut turns, mut times) = (0, Vec::new());
    loop {
        let moment = Moment {
            now: bed.now,
            boottime: 0,
            jitter: 0.5,
            followed: &BTreeSet::new(),
            is_subscribed: false,
            unanswered: &BTreeSet::new(),
            durability: Durability::PowerLoss,
        };
        let began = Instant::now();
        let mut batch = [Event::Due];
        transaction::run(&mut bed.database, &mut bed.engine, &House, &moment, &mut batch).unwrap();
        times.push(began.elapsed());
        turns += 1;
        let (state, review) = bed.look(|tx| Ok((tx.retention_state()?, tx.retention_review()?)));
        if review.as_ref().is_some_and(|review| review.held.is_some()) {
            let tx = bed.database.begin().unwrap();
            tx.set_retention_review(None).unwrap();
            tx.commit().unwrap();
        } else if review.is_none()
            && state.swept_to.is_none()
            && bed.look(|tx| tx.next_expiry()).is_none_or(|due| due > bed.now)
        {
            break;
        }
    }
    times.sort_unstable();
    let left = bed.look(|tx| tx.counts("snapshot", None))["sealed"];
    let (longest, median) = (times[times.len() - 1], times[times.len() / 2]);
    let late = times.iter().filter(|time| time.as_millis() >= 50).count();
    println!(
        "figure: {turns} turns, median {median:?}, longest {longest:?}, {late} of 50 ms and more, {left} pages left"
    );
    assert!((crawls * 10..crawls * 30 + 1000).contains(&(left as i64)), "{left}");
}
