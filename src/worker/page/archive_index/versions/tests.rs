//! Tests of the lists of URLs in a real directory: links are followed as a browser follows them.

use super::*;
use crate::page::archive_index::tests::TestArchive;
use crate::page::versions::list_of;
use archivist_core::model::SnapshotId;
use archivist_core::model::TextDigest;
use archivist_plugin::files::remove::remove_tree;
use std::sync::Arc;

const URL: &str = "https://example.com/a?b=\"<c>'";
const DAY: &str = "20261121";

fn entry(id: i64, at: i64) -> ListEntry {
    ListEntry {
        id: SnapshotId(id),
        url: URL.to_owned(),
        title: Some(format!("<title {}>", id / 2)),
        archived_at: Time(id),
        visited_at: None,
        directory: format!("{DAY}/example.com/s{id}"),
        screenshot: None,
        succeeded: 1,
        failed: 0,
        unsaved: None,
        tags: Vec::new(),
        partial: false,
        version: Some(ListedVersion {
            at: Time(at),
            http_status: Some(200),
            text: Some(TextDigest { sha256: (id / 3).to_string(), simhash: "ff".to_owned() }),
        }),
    }
}

fn seal(archive: &TestArchive, entry: &ListEntry) {
    let directory = archive.archive().join(&entry.directory);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("index.html"), "").unwrap();
    // The list of the archive, to which all lists link.
    fs::write(archive.archive().join("index.html"), "").unwrap();
}

fn other(archive: &TestArchive, id: i64, ended_at: Option<i64>) -> OtherVersion {
    OtherVersion {
        id: SnapshotId(id),
        directory: archive.archive().join(format!("{DAY}/example.com/s{id}")),
        at: Time(id),
        http_status: Some(200),
        ended_at: ended_at.map(Time),
    }
}

/// Adds snapshots that were archived in the order of their ids.
fn add(archive: &TestArchive, ids: impl IntoIterator<Item = i64>) {
    for id in ids {
        add_at(archive, id, id);
    }
}

fn add_at(archive: &TestArchive, id: i64, at: i64) {
    let entry = entry(id, at);
    seal(archive, &entry);
    let others = [other(archive, 9999, None)];
    let index = ArchiveIndex::open(archive.archive()).unwrap();
    let added = index.add_version(&list_of(URL), &entry, false, &others);
    assert!(added.unwrap());
}

/// Makes a list of many snapshots at once.
fn fill(archive: &TestArchive, up_to: i64) {
    let entries: Vec<ListEntry> = (1..=up_to).map(|id| entry(id, id)).collect();
    entries.iter().for_each(|entry| seal(archive, entry));
    let index = ArchiveIndex::open(archive.archive()).unwrap();
    index.write_versions(&list_of(URL), entries).unwrap();
}

fn shown(archive: &TestArchive) -> PathBuf {
    archive.archive().join(directory_of(&list_of(URL)))
}

fn list(entries: impl IntoIterator<Item = i64>) -> ListOfPages {
    let name = list_of(URL);
    ListOfPages {
        directory: directory_of(&name),
        kind: ListKind::Url,
        entries: entries.into_iter().map(|id| Arc::new(entry(id, id))).collect(),
        name,
    }
}

fn flaws(archive: &TestArchive, ids: impl IntoIterator<Item = i64>) -> Vec<(String, String)> {
    let index = ArchiveIndex::look(archive.archive()).unwrap();
    let flaws = index.flaws(&list(ids)).unwrap();
    let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    flaws.into_iter().map(|(path, what)| (name(path), what)).collect()
}

fn rebuild(archive: &TestArchive, ids: impl IntoIterator<Item = i64>) {
    let index = ArchiveIndex::open(archive.archive()).unwrap();
    index.rebuild(&list(ids)).unwrap();
}

/// Ids of the snapshots to which the file of a list links.
fn linked(archive: &TestArchive, name: &str) -> Vec<i64> {
    let file = shown(archive).join(name);
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
    let links = text.split("href=\"").skip(1);
    let links = links.map(|rest| rest.split(['"', '#']).next().unwrap());
    let to_snapshots = links.filter(|link| {
        let target = shown(archive).join(link).canonicalize();
        let target = target.unwrap_or_else(|error| panic!("{name} links to {link}: {error}"));
        target.ends_with("index.html") && !target.ends_with(list_of(URL) + "/index.html")
    });
    let id = |link: &str| link.rsplit('/').nth(1)?.strip_prefix('s')?.parse().ok();
    to_snapshots.filter_map(id).collect()
}

fn texts(archive: &TestArchive) -> BTreeSet<String> {
    names(&shown(archive)).unwrap()
}

