use super::*;
use crate::exchange::Truncated;
use crate::sample::{about, add, at, bytes, file, get, post, recorded};
use crate::wacz::{Entry, Wacz};
use flate2::read::MultiGzDecoder;

fn text(wacz: &Wacz) -> String {
    let mut text = Vec::new();
    let part = wacz.warcs[0].data.clone();
    MultiGzDecoder::new(part).read_to_end(&mut text).unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

fn body(wacz: &Wacz, entry: &Entry) -> Vec<u8> {
    let mut body = Vec::new();
    let mut answer = wacz.read(entry).unwrap();
    answer.body.read_to_end(&mut body).unwrap();
    body
}

fn open(file: &File) -> Wacz {
    let wacz = Wacz::open(file.try_clone().unwrap()).unwrap();
    assert_eq!(wacz.faults(), []);
    wacz
}

#[test]
fn what_was_recorded_is_read() {
    let large: Vec<u8> = (0..300_000_u32).map(|n| (n.wrapping_mul(n) >> 9) as u8).collect();
    let file = recorded(|recording| {
        let html = [("content-type", "text/html; charset=utf-8"), ("Content-Encoding", "br")];
        add(recording, &get("https://page.test/", 200, &html), b"<html>");
        add(recording, &get("https://page.test/large", 200, &[]), &large);
        add(recording, &post("https://page.test/api", b"a=1"), b"{}");
        let time = at("2026-11-26T09:53:50Z");
        recording
            .add_resource("urn:text:https://page.test/", "text/plain", time, b"words")
            .unwrap();
        recording.add_page(Page {
            url: "https://page.test/".to_owned(),
            title: "A page".to_owned(),
            time: at("2026-11-26T09:53:41Z"),
            text: Some("words".to_owned()),
        });
    });
    let wacz = open(&file);
    assert!(wacz.is_complete());
    let of = |url: &str| {
        let found = wacz.entries().iter().find(|entry| entry.url == url);
        found.unwrap().clone()
    };
    let page = of("https://page.test/");
    assert_eq!((page.status, page.media_type.as_str()), (Some(200), "text/html"));
    assert_eq!((page.key.as_str(), page.time), ("test,page)/", at("2026-11-26T09:53:41.25Z")));
    let answer = wacz.read(&page).unwrap();
    let expected = [
        ("content-type", "text/html; charset=utf-8"),
        ("X-Archive-Orig-Content-Encoding", "br"),
        ("Content-Length", "6"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!((answer.status, answer.length), (200, Some(6)));
    assert_eq!(answer.headers, expected);
    assert_eq!(body(&wacz, &page), b"<html>");
    assert!(body(&wacz, &of("https://page.test/large")) == large);
    let api = of("https://page.test/api");
    assert_eq!((api.method.as_str(), api.posted.as_deref()), ("POST", Some("a=1")));
    assert_eq!(api.key, "test,page)/api?__wb_method=post&a=1");
    let words = of("urn:text:https://page.test/");
    assert_eq!(body(&wacz, &words), b"words");
    assert_eq!((words.status, words.media_type.as_str()), (None, "text/plain"));
    assert_eq!(wacz.pages().len(), 1);
    assert_eq!(wacz.pages()[0].text.as_deref(), Some("words"));
}

#[test]
fn records_have_the_fields_of_the_format() {
    let file = recorded(|recording| {
        let mut exchange = post("https://page.test:8443/a b?q=1", b"{\"x\":1}");
        exchange.truncated = Some(Truncated::Length);
        exchange.request.push(("content-length".to_owned(), "7".to_owned()));
        add(recording, &exchange, b"answer");
    });
    let text = text(&open(&file));
    let records: Vec<_> = text.split("WARC/1.1\r\n").skip(1).collect();
    assert_eq!(records.len(), 3);
    let [info, response, request] = [records[0], records[1], records[2]];
    assert!(
        info.contains("WARC-Type: warcinfo\r\n") && info.contains("software: archivist 0.1.0\r\n")
    );
    let digest = crate::digest::of(b"answer");
    for line in [
        "WARC-Type: response",
        "WARC-Date: 2026-11-26T09:53:41.25Z",
        "WARC-Target-URI: https://page.test:8443/a%20b?q=1",
        "WARC-Protocol: h2",
        "WARC-Protocol: tls/1.3",
        "WARC-IP-Address: 127.0.0.1",
        "WARC-Resource-Type: document",
        "WARC-Truncated: length",
        "Content-Type: application/http; msgtype=response",
        &format!("WARC-Payload-Digest: {digest}"),
        "HTTP/1.1 200 OK",
    ] {
        assert!(response.contains(&format!("{line}\r\n")), "{line}\n{response}");
    }
    let value = |record: &str, name: &str| {
        let line = record.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().to_owned()
    };
    let block = response.split_once("\r\n\r\n").unwrap().1;
    let block = block.strip_suffix("\r\n\r\n").unwrap();
    let expected = crate::digest::of(block.as_bytes());
    assert_eq!(value(response, "WARC-Block-Digest: "), expected);
    for (one, other) in [(response, request), (request, response)] {
        let id = value(one, "WARC-Record-ID: ");
        assert_eq!(id, value(other, "WARC-Concurrent-To: "));
    }
    assert!(request.contains("POST /a%20b?q=1 HTTP/1.1\r\nHost: page.test:8443\r\n"));
    assert!(
        request.contains("accept: */*\r\nContent-Length: 7\r\n\r\n{\"x\":1}\r\n\r\n"),
        "{request}"
    );
}

#[test]
fn answers_without_body_have_no_length() {
    let file = recorded(|recording| {
        let length = [("content-length", "12"), ("transfer-encoding", "chunked")];
        for status in [204, 301, 304] {
            let exchange = get(&format!("https://page.test/{status}"), status, &length);
            add(recording, &exchange, b"");
        }
    });
    let wacz = open(&file);
    for (status, expected) in [(204, None), (301, Some("0")), (304, None)] {
        let entry = wacz.entries().iter().find(|entry| entry.status == Some(status));
        let answer = wacz.read(entry.unwrap()).unwrap();
        assert_eq!((answer.status, answer.length), (status, Some(0)));
        let value = |name| head::value(&answer.headers, name);
        assert_eq!(value("content-length"), expected);
        assert_eq!(value("x-archive-orig-content-length"), Some("12"));
        assert_eq!(value("transfer-encoding"), None);
    }
}

#[test]
fn hostile_headers_stay_in_their_lines() {
    let file = recorded(|recording| {
        let hostile = [
            ("x-one", "a\r\n\r\nWARC/1.1\r\nWARC-Type: response"),
            ("x two\r\n: three", "b\0\u{e9}"),
            ("", "c"),
        ];
        let mut exchange = get("https://page.test/\r\nWARC-Type: x", 200, &hostile);
        exchange.reason = "OK\r\nSet-Cookie: a=b".to_owned();
        exchange.kind = "image\r\nx: y".to_owned();
        exchange.method = "GE T\r\n".to_owned();
        add(recording, &exchange, b"body");
        add(recording, &get("https://page.test/next", 200, &[]), b"next");
    });
    let wacz = open(&file);
    let urls: Vec<_> = wacz.entries().iter().map(|entry| &entry.url).collect();
    assert_eq!(urls, ["https://page.test/%0D%0AWARC-Type:%20x", "https://page.test/next"]);
    let answer = wacz.read(&wacz.entries()[0]).unwrap();
    assert_eq!(answer.reason, "OKSet-Cookie: a=b");
    assert_eq!(answer.headers.len(), 3);
    assert_eq!(body(&wacz, &wacz.entries()[0]), b"body");
    assert_eq!(body(&wacz, &wacz.entries()[1]), b"next");
}

/// A body that fails, is too short, or a head that is too long leaves no trace.
#[test]
fn failed_exchange_is_left_out() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the browser is gone"))
        }
    }
    let file = recorded(|recording| {
        let one = get("https://page.test/one", 200, &[]);
        add(recording, &one, b"one");
        let size = recording.bytes();
        let mut start = (&[7; 200_000][..]).chain(Failing);
        let error = recording.add(&one, &mut start, 300_000).unwrap_err();
        let expected = "body of 'https://page.test/one': the browser is gone";
        assert_eq!(error.to_string(), expected);
        let error = recording.add(&one, &mut &b"abc"[..], 4).unwrap_err();
        let expected = "body of 'https://page.test/one': ends after 3 of 4 bytes";
        assert_eq!(error.to_string(), expected);
        let long = "x".repeat(2 << 20);
        let long = get("https://page.test/long", 200, &[("x", &long)]);
        let error = recording.add(&long, &mut io::empty(), 0).unwrap_err();
        assert!(error.to_string().contains("headers are longer than"));
        assert_eq!(recording.bytes(), size);
        add(recording, &get("https://page.test/two", 200, &[]), b"two");
    });
    let wacz = open(&file);
    let urls: Vec<_> = wacz.entries().iter().map(|entry| &entry.url).collect();
    assert_eq!(urls, ["https://page.test/one", "https://page.test/two"]);
    assert_eq!(body(&wacz, &wacz.entries()[1]), b"two");
}

