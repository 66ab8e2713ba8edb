//! `Quota=`: which pages it deletes or refuses.

use super::bed::{Bed, DATABASE};
use super::expiry::{add, add_version, archived, expire, make_files, pages, pin, remove_files};
use crate::bus::call::Refusal;
use crate::calls::requests::Request;
use crate::query::orders::Query;
use crate::quota::rows::Stored;
use archivist_core::model::{CrawlId, Owner, SnapshotId};
use archivist_core::plan::Quota;
use archivist_core::store::{Copy, CopyStatus};
use archivist_shared::bus::documents::report::{AddOptions, Filter, Why};
use std::sync::Arc;

/// Gives each of the results so many bytes that each page has 1000.
fn fill(bed: &mut Bed) {
    let file = rusqlite::Connection::open(bed.directory.path().join(DATABASE)).unwrap();
    let sql = "UPDATE result SET size = 1000 / (SELECT count(*) FROM result AS other WHERE other.owner = result.owner)
               WHERE snapshot_id IS NOT NULL";
    file.execute(sql, []).unwrap();
    let sql = "UPDATE result SET size = 0 WHERE snapshot_id IS NULL";
    file.execute(sql, []).unwrap();
}

fn set(bed: &mut Bed, quotas: &[&str]) {
    let read = quotas.iter().map(|text| Quota::parse(text).unwrap());
    bed.engine.settings.quotas = read.collect();
    expire(bed);
}

fn stored(bed: &mut Bed, of: &Stored) -> u64 {
    bed.look(|tx| tx.stored(of))
}

#[test]
fn oldest_pages_go_first() {
    let mut bed = archived(3, 2);
    fill(&mut bed);
    assert_eq!(stored(&mut bed, &Stored::All), 6000);
    set(&mut bed, &["6000 delete"]);
    assert_eq!(pages(&mut bed), [1, 2, 3, 4, 5, 6]);
    set(&mut bed, &["4500 delete"]);
    assert_eq!(pages(&mut bed), [3, 4, 5, 6]);
    assert_eq!(stored(&mut bed, &Stored::All), 4000);
    add(&mut bed, 1);
    fill(&mut bed);
    expire(&mut bed);
    assert_eq!(pages(&mut bed), [4, 5, 6, 7]);
}

/// Versions 1 to 4 of a page, of which the third was not saved, then another page.
#[test]
fn unsaved_pages_go_first_and_newest_saved_versions_last() {
    let mut bed = archived(1, 1);
    add_version(&mut bed, true);
    add_version(&mut bed, false);
    add_version(&mut bed, true);
    make_files(&mut bed, &[1, 2, 4]);
    fill(&mut bed);
    for (quota, left) in [
        ("3500 delete", &[1, 2, 4][..]),
        ("2500 delete", &[2, 4]),
        ("1500 delete", &[4]),
        ("500 delete", &[]),
    ] {
        set(&mut bed, &[quota]);
        assert_eq!(pages(&mut bed), left, "{quota}");
    }
    // The newest of another page is older, and stays until only newest versions are left.
    let mut bed = archived(1, 2);
    add_version(&mut bed, true);
    add_version(&mut bed, true);
    make_files(&mut bed, &[1, 2, 3, 4]);
    fill(&mut bed);
    let key = |bed: &mut Bed, id: i64| {
        let id = Owner::Snapshot(SnapshotId(id));
        bed.look(|tx| tx.list_snapshots(&Filter::of(id))).remove(0).url
    };
    let of_other = (1..3).find(|id| key(&mut bed, *id) != key(&mut bed, 4)).unwrap();
    set(&mut bed, &["2500 delete"]);
    assert_eq!(pages(&mut bed), [of_other, 4]);
    // A version whose files were removed by hand replaces none.
    add_version(&mut bed, true);
    fill(&mut bed);
    make_files(&mut bed, &[5]);
    remove_files(&mut bed, 5);
    expire(&mut bed);
    assert_eq!(pages(&mut bed), [of_other, 4]);
    set(&mut bed, &["1500 delete"]);
    assert_eq!(pages(&mut bed), [4], "the oldest");
}