#[test]
fn url_with_one_snapshot_has_no_list() {
    let archive = TestArchive::new();
    let entry = entry(1, 1);
    seal(&archive, &entry);
    let index = ArchiveIndex::open(archive.archive()).unwrap();
    let added = index.add_version(&list_of(URL), &entry, false, &[]);
    assert!(!added.unwrap());
    assert!(!archive.archive().join(URLS).exists());
    assert!(!archive.archive().join(".index/urls").exists());
    drop(index);
    assert_eq!(flaws(&archive, []), []);
    // It is known that there is another one, which is still in progress.
    add(&archive, [2]);
    assert!(!archive.archive().join(URLS).exists());
    add(&archive, [3]);
    assert_eq!(linked(&archive, "index.html"), [3, 2]);
}

#[test]
fn first_list_has_the_snapshots_of_earlier_days() {
    let archive = TestArchive::new();
    for id in 1..=250 {
        archive.add(DAY, id, None);
    }
    // Archived again, so that the times of the list of the day are in no order.
    archive.add(DAY, 120, Some(2));
    let others = [
        other(&archive, 120, Some(100)),
        other(&archive, 31, Some(31)),
        other(&archive, 250, None),
        other(&archive, 251, None),
    ];
    let newest = entry(300, 300);
    seal(&archive, &newest);
    let index = ArchiveIndex::open(archive.archive()).unwrap();
    index.add_version(&list_of(URL), &newest, false, &others).unwrap();
    assert_eq!(linked(&archive, "index.html"), [300, 250, 120, 31]);
    let text = fs::read_to_string(shown(&archive).join("index.html")).unwrap();
    assert!(text.contains("4 snapshots"), "{text}");
}