/// Each call leaves whole records in the file, which a reader finds before the recording ends.
#[test]
fn unfinished_recording_is_read() {
    let file = tempfile::tempfile().unwrap();
    let mut recording = Recording::create(file.try_clone().unwrap(), &about()).unwrap();
    for number in 0..3 {
        let url = format!("https://page.test/{number}");
        add(&mut recording, &get(&url, 200, &[]), b"body");
        let wacz = open(&file);
        assert!(!wacz.is_complete());
        assert_eq!(wacz.entries().len(), number + 1);
        assert_eq!(body(&wacz, &wacz.entries()[number]), b"body");
    }
}

/// Whether a killed writer had written any number of bytes, all whole records are kept.
#[test]
fn recording_that_ends_at_any_byte_is_completed() {
    let whole = recorded(|recording| {
        add(recording, &get("https://page.test/", 200, &[]), &b"words ".repeat(30));
        add(recording, &post("https://page.test/api", b"a=1"), b"{}");
        let time = at("2026-11-26T09:53:50Z");
        let url = "urn:text:https://page.test/";
        recording.add_resource(url, "text/plain", time, b"words").unwrap();
        recording.add_page(Page {
            url: "https://page.test/".to_owned(),
            title: "A page".to_owned(),
            time: at("2026-11-26T09:53:41.25Z"),
            text: Some("words".to_owned()),
        });
    });
    let wacz = open(&whole);
    let all = wacz.entries().to_vec();
    let whole = bytes(&whole);
    let mut ends: Vec<_> = all.iter().map(|entry| entry.offset + entry.length).collect();
    ends.sort_unstable();
    // All bytes near the ends of records, and some of the others.
    let is_near = |end: usize| {
        let in_warc = (end as u64).saturating_sub(package::DATA_BEGIN);
        end < 100 || ends.iter().any(|other| other.abs_diff(in_warc) < 30)
    };
    let mut compared = usize::MAX;
    for end in (0..=whole.len()).filter(|end| end % 13 == 0 || is_near(*end)) {
        let cut = file(&whole[..end]);
        let summary = crate::wacz::recover(cut.try_clone().unwrap());
        let summary = summary.unwrap_or_else(|error| panic!("{end}: {error}"));
        let completed = open(&cut);
        let in_warc = (end as u64).saturating_sub(package::DATA_BEGIN);
        let kept = ends.iter().filter(|end| **end <= in_warc).count();
        assert_eq!(completed.entries().len(), kept, "{end}");
        assert_eq!((summary.entries, summary.bytes), (kept as u64, bytes(&cut).len() as u64));
        if kept == 3 {
            assert_eq!(completed.entries(), all);
            assert_eq!(completed.pages(), wacz.pages());
        }
        if kept != compared {
            compared = kept;
            for entry in completed.entries() {
                assert_eq!(body(&completed, entry), body(&wacz, entry), "{end}");
            }
        }
    }
    for other in [&b"PK\x03\x04 another file"[..], b"WARC/1.0", b"x"] {
        let other = file(other);
        assert!(crate::wacz::recover(other.try_clone().unwrap()).is_err());
    }
}

