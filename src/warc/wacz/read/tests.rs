use super::*;
use crate::cdxj::Line;
use crate::sample::{at, file};
use crate::wacz::bed::{packed, record, response, wacz, with_members};
use crate::wacz::stored::Bounded;
use std::io::{Read, Write};

fn open(bytes: &[u8]) -> Wacz {
    Wacz::open(file(bytes)).unwrap()
}

fn body(wacz: &Wacz, url: &str) -> io::Result<Vec<u8>> {
    let entry = wacz.entries().iter().find(|entry| entry.url == url);
    let mut body = Vec::new();
    let answer = wacz.read(entry.unwrap());
    let answer = answer.map_err(|error| io::Error::other(error.to_string()))?;
    answer.body.take(64 << 20).read_to_end(&mut body)?;
    Ok(body)
}

#[test]
fn warc_files_without_index_are_read() {
    let records = [
        response("http://a.test/", "", b"plain"),
        response("http://a.test/gzip", "Content-Encoding: gzip\r\n", &packed(b"packed")),
        response(
            "http://a.test/chunks",
            "Transfer-Encoding: chunked\r\n",
            b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        ),
        response("http://a.test/no-chunks", "Transfer-Encoding: chunked\r\n", b"abc"),
        response("http://a.test/unknown", "Content-Encoding: x-own\r\n", b"abc"),
    ];
    let members: Vec<u8> = records.iter().flat_map(|record| packed(record)).collect();
    for bytes in [records.concat(), members] {
        let wacz = open(&bytes);
        assert_eq!(wacz.faults(), []);
        for (url, expected) in [
            ("http://a.test/", &b"plain"[..]),
            ("http://a.test/gzip", b"packed"),
            ("http://a.test/chunks", b"abc"),
            ("http://a.test/no-chunks", b"abc"),
            ("http://a.test/unknown", b"abc"),
        ] {
            assert_eq!(body(&wacz, url).unwrap(), expected, "{url}");
        }
        let entry = &wacz.entries()[0];
        assert_eq!((entry.status, entry.time), (Some(200), at("2020-01-02T03:04:05Z")));
        let of = |url: &str| wacz.entries().iter().find(|entry| entry.url == url).unwrap();
        let answer = wacz.read(of("http://a.test/gzip")).unwrap();
        let expected = [("Content-Type".to_owned(), "text/html".to_owned())];
        assert_eq!((answer.headers, answer.length), (expected.to_vec(), None));
    }
}

#[test]
fn revisit_has_the_body_of_its_original() {
    let revisit = |fields: &str| {
        let head = format!(
            "WARC/1.1\nWARC-Type: revisit\nWARC-Record-ID: <x>\nWARC-Target-URI: http://a.test/new\n\
             WARC-Date: 2021-01-01T00:00:00Z\n{fields}\nContent-Type: application/http"
        );
        record(&head, b"HTTP/1.1 203 Again\r\nX: y\r\nContent-Length: 9\r\n\r\n")
    };
    let original = response("http://a.test/", "", b"plain");
    let refers =
        "WARC-Refers-To-Target-URI: http://a.test/\nWARC-Refers-To-Date: 2020-01-02T03:04:05Z";
    let wacz = open(&[original.clone(), revisit(refers)].concat());
    assert_eq!(body(&wacz, "http://a.test/new").unwrap(), b"plain");
    let entry = wacz.entries().iter().find(|entry| entry.url.ends_with("new"));
    let answer = wacz.read(entry.unwrap()).unwrap();
    assert_eq!((answer.status, answer.reason.as_str()), (203, "Again"));
    assert_eq!(answer.headers, [("X".to_owned(), "y".to_owned())]);
    let wacz = open(&[original, revisit("X: y")].concat());
    let error = body(&wacz, "http://a.test/new").unwrap_err().to_string();
    assert!(error.contains("refers to a missing one"), "{error}");
}

