//! Each parser reads random and mutated input. None may panic, loop, or return more than its input can stand for.

use crate::coding::{self, Mismatch};
use crate::lookup::{Index, Wanted};
use crate::record::Walk;
use crate::sample::{add, at, bytes, file, get, noise, post, recorded};
use crate::source::Part;
use crate::wacz::{self, Page, Wacz, bed};
use crate::{cdxj, chunked, head, posted, surt, verify, zip};
use archivist_fuzz::fuzz;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

/// Bytes that a reader may give for one input.
const READ_MAX: u64 = 64 << 20;
const WORDS: [&[u8]; 12] = [
    b"\r\n",
    b"\r\n\r\n",
    b"WARC/1.1\r\n",
    b"PK\x05\x06",
    b"PK\x01\x02",
    b"\x1f\x8b\x08\x00",
    b"Content-Length: 18446744073709551615\r\n",
    b"99999999999999999999",
    b"-1",
    b"{\"url\":\"",
    b"\\u0000",
    b"\xff\xfe\xf0\x9f",
];

fn part(input: &[u8]) -> Part {
    Part::new(&Arc::new(file(input)), 0, input.len() as u64)
}

/// Reads at most [`READ_MAX`]. An error is an answer, too.
fn drain(source: impl Read) {
    let _ = io::copy(&mut source.take(READ_MAX), &mut io::sink());
}

fn recording() -> File {
    recorded(|recording| {
        let html = [("content-type", "text/html")];
        add(recording, &get("https://page.test/?a=1&_=2", 200, &html), b"<html>");
        add(recording, &post("https://page.test/api", b"a=1"), b"{}");
        recording.add_page(Page {
            url: "https://page.test/?a=1&_=2".to_owned(),
            title: "A page".to_owned(),
            time: at("2026-11-26T09:53:41Z"),
            text: Some("words".to_owned()),
        });
    })
}

/// Records without compression, also of other programs.
fn records() -> Vec<u8> {
    let record = |kind: &str, fields: &str, block: &[u8]| {
        let head = format!(
            "WARC/1.0\nWARC-Type: {kind}\nWARC-Record-ID: <urn:uuid:{kind}>\n\
             WARC-Target-URI: <http://a.test/x?y>\nWARC-Date: 2020-01-02T03:04:05Z\n{fields}\
             Content-Type: application/http;msgtype={kind}"
        );
        bed::record(&head, block)
    };
    let http = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
    [
        record("response", "", http),
        record(
            "request",
            "WARC-Concurrent-To: <urn:uuid:response>\n",
            b"POST /x HTTP/1.1\r\n\r\na=1",
        ),
        record("revisit", "WARC-Refers-To-Target-URI: http://a.test/x?y\n", b""),
    ]
    .concat()
}

fn files() -> Vec<Vec<u8>> {
    let whole = bytes(&recording());
    let cut = whole[..whole.len() * 2 / 3].to_vec();
    let plain = records();
    vec![whole, cut, bed::packed(&plain), plain]
}

#[test]
fn files_of_any_bytes_are_read() {
    fuzz(&files(), &WORDS, |input| {
        if let Ok(wacz) = Wacz::open(file(input)) {
            let wacz = Arc::new(wacz);
            let mut index = Index::new();
            index.add(Arc::clone(&wacz));
            for entry in wacz.entries().iter().take(20) {
                let wanted = Wanted {
                    url: &entry.url,
                    method: &entry.method,
                    posted: Some(b"a=1"),
                    range: Some("bytes=1-"),
                    near: entry.time,
                    redirected: None,
                    given: 0,
                };
                let found = index.find(&wanted);
                if let Some(Ok(answer)) = found.map(|found| found.read()) {
                    drain(answer.body);
                }
            }
        }
        let _ = Wacz::survey(file(input), &mut |_, parts| {
            let _ = (parts.text(), parts.picture(), parts.document());
        });
    });
}

#[test]
fn files_of_any_bytes_are_checked_and_completed() {
    fuzz(&files(), &WORDS, |input| {
        let _ = verify::check(file(input));
        let target = file(input);
        if wacz::recover(target.try_clone().unwrap()).is_ok() {
            let completed = Wacz::open(target);
            assert!(completed.is_ok_and(|wacz| wacz.is_complete()));
        }
    });
}