/// A body that was cut off may look like the directory of another ZIP file.
#[test]
fn directory_in_a_body_that_was_cut_off_is_none() {
    let cut = tempfile::tempfile().unwrap();
    let mut recording = Recording::create(cut.try_clone().unwrap(), &about()).unwrap();
    add(&mut recording, &get("https://page.test/", 200, &[]), b"body");
    let at = recording.bytes();
    let member = crate::zip::Entry {
        name: package::DATA,
        method: crate::zip::Method::Store,
        crc: 0,
        packed: 10,
        size: 10,
        offset: 0,
    };
    let hostile = crate::zip::ends(&[member], at, about().created);
    cut.write_all_at(&hostile, at).unwrap();
    let wacz = open(&cut);
    assert_eq!((wacz.is_complete(), wacz.entries().len()), (false, 1));
    let summary = crate::wacz::recover(cut.try_clone().unwrap()).unwrap();
    assert_eq!(summary.entries, 1);
    let wacz = open(&cut);
    assert_eq!((wacz.is_complete(), wacz.entries().len()), (true, 1));
    assert_eq!(body(&wacz, &wacz.entries()[0]), b"body");
}

#[test]
fn digests_of_the_package_are_those_of_its_members() {
    let file = recorded(|recording| {
        add(recording, &get("https://page.test/", 200, &[]), b"body");
    });
    let wacz = open(&file);
    let content = |name: &str| {
        let member = wacz.members.iter().find(|member| member.name == name);
        member.unwrap().bytes(1 << 20).unwrap()
    };
    let package = content("datapackage.json");
    let digest: serde_json::Value =
        serde_json::from_slice(&content("datapackage-digest.json")).unwrap();
    assert_eq!(digest["path"], "datapackage.json");
    assert_eq!(digest["hash"], crate::digest::of(&package));
    let package: serde_json::Value = serde_json::from_slice(&package).unwrap();
    assert_eq!(package["wacz_version"], "1.1.1");
    assert_eq!(package["mainPageUrl"], "https://page.test/");
    let resources = package["resources"].as_array().unwrap();
    assert_eq!(resources.len(), wacz.members.len() - 2);
    for resource in resources {
        let content = content(resource["path"].as_str().unwrap());
        assert_eq!(resource["hash"], crate::digest::of(&content));
        assert_eq!(resource["bytes"], content.len());
    }
    for member in &wacz.members {
        let mut crc = Crc::new();
        crc.update(&member.bytes(1 << 20).unwrap());
        assert_eq!(crc.sum(), member.crc, "{}", member.name);
    }
}
