//! The file that has the text of a page: the HTML of the browser, else the document of the recording,
//! else that of wget or SingleFile, else a page that
//! another program saved, else what ArchiveBox kept of it, else a document that is no web page.

use super::archivebox::{self, Kept};
use super::document::Kind;
use super::{PageText, TEXT_MAX_BYTES, prose};
use crate::bodies;
use crate::page::content_type;
use crate::page::content_type::essence;
use crate::page::{charset, html, listing};
use crate::process::files;
use crate::process::files::read_start;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::source;
use crate::source::results::last_success;
use archivist_warc::wacz::Entry;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use url::Url;

/// PDFs in a page that are read.
const EMBEDDED_MAX: usize = 10;
/// Name of the file that has one of them meanwhile.
const EMBEDDED: &str = "embedded.pdf";

/// Reads the first of these files that has text, and the PDFs in the page.
///
/// # Errors
/// Why there is none, if a file may have some.
pub fn read(
    invocation: &Invocation,
    runner: &mut ProgramRunner,
) -> Result<PageText, Option<String>> {
    let most = invocation.settings.size("PAGE_MAX_SIZE");
    let address = invocation.web_url().map_err(|_| None)?;
    let has_text = |page: &PageText| !page.text.trim().is_empty();
    let html_of = |plugin: &'static str, path: &Path| {
        let bytes = read_start(path, most)?;
        let kind = match plugin {
            // Chromium writes UTF-8, whatever the meta element of the page says.
            "dom" => "text/html; charset=utf-8",
            _ => "text/html",
        };
        of_document(plugin, &bytes, kind, &address)
    };
    let dom = || {
        last_success(invocation, "dom")?;
        html_of("dom", &invocation.sibling("dom", "output.html"))
    };
    let recorded = || {
        let (bytes, kind) = recorded(&invocation.sibling("wacz", "page.wacz"), most)?;
        of_document("wacz", &bytes, &kind, &address)
    };
    let saved = || {
        let (bytes, kind) = source::saved_document(invocation, most)?;
        of_document("wget", &bytes, &kind, &address)
    };
    let single_file =
        || html_of("singlefile", &invocation.sibling("singlefile", "singlefile.html"));
    let imported = || {
        let saved = invocation.sibling("saved", "document.html");
        if let Some(bytes) = read_start(&saved, most) {
            return of_document("saved", &bytes, "text/html; charset=utf-8", &address);
        }
        let record = last_success(invocation, "saved")?;
        let main = Path::new(record["output_str"].as_str()?);
        html_of("saved", &files::named(&invocation.sibling("saved", ""), main)?)
    };
    let of_archivebox = || {
        let mut files = archivebox::files(invocation, &address).into_iter();
        files.find_map(|file| {
            let page = match file {
                Kept::Html(path) => html_of("import", &path),
                Kept::Text(path) => {
                    of_document("import", &read_start(&path, most)?, "text/plain", &address)
                }
            };
            page.filter(has_text)
        })
    };
    // Browsers show JSON as it is, with its escapes.
    let is_json = essence(&source::content_type(invocation)).ends_with("json");
    let page = (!is_json)
        .then(dom)
        .flatten()
        .filter(has_text)
        .or_else(|| recorded().filter(has_text))
        .or_else(|| saved().filter(has_text))
        .or_else(|| dom().filter(has_text))
        .or_else(|| single_file().filter(has_text))
        .or_else(|| imported().filter(has_text))
        .or_else(of_archivebox);
    let (inner, missing) = embedded(invocation, &address, most, runner);
    if let Some(page) = page {
        return Ok(PageText { text: page.text + &inner, missing, ..page });
    }
    if !inner.is_empty() {
        return Ok(PageText { missing, ..plain("wacz", &inner) });
    }
    let printed = ("pdf", invocation.sibling("pdf", "output.pdf"), String::new());
    let own =
        source::saved_file(invocation).map(|path| ("wget", path, source::content_type(invocation)));
    let mut reason = missing;
    for (plugin, path, content_type) in own.into_iter().chain([printed]) {
        let Some(kind) = Kind::of(&path, &content_type) else {
            continue;
        };
        match kind.text(&path, most, runner) {
            Ok(text) if text.trim().is_empty() && plugin == "pdf" => {}
            Ok(text) if text.trim().is_empty() => {
                reason = reason.or(Some(format!("the page is {} without text", kind.name())));
            }
            Ok(text) => return Ok(plain(plugin, &text)),
            Err(why) => reason = reason.or(Some(format!("the page is {}: {why}", kind.name()))),
        }
    }
    Err(reason)
}

