//! What a file has of its pages, for programs that keep the file and not its index.

use super::contents::{Contents, FAULTS_MAX, Keeps, is_list, pages_of};
use super::entry::{Entry, REVISIT, TEXT, TEXT_MAX_BYTES};
use super::places::url_of;
use super::read::Wacz;
use super::write::Page;
use crate::head;
use crate::record::safe_url;
use crate::{Flaw, WarcError};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;

/// Begins of the names of records with a picture of a page, which its URL follows: the smallest one first.
const PICTURES: [&str; 4] = ["urn:thumbnail:", "urn:view:", "urn:screenshot:", "urn:fullPage:"];
/// Largest picture in bytes.
const PICTURE_MAX_BYTES: u64 = 4 << 20;
/// Bytes of a document that are read. Its tree takes fifty times as much memory, or more.
const DOCUMENT_MAX_BYTES: u64 = 2 << 20;

/// Records by the URLs of pages, or by names with them.
type Records = HashMap<String, Vec<Entry>>;

/// What a file has of a page.
pub struct Parts<'a> {
    wacz: &'a Wacz,
    page: &'a Page,
    document: Option<&'a Entry>,
    resources: &'a Records,
}

impl Wacz {
    /// Reads a file, and passes on each page of its list, or, if it has none, its HTML documents that no page
    /// embeds. Memory grows with the pages, not with the file. Returns what cannot be used.
    ///
    /// # Errors
    /// If the file cannot be read, or has another format.
    pub fn survey(
        file: File,
        each: &mut dyn FnMut(&Page, &Parts<'_>),
    ) -> Result<Vec<Flaw>, WarcError> {
        let wacz = &Wacz::open(file)?;
        let lists = Contents::of_lists(&wacz.members, 0);
        let urls: BTreeSet<&str> = lists.pages.iter().map(|page| url_of(&page.url)).collect();
        // Revisits of a large index are not looked up.
        let finds_originals = wacz.index.is_cheap();
        let is_of_page = |entry: &Entry| {
            let is_document = match entry.status {
                _ if entry.method != "GET" => false,
                _ if entry.media_type == REVISIT => finds_originals,
                status => matches!(status, None | Some(200)),
            };
            is_resource(&entry.url) || is_document && urls.contains(url_of(&entry.url))
        };
        let mut index = wacz.index.read(Keeps::Of(&is_of_page));
        let mut faults = [&wacz.opened[..], &index.faults, &lists.faults].concat();
        if lists.pages.is_empty() && wacz.index.exists() {
            index = Contents::of_records(&wacz.warcs, true, Keeps::Of(&is_of_page));
            faults.append(&mut index.faults);
        }
        let mut records = Records::new();
        for entry in index.entries.into_iter().chain(index.documents.iter().cloned()) {
            let name = if is_resource(&entry.url) { &entry.url[..] } else { url_of(&entry.url) };
            records.entry(name.to_owned()).or_default().push(entry);
        }
        let mut pass_on = |page: &Page, document: Option<&Entry>| {
            each(page, &Parts { wacz, page, document, resources: &records });
        };
        if lists.pages.is_empty() {
            for (page, document) in index.pages.iter().zip(&index.documents) {
                pass_on(page, Some(document));
            }
        }
        // Again, because all their texts may need much memory.
        let listed = wacz.members.iter().filter(|member| is_list(member)).flat_map(pages_of);
        for page in listed.flatten().take(lists.pages.len()) {
            pass_on(&page, nearest(&records, url_of(&page.url), &page));
        }
        if !wacz.is_complete() {
            let reason = "was not finished; its whole records are used";
            faults.push(Flaw::new("file", reason));
        }
        faults.truncate(FAULTS_MAX);
        Ok(faults)
    }
}

impl Parts<'_> {
    /// The text of the page as the program that recorded it says.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let recorded = || {
            let bytes = self.resource(TEXT, TEXT_MAX_BYTES)?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        self.page.text.clone().or_else(recorded)
    }

    /// A picture of the page, as the program that recorded it made it.
    #[must_use]
    pub fn picture(&self) -> Option<Vec<u8>> {
        let mut pictures =
            PICTURES.iter().filter_map(|kind| self.resource(kind, PICTURE_MAX_BYTES));
        pictures.find(|bytes| (1..PICTURE_MAX_BYTES).contains(&(bytes.len() as u64)))
    }

    /// The begin of the document of the page, and its media type.
    #[must_use]
    pub fn document(&self) -> Option<(Vec<u8>, String)> {
        let answer = self.wacz.answer(self.document?, true).ok()?;
        let media_type =
            head::value(&answer.headers, "content-type").unwrap_or_default().to_owned();
        let mut begin = Vec::new();
        // A body that is cut has a begin.
        let _ = answer.body.take(DOCUMENT_MAX_BYTES).read_to_end(&mut begin);
        Some((begin, media_type))
    }

    fn resource(&self, kind: &str, most: u64) -> Option<Vec<u8>> {
        let name = safe_url(&format!("{kind}{}", self.page.url));
        let answer = self.wacz.answer(nearest(self.resources, &name, self.page)?, false).ok()?;
        let mut bytes = Vec::new();
        answer.body.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// Whether a record is the text or the picture of a page, which no server sent.
pub(super) fn is_resource(url: &str) -> bool {
    url.starts_with(TEXT) || PICTURES.iter().any(|kind| url.starts_with(kind))
}

/// The record with this name that was made at the time of the page, or next to it.
fn nearest<'a>(records: &'a Records, name: &str, page: &Page) -> Option<&'a Entry> {
    let same = records.get(name)?.iter();
    same.min_by_key(|entry| entry.time.duration_since(page.time).abs())
}

#[cfg(test)]
mod tests;
