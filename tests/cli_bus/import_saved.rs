//! `archivist import` of pages that other programs saved: what is queued and staged, and what is refused.

use super::import_bed::{Bed, text};
use archivist_core::model::Lifecycle;
use archivist_shared::bus::documents::report::Snapshot;
use archivist_shared::staged::{RECORD, StagedPage};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

const SINGLE: &str = "<!DOCTYPE html> <html><!--\n Page saved with SingleFile \n url: http://a.test/\n \
    saved date: Fri Nov 27 2026 00:04:28 GMT+0000 (UTC)\n--><title>A</title><p>kept";
const MHTML: &str = "Snapshot-Content-Location: http://b.test/\nDate: Fri, 27 Nov 2026 00:05:04 GMT\nMIME-Version: 1.0\n\
    Content-Type: multipart/related; boundary=x\n\n--x\nContent-Type: text/html; charset=windows-1252\n\
    Content-Transfer-Encoding: quoted-printable\n\n<title>B=E4r</title>\n--x--\n";
const BOOK: &str = "<!doctype html><html data-scrapbook-source=\"http://c.test/\" data-scrapbook-create=\"20210203040506789\"><title>C</title>";

/// The files below a directory.
fn files(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                found.push(path.strip_prefix(directory).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn folders_of_a_page_are_those_to_which_it_refers() {
    let Some(bed) = Bed::new() else { return };
    let page = |picture: &str| {
        format!(
            "<!-- saved from url=(0014)http://d.test/ --><html><title>D</title><img src=\"{picture}\">"
        )
    };
    bed.file("Zeitung – D.html", page("./Zeitung%20%E2%80%93%20D-Dateien/b.png"));
    bed.file("Zeitung – D-Dateien/b.png", "picture");
    bed.file("Zeitung – D-other/c.png", "no part of the page");
    let output = bed.import(&["Zeitung – D.html"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let one = bed.staged("http://d.test/");
    let pictures: Vec<_> = files(&one).into_iter().filter(|name| name.ends_with(".png")).collect();
    assert_eq!(pictures, ["saved/Zeitung – D-Dateien/b.png"]);

    let Some(bed) = Bed::new() else { return };
    bed.file("d.html", page("d_fichiers/gone.png"));
    bed.file("d_fichiers/other.png", "picture");
    let output = bed.import(&["d.html"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let said = "'d.html': left out: d_fichiers/gone.png: the page shows it, and it is in no folder of the page";
    assert!(text(&output).contains(said), "{}", text(&output));

    // Its name begins with a d, too.
    let Some(bed) = Bed::new() else { return };
    bed.file("d.html", page("diary/p.png"));
    bed.file("diary/p.png", "no part of the page");
    let output = bed.import(&["d.html"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let staged = files(&bed.staged("http://d.test/"));
    assert!(!staged.iter().any(|name| name.contains("diary")), "{staged:?}");
}

#[test]
fn saved_pages_are_staged_with_their_files() {
    let Some(bed) = Bed::new() else { return };
    // Names say nothing.
    bed.file("a.txt", SINGLE);
    bed.file("b.html", MHTML);
    bed.file("c/index.html", BOOK);
    bed.file("c/p.png", "picture");
    let all = ["a.txt", "b.html", "c"];
    let dry = bed.import(&[&["--dry-run"], &all[..]].concat());
    assert_eq!(dry.status.code(), Some(0), "{}", text(&dry));
    assert_eq!(
        text(&dry),
        "'a.txt': page of SingleFile, 'A', http://a.test/, of 2026-11-27T00:04:28.000Z\n\
         'b.html': MHTML page, 'Bär', http://b.test/, of 2026-11-27T00:05:04.000Z\n\
         'c': page of WebScrapBook, 'C', http://c.test/, of 2021-02-03T04:05:06.789Z\n"
    );
    assert_eq!(bed.sent(), [Value::Null; 0]);

    let output = bed.import(&[&["--tag", "t"], &all[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let lines = bed.sent();
    let page = |url: &str, title: &str, time: &str| json!({"url": url, "title": title, "tags": [], "bookmarked_at": time});
    assert_eq!(
        lines,
        [
            page("http://a.test/", "A", "2026-11-27T00:04:28.000Z"),
            page("http://b.test/", "Bär", "2026-11-27T00:05:04.000Z"),
            page("http://c.test/", "C", "2021-02-03T04:05:06.789Z"),
        ]
    );
    let options = bed.options();
    assert_eq!(options.plugins, ["import", "text"]);
    assert_eq!(options.tags, ["t"]);
    assert_eq!(options.config["IMPORT_SOURCE"], "a.txt and 2 more");
    let one = bed.staged("http://a.test/");
    assert_eq!(
        files(&one),
        ["import/saved.json", RECORD, "singlefile/singlefile.html", "singlefile/stdout.log"]
    );
    let kept = fs::read_to_string(one.join("singlefile/singlefile.html")).unwrap();
    assert_eq!(kept, SINGLE);
    let two = bed.staged("http://b.test/");
    assert_eq!(
        files(&two),
        ["import/saved.json", RECORD, "saved/b.html", "saved/document.html", "saved/stdout.log"]
    );
    assert_eq!(fs::read_to_string(two.join("saved/b.html")).unwrap(), MHTML);
    let document = fs::read_to_string(two.join("saved/document.html")).unwrap();
    assert!(document.contains("Bär"), "{document}");
    let three = bed.staged("http://c.test/");
    assert_eq!(
        files(&three),
        ["import/saved.json", RECORD, "saved/c/index.html", "saved/c/p.png", "saved/stdout.log"]
    );
    let record = fs::read_to_string(three.join(RECORD)).unwrap();
    let record: StagedPage = serde_json::from_str(&record).unwrap();
    assert_eq!(record.results[0].output.as_deref(), Some("saved/c/index.html"));
}

#[test]
fn plain_html_needs_its_address() {
    let Some(bed) = Bed::new() else { return };
    bed.file("page.html", "<!doctype html><title>A</title>");
    bed.file("page_files/p.png", "picture");
    let output = bed.import(&["page.html"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("--url"), "{}", text(&output));
    let output = bed.import(&["--url", "http://a.test", "--date", "2020-01-02", "page.html"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let line = json!({"url": "http://a.test/", "title": "A", "tags": [], "bookmarked_at": "2020-01-02T00:00:00.000Z"});
    assert_eq!(bed.sent(), [line]);
    let staged = bed.staged("http://a.test/");
    let own = [
        "import/saved.json",
        RECORD,
        "saved/page.html",
        "saved/page_files/p.png",
        "saved/stdout.log",
    ];
    assert_eq!(files(&staged), own);
    for bad in ["file:///etc/passwd", "a b"] {
        let output = bed.import(&["--url", bad, "page.html"]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    }
    let output = bed.import(&["--url", "http://a.test/", "page.html", "page.html"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
}

/// One bad file does not keep the others out, and what is known is not staged again.
#[test]
fn bad_files_are_named_and_known_pages_left_out() {
    let Some(bed) = Bed::new() else { return };
    bed.file("a.html", SINGLE);
    bed.file("local.html", SINGLE.replace("http://a.test/", "file:///etc/passwd"));
    bed.file("none.html", SINGLE.replace(" url: http://a.test/\n", ""));
    bed.file("cut.webarchive", "bplist00");
    bed.file("again.html", SINGLE);
    let output = bed.import(&["local.html", "none.html", "cut.webarchive", "a.html", "again.html"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    for part in [
        "'local.html': its page 'file:///etc/passwd' is refused: file: URLs",
        "'none.html': page of SingleFile does not say of which page it is",
        "'cut.webarchive': failed to read the file: it is too short",
        "2 saved pages: 1 taken, 1 known",
    ] {
        assert!(text(&output).contains(part), "{part}: {}", text(&output));
    }
    assert_eq!(bed.sent().len(), 1);
    let mut crawl = super::crawl(Lifecycle::Sealed);
    crawl.config = bed.options().config;
    *bed.cardboard.crawls.lock().unwrap() = vec![crawl];
    *bed.cardboard.pages.lock().unwrap() = vec![Snapshot {
        url: "http://a.test/".to_owned(),
        bookmarked_at: Some("2026-11-27T00:04:28.000Z".to_owned()),
        ..super::snapshot(Lifecycle::Sealed)
    }];
    let output = bed.import(&["a.html"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("1 saved page: 0 taken, 1 known"), "{}", text(&output));
    assert_eq!(bed.sent(), [Value::Null; 0]);
}

#[test]
fn entries_are_kept_without_a_visit_and_with_their_texts() {
    let Some(bed) = Bed::new() else { return };
    bed.file("list.csv", "url,title,tags\nhttp://a.test/,A,x\n");
    let output = bed.import(&["--keep-only", "list.csv"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let options = bed.options();
    assert_eq!((options.plugins, options.only_new), (vec!["import".to_owned()], true));
    assert_eq!(options.config["IMPORT_KEEP"], "true");
    assert!(!options.config.contains_key("IMPORT_STAGED"));
    assert_eq!(bed.sent()[0]["url"], "http://a.test/");

    let wallabag = json!([
        {"is_archived": 0, "url": "http://b.test/", "title": "B", "tags": ["y"], "content": "<p>Bläuling</p>",
            "created_at": "2020-01-02T03:04:05+00:00"},
        {"is_archived": 0, "url": "http://c.test/", "title": "C", "content": ""},
    ]);
    bed.file("wallabag.json", wallabag.to_string());
    let output = bed.import(&["--keep-only", "wallabag.json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(
        text(&output).ends_with("'wallabag.json': 2 taken, 0 known, 0 refused\n"),
        "{}",
        text(&output)
    );
    let lines = bed.sent();
    assert_eq!((lines.len(), &lines[0]["url"]), (1, &json!("http://b.test/")));
    assert_eq!(lines[0]["bookmarked_at"], "2020-01-02T03:04:05Z");
    assert_eq!(bed.options().plugins, ["import", "text"]);
    let staged = bed.staged("http://b.test/");
    assert_eq!(
        files(&staged),
        ["import/saved.json", RECORD, "saved/document.html", "saved/stdout.log"]
    );
    let kept = fs::read_to_string(staged.join("saved/document.html")).unwrap();
    assert!(kept.ends_with("<p>Bläuling</p>"), "{kept}");

    // Entries of any list that were kept before are known to --keep-only, and no others.
    let mut crawl = super::crawl(Lifecycle::Sealed);
    crawl.config = bed.options().config;
    *bed.cardboard.crawls.lock().unwrap() = vec![crawl];
    *bed.cardboard.pages.lock().unwrap() =
        vec![Snapshot { url: "http://a.test/".to_owned(), ..super::snapshot(Lifecycle::Sealed) }];
    let output = bed.import(&["--keep-only", "list.csv"]);
    assert!(text(&output).contains("nothing new"), "{}", text(&output));
    let output = bed.import(&["list.csv"]);
    assert!(text(&output).contains("1 taken, 0 known"), "{}", text(&output));
    assert_eq!(bed.options().plugins, [""; 0]);
}

#[test]
fn page_that_cannot_be_copied_is_named_and_nothing_is_queued() {
    let Some(bed) = Bed::new() else { return };
    // In the archive it gets a longer name.
    let name = format!(".{}", "x".repeat(250));
    bed.file(&name, MHTML);
    let output = bed.import(&[&name, &name]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("failed to copy '.xxx"), "{said}");
    assert!(said.contains("2 saved pages: 0 taken, 0 known"), "{said}");
    assert_eq!(bed.sent(), [Value::Null; 0]);
    let left = files(&bed.staging());
    assert!(left.iter().all(|file| !file.contains('/')), "{}", left.join(" "));
}

/// Writes hostile files into the working directory, and the name of each of them.
const HOSTILE: &str = r#"
import os, zipfile
page = '<!doctype html><html data-scrapbook-source="http://{0}.test/" data-scrapbook-create="20210203040506789"><title>{0}</title>'
with zipfile.ZipFile("dots.htz", "w") as file:
    file.writestr("index.html", page.format("dots"))
    file.writestr("../" * 9 + "srv/saved-escaped", "x")
with zipfile.ZipFile("bomb.htz", "w", zipfile.ZIP_DEFLATED) as file:
    with file.open("index.html", "w", force_zip64=True) as member:
        for _ in range(1 << 9):
            member.write(b"<" * (1 << 20))
with open("length.webarchive", "wb") as file:
    file.write(b"bplist00" + b"\xdf\x13" + b"\xff" * 8 + b"\0" * 6 + b"\1\1")
    file.write(b"".join(number.to_bytes(8, "big") for number in (1, 0, 8)))
with open("header.mhtml", "wb") as file:
    file.write(b"MIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\nX: " + b"x" * (1 << 20))
with open("deep.html", "w") as file:
    file.write("<!-- saved from url=(0017)http://deep.test/ --><html><title>Deep</title>" + "<div>" * 100000 + "end")
with open("bytes.html", "wb") as file:
    file.write(b"<!-- saved from url=(0018)http://bytes.test/ --><html><title>B\xff\xfe</title><p>Aurora \xc3\x28 \xf0\x9f")
os.mkdir("links")
with open("links/index.html", "w") as file:
    file.write(page.format("links"))
os.symlink("/etc/passwd", "links/passwd")
"#;

#[test]
fn hostile_files_are_named_and_lead_to_nothing_outside() {
    let Some(bed) = Bed::new() else { return };
    let mut python = Command::new("python3");
    python.args(["-c", HOSTILE]).current_dir(bed.top.path());
    assert!(python.status().unwrap().success());
    let all = [
        "bomb.htz",
        "bytes.html",
        "deep.html",
        "dots.htz",
        "header.mhtml",
        "length.webarchive",
        "links",
    ];
    let output = bed.import(&all);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    for part in [
        "'bomb.htz': failed to read the file: 'index.html': ",
        "srv/saved-escaped' leads out of the archive",
        "'length.webarchive': failed to read the file: ",
        "'header.mhtml': failed to read the file: ",
        "links/passwd: a symbolic link",
        "3 saved pages: 3 taken, 0 known",
    ] {
        assert!(text(&output).contains(part), "{part}: {}", text(&output));
    }
    assert!(!Path::new("/srv/saved-escaped").exists());
    let lines = bed.sent();
    let titles: Vec<_> = lines.iter().map(|line| line["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["B\u{ff}\u{fe}", "Deep", "links"]);
    assert_eq!(
        files(&bed.staged("http://links.test/").join("saved")),
        ["links/index.html", "stdout.log"]
    );
    let document = fs::read(bed.staged("http://bytes.test/").join("saved/bytes.html")).unwrap();
    assert!(document.windows(6).any(|bytes| bytes == b"Aurora"));
}
