use super::*;
use crate::sample::{add, at, file, get, recorded};
use crate::wacz::bed::{packed, record, response, wacz};

struct Surveyed {
    page: Page,
    text: Option<String>,
    picture: Option<Vec<u8>>,
    document: Option<(Vec<u8>, String)>,
}

fn survey(file: File) -> (Vec<Surveyed>, Vec<Flaw>) {
    let mut pages = Vec::new();
    let faults = Wacz::survey(file, &mut |page, parts| {
        let (text, picture, document) = (parts.text(), parts.picture(), parts.document());
        pages.push(Surveyed { page: page.clone(), text, picture, document });
    });
    (pages, faults.unwrap())
}

fn urls(pages: &[Surveyed]) -> Vec<&str> {
    pages.iter().map(|found| found.page.url.as_str()).collect()
}

#[test]
fn pages_of_a_file_without_a_list_are_its_documents() {
    let request = |url: &str, first: &str, headers: &str| {
        let head = format!(
            "WARC/1.1\nWARC-Type: request\nWARC-Record-ID: <urn:uuid:request-{url}>\n\
             WARC-Target-URI: {url}\nWARC-Date: 2020-01-02T03:04:05Z\n\
             WARC-Concurrent-To: <urn:uuid:{url}>\nContent-Type: application/http;msgtype=request"
        );
        record(&head, format!("{first} HTTP/1.1\r\n{headers}\r\n").as_bytes())
    };
    let frame = "Sec-Fetch-Dest: iframe\r\n";
    let records = [
        response("http://a.test/", "", b"<p>"),
        request("http://a.test/", "GET /", "Sec-Fetch-Dest: document\r\n"),
        response("http://a.test/frame", "", b"<p>"),
        request("http://a.test/frame", "GET /frame", frame),
        request("http://a.test/frame-2", "GET /frame-2", frame),
        response("http://a.test/frame-2", "", b"<p>"),
        request("http://a.test/form", "POST /form", ""),
        response("http://a.test/form", "", b"<p>"),
        response("http://a.test/b", "", b"<p>"),
        response("dns:a.test", "", b""),
    ];
    let members: Vec<u8> = records.iter().flat_map(|record| packed(record)).collect();
    for file in [file(&records.concat()), file(&members), wacz(&members, |_| {})] {
        let (pages, faults) = survey(file);
        assert_eq!(urls(&pages), ["http://a.test/", "http://a.test/b"]);
        assert_eq!(pages[0].page.time, at("2020-01-02T03:04:05Z"));
        assert_eq!(faults, []);
    }
    let cut = &members[..members.len() - 3];
    let (pages, faults) = survey(file(cut));
    assert_eq!(pages.len(), 2);
    assert!(faults[0].part.starts_with("WARC file at byte "));
}

/// Some programs end records with one line end or none, and browsers read more than what is HTML by its headers.
#[test]
fn records_of_other_programs_are_pages() {
    let ends = response("http://a.test/", "", b"<p>");
    let ends = ends.strip_suffix(b"\r\n\r\n").unwrap();
    for end in ["", "\n", "\r\n", "\n\n", "\r\n\r\n\r\n"] {
        let one = [ends, end.as_bytes()].concat();
        let (pages, faults) = survey(file(&[&one[..], &one].concat()));
        assert_eq!((urls(&pages).len(), faults), (2, Vec::new()), "{end:?}");
    }
    let (_, faults) = survey(file(&[ends, b"more\r\n\r\n"].concat()));
    assert_eq!(faults[0].reason, "record does not end after its length");
    let of_head = |url: &str, head: &str, body: &[u8]| {
        let text = format!(
            "WARC/1.0\nWARC-Type: response\nWARC-Target-URI: {url}\n\
             WARC-Date: 2020-01-02T03:04:05Z\nContent-Type: application/http"
        );
        record(&text, &[head.as_bytes(), b"\r\n\r\n", body].concat())
    };
    let error =
        of_head("http://a.test/error", "HTTP/1.1 403 Forbidden\r\nContent-Type: text/html", b"<p>");
    let others = [
        of_head(
            "http://a.test/old",
            "HTTP 200 Document follows\r\nContent-Type: text/html",
            b"<p>",
        ),
        of_head("http://a.test/untold", "HTTP/1.1 200 OK", b"\n<!doctype html>"),
        of_head("http://a.test/data", "HTTP/1.1 200 OK", b"{}"),
    ];
    let (pages, _) = survey(file(&[&error, &others.concat()[..]].concat()));
    assert_eq!(urls(&pages), ["http://a.test/old", "http://a.test/untold"]);
    assert_eq!(urls(&survey(file(&error)).0), ["http://a.test/error"]);
}

#[test]
fn pages_of_a_file_without_a_list_have_their_documents_and_pictures() {
    let picture = |kind: &str| {
        let head = format!(
            "WARC/1.1\nWARC-Type: resource\nWARC-Record-ID: <urn:uuid:{kind}>\n\
             WARC-Target-URI: {kind}http://a.test/\nWARC-Date: 2020-01-02T03:04:06Z\nContent-Type: image/png"
        );
        record(&head, kind.as_bytes())
    };
    let encoded = packed(b"<title>A");
    let records = [
        response("http://a.test/", "Content-Encoding: gzip\r\n", &encoded),
        response("http://b.test/", "", b"B"),
        picture("urn:view:"),
        picture("urn:thumbnail:"),
    ];
    let (pages, faults) = survey(file(&records.concat()));
    assert_eq!((urls(&pages), faults), (vec!["http://a.test/", "http://b.test/"], vec![]));
    let document = |bytes: &[u8]| Some((bytes.to_vec(), "text/html".to_owned()));
    assert_eq!(pages[0].document, document(b"<title>A"));
    assert_eq!(pages[1].document, document(b"B"));
    assert_eq!(pages[0].picture.as_deref(), Some(&b"urn:thumbnail:"[..]));
    assert_eq!((&pages[0].text, &pages[1].picture), (&None, &None));
}

