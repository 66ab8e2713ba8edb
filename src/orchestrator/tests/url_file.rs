//! Lines of a URLFile= that are refused, as users see them.

use super::bed::Bed;
use crate::calls::watches::WatchCall;
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
