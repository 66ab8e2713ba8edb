//! Writes the records of several recordings into one WACZ.
//!
//! Records are copied as they are, gzip member for gzip member, so that what was recorded is what is
//! exported. Only index, list of pages and digests are new.

use super::index::Lines;
use super::package::{self, Contents};
use super::read::Wacz;
use super::sorter::Sorter;
use super::write::{About, Page, Recording, Summary, Sums};
use crate::WarcError;
use crate::cdxj::{Line, Record};
use crate::member::{Member, Output};
use crate::record::Walk;
use crate::source::Part;
use crate::wacz::Entry;
use jiff::Timestamp;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};

/// Bytes of index lines that are in memory.
const LINES_MAX_BYTES: usize = 64 << 20;
const CHUNK_BYTES: usize = 256 << 10;

/// Makes files without a name, for what does not fit in memory.
type Scratch<'a> = dyn Fn() -> io::Result<File> + 'a;

pub struct Merge<'a> {
    about: About,
    output: Output,
    sums: Sums,
    lines: Sorter,
    pages: BufWriter<File>,
    has_text: bool,
    main_time: Option<Timestamp>,
    /// Digests of the bodies that recordings share with others and that are in the file by now.
    bodies: HashSet<String>,
    scratch: &'a Scratch<'a>,
}

fn failed(error: io::Error) -> WarcError {
    WarcError::io("recording", error)
}

impl<'a> Merge<'a> {
    /// Begins in an empty file, which must be open for reading, too. `scratch` makes files without a
    /// name on a disk that has room for the index and the texts of all pages.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn create(
        file: File,
        about: &About,
        scratch: &'a Scratch<'a>,
    ) -> Result<Merge<'a>, WarcError> {
        Merge::with_memory(file, about, scratch, LINES_MAX_BYTES)
    }

    fn with_memory(
        file: File,
        about: &About,
        scratch: &'a Scratch<'a>,
        most: usize,
    ) -> Result<Merge<'a>, WarcError> {
        let (output, sums) = Recording::create(file, about)?.into_parts();
        Ok(Merge {
            about: about.clone(),
            output,
            sums,
            lines: Sorter::new(most),
            pages: BufWriter::new(scratch().map_err(failed)?),
            has_text: false,
            main_time: None,
            bodies: HashSet::new(),
            scratch,
        })
    }

    /// Adds all records of a recording, and their index lines.
    ///
    /// # Errors
    /// If the recording cannot be read, or a file cannot be written.
    pub fn add(&mut self, wacz: &Wacz) -> Result<(), WarcError> {
        for (number, warc) in wacz.warcs.iter().enumerate() {
            let begin = self.output.position() - package::DATA_BEGIN;
            let own = wacz.entries().iter().filter(|entry| entry.warc == number);
            if warc.data.starts_with(&[0x1f, 0x8b]) {
                // A writer that was killed leaves a part of a record.
                self.copy(&warc.name, warc.data.slice(0, wacz.end(number)))?;
                for entry in own {
                    self.add_line(entry, begin + entry.offset, entry.length)?;
                }
                continue;
            }
            let mut places = HashMap::new();
            let mut walk = Walk::new(warc.data.clone());
            while let Ok(Some(found)) = walk.next() {
                let record = warc.data.slice(found.offset, found.length);
                let at = self.output.position() - package::DATA_BEGIN;
                self.pack(&warc.name, record)?;
                let length = self.output.position() - package::DATA_BEGIN - at;
                places.insert(found.offset, (at, length));
            }
            for entry in own {
                if let Some((offset, length)) = places.get(&entry.offset) {
                    self.add_line(entry, *offset, *length)?;
                }
            }
        }
        self.add_bodies(wacz)
    }

    /// Adds the bodies that the recording shares with others, each once.
    fn add_bodies(&mut self, wacz: &Wacz) -> Result<(), WarcError> {
        for (entry, digest) in wacz.shared() {
            if self.bodies.contains(digest) {
                continue;
            }
            let part = wacz.part(entry);
            // The caller names what is missing, see Wacz::missing_bodies.
            let Ok(Some(record)) = wacz.body(digest) else {
                continue;
            };
            let at = self.output.position() - package::DATA_BEGIN;
            self.copy(&part, record.clone())?;
            let mut walk = Walk::new(record);
            let mut lines = Lines::default();
            while let Ok(Some(found)) = walk.next() {
                lines.add(&found, package::WARC);
            }
            for mut line in lines.into_lines() {
                line.record.offset = line.record.offset.map(|offset| at + offset);
                self.lines.add(line.text(), self.scratch).map_err(failed)?;
            }
            self.bodies.insert(digest.to_owned());
        }
        Ok(())
    }

    /// Adds a page to the list.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn add_page(&mut self, page: &Page) -> Result<(), WarcError> {
        if page.url == self.about.main_url {
            self.main_time.get_or_insert(page.time);
        }
        self.has_text |= page.text.is_some();
        let line = package::page_line(page);
        self.pages.write_all(line.as_bytes()).map_err(failed)
    }

    /// Writes index, list of pages and digests.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn finish(mut self) -> Result<Summary, WarcError> {
        self.output.flush().map_err(failed)?;
        let mut pages = self.pages.into_inner().map_err(|error| failed(error.into_error()))?;
        pages.rewind().map_err(failed)?;
        let contents = Contents {
            about: &self.about,
            lines: &mut self.lines.sorted().map_err(failed)?,
            pages: &mut |file| {
                file.write_all(package::pages_title(self.has_text).as_bytes())?;
                io::copy(&mut pages, file).map(drop)
            },
            main_time: self.main_time,
            sums: self.sums,
        };
        package::finish(contents, self.output)
    }

    fn add_line(&mut self, entry: &Entry, offset: u64, length: u64) -> Result<(), WarcError> {
        let line = Line {
            key: entry.key.clone(),
            time: entry.time,
            record: Record {
                url: entry.url.clone(),
                mime: Some(entry.media_type.clone()).filter(|name| !name.is_empty()),
                status: entry.status.map(u64::from),
                digest: entry.digest.clone(),
                length: Some(length),
                offset: Some(offset),
                filename: package::WARC.to_owned(),
                method: Some(entry.method.clone()).filter(|name| name != "GET"),
                posted: entry.posted.clone(),
                date: Some(entry.time.to_string()),
            },
        };
        self.lines.add(line.text(), self.scratch).map_err(failed)
    }

    /// Copies members as they are.
    fn copy(&mut self, name: &str, mut part: Part) -> Result<(), WarcError> {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let count = part.read(&mut chunk).map_err(|error| WarcError::io(name, error))?;
            if count == 0 {
                return Ok(());
            }
            self.output.write(&chunk[..count]).map_err(failed)?;
            self.sums.add(&chunk[..count]);
        }
    }

    /// Adds a record that is not packed as a member of its own.
    fn pack(&mut self, name: &str, mut record: Part) -> Result<(), WarcError> {
        let mut member = Member::begin(&mut self.output, Vec::new()).map_err(failed)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let count = record.read(&mut chunk).map_err(|error| WarcError::io(name, error))?;
            if count == 0 {
                break;
            }
            member.write(&chunk[..count]).map_err(failed)?;
        }
        member.finish(b"", &[]).map_err(failed)?;
        self.output.flush().map_err(failed)?;
        let end = self.output.position();
        self.sums.read_to(&self.output.file, end).map_err(failed)
    }
}

#[cfg(test)]
mod tests;
