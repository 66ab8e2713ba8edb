//! Tests of what is found in lists, and of rebuilt lists.

use super::*;
use crate::page::archive_index::tests::TestArchive;
use archivist_core::model::Time;
use archivist_plugin::files::remove::remove_tree;

const DAY: &str = "20261121";

fn entry(id: i64) -> ListEntry {
    ListEntry {
        id: SnapshotId(id),
        url: format!("https://example.com/{id}"),
        title: Some(format!("title {id}")),
        archived_at: Time(id),
        visited_at: None,
        directory: format!("{DAY}/example.com/s{id}"),
        screenshot: None,
        succeeded: 1,
        failed: 0,
        unsaved: None,
        tags: Vec::new(),
        partial: false,
        version: None,
    }
}

/// The list of the day, with the snapshots up to an id.
fn list(up_to: i64) -> ListOfPages {
    ListOfPages {
        name: DAY.to_owned(),
        kind: ListKind::Day(DAY.to_owned()),
        directory: DAY.to_owned(),
        entries: (1..=up_to).map(|id| Arc::new(entry(id))).collect(),
    }
}

/// An archive with as many snapshots of the day.
fn archive(count: i64) -> TestArchive {
    let archive = TestArchive::new();
    for id in 1..=count {
        archive.add(DAY, id, None);
    }
    archive
}

/// Names and sentences of what is wrong with the list of the day and that of the archive.
fn found(archive: &TestArchive, up_to: i64) -> Vec<(String, String)> {
    let index = ArchiveIndex::look(archive.archive()).unwrap();
    let mut flaws = index.flaws(&list(up_to)).unwrap();
    flaws.extend(index.flaws_of_newest().unwrap());
    let short = |(path, what): Flaw| {
        let path = path.strip_prefix(archive.archive()).unwrap();
        (path.to_string_lossy().into_owned(), what)
    };
    flaws.into_iter().map(short).collect()
}

fn repair(archive: &TestArchive, up_to: i64) {
    let index = ArchiveIndex::open(archive.archive()).unwrap();
    index.rebuild(&list(up_to)).unwrap();
    index.rebuild_newest().unwrap();
}

fn assert_found(archive: &TestArchive, wanted: &[(&str, &str)]) {
    let found = found(archive, 305);
    let found: Vec<(&str, &str)> =
        found.iter().map(|(path, what)| (path.as_str(), what.as_str())).collect();
    assert_eq!(found, wanted);
}

#[test]
fn tag_that_a_page_got_after_its_end_is_missing_on_no_list() {
    let archive = archive(1);
    let tagged = |tags: &[&str]| ListEntry {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..entry(1)
    };
    let of_tag = |tags: &[&str]| ListOfPages {
        name: "tag-late".to_owned(),
        kind: ListKind::Of(Group::Tag, "late".to_owned()),
        directory: "tags/late".to_owned(),
        entries: vec![Arc::new(tagged(tags))],
    };
    let index = ArchiveIndex::open(archive.archive()).unwrap();
    assert_eq!(index.flaws(&of_tag(&["late"])).unwrap(), []);
    // The list of its day has what it had when it ended.
    write_json(&index.chunks(DAY), "1.json", &[tagged(&["late"])]).unwrap();
    assert_eq!(index.flaws(&of_tag(&["late"])).unwrap().len(), 1);
}

#[test]
fn lists_that_workers_wrote_have_no_flaw() {
    let archive = TestArchive::new();
    for id in 1..=305 {
        archive.add(DAY, id, None);
        if id % 50 == 5 {
            assert_eq!(found(&archive, id), [], "{id} pages");
        }
    }
    let again = archive.add(DAY, 7, Some(1));
    assert_eq!((again.page, found(&archive, 305)), (1, Vec::new()));
    for day in 1..=20 {
        archive.add(&format!("202610{day:02}"), 400 + day, None);
    }
    assert_eq!(found(&archive, 305), []);
    let empty = TestArchive::new();
    assert_eq!(found(&empty, 0), []);
    assert_eq!(fs::read_dir(empty.archive()).unwrap().count(), 0);
}

