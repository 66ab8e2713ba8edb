//! What `archivist survey` does for other verbs in a process without rights: reads files, and prints what they have,
//! one JSON object a line.

pub mod archivebox;
pub mod compare;
pub mod export;
pub mod html;
pub mod job;
pub mod pictures;
pub mod replay;
pub mod texts;
pub mod verify;

use crate::client::exit::Failure;
use crate::display::style;
use crate::queue::urls::INPUT_MAX_BYTES;
use archivist_core::model::{Folders, List, URL_MAX};
use archivist_core::text::{clean, human_size};
use archivist_hooks::TextFiles;
use archivist_hooks::page::charset;
use archivist_hooks::page::listing::{self, Url};
use archivist_hooks::page::saved::{self, SavedPage};
use archivist_shared::archive::IMPORT_PLUGIN;
use archivist_warc::PackedFiles;
use archivist_warc::wacz::{Page, Parts, Wacz};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek};
use std::time::Duration;

/// Address of a feed that does not say its own. Its relative links are no pages.
const NO_ADDRESS: &str = "https://no-address.invalid/";

/// Time for a comparison; after it, the rest is taken for replaced.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of texts and pictures of the pages of a recording, as they are printed.
const PARTS_MAX_BYTES: usize = 768 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Surveyed {
    /// A page, when it was recorded, and what its snapshot gets.
    Page {
        url: String,
        title: String,
        time: String,
        parts: Option<Box<PageParts>>,
    },
    /// The file is a recording, not a list.
    Recording,
    Saved(Box<SavedPage>),
    /// The format of a list.
    Format(String),
    /// An entry of a list, for `parse_line`, and where it is.
    Entry {
        place: String,
        line: String,
    },
    /// A part of the file that cannot be used, and why.
    Fault(String),
    Unusable(String),
}

/// What of a recording the snapshot of a page gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageParts {
    pub text: Option<TextFiles>,
    /// Bytes of a picture in base64.
    pub picture: Option<String>,
}

/// Prints the entries of a list, or a saved page.
pub fn list_or_page(file: File, is_page: bool, folders: Folders) -> Result<(), Failure> {
    match saved::read(&file, is_page) {
        Ok(None) => {}
        Ok(Some(page)) => return print(&Surveyed::Saved(Box::new(page))),
        Err(reason) => return print(&Surveyed::Unusable(reason)),
    }
    let is_page = saved::read(&file, true).is_ok_and(|page| page.is_some());
    match lists(file, folders) {
        Err(reason) if is_page => {
            let hint = "; of a saved page, say with --url which one it is";
            print(&Surveyed::Unusable(reason + hint))
        }
        Ok(lines) => lines.iter().try_for_each(print),
        Err(reason) => print(&Surveyed::Unusable(reason)),
    }
}

/// Prints the pages of a recording.
pub fn recording(file: File) -> Result<(), Failure> {
    let mut printed = Ok(());
    let mut rest = PARTS_MAX_BYTES;
    let mut is_cut = false;
    let surveyed = Wacz::survey(file, &mut |page, parts| {
        if printed.is_err() {
            return;
        }
        if page.url.len() > URL_MAX {
            let start: String = clean(&page.url).chars().take(80).collect();
            printed = print(&Surveyed::Fault(format!("URL of a page is too long: {start}…")));
            return;
        }
        let mut text = text_of(page, parts);
        let own = text.as_mut().and_then(|text| text.description.title.take());
        let title =
            if page.title.is_empty() { own.unwrap_or_default() } else { page.title.clone() };
        let parts = PageParts {
            text: text.filter(|text| !text.text.trim().is_empty()),
            picture: parts.picture().map(|bytes| STANDARD.encode(bytes)),
        };
        let bytes = serde_json::to_string(&parts).map_or(0, |parts| parts.len());
        let left = rest.checked_sub(bytes);
        (rest, is_cut) = (left.unwrap_or(rest), is_cut || left.is_none());
        printed = print(&Surveyed::Page {
            url: page.url.clone(),
            title: title.chars().take(1000).collect(),
            time: page.time.to_string(),
            parts: left.map(|_| Box::new(parts)),
        });
    });
    printed?;
    let faults = match surveyed {
        Ok(faults) => faults,
        Err(error) => {
            return print(&Surveyed::Unusable(error.to_string()));
        }
    };
    if is_cut {
        let most = human_size(PARTS_MAX_BYTES as u64);
        print(&Surveyed::Fault(format!(
            "only {most} of texts and pictures of its pages are taken"
        )))?;
    }
    faults.iter().try_for_each(|fault| print(&Surveyed::Fault(fault.to_string())))
}