/// The text of PDFs that a page shows in frames, and why that of others is missing.
fn embedded(
    invocation: &Invocation,
    address: &Url,
    most: u64,
    runner: &mut ProgramRunner,
) -> (String, Option<String>) {
    let mut text = String::new();
    let mut missing = None;
    let path = invocation.sibling("wacz", "page.wacz");
    let recording = File::open(&path).ok().and_then(|file| bodies::open(&path, file).ok());
    let Some(recording) = recording else {
        return (text, None);
    };
    let mut seen = BTreeSet::from([address.to_string()]);
    let is_inner = |entry: &&Entry| {
        entry.media_type == "application/pdf"
            && entry.method == "GET"
            && entry.status == Some(200)
            && seen.insert(entry.url.clone())
    };
    for entry in recording.entries().iter().filter(is_inner).take(EMBEDDED_MAX) {
        let read = recording.read(entry).map_err(|error| error.to_string()).and_then(|answer| {
            let mut file = File::create(EMBEDDED).map_err(|error| error.to_string())?;
            io::copy(&mut answer.body.take(most), &mut file).map_err(|error| error.to_string())?;
            Kind::Pdf.text(Path::new(EMBEDDED), most, runner)
        });
        match read {
            Ok(read) => text.push_str(&plain("wacz", &read).text),
            Err(why) => {
                missing =
                    missing.or(Some(format!("the text of a PDF in the page is missing: {why}")));
            }
        }
    }
    let _ = fs::remove_file(EMBEDDED);
    (text, missing)
}

/// The newest response for the first page of a recording, and its content type.
fn recorded(path: &Path, most: u64) -> Option<(Vec<u8>, String)> {
    let recording = bodies::open(path, File::open(path).ok()?).ok()?;
    let page = recording.pages().first()?;
    let url = page.url.split('#').next()?;
    let own = recording.entries().iter().filter(|entry| {
        entry.url == url
            && entry.method == "GET"
            && entry.status.is_some_and(|status| !(300..400).contains(&status))
    });
    let answer = recording.read(own.max_by_key(|entry| entry.time)?).ok()?;
    let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("content-type");
    let kind = answer.headers.iter().find(named).map(|(_, value)| value.clone());
    let mut bytes = Vec::new();
    answer.body.take(most).read_to_end(&mut bytes).ok()?;
    Some((bytes, kind.unwrap_or_default()))
}

/// The text of a document. `None` if it has none, such as a picture.
pub fn of_document(
    source: &'static str,
    bytes: &[u8],
    kind: &str,
    address: &Url,
) -> Option<PageText> {
    if let Some(listing) = listing::read(bytes, kind, address) {
        let titles = listing.entries.into_iter();
        let lines = titles.map(|entry| entry.title.unwrap_or_else(|| entry.url.to_string()));
        return Some(PageText {
            text: lines.map(|line| line + "\n").collect(),
            title: listing.title,
            declared: None,
            missing: None,
            source,
        });
    }
    let name = essence(kind);
    if content_type::is_html(kind) {
        let decoded = charset::decode(bytes, kind, Some(address));
        let page = html::parse(&decoded.text, html::PARSING_TIMEOUT);
        let root = html::select(&page, "html").next();
        let declared = root.and_then(|root| root.attr("lang").map(str::to_owned));
        return Some(PageText {
            text: prose::text(&page, TEXT_MAX_BYTES),
            title: html::title(&page),
            declared,
            missing: None,
            source,
        });
    }
    if name.ends_with("json")
        && let Ok(value) = serde_json::from_slice::<Value>(bytes)
    {
        // Letters in place of escapes.
        return Some(plain(source, &format!("{value:#}")));
    }
    let is_text = name.starts_with("text/") || name.ends_with("json") || name.ends_with("xml");
    is_text.then(|| plain(source, &charset::decode(bytes, kind, Some(address)).text))
}

/// A text without control characters, NUL among them, except line feeds.
pub fn plain(source: &'static str, text: &str) -> PageText {
    let lines = text.lines().map(|line| line.replace(char::is_control, " "));
    let lines = lines.filter(|line| !line.trim().is_empty());
    PageText {
        text: lines.map(|line| line.trim_end().to_owned() + "\n").collect(),
        title: None,
        declared: None,
        missing: None,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_by_their_type() {
        let address = Url::parse("http://a.test/").unwrap();
        let of = |kind: &str, bytes: &[u8]| {
            let page = of_document("wget", bytes, kind, &address)?;
            Some((page.text, page.title, page.declared))
        };
        let page =
            of("text/html; charset=iso-8859-1", b"<html lang=fr><title>\xe9t\xe9</title><p>\xe0");
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(page, Some(("à\n".to_owned(), text("été"), text("fr"))));
        let page = of("text/x-c", b"int x;\0\n\n\x1b[1m// y  \n");
        assert_eq!(
            page,
            Some(("int x; \n [1m// y\n".trim_end_matches(' ').replace("; \n", ";\n"), None, None))
        );
        let feed = b"<rss><channel><title>F</title><item><title>One</title><link>http://a.test/1</link></item></channel></rss>";
        assert_eq!(of("application/rss+xml", feed), Some(("One\n".to_owned(), text("F"), None)));
        assert_eq!(of("image/png", b"\x89PNG"), None);
        assert_eq!(of("text/plain", b""), Some((String::new(), None, None)));
    }
}
