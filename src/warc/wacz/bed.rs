//! Makes files with any records and index lines, for tests.

use super::index::Lines;
use super::package;
use super::read::Wacz;
use super::write::Recording;
use crate::cdxj::Line;
use crate::digest;
use crate::member::Output;
use crate::record::Walk;
use crate::sample::{about, bytes, file};
use crate::source::Part;
use crate::zip::{self, Method};
use flate2::read::GzEncoder;
use flate2::{Compression, Crc};
use jiff::Timestamp;
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

pub(crate) fn packed(content: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut encoder = GzEncoder::new(content, Compression::fast());
    encoder.read_to_end(&mut packed).unwrap();
    packed
}

/// A record with these lines before its block.
pub(crate) fn record(head: &str, block: &[u8]) -> Vec<u8> {
    let head = head.trim().replace('\n', "\r\n");
    let head = format!("{head}\r\nContent-Length: {}\r\n\r\n", block.len());
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// Head of the answers of a server.
pub(crate) const SERVER: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";

/// A response as wget writes it: WARC/1.0, and angle brackets.
pub(crate) fn response(url: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\nWARC-Type: response\nWARC-Record-ID: <urn:uuid:{url}>\n\
         WARC-Target-URI: <{url}>\nWARC-Date: 2020-01-02T03:04:05Z\n\
         Content-Type: application/http;msgtype=response"
    );
    let block = [SERVER.as_bytes(), headers.as_bytes(), b"\r\n", body].concat();
    record(&head, &block)
}

/// A finished WACZ with this WARC file, and the index of its records after `edit`.
pub(crate) fn wacz(warc: &[u8], edit: impl FnOnce(&mut Vec<Line>)) -> File {
    let file = tempfile::tempfile().unwrap();
    let shared = Arc::new(file.try_clone().unwrap());
    let mut output = Output::new(Arc::clone(&shared), 0);
    let header = package::data_header(0, 0, about().created);
    output.write(&header).unwrap();
    output.write(warc).unwrap();
    output.flush().unwrap();
    let mut walk = Walk::new(Part::new(&shared, package::DATA_BEGIN, output.position()));
    let mut lines = Lines::default();
    while let Ok(Some(found)) = walk.next() {
        lines.add(&found, package::WARC);
    }
    let mut lines = lines.into_lines();
    edit(&mut lines);
    let recording = Recording::resume(output, about(), lines, package::DATA_BEGIN);
    recording.unwrap().finish().unwrap();
    file
}

/// The file of [`wacz`] with other members behind its WARC file. None is compressed.
pub(crate) fn with_members(file: &File, members: &[(&'static str, &[u8])]) -> File {
    let all = Wacz::open(file.try_clone().unwrap()).unwrap().members;
    let mut bytes = bytes(file);
    bytes.truncate(all[1].place.0 as usize);
    let data = zip::Entry {
        name: package::DATA,
        method: Method::Store,
        crc: all[0].crc,
        packed: all[0].size,
        size: all[0].size,
        offset: 0,
    };
    let mut entries = vec![data.clone()];
    for (name, content) in members {
        let mut crc = Crc::new();
        crc.update(content);
        let entry = zip::Entry {
            name,
            crc: crc.sum(),
            packed: content.len() as u64,
            size: content.len() as u64,
            offset: bytes.len() as u64,
            ..data.clone()
        };
        bytes.extend(zip::local_header(&entry, Timestamp::UNIX_EPOCH));
        bytes.extend_from_slice(content);
        entries.push(entry);
    }
    let ends = zip::ends(&entries, bytes.len() as u64, Timestamp::UNIX_EPOCH);
    bytes.extend(ends);
    self::file(&bytes)
}

/// A compressed index of these lines with its list of parts, in parts of so many lines.
pub(crate) fn packed_index(lines: &[String], part_lines: usize) -> (Vec<u8>, String) {
    let mut index = Vec::new();
    let mut list =
        "!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": \"index.cdx.gz\"}\n".to_owned();
    for lines in lines.chunks(part_lines) {
        let part = packed(
            lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>().as_bytes(),
        );
        let (begin, _) = lines[0].split_once(" {").unwrap();
        let place =
            json!({"offset": index.len(), "length": part.len(), "digest": digest::of(&part)});
        list.push_str(&format!("{begin} {place}\n"));
        index.extend(part);
    }
    (index, list)
}