/// The text of a page: what the recording program has written, else that of the document.
fn text_of(page: &Page, parts: &Parts<'_>) -> Option<TextFiles> {
    if let Some(text) = parts.text().filter(|text| !text.trim().is_empty()) {
        return Some(TextFiles::of_text(IMPORT_PLUGIN, &text));
    }
    let (document, media_type) = parts.document()?;
    let address = Url::parse(&page.url).ok()?;
    TextFiles::of_document(IMPORT_PLUGIN, &document, &media_type, &address)
}

/// Reads the lists of a file, or of the files in a ZIP file.
fn lists(mut file: File, folders: Folders) -> Result<Vec<Surveyed>, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut start = Vec::new();
    file.rewind().map_err(failed)?;
    let begun = file.by_ref().take(4).read_to_end(&mut start);
    begun.map_err(failed)?;
    if start == b"PK\x03\x04" {
        return packed_lists(file, folders);
    }
    let mut bytes = start;
    let rest = file.take(INPUT_MAX_BYTES + 1).read_to_end(&mut bytes);
    rest.map_err(failed)?;
    if bytes.len() as u64 > INPUT_MAX_BYTES {
        return Err(format!("it is longer than {INPUT_MAX_BYTES} bytes"));
    }
    let mut lines = Vec::new();
    let format = list(&bytes, folders, "", &mut lines)?;
    lines.insert(0, Surveyed::Format(format));
    Ok(lines)
}

/// Reads the lists in a ZIP file, as Pocket and Omnivore write it.
fn packed_lists(file: File, folders: Folders) -> Result<Vec<Surveyed>, String> {
    let packed = PackedFiles::open(file).map_err(|error| error.to_string())?;
    // One without a directory may be a recording that was not finished.
    let Some(packed) = packed else {
        return Ok(vec![Surveyed::Recording]);
    };
    let is_part = |name: &str| name.ends_with(".warc") || name.ends_with(".warc.gz");
    if packed.names().any(is_part) {
        return Ok(vec![Surveyed::Recording]);
    }
    let mut lines = Vec::new();
    let mut formats = Vec::new();
    for name in packed.names().filter(|name| may_be_list(name)) {
        let Some(read) = packed.read(name, INPUT_MAX_BYTES) else {
            continue;
        };
        let shown = clean(name);
        let format = read
            .map_err(|error| error.to_string())
            .and_then(|bytes| list(&bytes, folders, &format!("{shown}, "), &mut lines));
        match format {
            Ok(format) => formats.push(format),
            Err(reason) => lines.push(Surveyed::Fault(format!("{shown}: {reason}"))),
        }
    }
    let Some(first) = formats.first() else {
        return Err("it is a ZIP file without a list of pages".to_owned());
    };
    let format = match formats.len() {
        1 => format!("{first} in a ZIP file"),
        n => format!("{first} and {} more files in a ZIP file", n - 1),
    };
    lines.insert(0, Surveyed::Format(format));
    Ok(lines)
}

/// Whether a file in an export is its list, not a page or a note that was saved with it.
fn may_be_list(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let is_note = name.split('/').any(|part| matches!(part, "annotations" | "highlights"));
    let is_list = [".csv", ".json", ".opml"].iter().any(|end| file.ends_with(end));
    is_list && !is_note && !file.starts_with('.')
}

/// Reads a list, and returns the name of its format. `within` precedes the places of its entries.
fn list(
    bytes: &[u8],
    folders: Folders,
    within: &str,
    lines: &mut Vec<Surveyed>,
) -> Result<String, String> {
    let text = in_utf8(bytes);
    let list = match List::read_with(&text, folders) {
        Ok(list) => list,
        Err(error) => return feed(bytes, within, lines).ok_or_else(|| error.to_string()),
    };
    for (place, line) in list.lines() {
        let line = String::from_utf8_lossy(line).trim().to_owned();
        if !line.is_empty() && !line.starts_with('#') {
            lines.push(Surveyed::Entry { place: format!("{within}{place}"), line });
        }
    }
    Ok(list.format().unwrap_or("list of addresses").to_owned())
}

