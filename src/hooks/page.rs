//! The snapshot's page, read from the output of other hooks or fetched again; and atomic writes of
//! output files.

pub mod charset;
pub mod client_certificate;
pub mod declaration;
pub mod fetch;
pub mod framed;
#[cfg(test)]
mod fuzz;
pub mod html;
pub mod identity;
pub mod listing;
pub mod results;
pub mod retry_after;
pub mod saved;
pub mod sitemap;
mod tags;
mod xml;

pub use archivist_warc::coding;

use super::chromium;
use crate::page::fetch::Fetched;
use crate::page::html::Resolver;
use crate::page::listing::Listing;
use crate::page::results::{last_success, saved_dom};
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use encoding_rs::{Encoding, UTF_8};
use scraper::Html;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

/// Entries of a directory among which a file with a name in another encoding is looked for.
const DIRECTORY_ENTRIES_MAX: usize = 10_000;

/// A parsed page.
pub struct ParsedPage {
    /// Its HTML document.
    pub html: Html,
    /// Its URL after redirects.
    pub address: Url,
    /// The encoding of the server's document.
    pub encoding: &'static Encoding,
}

impl ParsedPage {
    /// Resolves the URLs of this page.
    pub fn resolver(&self) -> Resolver {
        Resolver::new(&self.html, &self.address, self.encoding)
    }
}

/// The document of a snapshot.
pub enum Document {
    /// A page.
    Page(ParsedPage),
    /// A feed, a sitemap or a list of URLs, from this address.
    Listing(Listing, Url),
}

/// Finds the document: the HTML that chromium saved or shows, else the file that wget saved, else a
/// new request with curl. Chromium shows feeds and lists in a viewer of its own, so those come from
/// wget or curl. Waits for the tab, because nothing else has what scripts add to the page.
pub fn find(invocation: &Invocation, runner: &mut ProgramRunner) -> Result<Document, Finding> {
    let url = invocation.web_url()?;
    chromium::await_tab(invocation, runner)?;
    let most = invocation.settings.size("PAGE_MAX_SIZE");
    let address = final_url(invocation).unwrap_or_else(|| url.clone());
    let shown_type = shown_content_type(invocation);
    let mut wanted = None;
    if may_list(&shown_type) {
        match served(invocation, runner, &url, &address, &shown_type) {
            Ok(document) => return Ok(document),
            // A page that a style sheet makes from XML, or text that the browser shows.
            Err(finding) => wanted = Some(finding),
        }
    }
    if let Some(dom) = saved_dom(invocation)
        && let Some(bytes) = read_start(&dom, most)
    {
        eprintln!("reading '{}'", dom.display());
        return Ok(Document::Page(of_dom(&bytes, address)));
    }
    if let Some(html) = in_tab(invocation, runner, most) {
        return Ok(Document::Page(of_dom(html.as_bytes(), address)));
    }
    match wanted {
        Some(finding) => Err(finding),
        None => served(invocation, runner, &url, &address, &shown_type),
    }
}

/// The page that the snapshot's tab shows, if it has one.
pub fn in_browser(invocation: &Invocation, runner: &mut ProgramRunner) -> Option<ParsedPage> {
    let address = final_url(invocation)?;
    let html = in_tab(invocation, runner, invocation.settings.size("PAGE_MAX_SIZE"))?;
    Some(of_dom(html.as_bytes(), address))
}

/// Reads chromium's HTML, which is UTF-8, whatever its meta element says.
fn of_dom(bytes: &[u8], address: Url) -> ParsedPage {
    let decoded = charset::decode(bytes, "text/html; charset=utf-8", None);
    ParsedPage {
        html: html::parse(&decoded.text, html::PARSING_TIMEOUT),
        address,
        encoding: declaration::served(bytes).unwrap_or(UTF_8),
    }
}

