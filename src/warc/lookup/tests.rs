use super::*;
use crate::cdxj::{self, Line};
use crate::exchange::Exchange;
use crate::sample::{add, at, get, post, recorded};
use crate::wacz::Page;
use crate::wacz::bed::{packed_index, with_members};
use jiff::SignedDuration;
use std::fs::File;
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
    let near = at("2026-11-26T09:53:41Z");
    Wanted { url, method, posted, range: None, near, redirected: None, given: 0 }
}

fn answer(index: &Index, wanted: &Wanted<'_>) -> Option<(String, Match)> {
    let found = index.find(wanted)?;
    let mut body = String::new();
    let mut answer = found.read().unwrap();
    answer.body.read_to_string(&mut body).unwrap();
    Some((body, found.fit))
}

#[test]
fn exact_url_precedes_all_rules() {
    let urls = ["https://a.test/x?b=1&a=2", "https://a.test/x?a=2&b=1", "https://a.test/X?a=2&b=1"];
    let index = pages(&urls);
    for url in urls {
        let expected = Some((url.to_owned(), Match::Exact));
        assert_eq!(answer(&index, &wanted(url, "GET", None)), expected);
        let with_fragment = format!("{url}#part");
        assert_eq!(answer(&index, &wanted(&with_fragment, "GET", None)), expected);
    }
    assert!(answer(&index, &wanted("https://b.test/x", "GET", None)).is_none());
    assert!(answer(&index, &wanted(urls[0], "POST", None)).is_none());
}

#[test]
fn rules_find_what_differs_without_meaning() {
    for (recorded, asked, rule) in [
        ("https://a.test/x?a=1", "http://www.a.test/x?a=1", Some("key")),
        ("https://a.test/x?a=1&utm_source=b", "https://a.test/x?a=1", Some("tracking")),
        (
            "https://a.test/x?_=1732614821123",
            "https://a.test/x?_=1732614829999",
            Some("cache-breaking"),
        ),
        ("https://a.test/x?_=1732614821123", "https://a.test/x?gclid=7", Some("cache-breaking")),
        (
            "https://a.test/x?callback=jq_1",
            "https://a.test/x?callback=jq_2&_=99999999",
            Some("callback"),
        ),
        ("https://a.test/a.css?v=1", "https://a.test/a.css?v=2", Some("static")),
        ("https://a.test/x?a=1&b=2&c=3", "https://a.test/x?a=1&b=2&c=4", Some("arguments")),
        ("https://a.test/x?a=1&b=2&c=3", "https://a.test/x?a=1&b=5&c=4", None),
        ("https://a.test/x?a=1&b=2", "https://a.test/x?a=1", None),
        ("https://a.test/x?page=10000001", "https://a.test/x?page=10000002", None),
        ("https://a.test/x", "https://a.test/y", None),
    ] {
        let index = pages(&[recorded]);
        let found = answer(&index, &wanted(asked, "GET", None));
        let expected = rule.map(|rule| (recorded.to_owned(), Match::Fuzzy(rule)));
        assert_eq!(found, expected, "{recorded} {asked}");
    }
}

/// Two loads of one page: its scripts make parts of addresses and bodies of chance and of the time.
#[test]
fn ids_of_another_visit_do_not_count() {
    const A: &str = "550e8400-e29b-41d4-a716-446655440000";
    const B: &str = "6fa459ea-ee8a-4ca4-894e-db77e160355e";
    let path = |id: &str, time: u64| format!("https://a.test/s/{id}/{time}/data");
    let recorded = [path(A, 1_764_150_821_123), "https://a.test/x?a=1".to_owned()];
    let index = pages(&recorded.each_ref().map(String::as_str));
    let found = answer(&index, &wanted(&path(B, 1_764_150_822_000), "GET", None));
    assert_eq!(found, Some((recorded[0].clone(), Match::Fuzzy("id"))));
    let exact = answer(&index, &wanted(&recorded[0], "GET", None));
    assert_eq!(exact, Some((recorded[0].clone(), Match::Exact)));
    // A number far from the time of the page is no time, and a name no id.
    for other in [path(B, 1_264_150_822_000), path("b", 1_764_150_821_123)] {
        assert_eq!(answer(&index, &wanted(&other, "GET", None)), None, "{other}");
    }
}