/// Reads a feed or sitemap, and returns the name of the format; `None` if it is neither.
fn feed(bytes: &[u8], within: &str, lines: &mut Vec<Surveyed>) -> Option<String> {
    let address = Url::parse(NO_ADDRESS).ok()?;
    let found = listing::read(bytes, "application/xml", &address)?;
    for (number, entry) in (1..).zip(found.entries) {
        let place = format!("{within}entry {number}");
        if entry.url.as_str().starts_with(NO_ADDRESS) {
            let path = clean(&entry.url.as_str()[NO_ADDRESS.len() - 1..]);
            let why = "the file does not say to which site it is relative";
            lines.push(Surveyed::Fault(format!("{place}: '{path}' refused: {why}")));
            continue;
        }
        let line = json!({
            "url": entry.url.as_str(), "title": entry.title, "tags": entry.tags,
            "bookmarked_at": entry.date,
        });
        lines.push(Surveyed::Entry { place, line: line.to_string() });
    }
    Some("feed or sitemap".to_owned())
}

/// Decodes text that is not UTF-8, by what it declares or by a guess. Lines that are UTF-8 stay, because
/// one broken line says nothing about the others.
fn in_utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    // UTF-16 and UTF-32 are for the reader of lists.
    if std::str::from_utf8(bytes).is_ok() || bytes.iter().take(64).any(|byte| *byte == 0) {
        return Cow::Borrowed(bytes);
    }
    let lines = || bytes.split_inclusive(|byte| *byte == b'\n');
    let other: Vec<u8> =
        lines().filter(|line| std::str::from_utf8(line).is_err()).flatten().copied().collect();
    let mut encoding = charset::decode(bytes, "text/html", None).encoding;
    if encoding.name() == "UTF-8" {
        encoding = charset::decode(&other, "text/plain", None).encoding;
    }
    let mut text = Vec::with_capacity(bytes.len() + bytes.len() / 8);
    for line in lines() {
        match std::str::from_utf8(line) {
            Ok(_) => text.extend_from_slice(line),
            Err(_) => text.extend_from_slice(encoding.decode(line).0.as_bytes()),
        }
    }
    Cow::Owned(text)
}

fn print(line: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(line)
        .map_err(|error| Failure::failed(format!("failed to write JSON: {error}")))?;
    style::print(&format!("{line}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn broken_lines_leave_the_others_alone() {
        let text = |bytes: &[u8]| String::from_utf8(in_utf8(bytes).into_owned()).unwrap();
        let file = "<A HREF=\"http://a.test/\">Café à la crème</A>\n";
        let latin: Vec<u8> = file.chars().map(|c| c as u8).collect();
        assert_eq!(text(&latin), file);
        let mixed = [file.as_bytes(), &latin].concat();
        assert_eq!(text(&mixed), format!("{file}{file}"));
        let declared = [&b"<META CHARSET=\"utf-8\">\n"[..], &mixed].concat();
        assert!(text(&declared).ends_with(&format!("{file}{file}")));
    }

    #[test]
    fn feeds_are_lists() {
        let feed = b"<?xml version=\"1.0\"?><rss><channel><item><title>A</title>\
            <link>http://a.test/</link><pubDate>Tue, 14 Nov 2023 22:13:20 GMT</pubDate>\
            <category>News</category></item>\
            <item><link>/relative</link></item></channel></rss>";
        let mut lines = Vec::new();
        let format = list(feed, Folders::AsTags, "x, ", &mut lines);
        assert_eq!(format.as_deref(), Ok("feed or sitemap"));
        let line = r#"{"url":"http://a.test/","title":"A","tags":["News"],"bookmarked_at":"2023-11-14T22:13:20Z"}"#;
        let entry = Surveyed::Entry { place: "x, entry 1".to_owned(), line: line.to_owned() };
        assert_eq!(lines[0], entry);
        assert!(matches!(&lines[1], Surveyed::Fault(why) if why.contains("'/relative' refused")));
    }

    proptest! {
        /// Whatever is in a file, it is a list or refused, and no line is empty.
        #[test]
        fn any_bytes_are_a_list_or_refused(bytes: Vec<u8>, start in "(<rss>|<feed>|<opml>|<urlset>|<DT><A |\\[|\\{|url,title\n|)") {
            let bytes = [start.as_bytes(), &bytes].concat();
            let mut lines = Vec::new();
            let _ = list(&bytes, Folders::AsTags, "", &mut lines);
            for line in lines {
                if let Surveyed::Entry { line, .. } = line {
                    prop_assert!(!line.trim().is_empty());
                }
            }
        }
    }
}