/// Keeps no body, so that each record is a new one.
struct Nothing;

impl wacz::Shelf for Nothing {
    fn find(&mut self, _hex: &str) -> io::Result<Option<File>> {
        Ok(None)
    }

    fn keep(&mut self, _hex: &str, record: &mut dyn Read) -> io::Result<File> {
        let mut bytes = Vec::new();
        record.read_to_end(&mut bytes)?;
        Ok(file(&bytes))
    }
}

#[test]
fn bodies_of_files_of_any_bytes_are_shared() {
    let seed = recorded(|recording| {
        add(recording, &get("https://a.test/", 200, &[]), &noise(3_000));
        add(recording, &post("https://a.test/", b"a=1"), &noise(3_001));
    });
    fuzz(&[bytes(&seed)], &WORDS, |input| {
        let to = tempfile::tempfile().unwrap();
        let shared = wacz::share(file(input), to.try_clone().unwrap(), &mut Nothing);
        if matches!(shared, Ok(Some(_))) {
            assert!(Wacz::open(to).unwrap().is_complete());
        }
    });
}

#[test]
fn directories_of_any_bytes_are_read() {
    fuzz(&files()[..1], &WORDS, |input| {
        if let Ok(Some(members)) = zip::directory(&part(input)) {
            members.iter().for_each(|member| drain(member.content()));
        }
        let _ = zip::first_member(&part(input));
    });
}

#[test]
fn records_of_any_bytes_are_read() {
    let plain = records();
    fuzz(&[bed::packed(&plain), plain], &WORDS, |input| {
        let mut walk = Walk::new(part(input));
        let mut end = 0;
        while let Ok(Some(found)) = walk.next() {
            assert!(found.length > 0 && found.offset >= end);
            end = found.offset + found.length;
            assert!(end <= input.len() as u64);
        }
    });
}

#[test]
fn texts_of_any_bytes_are_read() {
    let seeds = [
        &b"com,example)/a?b=1 20261126095341 {\"url\":\"https://example.com/a?b=1\",\"status\":\"200\",\"offset\":7}"[..],
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n folded\r\nx:y\r\n\r\n",
        b"https://user@www.example.com:443/a/../b;jsessionid=0123456789abcdef0123456789abcdef?b=2&a=1#c",
        b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n",
        b"{\"a\":[1,{\"b\":\"c\"}],\"d\":null}",
        b"a=1&b=%20&c",
    ];
    let seeds = seeds.map(<[u8]>::to_vec);
    fuzz(&seeds, &WORDS, |input| {
        let text = String::from_utf8_lossy(input);
        let _ = cdxj::parse(&text);
        let (first, _) = head::parse(input);
        let _ = head::status(&first);
        let _ = head::read(&mut &input[..]);
        let key = surt::key(&text);
        assert!(!key.contains(['\n', ' ']), "{key:?}");
        assert!(key.starts_with(surt::place(&key)));
        let posted = posted::text(input);
        let key = surt::key(&posted::url_with(&text, "POST", Some(&posted)));
        assert!(!key.contains(['\n', ' ']), "{key:?}");
    });
}

#[test]
fn bodies_of_any_bytes_are_decoded() {
    let gzip = bed::packed(&b"the same words ".repeat(50));
    let chunks = b"5\r\nabcde\r\n3;x=y\r\nabc\r\n0\r\n\r\n".to_vec();
    let brotli = b"\x0b\x02\x80hello\x03".to_vec();
    let zstd = b"\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello".to_vec();
    fuzz(&[gzip, chunks, brotli, zstd], &WORDS, |input| {
        drain(chunked::Chunked::new(input));
        let _ = chunked::has_chunks(input);
        for codings in ["gzip", "deflate", "br", "zstd", "gzip, br", "identity"] {
            let _ = coding::fits(codings, input, true);
            if let Ok(body) = coding::decoded(Box::new(input), codings, Mismatch::Keep) {
                drain(body);
            }
        }
        let _ = coding::unpacked(input, READ_MAX);
    });
}