/// The document as the server sent it: the file that wget saved, or that the browser got in place of
/// a page; else a new request, unless the answer to it is known.
fn served(
    invocation: &Invocation,
    runner: &mut ProgramRunner,
    url: &Url,
    address: &Url,
    content_type: &str,
) -> Result<Document, Finding> {
    let most = invocation.settings.size("PAGE_MAX_SIZE");
    if let Some(path) = saved_file(invocation)
        && let Some(bytes) = read_start(&path, most)
    {
        let is_known = !content_type.is_empty();
        let kind = match content_type {
            "" => guessed_type(&path, &bytes),
            known => known,
        };
        let read = document(&bytes, kind, address);
        // A new request could say more of a file whose type was guessed.
        if is_known || read.is_ok() {
            eprintln!("reading '{}'", path.display());
            return read;
        }
    }
    // The browser would have kept a short list that its server calls mere bytes.
    let is_bytes = essence(content_type) == "application/octet-stream";
    let may_list = may_list(content_type) && !(is_bytes && chromium::found_no_page(invocation));
    if !content_type.is_empty() && !is_html(content_type) && !may_list {
        return Err(not_html(content_type));
    }
    let within = runner.remaining();
    let fetched = request(runner, invocation, url, most, within)?;
    let last = fetched.last();
    if let Some(problem) = fetched.problem.as_ref().filter(|_| fetched.body.is_empty()) {
        return Err(Finding::failed(problem.clone()));
    }
    let kind = last.header("content-type").unwrap_or_default();
    document(&fetched.body, kind, &last.url)
}

/// Requests the page of the snapshot with curl, see [`fetch::get`].
///
/// # Errors
/// If the browser did not get the page either, the hook is skipped for its reason. A site that the
/// browser could not reach is not asked, unless the user has set options for curl, which may lead
/// another way.
pub fn request(
    runner: &mut ProgramRunner,
    invocation: &Invocation,
    url: &Url,
    most: u64,
    within: Duration,
) -> Result<Fetched, Finding> {
    let options = format!("{}_ARGS_EXTRA", invocation.prefix());
    if !invocation.settings.list(&options).is_empty() {
        return fetch::get(runner, invocation, url, most, within);
    }
    chromium::skip_if_unreachable(invocation)?;
    let fetched = fetch::get(runner, invocation, url, most, within);
    fetched.map_err(|failure| chromium::unanswered(invocation).unwrap_or(failure))
}

/// Parses a fetched page. Error pages are pages too, as in browsers. A response without a body or
/// with another content type is a finding.
pub fn parse(fetched: Fetched) -> Result<ParsedPage, Finding> {
    let last = fetched.last();
    if let Some(problem) = fetched.problem.as_ref().filter(|_| fetched.body.is_empty()) {
        return Err(Finding::failed(problem.clone()));
    }
    let kind = last.header("content-type").unwrap_or_default();
    match document(&fetched.body, kind, &last.url)? {
        Document::Page(page) => Ok(page),
        Document::Listing(..) => Err(Finding::noresults("not an HTML page")),
    }
}

/// Reads a document of this content type, which may be empty.
fn document(bytes: &[u8], content_type: &str, address: &Url) -> Result<Document, Finding> {
    if let Some(listing) = listing::read(bytes, content_type, address) {
        return Ok(Document::Listing(listing, address.clone()));
    }
    if !content_type.is_empty() && !is_html(content_type) {
        return Err(not_html(content_type));
    }
    let decoded = charset::decode(bytes, content_type, Some(address));
    Ok(Document::Page(ParsedPage {
        html: html::parse(&decoded.text, html::PARSING_TIMEOUT),
        address: address.clone(),
        encoding: decoded.encoding,
    }))
}

fn not_html(content_type: &str) -> Finding {
    let kind = html::one_line(content_type, 100);
    Finding::noresults(format!("not an HTML page: {kind}"))
}

/// Whether documents of this type may be feeds, sitemaps or lists.
fn may_list(content_type: &str) -> bool {
    let kind = essence(content_type);
    let is_text = kind.starts_with("text/") && !matches!(&*kind, "text/html" | "text/css");
    let is_data = ["xml", "json", "gzip", "octet-stream"];
    kind != "application/xhtml+xml"
        && kind != "image/svg+xml"
        && (is_text || is_data.iter().any(|end| kind.ends_with(end)))
}