/// The index may say anything: a record is read only where it is, and only that of its URL.
#[test]
fn index_lines_that_lie_have_a_reason() {
    let one = packed(&response("http://a.test/", "", b"one"));
    let two = packed(&response("http://b.test/", "", b"two"));
    let warc = [&one[..], &two].concat();
    let length = one.len() as u64;
    let error = |edit: &dyn Fn(&mut Line)| {
        let file = wacz(&warc, |lines| edit(&mut lines[0]));
        let wacz = Wacz::open(file).unwrap();
        match wacz.faults() {
            [] => body(&wacz, "http://a.test/").unwrap_err().to_string(),
            faults => faults[0].to_string(),
        }
    };
    for (edit, expected) in [
        (
            &(|line: &mut Line| line.record.offset = Some(7)) as &dyn Fn(&mut Line),
            "at byte 7: no record begins here",
        ),
        (&|line| line.record.offset = Some(length), "record has another URL than its index line"),
        (&|line| line.record.length = Some(40), "at byte 0: "),
        (&|line| line.record.length = Some(0), "is outside of its file"),
        (
            &|line| line.record.offset = Some(u64::MAX),
            "line 1: record at byte 18446744073709551615",
        ),
        (&|line| line.record.offset = None, "is outside of its file"),
        (&|line| line.record.filename = "archive/../x".to_owned(), "no WARC file 'archive/../x'"),
    ] {
        let error = error(edit);
        assert!(error.contains(expected), "{error} / {expected}");
    }
}

#[test]
fn index_of_others_is_read() {
    let record = packed(&response("http://a.test/", "", b"one"));
    let mut text = String::new();
    let file = wacz(&record, |lines| {
        lines[0].record.date = None;
        text = lines[0].text();
    });
    let index = |name: &'static str, content: &[u8]| {
        Wacz::open(with_members(&file, &[(name, content)])).unwrap()
    };
    let line = format!("{text}\n");
    let header = format!("!meta 0 {{}}\n{line}");
    for (name, content) in [
        ("indexes/index.cdx", line.clone().into_bytes()),
        ("indexes/index.cdxj", header.into_bytes()),
        ("indexes/index.cdx.gz", [packed(b""), packed(line.as_bytes())].concat()),
    ] {
        let wacz = index(name, &content);
        assert_eq!(wacz.faults(), [], "{name}");
        assert_eq!(body(&wacz, "http://a.test/").unwrap(), b"one", "{name}");
    }
    let unordered = format!("z {}", text.split_once(' ').unwrap().1);
    let wacz = index("indexes/index.cdx", format!("{unordered}\n{line}x\n").as_bytes());
    let faults: Vec<_> = wacz.faults().iter().map(Flaw::to_string).collect();
    let expected = [
        "indexes/index.cdx line 2: not in order",
        "indexes/index.cdx line 3: not a key, a time and an object",
    ];
    assert_eq!(faults, expected);
    let wacz = index("other", b"");
    assert_eq!(wacz.faults()[0].to_string(), "indexes: missing");
    assert_eq!(body(&wacz, "http://a.test/").unwrap(), b"one");
}

/// A list of pages may name files of the reader's machine.
#[test]
fn pages_of_other_schemes_are_no_pages() {
    let file = wacz(&packed(&response("http://a.test/", "", b"one")), |_| {});
    let page = |url: &str| format!("{{\"url\":\"{url}\",\"ts\":\"2026-11-26T09:00:00Z\"}}\n");
    let list = ["file:///etc/passwd", "chrome://version", "http://a.test/"].map(page);
    let list = list.concat();
    let open = || Wacz::open(with_members(&file, &[("pages/pages.jsonl", list.as_bytes())]));
    let refused = "pages/pages.jsonl line 1: 'file:///etc/passwd' is neither http nor https";
    let wacz = open().unwrap();
    assert_eq!(wacz.first_page().unwrap().url, "http://a.test/");
    let has = |faults: &[Flaw]| faults.iter().any(|fault| fault.to_string() == refused);
    assert!(has(&wacz.noticed()));
    let wacz = open().unwrap();
    let urls: Vec<_> = wacz.pages().iter().map(|page| page.url.as_str()).collect();
    assert_eq!(urls, ["http://a.test/"]);
    assert!(has(wacz.faults()));
}