#[test]
fn pinned_pages_stay_and_are_not_looked_at_again() {
    let mut bed = archived(3, 1);
    fill(&mut bed);
    for id in ["s1", "s2", "s3"] {
        pin(&mut bed, id, true);
    }
    set(&mut bed, &["1500 delete"]);
    assert_eq!(pages(&mut bed), [1, 2, 3]);
    assert_eq!(bed.look(|tx| tx.quota_place(&Stored::All)), None);
    assert_eq!(bed.performer.wake_at, None, "nothing can be done");
    pin(&mut bed, "s2", false);
    assert_eq!(pages(&mut bed), [1, 3]);
    pin(&mut bed, "s1", false);
    assert_eq!(pages(&mut bed), [3]);
}

#[test]
fn tags_and_users_have_quotas() {
    let mut bed = archived(4, 1);
    let tx = bed.database.begin().unwrap();
    tx.tag_crawl(CrawlId(2), "news").unwrap();
    tx.tag_snapshot(SnapshotId(3), "news").unwrap();
    tx.commit().unwrap();
    fill(&mut bed);
    set(&mut bed, &["tag:news 1500 delete"]);
    assert_eq!(pages(&mut bed), [1, 3, 4]);
    // User 0 has added all of them.
    assert_eq!(stored(&mut bed, &Stored::User(0)), 3000);
    // A user's own quota counts instead of that of each user, and one that does not exist has no pages.
    set(&mut bed, &["user 500 delete", "user:0 3000 delete", "user:ada 1"]);
    assert_eq!(pages(&mut bed), [1, 3, 4]);
    set(&mut bed, &["user 2000 delete", "user:1 1 delete"]);
    assert_eq!(pages(&mut bed), [3, 4]);
    set(&mut bed, &["user 5000", "user:0 1000 delete"]);
    assert_eq!(pages(&mut bed), [4]);
}

#[test]
fn new_pages_are_refused() {
    let mut bed = archived(1, 1);
    fill(&mut bed);
    let mut refusal = |quotas: &[&str], tag: &str, user: u32| {
        set(&mut bed, quotas);
        let options = AddOptions { tags: vec![tag.to_owned()], ..AddOptions::default() };
        let answer = bed.request(Request::Add {
            lines: Arc::new(b"https://new.test/\n".to_vec()),
            options,
            user,
            joins: false,
            so_far: None,
        });
        match answer.unwrap() {
            Ok(_) => String::new(),
            Err(Refusal::Invalid(why)) => why,
            Err(other) => panic!("{other}"),
        }
    };
    let why = refusal(&["500"], "x", 1000);
    assert_eq!(
        why,
        "no page is added: the archive has 1000B of files, more than Quota=500; to make space: archivist delete"
    );
    let why = refusal(&["user 500"], "x", 0);
    assert!(why.contains("pages of user 0 have"), "{why}");
    assert_eq!(refusal(&["user 500"], "x", 1000), "");
    let why = refusal(&["user 5000", "user:0 500"], "x", 0);
    assert!(why.contains("pages of user 0 have 1000B"), "{why}");
    assert_eq!(refusal(&["user 500", "user:0 1000"], "x", 0), "");
    assert_eq!(refusal(&["user:0 500"], "x", 1000), "");
    assert_eq!(refusal(&["tag:x 500"], "x", 0), "");
    assert_eq!(refusal(&["1000"], "x", 0), "");
    assert_eq!(refusal(&["500 delete"], "x", 0), "");
}

/// Its copy to the store keeps the page for now.
#[test]
fn why_says_that_the_oldest_pages_go() {
    let mut bed = archived(2, 1);
    fill(&mut bed);
    pin(&mut bed, "s2", true);
    let copy = Copy { status: CopyStatus::Running, ..Copy::default() };
    let tx = bed.database.begin().unwrap();
    tx.set_copy(SnapshotId(1), &copy).unwrap();
    tx.commit().unwrap();
    set(&mut bed, &["1500 delete"]);
    assert_eq!(pages(&mut bed), [1, 2]);
    let mut why = |id: &str| {
        let id = id.parse().unwrap();
        let why: Why = bed.document(Query::Why { id });
        let reason = why.reasons.into_iter().find(|reason| reason.code == "quota");
        reason.map(|reason| reason.text)
    };
    let text = "the archive has 2.0K of files, more than Quota=1500 delete: pages that were not saved are deleted, then the oldest of the others, and this page may be among them";
    assert_eq!(why("s1").as_deref(), Some(text));
    assert_eq!(why("s2"), None);
}