/// Content type of a file that wget saved, if no hook has stored that of the response: from its
/// name, else from its first tag (MIME Sniffing standard, "identifying an unknown MIME type").
fn guessed_type(path: &Path, bytes: &[u8]) -> &'static str {
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("html" | "htm") => "text/html",
        Some("xhtml") => "application/xhtml+xml",
        Some("xml" | "rss" | "atom" | "rdf") => "application/xml",
        Some("json") => "application/json",
        Some("txt") => "text/plain",
        Some("gz") => "application/gzip",
        _ => {
            let tags = [
                "!doctype html",
                "html",
                "head",
                "script",
                "iframe",
                "h1",
                "div",
                "table",
                "a",
                "style",
                "title",
                "body",
                "p",
                "!--",
            ];
            let start = bytes[..bytes.len().min(512)].trim_ascii_start();
            let start = String::from_utf8_lossy(start).to_ascii_lowercase();
            let is_html = tags.iter().any(|tag| {
                let rest = start.strip_prefix('<').and_then(|rest| rest.strip_prefix(tag));
                rest.is_some_and(|rest| {
                    *tag == "!--" || rest.starts_with(['>', ' ', '\n', '\r', '\t'])
                })
            });
            if is_html { "text/html" } else { "application/octet-stream" }
        }
    }
}

/// Content type of the document: as the response headers have it, with its charset, else as
/// chromium reports it. Empty if no hook has stored it.
fn shown_content_type(invocation: &Invocation) -> String {
    let stored = served_content_type(invocation);
    match chromium::navigation(invocation).map(|navigation| navigation.mime_type) {
        // Scripts may have gone to another document.
        Some(shown) if !shown.is_empty() && essence(&stored) != essence(&shown) => shown,
        _ => stored,
    }
}

/// Whether hooks read a file of this content type: as a page, feed, sitemap or list. Of mere bytes, only
/// a short list is read.
pub fn is_read(content_type: &str) -> bool {
    let is_bytes = essence(content_type) == "application/octet-stream";
    !content_type.is_empty() && !is_bytes && (is_html(content_type) || may_list(content_type))
}

/// Whether a document of this type is a page of HTML.
pub fn is_html(content_type: &str) -> bool {
    let kind = essence(content_type);
    matches!(kind.as_str(), "text/html" | "application/xhtml+xml") || kind.ends_with("+xml")
}

/// Whether a browser shows the content type as a page, instead of a PDF viewer or a download.
pub fn is_viewable(content_type: &str) -> bool {
    let kind = essence(content_type);
    let known = matches!(
        kind.as_str(),
        "" | "application/json" | "application/xml" | "application/javascript"
    );
    known || is_html(&kind) || kind.starts_with("text/") || kind.starts_with("image/")
}

/// A content type without its parameters, in lower case.
pub fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// `Content-Type` of the page's response, or an empty string if no hook has stored it.
fn served_content_type(invocation: &Invocation) -> String {
    let stored = headers_json(invocation)
        .and_then(|headers| Some(headers["content_type"].as_str()?.to_owned()));
    stored.unwrap_or_default()
}

fn headers_json(invocation: &Invocation) -> Option<Value> {
    let bytes = read_start(&invocation.sibling("headers", "headers.json"), 1 << 20)?;
    serde_json::from_slice(&bytes).ok()
}

/// The URL after redirects: as chromium reports it, which includes redirects by scripts, else from
/// the response headers.
fn final_url(invocation: &Invocation) -> Option<Url> {
    let in_browser = chromium::navigation(invocation).map(|navigation| navigation.final_url);
    let in_headers = || Some(headers_json(invocation)?["final_url"].as_str()?.to_owned());
    Url::parse(&in_browser.or_else(in_headers)?).ok().filter(|url| url.has_host())
}

