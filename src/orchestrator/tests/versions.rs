//! What workers and removals get to know about other snapshots of a page.

use super::bed::Bed;
use super::expiry;
use archivist_core::model::{SnapshotId, Time};
use archivist_shared::bus::documents::report::Filter;
use archivist_shared::bus::documents::work::{Assignment, ToRemove};

/// Adds the page again, whose crawl gets the same number. Returns what its worker gets.
fn next(bed: &mut Bed, id: i64) -> Assignment {
    let unit = format!("archivist-snapshot-{id}.service");
    bed.add(1);
    bed.until_quiet();
    while !bed.world.units.contains_key(&unit) {
        // Pages of earlier crawls stay in progress.
        let of_crawl = format!("-c{id}.service");
        let mut units = bed.world.units.keys();
        let hook = units.find(|unit| unit.contains("-hook-") && unit.ends_with(&of_crawl));
        let hook = hook.unwrap_or_else(|| panic!("{unit} waits")).clone();
        bed.world.end(&hook, 1, 0, "success");
        bed.until_quiet();
    }
    let stdin = bed.world.units[&unit].stdin.as_ref().unwrap();
    serde_json::from_slice(stdin).unwrap()
}

#[test]
fn worker_gets_the_other_snapshots_of_its_page() {
    let mut bed = Bed::new();
    let first = next(&mut bed, 1);
    assert_eq!(first.about.versions, []);
    assert!(first.about.visited_at.is_some());
    // The first one is still in progress, and sealed when the third one starts.
    let second = next(&mut bed, 2);
    let [other] = &second.about.versions[..] else {
        panic!("{:?}", second.about.versions);
    };
    assert_eq!((other.id, &other.directory), (SnapshotId(1), &first.directory));
    assert_eq!(other.ended_at, None);
    assert_eq!(Some(other.at), first.about.visited_at);
    while let Some(hook) = bed.running_hook() {
        bed.world.end(&hook, 1, 0, "success");
        bed.until_quiet();
    }
    let third = next(&mut bed, 3);
    let mut others: Vec<(i64, Option<Time>)> = Vec::new();
    for other in &third.about.versions {
        others.push((other.id.0, other.ended_at));
    }
    others.sort();
    assert!(matches!(others[..], [(1, Some(_)), (2, Some(_))]), "{others:?}");
    bed.come_to_an_end();
}

#[test]
fn removal_gets_the_key_of_the_url() {
    let mut bed = expiry::archived(2, 1);
    let pages = bed.look(|tx| tx.list_snapshots(&Filter::default()));
    assert_eq!(pages.len(), 2);
    bed.delete_these(&["s1".parse().unwrap(), "c2".parse().unwrap()], false);
    bed.until_quiet();
    let unit = bed.running_of("-delete-").pop().unwrap();
    let stdin = bed.world.units[&unit].stdin.as_ref();
    let request: ToRemove = serde_json::from_slice(stdin.unwrap()).unwrap();
    for removed in &request.directories {
        let is_page = matches!(removed.owner, archivist_core::model::Owner::Snapshot(_));
        let wanted = is_page.then_some("example,0)/");
        assert_eq!(removed.url_key.as_deref(), wanted, "{}", removed.owner);
    }
    assert!(request.directories.iter().any(|removed| removed.url_key.is_some()));
}
