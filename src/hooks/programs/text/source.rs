//! The file that has the text of a page: the HTML of the browser, else the document of the recording,
//! else that of wget or SingleFile, else a page that
//! another program saved, else what ArchiveBox kept of it, else a PDF.

use super::archivebox::{self, Kept};
use super::{PageText, TEXT_MAX_BYTES, prose};
use crate::bodies;
use crate::page::results::last_success;
use crate::page::{self, charset, essence, html, listing, read_start};
use crate::process::capture::OutputLimits;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use url::Url;

/// Reads the first of these files that has text.
pub fn read(invocation: &Invocation, runner: &mut ProgramRunner) -> Option<PageText> {
    let most = invocation.settings.size("PAGE_MAX_SIZE");
    let address = invocation.web_url().ok()?;
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
        let (bytes, kind) = page::saved_document(invocation, most)?;
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
        html_of("saved", &page::named(&invocation.sibling("saved", ""), main)?)
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
    let page = dom()
        .filter(has_text)
        .or_else(|| recorded().filter(has_text))
        .or_else(|| saved().filter(has_text))
        .or_else(|| single_file().filter(has_text))
        .or_else(|| imported().filter(has_text))
        .or_else(of_archivebox);
    if page.is_some() {
        return page;
    }
    let printed = ("pdf", invocation.sibling("pdf", "output.pdf"));
    let own = page::saved_file(invocation).map(|path| ("wget", path));
    let files = own.into_iter().chain([printed]);
    let mut texts = files.filter_map(|(plugin, path)| of_pdf(plugin, &path, runner));
    texts.find(has_text)
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
fn of_document(source: &'static str, bytes: &[u8], kind: &str, address: &Url) -> Option<PageText> {
    if let Some(listing) = listing::read(bytes, kind, address) {
        let titles = listing.entries.into_iter();
        let lines = titles.map(|entry| entry.title.unwrap_or_else(|| entry.url.to_string()));
        return Some(PageText {
            text: lines.map(|line| line + "\n").collect(),
            title: listing.title,
            declared: None,
            source,
        });
    }
    let name = essence(kind);
    if page::is_html(kind) {
        let decoded = charset::decode(bytes, kind, Some(address));
        let page = html::parse(&decoded.text, html::PARSING_TIMEOUT);
        let root = html::select(&page, "html").next();
        let declared = root.and_then(|root| root.attr("lang").map(str::to_owned));
        return Some(PageText {
            text: prose::text(&page, TEXT_MAX_BYTES),
            title: html::title(&page),
            declared,
            source,
        });
    }
    let is_text = name.starts_with("text/") || name.ends_with("json") || name.ends_with("xml");
    is_text.then(|| plain(source, &charset::decode(bytes, kind, Some(address)).text))
}

/// A text without control characters, NUL among them, except line feeds.
fn plain(source: &'static str, text: &str) -> PageText {
    let lines = text.lines().map(|line| line.replace(char::is_control, " "));
    let lines = lines.filter(|line| !line.trim().is_empty());
    PageText {
        text: lines.map(|line| line.trim_end().to_owned() + "\n").collect(),
        title: None,
        declared: None,
        source,
    }
}

/// The text of a PDF. `None` if the file is none, or pdftotext is missing or fails.
fn of_pdf(source: &'static str, path: &Path, runner: &mut ProgramRunner) -> Option<PageText> {
    let start = read_start(path, 1024)?;
    if !start.windows(5).any(|five| five == b"%PDF-") {
        return None;
    }
    let mut command = Command::new("pdftotext");
    command.args(["-q", "-enc", "UTF-8", "-nopgbrk"]);
    command.arg(path).arg("-");
    let limits = OutputLimits { output: TEXT_MAX_BYTES + 1, ..OutputLimits::default() };
    match runner.run(&mut command, "poppler-utils", limits) {
        Ok(ended) => Some(plain(source, &String::from_utf8_lossy(&ended.output))),
        Err(finding) => {
            let why = finding.output_str.escape_debug().to_string();
            eprintln!("failed to read '{}': {why}, ignoring", path.display());
            None
        }
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
