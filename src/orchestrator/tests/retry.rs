//! Retries of crawls, pages and failed results.

use super::bed::Bed;
use super::expiry::make_files;
use crate::calls::requests::Request;
use crate::main_loop::rooms::Which;
use archivist_core::model::{CrawlId, IdMarks, Lifecycle, Owner, ResultState, SnapshotId};
use archivist_plugin::sample;
use archivist_shared::bus::documents::report::Run;
use archivist_shared::bus::documents::report::{AddOptions, Added, Filter, Snapshot};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

#[test]
fn retry_of_one_page_leaves_the_rest_of_an_aborted_crawl() {
    let mut bed = Bed::new();
    bed.add(3);
    bed.until_quiet();
    bed.abort(0);
    bed.come_to_an_end();
    let status = |bed: &mut Bed| bed.look(|tx| tx.list_crawls(&Filter::default()))[0].status;
    assert_eq!(status(&mut bed), Lifecycle::Cancelled);

    bed.retry(1);
    bed.come_to_an_end();
    assert_eq!(status(&mut bed), Lifecycle::Sealed, "the retried page is done");
    let pages = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    let mut states: Vec<&str> = pages.iter().map(|page| page.status.as_str()).collect();
    states.sort_unstable();
    assert_eq!(states, ["cancelled", "cancelled", "sealed"]);

    // The other pages can still be retried.
    bed.retry(0);
    bed.come_to_an_end();
    assert_eq!(status(&mut bed), Lifecycle::Sealed);
    let pages = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    assert!(pages.iter().all(|page| page.status == Lifecycle::Sealed));
}

/// A worker dies while many pages wait. What it left running waits for its page.
#[test]
fn page_that_is_due_for_a_retry_precedes_waiting_pages() {
    let mut bed = Bed::new();
    bed.add(6);
    bed.until_quiet();
    let worker = |n: usize| format!("archivist-snapshot-{n}.service");
    while !bed.world.units.contains_key(&worker(2)) {
        let hook = bed.running_hook().unwrap();
        bed.world.end(&hook, 1, 0, "success");
        bed.until_quiet();
    }
    let dies = |bed: &mut Bed, n| {
        bed.world.end(&worker(n), 2, 9, "signal");
        bed.until_quiet();
    };
    dies(&mut bed, 1);
    assert!(bed.world.units.contains_key(&worker(3)), "the next page");
    // Its retry is due, but the slots of the crawl are taken.
    bed.pass(300_000);
    bed.until_quiet();
    assert!(!bed.world.units.contains_key(&worker(1)));
    dies(&mut bed, 2);
    assert!(bed.world.units.contains_key(&worker(1)), "the retry");
    assert!(!bed.world.units.contains_key(&worker(4)), "a waiting page");
    bed.come_to_an_end();
}

#[test]
fn retry_of_failures_leaves_cancelled_crawls() {
    let mut bed = Bed::new();
    for last in [false, false, true] {
        bed.add(1);
        bed.until_quiet();
        let setup = bed.running_hook().unwrap();
        bed.world.end(&setup, 1, 0, "success");
        bed.until_quiet();
        let hook = bed.running_hook().unwrap();
        bed.world.end(&hook, 1, 1, "exit-code");
        bed.until_quiet();
        if last {
            bed.cancel(0);
        }
        bed.come_to_an_end();
    }
    let failed = |bed: &mut Bed| {
        let results = bed.look(|tx| tx.list_results(&Filter::default()));
        let failed = results.iter().filter(|r| r.status == ResultState::Failed);
        let mut owners: Vec<String> = failed.map(|r| r.owner.to_string()).collect();
        owners.dedup();
        owners
    };
    assert_eq!(failed(&mut bed), ["s3", "s2", "s1"]);

    bed.retry_failed();
    bed.come_to_an_end();
    assert_eq!(failed(&mut bed), ["s3"]);
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    let hooks = |n: i64| {
        let of = |run: &&Run| run.owner == Owner::Snapshot(SnapshotId(n)) && run.hook.is_some();
        runs.iter().filter(of).count()
    };
    assert_eq!(hooks(1), hooks(2));
    assert!(hooks(1) > hooks(3), "the cancelled crawl stays as it is");
}