#[test]
fn links_lead_to_the_next_older_and_newer_snapshot() {
    let archive = TestArchive::new();
    add(&archive, [1, 2, 3]);
    // Of an import.
    add_at(&archive, 4, 0);
    assert_eq!(linked(&archive, "index.html"), [3, 2, 1, 4]);
    for (file, wanted) in [
        ("s4.html", vec![1]),
        ("s1.html", vec![4, 2]),
        ("s2.html", vec![1, 3]),
        ("s3.html", vec![2]),
    ] {
        assert_eq!(linked(&archive, file), wanted, "{file}");
        let text = fs::read_to_string(shown(&archive).join(file)).unwrap();
        let anchor = file.trim_end_matches(".html");
        assert!(text.contains(&format!("\"./index.html#{anchor}\"")));
        let page = fs::read_to_string(shown(&archive).join("index.html")).unwrap();
        assert!(page.contains(&format!("id=\"{anchor}\"")), "{page}");
    }
    let page = fs::read_to_string(shown(&archive).join("index.html")).unwrap();
    for part in ["title, text 99% the same", "same text", "&lt;title 1&gt;", "b=&quot;&lt;c&gt;'"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<c>"), "{page}");
}

#[test]
fn snapshot_that_is_archived_again_moves_to_its_time() {
    let archive = TestArchive::new();
    add(&archive, [1, 2, 3]);
    let again = entry(1, 10);
    let index = ArchiveIndex::open(archive.archive()).unwrap();
    let added = index.add_version(&list_of(URL), &again, true, &[]);
    assert!(added.unwrap());
    assert_eq!(linked(&archive, "index.html"), [1, 3, 2]);
    assert_eq!(linked(&archive, "s1.html"), [3]);
    assert_eq!(linked(&archive, "s2.html"), [3]);
}

/// The last chunk alone is read and written, and what that gives is what a rebuilt list has.
#[test]
fn long_list_has_pages_of_a_hundred() {
    let archive = TestArchive::new();
    for (filled, added) in [(0, 1..=3), (98, 99..=102), (198, 199..=202), (303, 304..=305)] {
        if filled > 0 {
            fill(&archive, filled);
        }
        for id in added {
            add(&archive, [id]);
            assert_eq!(flaws(&archive, 1..=id), [], "{id}");
        }
    }
    let newest: Vec<i64> = (206..=305).rev().collect();
    assert_eq!(linked(&archive, "index.html"), newest);
    let oldest: Vec<i64> = (1..=100).rev().collect();
    assert_eq!(linked(&archive, "page-1.html"), oldest);
    assert_eq!(linked(&archive, "s101.html"), [100, 102]);
    // The oldest snapshot of a page is compared with one on the next page.
    let page = fs::read_to_string(shown(&archive).join("page-2.html")).unwrap();
    let last = page.rsplit("id=\"s101\"").next().unwrap();
    assert!(last.contains("same text") || last.contains("text 99%"));
    assert_eq!(texts(&archive).len(), 305 + 4);
    let written = || {
        let path = shown(&archive).join("page-1.html");
        fs::metadata(path).unwrap().modified().unwrap()
    };
    rebuild(&archive, 1..=305);
    let before = written();
    rebuild(&archive, 1..=305);
    assert_eq!(written(), before, "an equal file stays");
}

#[test]
fn removed_snapshots_leave_the_list() {
    let archive = TestArchive::new();
    fill(&archive, 205);
    let remove = |id: i64| {
        remove_tree(&archive.archive().join(entry(id, id).directory)).unwrap();
    };
    (2..=110).for_each(remove);
    let found = flaws(&archive, [1]);
    assert!(!found.is_empty());
    rebuild(&archive, []);
    assert_eq!(linked(&archive, "s1.html"), [111]);
    assert_eq!(linked(&archive, "s111.html"), [1, 112]);
    assert_eq!(texts(&archive).len(), 96 + 1, "pages, and links of each snapshot");
    assert_eq!(flaws(&archive, []), []);
    (111..=205).for_each(remove);
    rebuild(&archive, []);
    assert!(!archive.archive().join(URLS).exists(), "one snapshot is left");
    assert_eq!(flaws(&archive, [1]), []);
    // The next one finds it.
    add(&archive, [300]);
    assert_eq!(linked(&archive, "index.html"), [300, 1]);
    remove(1);
    remove(300);
    rebuild(&archive, []);
    assert!(!archive.archive().join(".index/urls").exists());
    assert_eq!(flaws(&archive, []), []);
}

#[test]
fn flaws_are_found_and_repaired() {
    let archive = TestArchive::new();
    add(&archive, 1..=3);
    let shown = shown(&archive);
    let index = archive.archive().join(".index").join(directory_of(&list_of(URL)));
    type Damage<'a> = (&'a str, &'a str, Box<dyn Fn() + 'a>);
    let file = |name: &'static str, text: &'static str| {
        let path = shown.join(name);
        Box::new(move || fs::write(&path, text).unwrap())
    };
    let chunk = |text: String| {
        let path = index.join("1.json");
        Box::new(move || fs::write(&path, &text).unwrap())
    };
    let turned = serde_json::to_string(&[entry(3, 3), entry(2, 2), entry(1, 1)]).unwrap();
    let short = serde_json::to_string(&[entry(2, 2), entry(3, 3)]).unwrap();
    let cases: Vec<Damage<'_>> = vec![
        ("index.html", "it is not complete", file("index.html", "<p>")),
        ("s2.html", "it is not complete", file("s2.html", "")),
        ("s7.html", "no snapshot has it", file("s7.html", "")),
        (
            "s2.html",
            "the list is missing",
            Box::new(|| fs::remove_file(shown.join("s2.html")).unwrap()),
        ),
        ("index.html", "it lacks s1", chunk(short)),
        ("index.html", "its snapshots are not in the order of time", chunk(turned)),
        ("index.html", "it lacks s1 and 2 others", Box::new(|| remove_tree(&index).unwrap())),
        (
            "1.json",
            "the list cannot be read: EOF while parsing a list at line 1 column 1",
            chunk("[".to_owned()),
        ),
    ];
    for (name, what, damage) in cases {
        assert_eq!(flaws(&archive, 1..=3), [], "before: {what}");
        damage();
        let found = flaws(&archive, 1..=3);
        assert_eq!(found, [(name.to_owned(), what.to_owned())]);
        rebuild(&archive, 1..=3);
        assert_eq!(linked(&archive, "s2.html"), [1, 3], "after: {what}");
    }
    let lists = ArchiveIndex::look(archive.archive()).unwrap();
    let lists = lists.lists_of_urls().unwrap();
    assert_eq!(lists.into_iter().collect::<Vec<_>>(), [list_of(URL)]);
}

/// `cargo test --release -- --ignored cost_of_versions --nocapture` prints the cost.
#[test]
#[ignore = "a measurement"]
fn cost_of_versions_of_a_url() {
    let archive = TestArchive::new();
    let mut start = std::time::Instant::now();
    for id in 1..=10_000 {
        add(&archive, [id]);
        if id % 1000 == 0 {
            println!("{id}: {:.2} ms each", start.elapsed().as_secs_f64());
            start = std::time::Instant::now();
        }
    }
    remove_tree(&archive.archive().join(entry(1, 1).directory)).unwrap();
    let start = std::time::Instant::now();
    rebuild(&archive, []);
    println!("without the oldest: {} ms", start.elapsed().as_millis());
    let start = std::time::Instant::now();
    assert_eq!(flaws(&archive, []), []);
    println!("compared: {} ms", start.elapsed().as_millis());
}