#[test]
fn nearest_time_answers_and_ambiguous_ids_do_not() {
    let poll = |ms: u64| format!("https://a.test/poll/1764150{ms:06}/news");
    let index = pages(&[&poll(821_000), &poll(826_000), &poll(831_000)]);
    for (asked, expected) in [(821_030, 821_000), (826_900, 826_000), (840_000, 831_000)] {
        let found = answer(&index, &wanted(&poll(asked), "GET", None));
        assert_eq!(found, Some((poll(expected), Match::Fuzzy("id"))));
    }
    assert_eq!(answer(&index, &wanted(&poll(823_500), "GET", None)), None, "equally near");
    let poll = |ms: u64| format!("https://a.test/poll?_=1764150{ms:06}");
    let index = pages(&[&poll(821_000), &poll(826_000)]);
    let found = answer(&index, &wanted(&poll(826_030), "GET", None));
    assert_eq!(found, Some((poll(826_000), Match::Fuzzy("cache-breaking"))));
    let item = |id: &str| format!("https://a.test/i/d41d8cd98f00b204e980099{id}");
    let index = pages(&[&item("1"), &item("2")]);
    assert_eq!(answer(&index, &wanted(&item("3"), "GET", None)), None);
    let arguments = ["https://a.test/x?a=1&b=2&c=3", "https://a.test/x?a=1&b=2&c=4"];
    let found = answer(&pages(&arguments), &wanted("https://a.test/x?a=1&b=2&c=5", "GET", None));
    assert_eq!(found, None);
}

#[test]
fn ids_with_the_same_answer_are_not_ambiguous() {
    let url = |id: &str| format!("https://a.test/b/d41d8cd98f00b204e980099{id}");
    let file = recorded(|recording| {
        for id in ["1", "2"] {
            add(recording, &get(&url(id), 200, &[]), b"ok");
        }
    });
    let mut index = Index::new();
    index.add(Arc::new(Wacz::open(file).unwrap()));
    let found = answer(&index, &wanted(&url("3"), "GET", None));
    assert_eq!(found, Some(("ok".to_owned(), Match::Fuzzy("id"))));
}

#[test]
fn page_is_no_answer_to_the_link_to_another_one() {
    let url = |id: &str| format!("https://a.test/article/d41d8cd98f00b204e980099{id}");
    let file = recorded(|recording| {
        add(recording, &get(&url("1"), 200, &[]), b"one");
        let (title, time) = (String::new(), at("2026-11-26T09:53:41Z"));
        recording.add_page(Page { url: url("1"), title, time, text: None });
    });
    let mut index = Index::new();
    index.add(Arc::new(Wacz::open(file).unwrap()));
    assert_eq!(answer(&index, &wanted(&url("2"), "GET", None)), None);
}

#[test]
fn ids_in_posted_bodies_do_not_count() {
    let url = "https://a.test/api";
    let body = |id: &str, query: &str| {
        format!(
            "{{\"request\": {{\"id\": \"{id}\", \"sent\": \"2026-11-26T09:53:41Z\"}}, \"query\": \"{query}\"}}"
        )
    };
    let (one, two) =
        ("550e8400-e29b-41d4-a716-446655440000", "6fa459ea-ee8a-4ca4-894e-db77e160355e");
    let recorded = [post(url, body(one, "a").as_bytes()), post(url, b"sid=ab12cd&part=2")];
    let index = index(&recorded);
    let find = |posted: &str| {
        let found = index.find(&wanted(url, "POST", Some(posted.as_bytes())))?;
        Some((found.entry.posted.unwrap_or_default(), found.fit))
    };
    let (posted, fit) = find(&body(two, "a")).unwrap();
    assert!(posted.contains(one) && fit == Match::Fuzzy("id"), "{posted} {fit:?}");
    assert_eq!(find(&body(two, "b")), None);
    let form = Some(("sid=ab12cd&part=2".to_owned(), Match::Fuzzy("id")));
    assert_eq!(find("sid=7731ff&part=2"), form);
    assert_eq!(find("sid=7731ff&part=3"), None);
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
    assert_eq!(find(Some(b"q=one")), Some(("q=one".to_owned(), Match::Exact)));
    let two = Some(&b"{\"query\":\"two\",\"size\":10,\"_\":1732614829999}"[..]);
    let expected = "query=two&size=10&_=1732614821123";
    assert_eq!(find(two), Some((expected.to_owned(), Match::Fuzzy("cache-breaking"))));
    assert_eq!(find(Some(b"q=three")), None);
    assert_eq!(find(None), None);
    let head = index.find(&wanted(url, "HEAD", None)).unwrap();
    assert_eq!((head.entry.method.as_str(), head.fit), ("GET", Match::Fuzzy("head")));
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
        let wanted = Wanted { near, ..wanted(url, "GET", None) };
        index.find(&wanted).unwrap().entry.status
    };
    assert_eq!(status("2026-01-20T00:00:00Z"), Some(200));
    assert_eq!(status("2026-03-01T00:00:00Z"), Some(302));
    let redirected = Some(at("2026-03-01T00:00:00.1Z"));
    let near = at("2026-03-01T00:00:00Z");
    let wanted = Wanted { near, redirected, ..wanted(url, "GET", None) };
    assert_eq!(index.find(&wanted).unwrap().entry.status, Some(201), "the redirect leads here");
    assert_eq!(status("2030-01-01T00:00:00Z"), Some(201));
}

