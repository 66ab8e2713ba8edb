//! Lines of a URLFile= that are refused, as users see them.

use crate::tests::bed::Bed;
use crate::tests::journal::with_journal;
use crate::watch::orders::WatchCall;
use archivist_core::model::CheckKind;
use std::fs;

#[test]
fn show_and_why_name_the_refused_lines_of_a_url_file() {
    let mut bed = Bed::new();
    let file = bed.directory.path().join("sites.txt");
    let list = "\u{feff}http://a.example/shop\r\nhttp://a.example/blog\r\nexample.invalid/no-scheme\r\nftp://x/\r\n";
    fs::write(&file, list).unwrap();
    bed.declare("listed", &format!("[Watch]\nURLFile={}\n", file.display()));
    let text = bed.ask(WatchCall::List(None)).try_recv().unwrap().unwrap();
    let watches: Vec<archivist_shared::bus::documents::watches::Watch> =
        serde_json::from_str(&text).unwrap();
    let sites: Vec<_> = watches[0].sites.iter().map(|site| site.url.as_str()).collect();
    assert_eq!(sites, ["http://a.example/shop", "http://a.example/blog"]);
    let problems = &watches[0].problems;
    let line = |number: u32| format!("{}:{number}: ", file.display());
    assert!(problems[0].starts_with(&line(3)) && problems[0].contains("not a URL"));
    assert!(problems[1].starts_with(&line(4)) && problems[1].contains("ftp:"));
    let why = bed.ask(WatchCall::Why("listed".into())).try_recv().unwrap();
    let why: archivist_shared::bus::documents::report::WhyWatch =
        serde_json::from_str(&why.unwrap()).unwrap();
    let reasons: Vec<_> = why.reasons.iter().take(2).map(|reason| &reason.text).collect();
    assert_eq!(reasons, [&problems[0], &problems[1]]);
}

#[test]
fn refused_lines_of_a_url_file_are_logged_when_they_change() {
    with_journal(|journal| {
        let mut bed = Bed::new();
        let file = bed.directory.path().join("sites.txt");
        std::fs::write(&file, "\u{feff}http://a.example/\na.example/b\n").unwrap();
        let text = format!("[Watch]\nURLFile={}\n", file.display());
        bed.declare("listed", &text);
        let check = |bed: &mut Bed| {
            let queued = bed.queue("listed", &[CheckKind::Status]).unwrap();
            let count = queued.queued.len() + queued.open_ids.len();
            (count, journal.take("refused"))
        };
        let (count, lines) = check(&mut bed);
        assert_eq!((count, lines.len()), (1, 1));
        let want = format!("{}:2: 'a.example/b' refused: it is not a URL", file.display());
        assert!(lines[0].starts_with(&want), "{lines:?}");
        assert_eq!(check(&mut bed).1, [""; 0]);
        std::fs::write(&file, "http://a.example/\nhttp://a.example/c A title\n").unwrap();
        assert!(check(&mut bed).1[0].contains("text after the address"));
        bed.until_quiet();
    });
}
