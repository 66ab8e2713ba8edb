use super::*;
use crate::exchange::Exchange;
use crate::sample::{add, at, get, post, recorded};
use std::io::Read;

/// An index of one recording with these exchanges; the body of each is its URL.
fn index(exchanges: &[Exchange]) -> Index {
    let file = recorded(|recording| {
        for exchange in exchanges {
            add(recording, exchange, exchange.url.as_bytes());
        }
    });
    let mut index = Index::new();
    index.add(Arc::new(Wacz::open(file).unwrap()));
    index
}

fn pages(urls: &[&str]) -> Index {
    let exchanges: Vec<_> = urls.iter().map(|url| get(url, 200, &[])).collect();
    index(&exchanges)
}

fn wanted<'a>(url: &'a str, method: &'a str, posted: Option<&'a [u8]>) -> Wanted<'a> {
    Wanted {
        url,
        method,
        posted,
        near: at("2026-11-26T09:53:41Z"),
    }
}

fn answer(index: &Index, wanted: &Wanted<'_>) -> Option<(String, Match)> {
    let found = index.find(wanted)?;
    let mut body = String::new();
    let mut answer = found.wacz.read(&found.entry).unwrap();
    answer.body.read_to_string(&mut body).unwrap();
    Some((body, found.fit))
}

#[test]
fn exact_url_precedes_all_rules() {
    let urls = [
        "https://a.test/x?b=1&a=2",
        "https://a.test/x?a=2&b=1",
        "https://a.test/X?a=2&b=1",
    ];
    let index = pages(&urls);
    assert_eq!(index.len(), 3);
    for url in urls {
        let expected = Some((url.to_owned(), Match::Exact));
        assert_eq!(answer(&index, &wanted(url, "GET", None)), expected);
        let with_fragment = format!("{url}#part");
        assert_eq!(
            answer(&index, &wanted(&with_fragment, "GET", None)),
            expected
        );
    }
    assert!(answer(&index, &wanted("https://b.test/x", "GET", None)).is_none());
    assert!(answer(&index, &wanted(urls[0], "POST", None)).is_none());
}

#[test]
fn rules_find_what_differs_without_meaning() {
    for (recorded, asked, rule) in [
        (
            "https://a.test/x?a=1",
            "http://www.a.test/x?a=1",
            Some("key"),
        ),
        (
            "https://a.test/x?a=1&utm_source=b",
            "https://a.test/x?a=1",
            Some("tracking"),
        ),
        (
            "https://a.test/x?_=1732614821123",
            "https://a.test/x?_=1732614829999",
            Some("cache-breaking"),
        ),
        (
            "https://a.test/x?_=1732614821123",
            "https://a.test/x?gclid=7",
            Some("cache-breaking"),
        ),
        (
            "https://a.test/x?callback=jq_1",
            "https://a.test/x?callback=jq_2&_=99999999",
            Some("callback"),
        ),
        (
            "https://a.test/a.css?v=1",
            "https://a.test/a.css?v=2",
            Some("static"),
        ),
        (
            "https://a.test/x?a=1&b=2&c=3",
            "https://a.test/x?a=1&b=2&c=4",
            Some("arguments"),
        ),
        (
            "https://a.test/x?a=1&b=2&c=3",
            "https://a.test/x?a=1&b=5&c=4",
            None,
        ),
        ("https://a.test/x?a=1&b=2", "https://a.test/x?a=1", None),
        (
            "https://a.test/x?page=10000001",
            "https://a.test/x?page=10000002",
            None,
        ),
        ("https://a.test/x", "https://a.test/y", None),
    ] {
        let index = pages(&[recorded]);
        let found = answer(&index, &wanted(asked, "GET", None));
        let expected = rule.map(|rule| (recorded.to_owned(), Match::Fuzzy(rule)));
        assert_eq!(found, expected, "{recorded} {asked}");
    }
}

#[test]
fn query_of_a_static_file_counts_if_answers_differ() {
    let index = pages(&["https://a.test/a.js?v=1", "https://a.test/a.js?v=2"]);
    assert!(answer(&index, &wanted("https://a.test/a.js?v=3", "GET", None)).is_none());
}

#[test]
fn posted_body_is_part_of_the_request() {
    let url = "https://a.test/api";
    let mut two = post(url, b"{\"query\":\"two\",\"size\":10,\"_\":1732614821123}");
    two.time = at("2026-11-26T09:53:42Z");
    let index = index(&[post(url, b"q=one"), two, get(url, 200, &[])]);
    let find = |posted| {
        index
            .find(&wanted(url, "POST", posted))
            .map(|found| (found.entry.posted.unwrap_or_default(), found.fit))
    };
    assert_eq!(
        find(Some(b"q=one")),
        Some(("q=one".to_owned(), Match::Exact))
    );
    let two = Some(&b"{\"query\":\"two\",\"size\":10,\"_\":1732614829999}"[..]);
    let expected = "query=two&size=10&_=1732614821123";
    assert_eq!(
        find(two),
        Some((expected.to_owned(), Match::Fuzzy("cache-breaking")))
    );
    assert_eq!(find(Some(b"q=three")), None);
    assert_eq!(find(None), None);
    let head = index.find(&wanted(url, "HEAD", None)).unwrap();
    assert_eq!(
        (head.entry.method.as_str(), head.fit),
        ("GET", Match::Fuzzy("head"))
    );
}

#[test]
fn nearest_of_several_recordings_answers() {
    let url = "https://a.test/";
    let recording = |time: &str, status| {
        let file = recorded(|recording| {
            let mut exchange = get(url, status, &[]);
            exchange.time = at(time);
            add(recording, &exchange, b"");
        });
        Arc::new(Wacz::open(file).unwrap())
    };
    let mut index = Index::new();
    index.add(recording("2026-01-01T00:00:00Z", 200));
    index.add(recording("2026-03-01T00:00:00.1Z", 302));
    index.add(recording("2026-03-01T00:00:00.7Z", 201));
    let status = |near| {
        let near = at(near);
        let wanted = Wanted {
            near,
            ..wanted(url, "GET", None)
        };
        index.find(&wanted).unwrap().entry.status
    };
    assert_eq!(status("2026-01-20T00:00:00Z"), Some(200));
    assert_eq!(
        status("2026-03-01T00:00:00Z"),
        Some(201),
        "the redirect leads here"
    );
    assert_eq!(status("2030-01-01T00:00:00Z"), Some(201));
}
