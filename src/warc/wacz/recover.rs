//! Completes the file of a recording whose process was killed.

use super::entry::{TEXT, TEXT_MAX_BYTES};
use super::index::Lines;
use super::package;
use super::write::{About, Page, Recording, Summary};
use crate::WarcError;
use crate::cdxj::Line;
use crate::head;
use crate::member::Output;
use crate::record::{self, Found, Walk};
use crate::source::Part;
use crate::zip;
use jiff::Timestamp;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

/// Removes what follows the last whole record, and adds what [`Recording::finish`] would have
/// written: the pages are those with a record `urn:text:URL`, else the one that a viewer opens
/// first. A complete file stays as it is. The file must be open for reading and writing.
///
/// # Errors
/// If the file cannot be read or written, or is no recording of this program.
pub fn recover(file: File) -> Result<Summary, WarcError> {
    let failed = |error| WarcError::io("recording", error);
    let file = Arc::new(file);
    let bytes = file.metadata().map_err(failed)?.len();
    let whole = Part::new(&file, 0, bytes);
    let is_open = zip::first_member(&whole).is_some_and(|first| first.is_open);
    if !is_open && matches!(zip::directory(&whole), Ok(Some(_))) {
        let wacz = super::Wacz::open(file.try_clone().map_err(failed)?)?;
        let entries = wacz.entries().len() as u64;
        return Ok(Summary { bytes, entries });
    }
    if !is_begun(&whole) {
        let reason = "no recording of this program begins here";
        return Err(WarcError::format("recording", reason));
    }
    let data = Part::new(&file, package::DATA_BEGIN, bytes);
    let mut walk = Walk::new(data.clone());
    let mut lines = Lines::default();
    let mut about = About::default();
    // What ends the walk is the record that the writer could not complete, or the begin of the index.
    while let Ok(Some(found)) = walk.next() {
        if found.field("warc-type") == "warcinfo" {
            about = about_of(&found, &data);
        }
        lines.add(&found, package::WARC);
    }
    let mut output = Output::new(Arc::clone(&file), 0);
    if walk.end == 0 {
        output.truncate(0).map_err(failed)?;
        return Recording::begin(output, &about)?.finish();
    }
    output.truncate(package::DATA_BEGIN + walk.end).map_err(failed)?;
    let lines = lines.into_lines();
    let pages = pages(&lines, &about, &data);
    let mut recording = Recording::resume(output, about, lines, package::DATA_BEGIN)?;
    for page in pages {
        recording.add_page(page);
    }
    recording.finish()
}

/// Whether the file is the begin of a recording, however short.
fn is_begun(file: &Part) -> bool {
    let header = package::data_header(0, 0, Timestamp::UNIX_EPOCH);
    let name_at = header.len() - package::DATA.len() - 20;
    let mut start = Vec::new();
    let read = file.clone().take(header.len() as u64).read_to_end(&mut start);
    let is_same = |range: std::ops::Range<usize>| {
        let end = range.end.min(start.len());
        let begin = range.start.min(end);
        start[begin..end] == header[begin..end]
    };
    // Versions, times and sizes differ.
    let name_end = name_at + package::DATA.len();
    read.is_ok() && is_same(0..4) && is_same(6..10) && is_same(name_at - 4..name_end)
}

/// What the record of the file says.
pub(super) fn about_of(found: &Found, data: &Part) -> About {
    let mut about =
        About { created: found.field("warc-date").parse().unwrap_or_default(), ..About::default() };
    let mut content = record::open(data.slice(found.offset, found.length));
    let Ok(Some((_, _, length))) = record::block(&mut content) else {
        return about;
    };
    let mut block = b"\r\n".to_vec();
    let most = length.min(head::HEAD_MAX_BYTES as u64);
    if content.take(most).read_to_end(&mut block).is_ok() {
        let (_, fields) = head::parse(&block);
        let value = |name| head::value(&fields, name).unwrap_or_default().to_owned();
        about.software = value("software");
        about.title = value("title");
        about.main_url = value("mainPageUrl");
    }
    about
}

/// The pages of a recording, from its records.
fn pages(lines: &[Line], about: &About, data: &Part) -> Vec<Page> {
    let text_of = |line: &Line| {
        let url = line.record.url.strip_prefix(TEXT)?;
        let place = line.record.offset.zip(line.record.length)?;
        let mut content = record::open(data.slice(place.0, place.1));
        let (_, _, length) = record::block(&mut content).ok()??;
        let mut text = Vec::new();
        let most = length.min(TEXT_MAX_BYTES);
        content.take(most).read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Some((url.to_owned(), text))
    };
    let texts: HashMap<String, String> = lines.iter().filter_map(text_of).collect();
    let is_page = |line: &&Line| {
        let url = line.record.url.as_str();
        line.record.status.is_some() && (texts.contains_key(url) || url == about.main_url)
    };
    let mut pages: Vec<Page> = Vec::new();
    for line in lines.iter().filter(is_page) {
        let url = &line.record.url;
        if pages.iter().all(|page| page.url != *url) {
            let is_main = *url == about.main_url;
            pages.push(Page {
                url: url.clone(),
                title: if is_main { about.title.clone() } else { String::new() },
                time: line.time,
                text: texts.get(url).cloned(),
            });
        }
    }
    pages
}
