//! Where a hook gets the page of its snapshot: from the output of other hooks, from the tab, or by a new request.

pub mod fetch;
pub mod results;

use crate::chromium::view;
use crate::page::content_type::{essence, guessed_type, is_html, may_list};
use crate::page::html::{self, Resolver};
use crate::page::listing::{self, Listing};
use crate::page::{charset, declaration};
use crate::process::files::{named, read_start};
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::visit;
use encoding_rs::{Encoding, UTF_8};
use fetch::Fetched;
use results::{last_success, saved_dom};
use scraper::Html;
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

pub struct ParsedPage {
    pub html: Html,
    /// Its URL after redirects.
    pub address: Url,
    /// The encoding of the server's document.
    pub encoding: &'static Encoding,
}

impl ParsedPage {
    pub fn resolver(&self) -> Resolver {
        Resolver::new(&self.html, &self.address, self.encoding)
    }
}

pub enum Document {
    Page(ParsedPage),
    /// A feed, a sitemap or a list of URLs, from this address.
    Listing(Listing, Url),
}

/// Finds the document: the HTML that chromium saved or shows, else the file that wget saved, else a
/// new request with curl. Chromium shows feeds and lists in a viewer of its own, so those come from
/// wget or curl. Waits for the tab, because nothing else has what scripts add to the page.
pub fn find(invocation: &Invocation, runner: &mut ProgramRunner) -> Result<Document, Finding> {
    let url = invocation.web_url()?;
    visit::await_tab(invocation, runner)?;
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
    let may_list = may_list(content_type) && !(is_bytes && visit::found_no_page(invocation));
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
    visit::skip_if_unreachable(invocation)?;
    let fetched = fetch::get(runner, invocation, url, most, within);
    fetched.map_err(|failure| visit::unanswered(invocation).unwrap_or(failure))
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

/// Content type of the document: as the response headers have it, with its charset, else as
/// chromium reports it. Empty if no hook has stored it.
fn shown_content_type(invocation: &Invocation) -> String {
    let stored = content_type(invocation);
    match visit::navigation(invocation).map(|navigation| navigation.mime_type) {
        // Scripts may have gone to another document.
        Some(shown) if !shown.is_empty() && essence(&stored) != essence(&shown) => shown,
        _ => stored,
    }
}

/// `Content-Type` of the page's response, or an empty string if no hook has stored it.
pub fn content_type(invocation: &Invocation) -> String {
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
    let in_browser = visit::navigation(invocation).map(|navigation| navigation.final_url);
    let in_headers = || Some(headers_json(invocation)?["final_url"].as_str()?.to_owned());
    Url::parse(&in_browser.or_else(in_headers)?).ok().filter(|url| url.has_host())
}

/// The page's HTML from chromium, if the snapshot has a tab. Errors are only logged, because the
/// caller has other sources of the page.
fn in_tab(invocation: &Invocation, runner: &mut ProgramRunner, most: u64) -> Option<String> {
    visit::navigation(invocation)?;
    // The renderer process of a busy page does not answer.
    let within = runner.remaining() / 2;
    let read = view::with_page(invocation, runner, most, async |view| {
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
    wget_main_file(invocation).or_else(|| visit::document(invocation))
}

/// The start of that file, and its content type: as the response had it, else as the file shows.
pub fn saved_document(invocation: &Invocation, most: u64) -> Option<(Vec<u8>, String)> {
    let path = saved_file(invocation)?;
    let bytes = read_start(&path, most)?;
    let kind = match content_type(invocation) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn invocation(snap_dir: &Path) -> Invocation {
        let schema = include_str!("../../../plugins/title/config.json");
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
}
