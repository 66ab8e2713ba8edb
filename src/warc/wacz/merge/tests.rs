use super::*;
use crate::sample::{about, add, at, bytes, file, get, post, recorded};
use crate::verify::check;
use crate::wacz::bed;

fn page(url: &str, text: Option<&str>) -> Page {
    Page {
        url: url.to_owned(),
        title: "A page".to_owned(),
        time: at("2026-11-26T09:53:41.25Z"),
        text: text.map(str::to_owned),
    }
}

fn one() -> File {
    recorded(|recording| {
        let html = [("content-type", "text/html")];
        add(recording, &get("https://page.test/", 200, &html), b"<html>");
        add(recording, &post("https://page.test/api", b"a=1"), b"{}");
        recording.add_page(page("https://page.test/", Some("words")));
    })
}

/// A recording with as many responses as the index has in two of its parts.
fn many() -> File {
    recorded(|recording| {
        for number in 0..301 {
            let url = format!("https://a.test/{number}");
            add(recording, &get(&url, 200, &[]), url.as_bytes());
        }
        recording.add_page(page("https://a.test/0", None));
    })
}

fn merged(sources: &[File], most: usize) -> File {
    let to = tempfile::tempfile().unwrap();
    let scratch = || tempfile::tempfile();
    let begun = Merge::with_memory(to.try_clone().unwrap(), &about(), &scratch, most);
    let mut merge = begun.unwrap();
    for source in sources {
        let wacz = Wacz::open(source.try_clone().unwrap()).unwrap();
        merge.add(&wacz).unwrap();
        for page in wacz.pages() {
            merge.add_page(page).unwrap();
        }
    }
    merge.finish().unwrap();
    to
}

fn answers(file: &File) -> Vec<(String, String, u16, Vec<u8>)> {
    let wacz = Wacz::open(file.try_clone().unwrap()).unwrap();
    assert_eq!(wacz.faults(), []);
    let answer = |entry: &Entry| {
        let mut answer = wacz.read(entry).unwrap();
        let mut body = Vec::new();
        answer.body.read_to_end(&mut body).unwrap();
        let key = (entry.url.clone(), entry.method.clone());
        (key.0, key.1, answer.status, body)
    };
    wacz.entries().iter().map(answer).collect()
}

#[test]
fn nothing_is_missing_and_nothing_contradicts() {
    let sources = [one(), many()];
    let mut expected: Vec<_> = sources.iter().flat_map(answers).collect();
    expected.sort();
    // With all lines in memory, with some, and with one.
    for most in [1 << 20, 20_000, 1] {
        let file = merged(&sources, most);
        let report = check(file.try_clone().unwrap()).unwrap();
        assert_eq!(report.flaws, []);
        assert_eq!(report.records, 3 + 2 * 303);
        let mut found = answers(&file);
        found.sort();
        assert!(found == expected);
        let wacz = Wacz::open(file).unwrap();
        let urls: Vec<_> = wacz.pages().iter().map(|page| page.url.as_str()).collect();
        assert_eq!(urls, ["https://page.test/", "https://a.test/0"]);
        assert_eq!(wacz.pages()[0].text.as_deref(), Some("words"));
    }
}

#[test]
fn records_are_copied_member_for_member() {
    let source = one();
    let wacz = Wacz::open(source.try_clone().unwrap()).unwrap();
    let mut records = Vec::new();
    let mut data = wacz.warcs[0].data.clone();
    data.read_to_end(&mut records).unwrap();
    let whole = bytes(&merged(&[source], 1 << 20));
    assert!(whole.windows(records.len()).any(|window| window == records));
}

#[test]
fn cut_and_plain_files_give_their_whole_records() {
    let complete = bytes(&many());
    let cut = file(&complete[..complete.len() / 2]);
    let count = answers(&cut).len();
    assert!((50..301).contains(&count), "{count}");
    let record = |url: &str| {
        let head = format!(
            "WARC/1.0\nWARC-Type: response\nWARC-Record-ID: <urn:uuid:{url}>\n\
             WARC-Target-URI: {url}\nWARC-Date: 2020-01-02T03:04:05Z\n\
             Content-Type: application/http;msgtype=response"
        );
        bed::record(&head, b"HTTP/1.1 200 OK\r\n\r\nplain")
    };
    let plain = [record("http://b.test/1"), record("http://b.test/2")].concat();
    let plain = file(&plain[..plain.len() - 7]);
    let file = merged(&[cut, plain], 1 << 20);
    assert_eq!(check(file.try_clone().unwrap()).unwrap().flaws, []);
    let all = answers(&file);
    assert_eq!(all.len(), count + 1);
    let plain = ("http://b.test/1".to_owned(), "GET".to_owned(), 200, b"plain".to_vec());
    assert!(all.contains(&plain));
}
