//! What a WACZ has besides its records: index, list of pages, and digests.

use super::write::{About, Page, Summary, Sums};
use crate::WarcError;
use crate::cdxj::{self, Packed};
use crate::digest;
use crate::member::Output;
use crate::zip::{self, Entry, Method};
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use jiff::Timestamp;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// Name of the WARC file in index lines.
pub(super) const WARC: &str = "data.warc.gz";
pub(super) const DATA: &str = "archive/data.warc.gz";
pub(super) const INDEX: &str = "indexes/index.cdx.gz";
const PARTS: &str = "indexes/index.idx";
const PAGES: &str = "pages/pages.jsonl";
const PACKAGE: &str = "datapackage.json";
const PACKAGE_DIGEST: &str = "datapackage-digest.json";

pub(super) const DATA_BEGIN: u64 = (zip::PLACEHOLDER_BYTES + DATA.len()) as u64;

/// The header before the WARC file.
pub(super) fn data_header(size: u64, crc: u32, time: Timestamp) -> Vec<u8> {
    zip::local_header(&data_entry(size, crc), time)
}

fn data_entry(size: u64, crc: u32) -> Entry {
    Entry { name: DATA, method: Method::Store, crc, packed: size, size, offset: 0 }
}

/// The block of the record that describes the WARC file.
pub(super) fn info(about: &About) -> String {
    let line = |name: &str, value: &str| {
        let value = value.replace(|c: char| c.is_control(), " ");
        match value.trim() {
            "" => String::new(),
            value => format!("{name}: {value}\r\n"),
        }
    };
    let specification =
        "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/";
    [
        line("software", &about.software),
        line("format", "WARC File Format 1.1"),
        line("conformsTo", specification),
        line("title", &about.title),
        line("mainPageUrl", &about.main_url),
    ]
    .concat()
}

/// What [`finish`] writes.
pub(super) struct Contents<'a> {
    pub(super) about: &'a About,
    /// Index lines in their order.
    pub(super) lines: &'a mut dyn Iterator<Item = io::Result<String>>,
    pub(super) pages: &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    /// When the page was requested that a viewer opens first.
    pub(super) main_time: Option<Timestamp>,
    pub(super) sums: Sums,
}

/// Members of the ZIP file, and what the list of their digests says about them.
struct Members {
    output: Output,
    time: Timestamp,
    entries: Vec<Entry>,
    resources: Vec<serde_json::Value>,
}

struct End<'a>(&'a mut Output);

impl Write for End<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Content<W> {
    inner: W,
    crc: Crc,
    sha256: Sha256,
    bytes: u64,
}

impl<W: Write> Content<W> {
    fn new(inner: W) -> Content<W> {
        Content { inner, crc: Crc::new(), sha256: Sha256::new(), bytes: 0 }
    }
}

impl<W: Write> Write for Content<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.crc.update(&bytes[..count]);
        self.sha256.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn failed(error: io::Error) -> WarcError {
    WarcError::io("recording", error)
}

impl Members {
    /// Adds a file with what `write` writes, and lists its digest, which is returned. Files that have
    /// a compression of their own are stored.
    fn add(
        &mut self,
        name: &'static str,
        method: Method,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<String> {
        let mut entry =
            Entry { name, method, crc: 0, packed: 0, size: 0, offset: self.output.position() };
        self.output.write(&zip::local_header(&entry, self.time))?;
        let begin = self.output.position();
        let end = End(&mut self.output);
        let (crc, sha256, bytes) = match method {
            Method::Store => {
                let mut content = Content::new(end);
                write(&mut content)?;
                (content.crc, content.sha256, content.bytes)
            }
            Method::Deflate => {
                let encoder = DeflateEncoder::new(end, Compression::default());
                let mut content = Content::new(encoder);
                write(&mut content)?;
                content.inner.finish()?;
                (content.crc, content.sha256, content.bytes)
            }
        };
        entry.crc = crc.sum();
        entry.size = bytes;
        entry.packed = self.output.position() - begin;
        let header = zip::local_header(&entry, self.time);
        self.output.replace(entry.offset, &header)?;
        self.entries.push(entry);
        let digest = digest::text(sha256);
        self.list(name, &digest, bytes);
        Ok(digest)
    }

    fn list(&mut self, path: &str, hash: &str, bytes: u64) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let resource = json!({"name": name, "path": path, "hash": hash, "bytes": bytes});
        self.resources.push(resource);
    }
}

/// Completes a recording whose records end where `output` is.
pub(super) fn finish(contents: Contents<'_>, output: Output) -> Result<Summary, WarcError> {
    let Contents { about, lines, pages, main_time, sums } = contents;
    let size = output.position() - DATA_BEGIN;
    let data = data_entry(size, sums.crc.sum());
    let mut members =
        Members { output, time: about.created, entries: vec![data], resources: Vec::new() };
    members.list(DATA, &digest::text(sums.sha256), size);
    let mut index = Packed::default();
    let added = members
        .add(INDEX, Method::Store, |file| {
            index = cdxj::pack(lines, "index.cdx.gz", file)?;
            Ok(())
        })
        .and_then(|_| {
            members.add(PARTS, Method::Deflate, |file| file.write_all(index.parts.as_bytes()))
        })
        .and_then(|_| members.add(PAGES, Method::Deflate, |file| pages(file)))
        .and_then(|_| {
            let resources = std::mem::take(&mut members.resources);
            let text = package_text(about, main_time, resources);
            let hash =
                members.add(PACKAGE, Method::Deflate, |file| file.write_all(text.as_bytes()))?;
            let text = json!({"path": PACKAGE, "hash": hash}).to_string();
            members.add(PACKAGE_DIGEST, Method::Deflate, |file| file.write_all(text.as_bytes()))
        });
    added.map_err(failed)?;
    let Members { mut output, time, entries: all, .. } = members;
    let ends = zip::ends(&all, output.position(), time);
    // A file with a directory is complete, so its first header must be right before.
    let header = data_header(size, all[0].crc, time);
    let written = output
        .file
        .write_all_at(&header, 0)
        .and_then(|()| output.write(&ends))
        .and_then(|()| output.flush());
    written.map_err(failed)?;
    Ok(Summary { bytes: output.position(), entries: index.count })
}

/// The first line of a list of pages.
pub(super) fn pages_title(has_text: bool) -> String {
    let title = json!({"format": "json-pages-1.0", "id": "pages", "title": "All Pages", "hasText": has_text});
    format!("{title}\n")
}

pub(super) fn page_line(page: &Page) -> String {
    let id = digest::of(format!("{} {}", page.url, page.time).as_bytes());
    let mut line = json!({
        "id": &id["sha256:".len()..][..16],
        "url": page.url,
        "ts": page.time.to_string(),
        "title": page.title,
    });
    if let Some(words) = &page.text {
        line["text"] = json!(words);
    }
    format!("{line}\n")
}

fn package_text(
    about: &About,
    main_time: Option<Timestamp>,
    resources: Vec<serde_json::Value>,
) -> String {
    let mut package = json!({
        "profile": "data-package",
        "resources": resources,
        "wacz_version": "1.1.1",
        "created": about.created.to_string(),
        "software": about.software,
    });
    if !about.title.is_empty() {
        package["title"] = json!(about.title);
    }
    if !about.main_url.is_empty() {
        package["mainPageUrl"] = json!(about.main_url);
        if let Some(time) = main_time {
            package["mainPageDate"] = json!(time.to_string());
        }
    }
    format!("{package:#}\n")
}