/// The browser fails to load one page and loads another. On both, a hook is skipped: on the first
/// because of that, on the second for a reason of its own.
#[test]
fn retry_runs_hooks_again_that_were_skipped_because_the_page_did_not_load() {
    for which in [Which::Failed, Which::Hook("title".to_owned())] {
        let mut bed = Bed::new();
        let plugins = [
            ("tab", "on_Snapshot__10_tab.daemon.bg.py", json!({})),
            ("title", "on_Snapshot__54_title.py", json!({"required_plugins": ["tab"]})),
        ];
        let plugins = plugins.map(|(name, file, config)| sample::plugin(name, config, &[file]));
        let settings = bed.engine.settings.clone();
        bed.engine.replace(settings, sample::catalogue(plugins));
        for is_loaded in [false, true] {
            bed.add(1);
            for (code, result) in [(i32::from(!is_loaded), "exit-code"), (10, "exit-code")] {
                bed.until_quiet();
                let hook = bed.running_hook().unwrap();
                bed.world.end(&hook, 1, code, result);
            }
            bed.come_to_an_end();
        }
        let states = |bed: &mut Bed| {
            let results = bed.look(|tx| tx.list_results(&Filter::default()));
            let states = results.iter().rev().map(|result| result.status.as_str());
            states.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(states(&mut bed), "failed skipped succeeded skipped");
        assert_eq!(bed.retry_some(None, which), Some(2));
        bed.come_to_an_end();
        assert_eq!(states(&mut bed), "succeeded succeeded succeeded skipped");
    }
}

/// Runs of hooks of pages by plugin, oldest first.
pub fn runs_of_pages(bed: &mut Bed) -> Vec<String> {
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    let of_page = |run: &&Run| matches!(run.owner, Owner::Snapshot(_));
    let runs = runs.iter().rev().filter(of_page);
    runs.filter_map(|run| run.plugin.clone()).collect()
}

/// Plugin `late` is installed after the crawls.
pub fn install_late(bed: &mut Bed) {
    let late = sample::plugin("late", json!({}), &["on_Snapshot__30_late.py"]);
    let mut plugins = bed.engine.catalogue.plugins.clone();
    plugins.push(late);
    let catalogue = sample::catalogue(plugins);
    let settings = bed.engine.settings.clone();
    bed.engine.replace(settings, catalogue);
}

fn only_alpha() -> AddOptions {
    AddOptions { plugins: vec!["alpha".to_owned()], ..AddOptions::default() }
}

#[test]
fn complete_pages_run_all_hooks_again_on_request() {
    let mut bed = Bed::new();
    bed.add_with("http://a.example/", only_alpha());
    bed.come_to_an_end();
    let id = Some(Owner::Crawl(CrawlId(1)));
    assert_eq!(bed.retry_some(id, Which::Failed), None, "nothing failed");
    assert_eq!(bed.retry_some(id, Which::All), Some(1));
    bed.come_to_an_end();
    assert_eq!(runs_of_pages(&mut bed), ["alpha", "alpha"]);
}

/// The second retry comes while the crawl's worker runs its last hooks. Its daemons have ended, so a
/// page that ran without the setup would find no browser.
#[test]
fn retry_of_a_page_while_its_crawl_ends_runs_the_setup_again() {
    let mut bed = Bed::new();
    bed.add_with("http://a.example/", AddOptions::default());
    let runs = |bed: &mut Bed| {
        let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
        let mut hooks: Vec<String> = runs.into_iter().filter_map(|run| run.hook).collect();
        hooks.reverse();
        hooks
    };
    let is_ending = |bed: &mut Bed| bed.running_hook().is_some_and(|unit| unit.contains("-end-"));
    while !is_ending(&mut bed) {
        assert!(bed.moves_on(), "{:?}", runs(&mut bed));
        bed.until_quiet();
    }
    let before = runs(&mut bed).len();
    let which = Which::Hook("alpha".to_owned());
    assert_eq!(bed.retry_some(Some(Owner::Crawl(CrawlId(1))), which), Some(1));
    bed.come_to_an_end();
    let after = runs(&mut bed).split_off(before);
    assert_eq!(
        after,
        ["on_CrawlSetup__10_setup", "on_Snapshot__10_alpha", "on_CrawlCleanup__90_end"]
    );
    let results = bed.look(|tx| tx.list_results(&Filter::default()));
    let failed = results.iter().filter(|r| r.status == ResultState::Failed);
    assert_eq!(failed.count(), 0);
}

#[test]
fn refusal_says_that_pages_are_still_in_work() {
    let mut bed = Bed::new();
    bed.add_with("http://a.example/", only_alpha());
    bed.until_quiet();
    let which = || Which::Hook("alpha".to_owned());
    let id = Some(Owner::Crawl(CrawlId(1)));
    let mut refusal = |which| {
        let answer = bed.request(Request::Retry { id, which, user: 0, so_far: None });
        answer.unwrap().unwrap_err().to_string()
    };
    let text = refusal(which());
    assert!(text.contains("retry is possible when its pages have"), "{text}");
    bed.come_to_an_end();
    assert_eq!(bed.retry_some(id, which()), Some(1));
}

#[test]
fn a_plugin_that_came_later_runs_on_complete_pages() {
    let mut bed = Bed::new();
    bed.add_with("http://a.example/", only_alpha());
    bed.come_to_an_end();
    let id = Some(Owner::Snapshot(SnapshotId(1)));
    let late = || Which::Hook("late".to_owned());
    assert_eq!(bed.retry_some(id, late()), None, "there is no such plugin");
    install_late(&mut bed);
    assert_eq!(bed.retry_some(id, late()), Some(1));
    bed.come_to_an_end();
    assert_eq!(runs_of_pages(&mut bed), ["alpha", "late"]);
    assert_eq!(bed.retry_some(id, late()), Some(1), "its result again");
    bed.come_to_an_end();
    assert_eq!(runs_of_pages(&mut bed), ["alpha", "late", "late"]);
}

#[test]
fn an_update_runs_what_pages_lack_of_their_plugins() {
    let mut bed = Bed::new();
    bed.add(2);
    bed.add_with("http://a.example/", only_alpha());
    bed.come_to_an_end();
    let before = runs_of_pages(&mut bed);
    assert_eq!(bed.retry_some(None, Which::Missing), Some(0));
    install_late(&mut bed);
    assert_eq!(bed.retry_some(None, Which::Missing), Some(2));
    bed.come_to_an_end();
    let mut want = before;
    want.extend(["late".to_owned(), "late".to_owned()]);
    assert_eq!(runs_of_pages(&mut bed), want, "not on the page of another selection");
    assert_eq!(bed.retry_some(None, Which::Missing), Some(0));
}

/// As after the installation of a package: the hook runs on the pages that were archived before.
#[test]
fn what_was_skipped_for_a_program_runs_when_it_appears() {
    let mut bed = Bed::new();
    let path = bed.directory.path().join("tool");
    let name = path.to_str().unwrap().to_owned();
    let needs = json!({"required_binaries": [{"name": name, "binproviders": "env"}]});
    let mut plugins = bed.engine.catalogue.plugins.clone();
    plugins.push(sample::plugin("gamma", needs, &["on_Snapshot__30_gamma.py"]));
    let settings = bed.engine.settings.clone();
    bed.engine.replace(settings, sample::catalogue(plugins));
    bed.add(1);
    bed.add_with("http://a.example/", only_alpha());
    bed.come_to_an_end();
    let before = runs_of_pages(&mut bed);
    assert!(!before.contains(&"gamma".to_owned()));
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let seen = crate::machine::inspect::look(&[(name, path)], std::path::Path::new("/nowhere"));
    bed.turn(vec![crate::programs::seen(seen.clone(), None)]);
    bed.come_to_an_end();
    let mut want = before;
    want.push("gamma".to_owned());
    assert_eq!(runs_of_pages(&mut bed), want, "not on the page of another selection");
    bed.turn(vec![crate::programs::seen(seen.clone(), None)]);
    bed.come_to_an_end();
    assert_eq!(runs_of_pages(&mut bed), want, "once");
}

#[test]
fn known_pages_are_left_out_on_request() {
    let mut bed = Bed::new();
    let only_new = || AddOptions { only_new: true, ..only_alpha() };
    let first = bed.add_with("http://a.example/", only_new());
    assert_eq!((first.crawl, first.accepted, first.known), (CrawlId(1), 1, 0));
    let again = bed.add_with("http://a.example/", only_new());
    assert_eq!((again.crawl, again.accepted, again.known), (CrawlId(1), 0, 1));
    let both = bed.add_with("http://a.example/\nhttp://b.example/", only_new());
    assert_eq!((both.crawl, both.accepted, both.known), (CrawlId(2), 1, 1));
    bed.come_to_an_end();
}

/// Pages that were given up are failures of their crawl, can be found, and are neither complete nor
/// known to a later crawl.
#[test]
fn pages_that_were_given_up_are_incomplete_everywhere() {
    let mut bed = Bed::new();
    let only_new = || AddOptions { only_new: true, ..only_alpha() };
    bed.add_with("http://a.example/\nhttp://b.example/", only_new());
    let worker = "archivist-snapshot-1.service";
    for _ in 1..=3 {
        while !bed.world.units.contains_key(worker) && bed.moves_on() {}
        bed.world.end(worker, 2, 9, "signal");
        bed.until_quiet();
        bed.pass(7_200_000);
    }
    bed.come_to_an_end();
    let crawl = bed.look(|tx| tx.list_crawls(&Filter::default())).remove(0);
    assert_eq!((crawl.status, crawl.incomplete), (Lifecycle::Sealed, 1));
    let reason = crawl.reason.unwrap();
    assert!(reason.contains("1 page is incomplete"), "{reason}");
    let why = bed.why("c1");
    assert!(why[0].1.starts_with("done, but 1 page is incomplete"), "{why:?}");
    assert_eq!(why[1].0, "incomplete");
    assert!(why[2].1.contains("given up after 3 attempts"), "{why:?}");
    // Its directory is not there, and was not removed: the worker did not make it.
    let marks = bed.engine.archive().join(IdMarks::DIRECTORY);
    std::fs::create_dir_all(marks).unwrap();
    let why = bed.why("s1");
    assert!(why[0].1.starts_with("given up after 3 attempts"), "{why:?}");
    let filter = Filter { status: Some("incomplete".to_owned()), ..Filter::default() };
    let incomplete = bed.look(|tx| tx.list_snapshots(&filter));
    assert_eq!(incomplete.len(), 1);
    assert_eq!(incomplete[0].id, SnapshotId(1));

    // The page that was archived is known, the other one is not.
    make_files(&mut bed, &[2]);
    let again = bed.add_with("http://a.example/\nhttp://b.example/", only_new());
    assert_eq!((again.accepted, again.known), (1, 1));
    bed.come_to_an_end();
    assert_eq!(bed.retry_some(None, Which::Failed), Some(1));
    bed.come_to_an_end();
    let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
    for crawl in crawls {
        assert_eq!((crawl.reason, crawl.incomplete), (None, 0), "{}", crawl.id);
    }
}

/// Bookmarks of pages that the archive has: tags are added, and title and date where there are none.
#[test]
fn known_pages_get_what_the_list_says_of_them() {
    let mut bed = Bed::new();
    let only_new = || AddOptions { only_new: true, ..AddOptions::default() };
    let line = |url: &str, title: &str, tags: &str| {
        let time = "2013-06-07T00:00:00Z";
        format!(r#"{{"url":"{url}","title":"{title}","tags":"{tags}","bookmarked_at":"{time}"}}"#)
    };
    bed.add_with(&line("http://a.example/", "Own", "own"), AddOptions::default());
    bed.add_with("http://b.example/\nhttp://c.example/", AddOptions::default());
    bed.come_to_an_end();
    let list = [
        line("http://a.example/", "Other", "own,birds"),
        line("http://b.example/", "Bookmark", "birds"),
        r#"{"url":"http://c.example/"}"#.to_owned(),
    ]
    .join("\n");
    let added = bed.add_with(&list, only_new());
    assert_eq!((added.accepted, added.known, added.completed), (0, 3, 2));
    let mut pages = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    pages.sort_by_key(|page| page.id);
    let said = |page: &Snapshot| {
        let mut tags = page.tags.clone();
        tags.sort();
        (page.title.clone(), tags.join(" "), page.bookmarked_at.is_some())
    };
    let title = |text: &str| Some(text.to_owned());
    assert_eq!(said(&pages[0]), (title("Own"), "birds own".to_owned(), true));
    assert_eq!(said(&pages[1]), (title("Bookmark"), "birds".to_owned(), true));
    assert_eq!(said(&pages[2]), (None, String::new(), false));
    let again = bed.add_with(&list, only_new());
    assert_eq!((again.known, again.completed), (3, 0), "nothing is new");

    // Tags decide how long a page is kept: those of other users stay as they are.
    let list = line("http://c.example/", "Foreign", "foreign");
    let added: Added = bed.document(Request::Add {
        lines: Arc::new(list.into_bytes()),
        options: only_new(),
        user: 1000,
        joins: false,
        so_far: None,
    });
    assert_eq!((added.known, added.completed), (1, 0));
}