/// Both kinds of revisits are visits of a page, whatever WARC file has its document.
#[test]
fn revisits_of_documents_are_pages() {
    let revisit = |url: &str, time: &str, fields: &str, status: &str| {
        let head = format!(
            "WARC/1.1\nWARC-Type: revisit\nWARC-Record-ID: <urn:uuid:{time}>\n\
             WARC-Target-URI: {url}\nWARC-Date: {time}\n{fields}\
             Content-Type: application/http;msgtype=response"
        );
        record(&head, format!("HTTP/1.1 {status}\r\n\r\n").as_bytes())
    };
    let refers = "WARC-Refers-To-Target-URI: <http://a.test/>\n";
    let records = [
        revisit("http://a.test/", "2019-01-01T00:00:00Z", "", "304 Not Modified"),
        response("http://a.test/", "", b"A"),
        revisit("http://a.test/", "2021-01-01T00:00:00Z", refers, "304 Not Modified"),
        revisit("http://c.test/", "2021-01-02T00:00:00Z", refers, "200 OK"),
        revisit("http://missing.test/", "2021-01-03T00:00:00Z", "", "304 Not Modified"),
    ];
    let members: Vec<u8> = records.iter().flat_map(|record| packed(record)).collect();
    for file in [file(&members), wacz(&members, |_| {})] {
        let (pages, faults) = survey(file);
        let found: Vec<_> =
            pages.iter().map(|one| (&one.page.url[7..], one.page.time.to_string())).collect();
        let expected = [
            ("a.test/", "2019-01-01T00:00:00Z"),
            ("a.test/", "2020-01-02T03:04:05Z"),
            ("a.test/", "2021-01-01T00:00:00Z"),
            ("c.test/", "2021-01-02T00:00:00Z"),
        ];
        assert_eq!(found, expected.map(|(url, time)| (url, time.to_owned())));
        assert_eq!(faults, []);
        for page in pages {
            assert_eq!(page.document, Some((b"A".to_vec(), "text/html".to_owned())));
        }
    }
}

#[test]
fn pages_of_a_list_have_their_texts_documents_and_pictures() {
    let page = |url: &str, text: Option<&str>| Page {
        url: url.to_owned(),
        title: String::new(),
        time: at("2020-01-02T03:04:05Z"),
        text: text.map(str::to_owned),
    };
    let listed = [
        page("http://a.test/#x", Some("listed")),
        page("http://b.test/a b", None),
        page("http://c.test/", None),
    ];
    let made = recorded(|recording| {
        let html = [("Content-Type", "text/html")];
        add(recording, &get("http://a.test/", 200, &html), b"A");
        add(recording, &get("http://b.test/", 404, &html), b"not found");
        add(recording, &get("http://other.test/", 200, &html), b"frame");
        let time = at("2020-01-02T03:04:05Z");
        let mut resource = |url: &str, body: &[u8]| {
            recording.add_resource(url, "text/plain", time, body).unwrap();
        };
        resource("urn:text:http://b.test/a b", b"recorded");
        resource("urn:view:http://b.test/a b", b"picture");
        listed.iter().for_each(|page| recording.add_page(page.clone()));
    });
    let (pages, faults) = survey(made);
    assert_eq!(faults, []);
    let pages_found: Vec<_> = pages.iter().map(|found| found.page.clone()).collect();
    assert_eq!(pages_found, listed);
    let texts: Vec<_> = pages.iter().map(|found| found.text.as_deref()).collect();
    assert_eq!(texts, [Some("listed"), Some("recorded"), None]);
    let pictures: Vec<_> = pages.iter().map(|found| found.picture.as_deref()).collect();
    assert_eq!(pictures, [None, Some(&b"picture"[..]), None]);
    let documents: Vec<_> = pages.iter().map(|found| found.document.is_some()).collect();
    assert_eq!(documents, [true, false, false]);
}

/// Files of a directory are resources, and the directory a revisit of its index.
#[test]
fn files_that_warcit_took_are_pages() {
    let resource = |url: &str, media_type: &str, body: &str| {
        let head = format!(
            "WARC/1.0\nWARC-Date: 2020-01-02T03:04:05Z\nWARC-Creation-Date: 2020-02-02T03:04:05Z\n\
             WARC-Type: resource\nWARC-Record-ID: <urn:uuid:{url}>\nWARC-Target-URI: {url}\n\
             Content-Type: {media_type}"
        );
        record(&head, body.as_bytes())
    };
    let directory = "WARC/1.0\nWARC-Type: revisit\nWARC-Record-ID: <urn:uuid:d>\n\
        WARC-Target-URI: http://a.test/\nWARC-Date: 2020-02-02T03:04:05Z\n\
        WARC-Refers-To-Target-URI: http://a.test/index.html\nWARC-Refers-To-Date: 2020-01-02T03:04:05Z\n\
        Content-Type: application/http; msgtype=response";
    let records = [
        resource("http://a.test/s.css", "text/css", "p{}"),
        resource("http://a.test/index.html", "text/html", "A"),
        record(directory, b""),
    ];
    let (pages, faults) = survey(file(&records.concat()));
    assert_eq!(urls(&pages), ["http://a.test/index.html", "http://a.test/"]);
    assert_eq!(faults, []);
    for page in pages {
        assert_eq!(page.document, Some((b"A".to_vec(), "text/html".to_owned())));
    }
}
