use super::*;
use crate::cdxj::Line;
use crate::sample::{add, at, bytes, file, get, post, recorded};
use crate::wacz::{Page, bed};
use flate2::read::MultiGzDecoder;
use std::io::Read;

fn good() -> File {
    recorded(|recording| {
        add(
            recording,
            &get("https://page.test/", 200, &[("content-type", "text/html")]),
            b"<html>",
        );
        add(recording, &get("https://page.test/old", 301, &[("location", "/")]), b"");
        add(recording, &post("https://page.test/api", b"a=1"), b"{}");
        let time = at("2026-11-26T09:53:50Z");
        let url = "urn:text:https://page.test/";
        recording.add_resource(url, "text/plain", time, b"words").unwrap();
        recording.add_page(Page {
            url: "https://page.test/".to_owned(),
            title: String::new(),
            time,
            text: None,
        });
    })
}

fn records() -> Vec<Vec<u8>> {
    let wacz = Wacz::open(good()).unwrap();
    let mut text = Vec::new();
    let mut source = MultiGzDecoder::new(wacz.warcs[0].data.clone());
    source.read_to_end(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let records = text.split("WARC/1.1\r\n").skip(1);
    records.map(|record| format!("WARC/1.1\r\n{record}").into_bytes()).collect()
}

fn flaws(file: File) -> String {
    let report = check(file).unwrap();
    let lines: Vec<_> = report.flaws.iter().map(Flaw::to_string).collect();
    lines.join("\n")
}

/// The flaws of the good records after a change of one of them, or of the index.
fn planted(number: usize, from: &str, to: &str, edit: impl FnOnce(&mut Vec<Line>)) -> String {
    let mut records = records();
    let record = String::from_utf8(records[number].clone()).unwrap();
    assert!(record.contains(from), "{record}");
    records[number] = record.replacen(from, to, 1).into_bytes();
    let warc: Vec<u8> = records.iter().flat_map(|record| bed::packed(record)).collect();
    flaws(bed::wacz(&warc, edit))
}

#[test]
fn file_of_this_program_has_no_flaw() {
    let report = check(good()).unwrap();
    assert_eq!(report.flaws, []);
    assert_eq!((report.records, report.compared, report.uncompared), (8, 15, 0));
    assert_eq!(planted(1, "", "", |_| ()), "");
}

#[test]
fn angle_brackets_of_the_first_version_are_no_contradiction() {
    let head = "WARC/1.0\nWARC-Type: resource\nWARC-Record-ID: <urn:uuid:1>\n\
        WARC-Target-URI: <http://a.test/>\nWARC-Date: 2020-01-02T03:04:05Z\nContent-Type: text/html";
    let with = |head: &str| flaws(file(&bed::record(head, b"<p>")));
    assert_eq!(with(head), "");
    assert!(with(&head.replace("1.0", "1.1")).contains("in angle brackets"));
}

#[test]
fn contradictions_in_records_are_named() {
    let response = 1;
    for (number, from, to, expected) in [
        (response, "<html>", "<HTML>", "WARC-Block-Digest is sha256:"),
        (response, "<html>", "<HTML>", "WARC-Payload-Digest is sha256:"),
        (
            response,
            "Digest: sha256:",
            "Digest: sha256:00\r\nX: ",
            "Digest is sha256:00, that of the bytes",
        ),
        (response, "https://page.test/\r", "<https://page.test/>\r", "in angle brackets"),
        (
            response,
            "text/html",
            "text/html\r\nContent-Encoding: gzip",
            "Content-Encoding is 'gzip', but the body",
        ),
        (
            response,
            "text/html",
            "text/html\r\nContent-Encoding: br",
            "Content-Encoding is 'br', but the body",
        ),
        (response, "text/html", "text/html\r\nTransfer-Encoding: chunked", "has no chunks"),
        (
            response,
            "Length: 6\r\n\r\n<",
            "Length: 7\r\n\r\n<",
            "Content-Length is '7', the body has 6 bytes",
        ),
        (response, "HTTP/1.1 200", "HTTP/1.1 2x0", "status line is 'HTTP/1.1 2x0 OK'"),
        (response, "WARC-Record-ID: ", "WARC-Record-ID: x", "which is missing"),
        (response, "WARC-Date: 2026-11", "WARC-Date: 2026-31", "WARC-Date is '2026-31"),
        (response, "WARC/1.1", "WARC/9.9", "version is 'WARC/9.9'"),
        (2, "GET / HTTP/1.1", "GET", "request has no method"),
    ] {
        // The length of the block follows a change in it.
        let mut records = records();
        let record = String::from_utf8(records[number].clone()).unwrap();
        let at = record.find(from).unwrap();
        let block = record.find("\r\n\r\n").unwrap();
        let mut changed = record.replacen(from, to, 1);
        if at > block {
            let length = record.len() - block - 8;
            let new = length + to.len() - from.len();
            changed = changed.replacen(
                &format!("Length: {length}\r\n"),
                &format!("Length: {new}\r\n"),
                1,
            );
        }
        records[number] = changed.into_bytes();
        let warc: Vec<u8> = records.iter().flat_map(|record| bed::packed(record)).collect();
        let flaws = flaws(bed::wacz(&warc, |_| ()));
        assert!(flaws.contains(expected), "{from} {to}: {flaws}");
        assert!(flaws.contains("archive/data.warc.gz at byte "), "{flaws}");
    }
}

#[test]
fn contradictions_of_lengths_end_the_check_of_records() {
    let flaws = planted(1, "\r\nContent-Length: ", "\r\nContent-Length: 1", |_| ());
    assert!(flaws.contains("record is cut off: "), "{flaws}");
    assert!(flaws.contains("nothing behind it was checked"), "{flaws}");
    let warc: Vec<u8> = records().iter().flat_map(|record| bed::packed(record)).collect();
    let cut = bed::wacz(&warc[..warc.len() - 30], |_| ());
    assert!(self::flaws(cut).contains("nothing behind it was checked"));
    let twice = [&records()[0][..], &records()[1]].concat();
    let flaws = self::flaws(bed::wacz(&bed::packed(&twice), |_| ()));
    assert!(flaws.contains("more than one record in a gzip member"), "{flaws}");
}

#[test]
fn contradictions_of_the_index_are_named() {
    let index = |edit: fn(&mut Vec<Line>)| planted(1, "", "", edit);
    for (edit, expected) in [
        (
            (|lines| drop(lines.remove(0))) as fn(&mut Vec<Line>),
            "record of 'https://page.test/' has no index line",
        ),
        (
            |lines| lines[0].record.offset = Some(3),
            "index line of 'https://page.test/' points to no such record",
        ),
        (|lines| lines[0].record.length = Some(30), "index line says length '30', the record "),
        (
            |lines| lines[0].record.status = Some(302),
            "index line says status '302', the record '200'",
        ),
        (|lines| lines[0].record.url.push('x'), "index line says URL 'https://page.test/x'"),
        (
            |lines| lines[0].record.mime = Some("image/png".to_owned()),
            "says type 'image/png', the record 'text/html'",
        ),
        (|lines| lines[0].record.digest = Some("sha256:00".to_owned()), "says digest 'sha256:00'"),
        (
            |lines| lines[2].record.method = Some("PUT".to_owned()),
            "says method 'PUT', the record 'POST'",
        ),
        (|lines| lines[0].key.push('x'), "says key 'test,page)/x', the record 'test,page)/'"),
        (|lines| lines[0].record.offset = Some(1 << 40), "is outside of its file"),
        (|lines| lines[0].record.filename = "../x.warc".to_owned(), "no WARC file '../x.warc'"),
    ] {
        let flaws = index(edit);
        assert!(flaws.contains(expected), "{flaws} / {expected}");
    }
}

#[test]
fn changed_members_are_named() {
    let good = bytes(&good());
    let text = |bytes: Vec<u8>| flaws(file(&bytes));
    let at = good.len() / 3;
    let mut changed = good.clone();
    changed[at] ^= 1;
    let flaws = text(changed);
    assert!(flaws.contains("archive/data.warc.gz: CRC-32 differs"), "{flaws}");
    assert!(flaws.contains("archive/data.warc.gz: digest is sha256:"), "{flaws}");
    let unfinished = text(good[..good.len() - 1].to_vec());
    assert!(unfinished.contains("file: was not finished"), "{unfinished}");
    assert_eq!(text(b"PK".to_vec()), "file: has no directory and no WARC file at its begin");
    assert_eq!(text(b"<html>".to_vec()), "file: neither a WACZ nor a WARC file");
    let page = recorded(|recording| {
        recording.add_page(Page {
            url: "https://page.test/".to_owned(),
            title: String::new(),
            time: jiff::Timestamp::UNIX_EPOCH,
            text: None,
        });
    });
    let expected = "list of pages: page 'https://page.test/' was not recorded";
    assert_eq!(self::flaws(page), expected);
}

proptest::proptest! {
    /// Whatever a file has, reading, checking and completing it end with a result.
    #[test]
    fn any_changed_byte_is_read(
        at in 0_usize..5000,
        byte in proptest::num::u8::ANY,
        end in 0_usize..5000,
    ) {
        let mut bytes = bytes(&good());
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = check(file(&bytes));
        bytes.truncate(end);
        let _ = check(file(&bytes));
        let _ = crate::wacz::recover(file(&bytes));
    }
}