/// A page that asks until something is done would ask without an end.
#[test]
fn answers_of_one_visit_are_given_in_their_order() {
    let url = "https://a.test/";
    let times = ["09:00:00Z", "09:53:41.1Z", "09:53:42Z", "09:53:43Z", "10:09:00Z"];
    let exchanges = (200..).zip(times).map(|(status, time)| {
        let time = at(&format!("2026-11-26T{time}"));
        crate::exchange::Exchange { time, ..get(url, status, &[]) }
    });
    let index = index(&exchanges.collect::<Vec<_>>());
    let status = |given| {
        let wanted = Wanted { given, ..wanted(url, "GET", None) };
        index.find(&wanted).unwrap().entry.status.unwrap()
    };
    assert_eq!([0, 1, 2, 3, 4].map(status), [201, 202, 203, 203, 203]);
}

/// URLs that differ in what keys and rules leave out.
const URLS: [&str; 16] = [
    "https://a.test/",
    "https://a.test/?b=1&a=2",
    "https://a.test/x",
    "https://a.test/x/",
    "https://www.a.test/X?b=1&a=2",
    "https://a.test/x?a=2&b=1&_=1732614821123",
    "https://a.test/x//y/?utm_source=z",
    "https://a.test/x/y",
    "https://a.test/%7Ex?c",
    "https://a.test/s.css?v=1",
    "https://a.test/s.css?v=2",
    "https://a.test/s.js?v=1",
    "https://a.test/x/550e8400-e29b-41d4-a716-446655440000/Y",
    "https://a.test/1764150821123.json",
    "https://b.test:8080/x?",
    "urn:text:https://a.test/X/",
];

/// A key as browsers make it of a URL: with its last slash and its escapes.
fn key_of_others(url: &str) -> String {
    let Some((_, rest)) = url.split_once("://").filter(|_| url.starts_with("http")) else {
        return url.to_owned();
    };
    let (host, path) = rest.split_once('/').unwrap();
    let host = host.trim_start_matches("www.");
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let labels: Vec<_> = name.split('.').rev().collect();
    let port = if port.is_empty() { String::new() } else { format!(":{port}") };
    format!("{}{port})/{}", labels.join(","), path.to_lowercase())
}