/// The page's HTML from chromium, if the snapshot has a tab. Errors are only logged, because the
/// caller has other sources of the page.
fn in_tab(invocation: &Invocation, runner: &mut ProgramRunner, most: u64) -> Option<String> {
    chromium::navigation(invocation)?;
    // The renderer process of a busy page does not answer.
    let within = runner.remaining() / 2;
    let read = chromium::with_page(invocation, runner, most, async |view| {
        let late = |_| Finding::failed("chromium did not answer");
        Ok(timeout(within, view.document(most)).await.map_err(late)??)
    });
    match read {
        Ok(((html, _), _)) if (html.len() as u64) <= most => Some(html),
        Ok(_) => None,
        Err(finding) => {
            eprintln!(
                "failed to read the page from chromium: {}, ignoring",
                finding.output_str.escape_debug()
            );
            None
        }
    }
}

/// The file of the document that wget saved, or that the browser got in place of a page.
pub fn saved_file(invocation: &Invocation) -> Option<PathBuf> {
    wget_main_file(invocation).or_else(|| chromium::document(invocation))
}

/// The start of that file, and its content type: as the response had it, else as the file shows.
pub fn saved_document(invocation: &Invocation, most: u64) -> Option<(Vec<u8>, String)> {
    let path = saved_file(invocation)?;
    let bytes = read_start(&path, most)?;
    let kind = match served_content_type(invocation) {
        unknown if unknown.is_empty() => guessed_type(&path, &bytes).to_owned(),
        known => known,
    };
    Some((bytes, kind))
}

/// Path of the main file that wget's record names. Prefers the copy from before wget rewrote the
/// links.
fn wget_main_file(invocation: &Invocation) -> Option<PathBuf> {
    let record = last_success(invocation, "wget")?;
    let main = Path::new(record["output_str"].as_str()?);
    let saved = named(&invocation.sibling("wget", ""), main)?;
    originals(&saved).into_iter().find(|path| path.is_file()).or(Some(saved))
}

/// Names of the copy that wget keeps of a file whose links it changes (`--backup-converted`): of one
/// to which `--adjust-extension` added `.html`, it replaces the `html`.
fn originals(saved: &Path) -> Vec<PathBuf> {
    let bytes = saved.as_os_str().as_bytes();
    let with = |name: &[u8]| PathBuf::from(OsStr::from_bytes(&[name, b"orig"].concat()));
    let added = bytes.strip_suffix(b"html").filter(|rest| rest.ends_with(b"."));
    let mut names = vec![with(&[bytes, b"."].concat())];
    names.extend(added.map(with));
    names
}

/// The file below `directory` that a record names. Records are text: in names in other encodings,
/// U+FFFD stands for each byte that is not UTF-8. `None` if the name leads out of the directory, or
/// if several files have it.
pub fn named(directory: &Path, name: &Path) -> Option<PathBuf> {
    let mut path = directory.to_owned();
    for part in name.components() {
        let Component::Normal(part) = part else {
            return None;
        };
        let next = path.join(part);
        let text = part.to_string_lossy();
        if !text.contains(char::REPLACEMENT_CHARACTER) || fs::symlink_metadata(&next).is_ok() {
            path = next;
            continue;
        }
        let entries = fs::read_dir(&path).ok()?.take(DIRECTORY_ENTRIES_MAX);
        let mut same = entries
            .flatten()
            .map(|entry| entry.file_name())
            .filter(|own| own.to_string_lossy() == text);
        path = path.join(same.next()?);
        if same.next().is_some() {
            return None;
        }
    }
    Some(path)
}

/// The first `most` bytes of a regular file. `None` if the file is empty or cannot be read.
pub fn read_start(path: &Path, most: u64) -> Option<Vec<u8>> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}

