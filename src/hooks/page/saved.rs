//! Pages that other programs saved as a file: what they are, which page, when, and its document. The
//! files are hostile; a process without rights reads them for `archivist import`.
//!
//! | format | address | time |
//! |---|---|---|
//! | SingleFile: HTML, compressed (`index.html` in a ZIP file, or in one in an HTML document) | comment at the top | the same |
//! | WebScrapBook: HTML | `data-scrapbook-source` of the element `html` | `data-scrapbook-create` |
//! | WebScrapBook: HTZ (`index.html` in a ZIP file) | the same | the same |
//! | MAFF (`index.rdf` in a ZIP file) | `MAF:originalurl` | `MAF:archivetime` |
//! | Save Page WE | `meta` element `savepage-url` | `savepage-date` |
//! | HTML of Chromium, Edge and Internet Explorer | comment `saved from url=` | – |
//! | MHTML (RFC 2557) | `Snapshot-Content-Location`, `Content-Location` | `Date` |
//! | web archive of Safari (property list) | `WebResourceURL` | – |

mod markup;
mod mhtml;
mod packed;
mod requisites;
mod webarchive;

use super::{charset, html};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek};
use std::time::Duration;
use url::Url;

/// Bytes of an HTML document in which its origin and title are looked for.
const HEAD_MAX_BYTES: usize = 1 << 20;
/// Bytes of a file that has its document next to pictures and other files.
const FILE_MAX_BYTES: u64 = 64 << 20;
/// Longest document in bytes; the rest is left out.
const DOCUMENT_MAX_BYTES: usize = 16 << 20;
/// Longest text about a page in bytes: address, title, time.
const TEXT_MAX_BYTES: usize = 8192;
const TITLE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPage {
    pub format: String,
    /// Whether the file is the document of a page, as SingleFile writes it uncompressed.
    pub is_single_file: bool,
    /// Address of the page, as the file has it.
    pub url: Option<String>,
    /// Title of the page on one line.
    pub title: Option<String>,
    /// When it was saved, as in RFC 3339.
    pub time: Option<String>,
    /// The document of the page in UTF-8; `None` if the file itself is that document.
    pub document: Option<String>,
    /// Files next to it that it shows, if the file itself is the document: paths relative to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requisites: Vec<String>,
    /// What of the file cannot be used.
    pub faults: Vec<String>,
}

/// Reads a file. With `is_page`, any HTML document is a page. `None` if the file is none of these.
///
/// # Errors
/// If the file cannot be read, or is damaged. The text is without the name of the file.
pub fn read(mut file: &File, is_page: bool) -> Result<Option<SavedPage>, String> {
    let mut start = Vec::new();
    file.rewind().map_err(|error| error.to_string())?;
    let read = file.take(HEAD_MAX_BYTES as u64).read_to_end(&mut start).map(drop);
    read.map_err(|error| error.to_string())?;
    if start.starts_with(b"PK\x03\x04") {
        return packed::read(file);
    }
    if start.starts_with(webarchive::MAGIC) {
        return webarchive::read(file).map(Some);
    }
    if webarchive::is_xml(&start) {
        return webarchive::read_xml(&whole(file)?).map(Some);
    }
    if mhtml::is_mhtml(&start) {
        return mhtml::read(&whole(file)?).map(Some);
    }
    match markup::read(&start, is_page) {
        Some(page) if page.is_single_file => packed::of_single_file(file, &start, page).map(Some),
        Some(page) => {
            let mut document = Vec::new();
            let read = file
                .rewind()
                .and_then(|()| file.take(DOCUMENT_MAX_BYTES as u64).read_to_end(&mut document));
            read.map_err(|error| error.to_string())?;
            Ok(Some(SavedPage { requisites: requisites::of(&document), ..page }))
        }
        None => Ok(None),
    }
}

/// The bytes of a file that is not too long.
fn whole(mut file: &File) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| error.to_string();
    let length = file.metadata().map_err(failed)?.len();
    if length > FILE_MAX_BYTES {
        return Err(format!("it is longer than {FILE_MAX_BYTES} bytes"));
    }
    // Exactly: a buffer that grows takes twice the memory.
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
    let read = file.rewind().and_then(|()| file.take(length).read_to_end(&mut bytes));
    read.map_err(failed)?;
    Ok(bytes)
}

/// Adds the document to a page, and its title if the page has none.
fn with_document(mut page: SavedPage, bytes: &[u8], kind: &str) -> SavedPage {
    let address = page.url.as_deref().and_then(|url| Url::parse(url).ok());
    let end = bytes.len().min(DOCUMENT_MAX_BYTES);
    if end < bytes.len() {
        let fault = format!("its document is longer than {DOCUMENT_MAX_BYTES} bytes");
        page.faults.push(fault);
    }
    let text = charset::decode(&bytes[..end], kind, address.as_ref()).text;
    page.title = page.title.or_else(|| title(&text));
    page.document = Some(text);
    page
}

fn title(text: &str) -> Option<String> {
    let head = &text[..text.floor_char_boundary(HEAD_MAX_BYTES)];
    html::title(&html::parse(head, TITLE_TIMEOUT))
}

/// A short text, if it is not empty.
fn short(text: &str) -> Option<String> {
    let text = text.trim();
    let text = &text[..text.floor_char_boundary(TEXT_MAX_BYTES)];
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
pub(super) mod tests;