/// A file with this index, of which look-ups read a part if it has at least so many bytes.
fn open(file: &File, members: &[(&'static str, &[u8])], least: u64) -> (Arc<Wacz>, Index) {
    let file = with_members(file, members);
    let wacz = Arc::new(Wacz::open_at_least(file, least).unwrap());
    assert_eq!(wacz.is_sorted(), least == 0);
    let mut index = Index::new();
    index.add(Arc::clone(&wacz));
    (wacz, index)
}

fn find_in(index: &Index, wanted: &Wanted<'_>) -> Option<(Entry, Match)> {
    index.find(wanted).map(|found| (found.entry, found.fit))
}

fn noticed(wacz: &Wacz) -> String {
    let noticed = wacz.noticed().into_iter();
    noticed.map(|flaw| format!("{flaw}\n")).collect()
}

/// A file with all URLs, and its index lines after `edit`.
fn file_and_lines(edit: impl Fn(&mut Line)) -> (File, Vec<String>) {
    let file = recorded(|recording| {
        for (number, url) in (0..).zip(URLS) {
            for (copy, mut exchange) in
                (0..).zip([get(url, 200, &[]), get(url, 200, &[]), post(url, b"q=1")])
            {
                exchange.time =
                    at("2026-11-26T09:00:00Z") + SignedDuration::from_secs(100 * number + copy);
                add(recording, &exchange, format!("{number} {copy}").as_bytes());
            }
        }
    });
    let lines = Wacz::open(file.try_clone().unwrap()).unwrap();
    let lines = lines.entries().iter().map(|entry| {
        let mut line = Line {
            key: entry.key.clone(),
            time: entry.time,
            record: cdxj::Record {
                url: entry.url.clone(),
                status: entry.status.map(u64::from),
                digest: entry.digest.clone(),
                offset: Some(entry.offset),
                length: Some(entry.length),
                filename: "data.warc.gz".to_owned(),
                method: Some(entry.method.clone()),
                posted: entry.posted.clone(),
                date: Some(entry.time.to_string()),
                ..cdxj::Record::default()
            },
        };
        edit(&mut line);
        line.text()
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    (file, lines)
}

/// Requests for the URLs and for others that the rules lead to them.
fn requests() -> Vec<(String, &'static str)> {
    let urls = URLS.iter().flat_map(|url| {
        let separator = if url.contains('?') { '&' } else { '?' };
        let more = ["gclid=1", "_=1732614829999", "v=3", "a=3"]
            .map(|argument| format!("{url}{separator}{argument}"));
        more.into_iter().chain([
            (*url).to_owned(),
            format!("{url}#top"),
            url.to_uppercase().replace("HTTPS", "https"),
            format!("{url}0"),
        ])
    });
    let others = ["x/6fa459ea-ee8a-4ca4-894e-db77e160355e/Y", "1764150829999.json"];
    let urls = urls.chain(others.map(|path| format!("https://a.test/{path}")));
    urls.flat_map(|url| [(url.clone(), "GET"), (url.clone(), "POST"), (url, "HEAD")]).collect()
}

#[test]
fn part_of_an_index_answers_as_the_whole_of_it() {
    let of_others = |line: &mut Line| {
        let posted = line.key.split_once("__wb_method");
        line.key = match posted {
            None => key_of_others(&line.record.url),
            Some((_, posted)) => {
                let url = &line.record.url;
                let separator = if url.contains('?') { '&' } else { '?' };
                key_of_others(&format!("{url}{separator}__wb_method{posted}"))
            }
        };
    };
    let mut fuzzy = 0;
    for (file, lines) in [file_and_lines(|_| ()), file_and_lines(of_others)] {
        let text = lines.join("\n");
        let (content, list) = packed_index(&lines, 4);
        let plain: [(&'static str, &[u8]); 1] = [("indexes/index.cdxj", text.as_bytes())];
        let packed: [(&'static str, &[u8]); 2] =
            [("indexes/index.cdx.gz", &content), ("indexes/index.idx", list.as_bytes())];
        let (whole, all) = open(&file, &plain, u64::MAX);
        let parts = [open(&file, &plain, 0), open(&file, &packed, 0)];
        for (url, method) in requests() {
            let wanted = wanted(&url, method, Some(b"q=1"));
            let expected = find_in(&all, &wanted);
            fuzzy += usize::from(matches!(expected, Some((_, Match::Fuzzy(_)))));
            for (_, index) in &parts {
                assert_eq!(find_in(index, &wanted), expected, "{method} {url}");
            }
        }
        for (wacz, _) in parts.iter().chain([&(whole, all)]) {
            assert_eq!(noticed(wacz), "");
        }
        assert!(parts.iter().all(|(wacz, _)| wacz.is_sorted()));
    }
    assert!(fuzzy > 100, "{fuzzy}");
}

#[test]
fn record_is_found_although_the_index_lies() {
    let (file, lines) = file_and_lines(|_| ());
    let mut unordered = lines.clone();
    unordered.reverse();
    let text = unordered.join("\n");
    let (content, list) = packed_index(&unordered, lines.len());
    let (sorted, of_sorted) = packed_index(&lines, 4);
    let damaged = [&sorted[..sorted.len() - 20], &[0; 20]].concat();
    let swapped = of_sorted.replacen("test,a)/", "test,a)/!", 1);
    for (members, expected) in [
        (&[("indexes/index.cdxj", text.as_bytes())][..], "indexes/index.cdxj: not in order"),
        (
            &[("indexes/index.cdx.gz", &content), ("indexes/index.idx", list.as_bytes())],
            "indexes/index.cdx.gz: not in order",
        ),
        (
            &[("indexes/index.cdx.gz", &sorted), ("indexes/index.idx", swapped.as_bytes())],
            "begins with another line",
        ),
        (
            &[("indexes/index.cdx.gz", &damaged), ("indexes/index.idx", of_sorted.as_bytes())],
            "has another digest",
        ),
    ] {
        for url in URLS.iter().take(12) {
            let (_, index) = open(&file, members, 0);
            let (entry, fit) = find_in(&index, &wanted(url, "GET", None)).expect(url);
            assert_eq!((entry.url.as_str(), fit), (*url, Match::Exact), "{expected}");
        }
        let (wacz, index) = open(&file, members, 0);
        let missing = find_in(&index, &wanted("https://a.test/none", "GET", None));
        assert!(missing.is_none());
        let reasons = noticed(&wacz);
        assert!(reasons.contains(expected), "{reasons} / {expected}");
    }
}

#[test]
fn line_that_leads_out_of_the_file_is_named() {
    let (file, lines) = file_and_lines(|line| {
        if line.record.url.ends_with("/x") {
            line.record.filename = "../x".to_owned();
        }
    });
    let text = lines.join("\n");
    let members: [(&'static str, &[u8]); 1] = [("indexes/index.cdxj", text.as_bytes())];
    let (wacz, index) = open(&file, &members, 0);
    let found = find_in(&index, &wanted("https://a.test/x", "GET", None));
    assert_eq!(found.unwrap().0.url, "https://a.test/x/");
    assert!(noticed(&wacz).contains("no WARC file '../x'"));
}