/// Writes a file of the output directory atomically: a run that fails leaves the previous file in
/// place.
pub fn write(name: &str, bytes: &[u8]) -> Result<(), Finding> {
    let part = format!(".{name}.part");
    let written = fs::write(&part, bytes).and_then(|()| fs::rename(&part, name));
    written.map_err(|error| {
        let _ = fs::remove_file(&part);
        Finding::failed(format!("failed to write '{name}': {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation(snap_dir: &Path) -> Invocation {
        let schema = include_str!("../../plugins/title/config.json");
        let environment = [("SNAP_DIR".into(), snap_dir.as_os_str().into())];
        Invocation::read("title", schema, &["--url=http://a.test/".into()], environment)
    }

    #[test]
    fn wget_main_file_is_found_by_record_and_only_in_its_directory() {
        let snap = tempfile::tempdir().unwrap();
        let invocation = invocation(snap.path());
        let wget = snap.path().join("wget");
        fs::create_dir_all(wget.join("a.test")).unwrap();
        fs::write(wget.join("a.test/index.html"), "x").unwrap();
        let record = |path: &str| {
            let line = serde_json::json!({"type": "ArchiveResult", "status": "succeeded", "output_str": path});
            fs::write(wget.join("stdout.log"), format!("saving\n{{\n{line}\n")).unwrap();
            wget_main_file(&invocation)
        };
        assert_eq!(record("a.test/index.html"), Some(wget.join("a.test/index.html")));
        assert_eq!(record("../../etc/x.html"), None);
        assert_eq!(record("/etc/x.html"), None);
        assert_eq!(record("a.test/logo.png"), Some(wget.join("a.test/logo.png")));
        fs::write(wget.join("a.test/index.html.orig"), "y").unwrap();
        assert_eq!(record("a.test/index.html"), Some(wget.join("a.test/index.html.orig")));
        fs::write(wget.join("a.test/gallery.html"), "x").unwrap();
        fs::write(wget.join("a.test/gallery.orig"), "y").unwrap();
        assert_eq!(record("a.test/gallery.html"), Some(wget.join("a.test/gallery.orig")));
    }

    #[test]
    fn files_with_names_in_other_encodings_are_found() {
        let top = tempfile::tempdir().unwrap();
        let file = |name: &[u8]| top.path().join("a").join(OsStr::from_bytes(name));
        fs::create_dir(top.path().join("a")).unwrap();
        fs::write(file(b"caf\xe9.html"), "x").unwrap();
        fs::write(file(b"\x93\xfa.html"), "x").unwrap();
        let find = |name: &str| named(top.path(), Path::new(name));
        assert_eq!(find("a/caf\u{fffd}.html"), Some(file(b"caf\xe9.html")));
        let both = String::from_utf8_lossy(b"a/\x93\xfa.html").into_owned();
        assert_eq!(find(&both), Some(file(b"\x93\xfa.html")));
        assert_eq!(find("a/\u{fffd}.html"), None);
        fs::write(file(b"caf\xe8.html"), "x").unwrap();
        assert_eq!(find("a/caf\u{fffd}.html"), None);
    }

    #[test]
    fn files_without_a_known_suffix_are_pages_if_they_begin_as_one() {
        let kind = |name: &str, text: &str| guessed_type(Path::new(name), text.as_bytes());
        assert_eq!(kind("a", " <!DOCTYPE html>"), "text/html");
        assert_eq!(kind("a.php", "<a href=x>"), "text/html");
        assert_eq!(kind("a", "<address>"), "application/octet-stream");
        assert_eq!(kind("a.png", "\u{fffd}PNG"), "application/octet-stream");
        assert_eq!(kind("a.txt", "<p>"), "text/plain");
    }

    #[test]
    fn viewable_content_types_are_those_that_browsers_show() {
        for kind in
            ["", "text/html; charset=utf-8", "image/png", "text/plain", "application/xhtml+xml"]
        {
            assert!(is_viewable(kind), "{kind}");
        }
        for kind in ["application/pdf", "application/octet-stream", "application/zip", "video/mp4"]
        {
            assert!(!is_viewable(kind), "{kind}");
        }
    }
}
