//! `archivist import` of bookmark files and reading lists: what is queued, and what is said.

use super::import_bed::Bed;
use super::{Cardboard, snapshot};
use archivist_core::model::Lifecycle;
use archivist_shared::bus::documents::report::{Refused, Snapshot};
use serde_json::{Value, json};
use std::io::Write;

const BOOKMARKS: &str = r#"<!DOCTYPE NETSCAPE-Bookmark-file-1>
<DL><p>
<DT><H3>News</H3>
<DL><p>
<DT><A HREF="http://a.test/" ADD_DATE="1700000000" TAGS="x">A &amp; B</A>
<DT><A HREF="place:sort=8">Recent</A>
</DL><p>
<DT><H3>Later</H3>
<DL><p>
<DT><A HREF="http://a.test/" ADD_DATE="1600000000">A</A>
<DT><A HREF="http://b.test/">B</A>
</DL><p>
</DL>"#;

fn page(url: &str, title: Option<&str>, tags: &[&str], time: Option<&str>) -> Value {
    json!({"url": url, "title": title, "tags": tags, "bookmarked_at": time})
}

#[test]
fn bookmarks_are_queued_with_what_the_file_says_of_them() {
    let Some(bed) = Bed::new() else { return };
    // Neither its name nor its first line says what it is.
    let file = bed.file("export.csv", format!("\u{feff}\n{BOOKMARKS}").as_bytes());
    let said = "Netscape bookmark file: 2 pages, 1 of them again, 2 with tags, 1 with dates from \
                2020-09-13 to 2020-09-13, 1 refused";
    let (code, stdout, stderr) = bed.bus.run(&["import", "--dry-run", &file]);
    assert_eq!((code, stdout), (3, format!("'{file}': {said}\n")));
    assert!(stderr.contains("line 7: 'place:sort=8' refused: "), "{stderr}");
    assert_eq!(bed.sent(), Vec::<Value>::new());

    let (code, stdout, stderr) = bed.bus.run(&["import", "--tag", "mine", &file]);
    assert_eq!(code, 3, "{stderr}");
    let report = format!("queued 2 URLs as c1\n'{file}': 2 taken, 0 known, 1 refused\n");
    assert!(stdout.ends_with(&report), "{stdout}");
    let first = page(
        "http://a.test/",
        Some("A & B"),
        &["x", "News", "Later", "mine"],
        Some("2020-09-13T12:26:40Z"),
    );
    let second = page("http://b.test/", Some("B"), &["Later", "mine"], None);
    assert_eq!(bed.sent(), [first, second]);
    let options = bed.options();
    assert_eq!((options.tags, options.only_new), (vec!["mine".to_owned()], true));
    assert_eq!(options.config["IMPORT_SOURCE"], "export.csv");

    // The same file again: the crawl has its digest, and all of its pages.
    let known = ["http://a.test/", "http://b.test/"]
        .map(|url| Snapshot { url: url.to_owned(), ..snapshot(Lifecycle::Cancelled) });
    *bed.cardboard.pages.lock().unwrap() = known.to_vec();
    let (code, stdout, _) = bed.bus.run(&["import", "--folders", "ignore", &file]);
    assert_eq!(code, 3);
    assert!(stdout.contains("\nnothing new: "), "{stdout}");
    assert_eq!(bed.sent(), Vec::<Value>::new());
    // Another file with one of the pages is another list: the orchestrator decides.
    let other = bed.file("other", b"http://b.test/\n");
    let (code, stdout, stderr) = bed.bus.run(&["import", &other]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.contains("list of addresses: 1 page, 0 with tags, none with a date\n"),
        "{stdout}"
    );
    assert_eq!(bed.sent().len(), 1);
}

#[test]
fn refusals_of_the_orchestrator_name_the_line_of_the_file() {
    let refused = Refused { line: 2, text: "{".into(), why: "no".into() };
    let cardboard = Cardboard { refused: vec![refused], ..Cardboard::default() };
    let Some(bed) = Bed::with(cardboard) else { return };
    let file = bed.file("bookmarks.html", BOOKMARKS.as_bytes());
    let (code, stdout, stderr) = bed.bus.run(&["import", &file]);
    assert_eq!(code, 3);
    assert!(stderr.contains("line 11: 'http://b.test/' refused: no\n"), "{stderr}");
    assert!(stdout.contains("1 taken, 0 known, 2 refused\n"), "{stdout}");
}

