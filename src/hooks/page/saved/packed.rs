//! ZIP files with a page: HTZ of WebScrapBook, MAFF, and compressed pages of SingleFile.

use super::{DOCUMENT_MAX_BYTES, SavedPage, markup, short, with_document};
use crate::page::xml::{Piece, walk};
use archivist_core::model::moment;
use archivist_warc::PackedFiles;
use std::fs::File;

/// Longest description in bytes.
const ABOUT_MAX_BYTES: u64 = 1 << 20;
/// Document of an HTZ file and of a compressed page of SingleFile.
const INDEX: &str = "index.html";
/// Name of the format of SingleFile, whose usual pages are HTML documents.
const COMPRESSED: &str = "compressed page of SingleFile";
/// Attribute of the element `html` in a document in which SingleFile keeps a ZIP file.
const MARK: &[u8] = b"data-sfz";
/// Bytes at the start of a document in which this attribute is looked for.
const MARK_WITHIN_BYTES: usize = 1024;

/// Reads the page of a ZIP file; `None` if it has none.
pub fn read(file: &File) -> Result<Option<SavedPage>, String> {
    let file = file.try_clone().map_err(|error| error.to_string())?;
    // Another reader says what is wrong with it.
    let Ok(Some(packed)) = PackedFiles::open(file) else {
        return Ok(None);
    };
    let about = packed.names().filter(|name| {
        let mut parts = name.split('/');
        parts.next().is_some() && parts.next() == Some("index.rdf") && parts.next().is_none()
    });
    let about: Vec<&str> = about.collect();
    if let Some(first) = about.first() {
        let mut page = maff(&packed, first)?;
        if about.len() > 1 {
            let fault = format!("{} more pages in it are left out", about.len() - 1);
            page.faults.push(fault);
        }
        return Ok(Some(page));
    }
    if !packed.names().any(|name| name == INDEX) {
        return Ok(None);
    }
    let bytes = document(&packed, INDEX)?;
    let page = markup::read(&bytes, false).unwrap_or_default();
    let format = if page.is_single_file { COMPRESSED } else { "HTZ page of WebScrapBook" };
    let page = SavedPage { format: format.to_owned(), is_single_file: false, ..page };
    Ok(Some(with_document(page, &bytes, "text/html")))
}

/// A page of SingleFile, which begins so, with its document, if the file has that in a ZIP file in itself.
pub fn of_single_file(file: &File, start: &[u8], page: SavedPage) -> Result<SavedPage, String> {
    let head = &start[..start.len().min(MARK_WITHIN_BYTES)];
    if !head.windows(MARK.len()).any(|bytes| bytes == MARK) {
        return Ok(page);
    }
    let file = file.try_clone().map_err(|error| error.to_string())?;
    let packed = PackedFiles::open_in_document(file);
    let Some(packed) = packed.map_err(|error| error.to_string())? else {
        return Ok(page);
    };
    let bytes = document(&packed, INDEX)?;
    let page = SavedPage { format: COMPRESSED.to_owned(), is_single_file: false, ..page };
    Ok(with_document(page, &bytes, "text/html"))
}

fn document(packed: &PackedFiles, name: &str) -> Result<Vec<u8>, String> {
    let read = packed.read(name, DOCUMENT_MAX_BYTES as u64);
    let read = read.ok_or_else(|| format!("it has no file '{name}'"))?;
    read.map_err(|error| format!("'{name}': {error}"))
}

/// Reads a page that `index.rdf` in a folder of the file describes.
fn maff(packed: &PackedFiles, about: &str) -> Result<SavedPage, String> {
    let read = packed.read(about, ABOUT_MAX_BYTES).transpose();
    let bytes = read.map_err(|error| format!("'{about}': {error}"))?;
    let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    let mut page = SavedPage { format: "MAFF page".to_owned(), ..SavedPage::default() };
    let (mut index, mut encoding) = (INDEX.to_owned(), None);
    walk(&text, |piece, _| {
        if let Piece::Start(name, attributes) = piece {
            let is_value = |name: &str| name.rsplit(':').next() == Some("resource");
            let value = attributes.into_iter().find(|(name, _)| is_value(name));
            let value = value.and_then(|(_, value)| short(&value));
            match name.local.as_str() {
                "originalurl" => page.url = value,
                "title" => page.title = value,
                "archivetime" => {
                    page.time =
                        value.and_then(|time| moment(&time)).filter(|time| time.contains('T'));
                }
                "indexfilename" => index = value.unwrap_or_default(),
                "charset" => encoding = value,
                _ => {}
            }
        }
        true
    });
    let folder = about.strip_suffix("index.rdf").unwrap_or_default();
    let bytes = document(packed, &format!("{folder}{index}"))?;
    let kind = encoding
        .map_or("text/html".to_owned(), |encoding| format!("text/html; charset={encoding}"));
    Ok(with_document(page, &bytes, &kind))
}