#[test]
fn each_flaw_is_found_and_repaired() {
    let first = "20261121/index.html";
    let full = "20261121/page-2.html";
    let chunk = ".index/20261121/2.json";
    let missing = "the list is missing";
    type Damage = fn(&Path);
    let edit = |path: &Path, change: &dyn Fn(&str) -> String| {
        let text = fs::read_to_string(path).unwrap();
        fs::write(path, change(&text)).unwrap();
    };
    let damages: [(Damage, &str, &str); 5] = [
        (|at| fs::remove_file(at.join("20261121/index.html")).unwrap(), first, missing),
        (|at| fs::remove_file(at.join("20261121/page-2.html")).unwrap(), full, missing),
        (
            |at| fs::write(at.join("20261121/page-2.html"), [255, 0]).unwrap(),
            full,
            "it cannot be read: stream did not contain valid UTF-8",
        ),
        (|at| fs::remove_file(at.join(".index/20261121/2.json")).unwrap(), chunk, missing),
        (
            |at| fs::write(at.join(".index/20261121/2.json"), "[]").unwrap(),
            chunk,
            "it has 0 of 100 entries",
        ),
    ];
    let archive = archive(305);
    for (damage, path, what) in damages {
        damage(archive.archive());
        let found = found(&archive, 305);
        assert_eq!(found[0], (path.to_owned(), what.to_owned()), "{found:?}");
        repair(&archive, 305);
        assert_found(&archive, &[]);
    }
    type Change = fn(&str) -> String;
    let changes: [(&str, Change, &str); 6] = [
        (first, |text| text[..text.len() - 9].to_owned(), "it is not complete"),
        (
            first,
            |text| text.replace("/s300/", "/s3000/"),
            "it lacks the link to '../20261121/example.com/s300/index.html'",
        ),
        (first, |text| text.replace("title 300", "title 3OO"), "it is not what its entries give"),
        (
            first,
            |text| text.replace("305 snapshots", "304 snapshots"),
            "it is not what its entries give",
        ),
        (full, |text| text.replace("title 150", "title 15O"), "it is not what its entries give"),
        ("days.html", |text| text.replace("1 day", "2 days"), "it is not what its entries give"),
    ];
    for (path, change, what) in changes {
        edit(&archive.archive().join(path), &change);
        assert_found(&archive, &[(path, what)]);
        repair(&archive, 305);
        assert_found(&archive, &[]);
    }
    assert_eq!(archive.on(first), (206..=305).rev().collect::<Vec<i64>>());
    assert_eq!(archive.on(full), (101..=200).rev().collect::<Vec<i64>>());
}

/// A style sheet of another version is no damage; a link that is missing is.
#[test]
fn pages_of_another_version_are_compared_by_their_links() {
    let archive = archive(5);
    let path = archive.archive().join(DAY).join(FIRST);
    let text = fs::read_to_string(&path).unwrap();
    let older = text.replace("<style>", "<style>x").replace("class=\"card\"", "class=\"box\"");
    fs::write(&path, &older).unwrap();
    assert_eq!(found(&archive, 5), []);
    fs::write(&path, older.replace("/s3/", "/s4/")).unwrap();
    assert_eq!(found(&archive, 5).len(), 1);
}

#[test]
fn removed_snapshot_leaves_the_list_and_lost_ones_return() {
    let archive = archive(250);
    remove_tree(&archive.archive().join(DAY).join("example.com/s120")).unwrap();
    let mut rows = list(250);
    rows.entries.retain(|entry| entry.id != SnapshotId(120));
    let index = ArchiveIndex::look(archive.archive()).unwrap();
    let flaws = index.flaws(&rows).unwrap();
    assert_eq!(flaws.len(), 1, "{flaws:?}");
    assert!(flaws[0].1.contains("/s120/index.html', which is gone"), "{flaws:?}");
    drop(index);
    // A worker could not lock the lists.
    fs::create_dir_all(archive.archive().join(DAY).join("example.com/s251")).unwrap();
    fs::write(archive.archive().join(DAY).join("example.com/s251").join(FIRST), "").unwrap();
    rows.entries.push(Arc::new(entry(251)));
    let index = ArchiveIndex::open(archive.archive()).unwrap();
    assert_eq!(index.flaws(&rows).unwrap()[0].1, "it lacks s251");
    index.rebuild(&rows).unwrap();
    assert_eq!(index.flaws(&rows).unwrap(), []);
    index.rebuild_newest().unwrap();
    assert_eq!(index.flaws_of_newest().unwrap(), []);
    drop(index);
    assert!(!archive.on("20261121/page-2.html").contains(&120));
    assert_eq!(archive.on("index.html")[0], 251);
    // It has another position than its directory says, and does not get a second one.
    assert_eq!(archive.add(DAY, 201, Some(3)).total, 250);
    assert_eq!(found(&archive, 119), []);
}

/// Fewer pages than before are left: neither chunks nor pages stay.
#[test]
fn shorter_list_leaves_no_pages() {
    let archive = archive(305);
    for id in 51..=305 {
        remove_tree(&archive.archive().join(DAY).join(format!("example.com/s{id}"))).unwrap();
    }
    repair(&archive, 50);
    assert_eq!(found(&archive, 50), []);
    assert_eq!(archive.on("20261121/index.html").len(), 50);
    for left in ["20261121/page-1.html", "20261121/page-3.html", ".index/20261121/2.json"] {
        assert!(!archive.archive().join(left).exists(), "{left}");
    }
}