/// A ZIP file with files as they are.
fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut directory = Vec::new();
    for (name, content) in files {
        let mut crc = flate2::Crc::new();
        crc.update(content.as_bytes());
        let size = (content.len() as u32).to_le_bytes();
        let common = [
            &[20, 0, 0, 8, 0, 0, 0, 0, 0, 0][..],
            &crc.sum().to_le_bytes(),
            &size,
            &size,
            &(name.len() as u16).to_le_bytes(),
            &[0, 0],
        ]
        .concat();
        directory.extend(
            [
                &b"PK\x01\x02\x14\x00"[..],
                &common,
                &[0; 10],
                &(file.len() as u32).to_le_bytes(),
                name.as_bytes(),
            ]
            .concat(),
        );
        file.write_all(
            &[&b"PK\x03\x04"[..], &common, name.as_bytes(), content.as_bytes()].concat(),
        )
        .unwrap();
    }
    let count = (files.len() as u16).to_le_bytes();
    let end = [
        &b"PK\x05\x06\0\0\0\0"[..],
        &count,
        &count,
        &(directory.len() as u32).to_le_bytes(),
        &(file.len() as u32).to_le_bytes(),
        &[0, 0],
    ]
    .concat();
    [file, directory, end].concat()
}

#[test]
fn exports_in_a_zip_file_are_one_crawl() {
    let Some(bed) = Bed::new() else { return };
    let head = "title,url,time_added,tags,status\n";
    let first = format!("{head}\"A, 1\",http://a.test/,1700000000,x|y,unread\n");
    let second = format!("{head},http://b.test/,1700000000,,archive\nC,ftp://c.test/,0,,\n");
    let pocket = zip(&[
        ("pocket/part_000000.csv", first.as_str()),
        ("pocket/part_000001.csv", &second),
        ("pocket/annotations/part_000000.json", "[{\"url\":\"http://no.test/\"}]"),
    ]);
    let file = bed.file("pocket.zip", &pocket);
    let (code, stdout, stderr) = bed.bus.run(&["import", &file]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stdout.contains("Pocket table and 1 more files in a ZIP file: 2 pages, "), "{stdout}");
    assert!(
        stderr.contains("pocket/part_000001.csv, line 3: 'ftp://c.test/' refused: "),
        "{stderr}"
    );
    let time = Some("2023-11-14T22:13:20Z");
    let first = page("http://a.test/", Some("A, 1"), &["x", "y"], time);
    assert_eq!(bed.sent(), [first, page("http://b.test/", None, &[], time)]);
}

/// What `list --json` prints can be imported into another archive.
#[test]
fn a_list_of_snapshots_is_imported_with_everything() {
    let Some(bed) = Bed::new() else { return };
    let pages = ["http://a.test/?x=1&y=%20", "http://b.test/"].map(|url| Snapshot {
        url: url.to_owned(),
        title: Some("Ein Titel, \"so\" <b>".to_owned()),
        tags: vec!["two words".to_owned(), "日本".to_owned()],
        bookmarked_at: Some("2019-01-02T03:04:05Z".to_owned()),
        ..snapshot(Lifecycle::Sealed)
    });
    *bed.cardboard.pages.lock().unwrap() = pages.to_vec();
    let (code, listed, _) = bed.bus.run(&["list", "snapshots", "--json"]);
    assert_eq!(code, 0);
    bed.cardboard.pages.lock().unwrap().clear();
    let file = bed.file("list.json", listed.as_bytes());
    let (code, _, stderr) = bed.bus.run(&["import", &file]);
    assert_eq!(code, 0, "{stderr}");
    let title = Some("Ein Titel, \"so\" <b>");
    let time = Some("2019-01-02T03:04:05Z");
    let tags = ["two words", "日本"];
    let expected = [
        page("http://a.test/?x=1&y=%20", title, &tags, time),
        page("http://b.test/", title, &tags, time),
    ];
    assert_eq!(bed.sent(), expected);
}

#[test]
fn a_file_that_is_no_list_is_named() {
    let Some(bed) = Bed::new() else { return };
    for (content, reason) in [
        (&b"<!doctype html><title>x</title><p>"[..], "it is an HTML page"),
        (b"%PDF-1.7", "it is a PDF document"),
        (b"{\n \"url\": \"http://a.test/", "it is a broken JSON document"),
        (&zip(&[("x.txt", "http://a.test/")]), "it is a ZIP file without a list of pages"),
        (b"", "has no page to archive"),
    ] {
        let (code, _, stderr) = bed.bus.run(&["import", &bed.file("file", content)]);
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains(reason), "{reason}: {stderr}");
    }
    // The other files of a command are imported.
    let page = bed.file("page.html", b"<!doctype html><title>x</title><p>");
    let list = bed.file("list", b"http://a.test/");
    let (code, stdout, stderr) = bed.bus.run(&["import", &page, &list]);
    assert_eq!(code, 3);
    assert!(stderr.contains("it is an HTML page") && stdout.contains("1 taken"), "{stderr}");
}
