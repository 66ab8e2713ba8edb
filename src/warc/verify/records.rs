//! Compares each record with what its own head says.

use super::Report;
use crate::cdxj::Line;
use crate::record::{Found, Http, Walk};
use crate::wacz::{self, Wacz};
use crate::{chunked, coding, digest, head};
use jiff::Timestamp;
use std::collections::BTreeSet;

/// Index lines of records, with the number of their WARC file.
pub(super) type Lines = Vec<(usize, Line)>;

/// Reads all records, and returns the index lines that they should have.
pub(super) fn check(wacz: &Wacz, report: &mut Report) -> Lines {
    let mut all = Vec::new();
    let mut ids = BTreeSet::new();
    let mut concurrent = Vec::new();
    // The request of a record to which a revisit refers is in the recording that had the body first.
    let mut referred = BTreeSet::new();
    for (number, warc) in wacz.warcs.iter().enumerate() {
        let mut walk = Walk::new(warc.data.clone());
        let mut lines = wacz::Lines::default();
        loop {
            match walk.next() {
                Ok(Some(found)) => {
                    let part = format!("{} at byte {}", warc.name, found.offset);
                    report.records += 1;
                    for reason in flaws(&found, report) {
                        report.add(part.clone(), reason);
                    }
                    let id = found.field("warc-record-id").to_owned();
                    if !ids.insert(id.clone()) {
                        report.add(part.clone(), "WARC-Record-ID is that of another record");
                    }
                    if found.field("warc-type") == "revisit" {
                        referred.insert(found.field("warc-refers-to").to_owned());
                    }
                    let other = found.field("warc-concurrent-to");
                    if !other.is_empty() {
                        concurrent.push((part, id, other.to_owned()));
                    }
                    lines.add(&found, &warc.name);
                }
                Ok(None) => break,
                Err(stop) => {
                    let part = format!("{} at byte {}", warc.name, stop.offset);
                    let reason = format!("{}; nothing behind it was checked", stop.reason);
                    report.add(part, reason);
                    break;
                }
            }
        }
        all.extend(lines.into_lines().into_iter().map(|line| (number, line)));
    }
    for (part, id, other) in concurrent {
        if !ids.contains(&other) && !referred.contains(&id) {
            report.add(part, format!("WARC-Concurrent-To names {other}, which is missing"));
        }
    }
    all
}

/// What is wrong with a record by itself.
fn flaws(found: &Found, report: &mut Report) -> Vec<String> {
    let mut flaws = Vec::new();
    if !["WARC/1.0", "WARC/1.1"].contains(&found.version.as_str()) {
        flaws.push(format!("version is '{}'", found.version));
    }
    for name in ["WARC-Type", "WARC-Record-ID", "WARC-Date"] {
        if found.field(name).is_empty() {
            flaws.push(format!("{name} is missing"));
        }
    }
    let date = found.field("WARC-Date");
    if !date.is_empty() && date.parse::<Timestamp>().is_err() {
        flaws.push(format!("WARC-Date is '{date}'"));
    }
    // The grammar of WARC/1.0 has them, and wget writes them.
    if found.field("WARC-Target-URI").starts_with('<') && found.version != "WARC/1.0" {
        flaws.push("WARC-Target-URI is in angle brackets".to_owned());
    }
    let kind = found.field("WARC-Type");
    let (block, payload) = &found.digests;
    let mut digests = vec![("WARC-Block-Digest", block)];
    // The payload of a revisit is that of another record.
    if kind != "revisit" {
        digests.push(("WARC-Payload-Digest", payload));
    }
    for (name, own) in digests {
        let listed = found.field(name);
        match Some(listed).filter(|listed| !listed.is_empty()) {
            None => {}
            Some(listed) => match digest::agree(own, listed) {
                Some(true) => report.compared += 1,
                Some(false) => flaws.push(format!("{name} is {listed}, that of the bytes {own}")),
                None => report.uncompared += 1,
            },
        }
    }
    if let Some(http) = &found.http {
        match kind {
            "response" => flaws.extend(response(http)),
            "request" if http.first.split(' ').count() < 3 => {
                flaws.push("request has no method, target and version".to_owned());
            }
            _ => {}
        }
    }
    flaws
}

/// What contradicts the stored body in the headers of a response.
fn response(http: &Http) -> Vec<String> {
    let mut flaws = Vec::new();
    if head::status(&http.first).is_none() {
        flaws.push(format!("status line is '{}'", head::shown(&http.first)));
    }
    let value = |name| head::value(&http.fields, name);
    let is_chunked = value("transfer-encoding")
        .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
    if is_chunked {
        if http.length > 0 && !chunked::has_chunks(&http.start) {
            flaws.push("Transfer-Encoding is chunked, but the body has no chunks".to_owned());
        }
        return flaws;
    }
    if let Some(length) = value("content-length")
        && length.parse() != Ok(http.length)
    {
        let stored = http.length;
        let length = head::shown(length);
        flaws.push(format!("Content-Length is '{length}', the body has {stored} bytes"));
    }
    if let Some(codings) = value("content-encoding") {
        let is_whole = http.start.len() as u64 == http.length;
        if !coding::fits(codings, &http.start, is_whole) {
            let codings = head::shown(codings);
            flaws.push(format!("Content-Encoding is '{codings}', but the body is not encoded so"));
        }
    }
    flaws
}