/// 30 KB that stand for 16 GiB: two codings, each of which multiplies by a thousand.
#[test]
fn body_that_grows_without_end_is_read_up_to_the_limit() {
    let zeros = vec![0; 16 << 20];
    let inner = packed(&zeros).repeat(1024);
    let bomb = packed(&inner);
    let records = response("http://a.test/", "Content-Encoding: gzip, gzip\r\n", &bomb);
    let wacz = open(&records);
    let mut body = wacz.read(&wacz.entries()[0]).unwrap().body;
    let count = io::copy(&mut body.by_ref().take(3 << 20), &mut io::sink());
    assert_eq!(count.unwrap(), 3 << 20, "bytes come as they are read");
    let mut bounded = Bounded { inner: io::repeat(0), rest: 10 << 20 };
    let error = io::copy(&mut bounded, &mut io::sink()).unwrap_err();
    assert!(error.to_string().contains("when decoded"), "{error}");
}

#[test]
fn record_that_is_cut_off_fails_at_its_end() {
    let whole = response("http://a.test/", "", &[b'x'; 100]);
    let length = whole.len() as u64 - 50;
    let file = wacz(&whole, |lines| lines[0].record.length = Some(length));
    let error = body(&Wacz::open(file).unwrap(), "http://a.test/").unwrap_err();
    assert_eq!(error.to_string(), "record is cut off: 46 bytes are missing");
}

proptest::proptest! {
    #[test]
    fn any_record_is_read(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300), at in 0..300_usize) {
        let mut record = response("http://a.test/", "Transfer-Encoding: chunked\r\nContent-Encoding: br\r\n", &bytes);
        let at = at % record.len();
        record[at] ^= 1;
        for content in [record.clone(), packed(&record), [b"WARC/1.0\r\n", &bytes[..]].concat()] {
            if let Ok(wacz) = Wacz::open(file(&content)) {
                for entry in wacz.entries() {
                    if let Ok(answer) = wacz.read(entry) {
                        let _ = io::copy(&mut answer.body.take(1 << 20), &mut io::sink());
                    }
                }
            }
        }
    }
}

#[test]
fn unchanged_answer_is_the_one_that_it_refers_to() {
    let revisit = |url: &str, more: &str, headers: &str| {
        let head = format!(
            "WARC/1.1\nWARC-Type: revisit\nWARC-Record-ID: <urn:uuid:again-{url}>\n\
             WARC-Target-URI: {url}\nWARC-Date: 2021-01-02T03:04:05Z\n{more}\
             WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified\n\
             Content-Type: application/http;msgtype=response"
        );
        record(&head, format!("HTTP/1.1 304 Not Modified\r\n{headers}\r\n").as_bytes())
    };
    let refers =
        "WARC-Refers-To-Target-URI: <http://a.test/>\nWARC-Refers-To-Date: 2020-01-02T03:04:05Z\n";
    let records = [
        response("http://a.test/", "ETag: \"1\"\r\nX-Old: 1\r\n", b"<p>"),
        revisit("http://a.test/", refers, "ETag: \"2\"\r\nContent-Length: 0\r\n"),
    ];
    let wacz = open(&records.concat());
    let entry = wacz.entries().iter().find(|entry| entry.status == Some(304)).unwrap();
    let mut answer = wacz.read(entry).unwrap();
    let named = |name: &str| head::value(&answer.headers, name).map(str::to_owned);
    assert_eq!((answer.status, answer.length), (200, Some(3)));
    assert_eq!(named("etag").as_deref(), Some("\"2\""));
    assert_eq!((named("x-old").as_deref(), named("content-length")), (Some("1"), None));
    let mut body = String::new();
    answer.body.read_to_string(&mut body).unwrap();
    assert_eq!(body, "<p>");
}

#[test]
fn arc_file_is_named() {
    let plain = b"filedesc://a.arc 0.0.0.0 20040304050607 text/plain 76\n";
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(plain).unwrap();
    for bytes in [plain.to_vec(), packed.finish().unwrap()] {
        let mut arc = tempfile::tempfile().unwrap();
        arc.write_all(&bytes).unwrap();
        let error = Wacz::open(arc).err().unwrap().to_string();
        assert!(error.contains("an ARC file"), "{error}");
    }
}
