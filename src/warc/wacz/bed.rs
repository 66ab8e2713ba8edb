//! Makes files with any records and index lines, for tests.

use super::index::Lines;
use super::package;
use super::write::Recording;
use crate::cdxj::Line;
use crate::member::Output;
use crate::record::Walk;
use crate::sample::about;
use crate::source::Part;
use flate2::Compression;
use flate2::read::GzEncoder;
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
