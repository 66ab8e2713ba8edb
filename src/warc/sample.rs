//! Recordings for tests.

use crate::exchange::Exchange;
use crate::wacz::{About, Recording};
use jiff::Timestamp;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Bytes that do not get smaller by compression, always the same.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(&mut next).take(length).collect()
}

pub(crate) fn about() -> About {
    About {
        software: "archivist 0.1.0".to_owned(),
        title: "A page".to_owned(),
        main_url: "https://page.test/".to_owned(),
        created: at("2026-11-26T09:53:40Z"),
    }
}

fn fields(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    fields.iter().map(owned).collect()
}

/// A GET whose response has these headers.
pub(crate) fn get(url: &str, status: u16, response: &[(&str, &str)]) -> Exchange {
    Exchange {
        url: url.to_owned(),
        method: "GET".to_owned(),
        time: at("2026-11-26T09:53:41.25Z"),
        request: fields(&[(":authority", "page.test"), ("accept", "*/*")]),
        posted: None,
        status,
        reason: "OK".to_owned(),
        response: fields(response),
        protocols: vec!["h2".to_owned(), "tls/1.3".to_owned()],
        address: Some([127, 0, 0, 1].into()),
        kind: "document".to_owned(),
        truncated: None,
    }
}

pub(crate) fn post(url: &str, posted: &[u8]) -> Exchange {
    Exchange {
        method: "POST".to_owned(),
        posted: Some(posted.to_owned()),
        ..get(url, 200, &[("content-type", "application/json")])
    }
}

pub(crate) fn add(recording: &mut Recording, exchange: &Exchange, body: &[u8]) {
    let length = body.len() as u64;
    recording.add(exchange, &mut &*body, length).unwrap();
}

/// Without moving the position in the file, which tests share.
pub(crate) fn bytes(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

pub(crate) fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// A finished recording with what `fill` adds.
pub(crate) fn recorded(fill: impl FnOnce(&mut Recording)) -> File {
    let file = tempfile::tempfile().unwrap();
    let mut recording = Recording::create(file.try_clone().unwrap(), &about()).unwrap();
    fill(&mut recording);
    recording.finish().unwrap();
    file
}
