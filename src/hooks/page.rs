//! The snapshot's page, read from the output of other hooks or fetched again; and atomic writes of
//! output files.

pub mod charset;
pub mod fetch;
pub mod html;

use super::chromium;
use crate::page::fetch::Fetched;
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use scraper::Html;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use tokio::time::timeout;
use url::Url;

/// A parsed page.
pub struct ParsedPage {
    /// Its HTML document.
    pub html: Html,
    /// Its URL after redirects.
    pub address: Url,
}

/// Finds the page: the HTML that chromium saved or shows, else the file that wget saved, else a new
/// request with curl.
pub fn find(invocation: &Invocation, runner: &mut ProgramRunner) -> Result<ParsedPage, Finding> {
    let url = invocation.web_url()?;
    let most = invocation.settings.size("PAGE_MAX_SIZE");
    let page = |html: &str, invocation: &Invocation| ParsedPage {
        html: Html::parse_document(html),
        address: final_url(invocation).unwrap_or_else(|| url.clone()),
    };
    let saved = |path: PathBuf, content_type: &str| {
        let bytes = read_start(&path, most)?;
        eprintln!("reading '{}'", path.display());
        Some(page(&charset::decode(&bytes, content_type), invocation))
    };
    // Chromium's HTML is UTF-8, whatever its meta element says.
    if let Some(page) = saved(
        invocation.sibling("dom", "output.html"),
        "text/html; charset=utf-8",
    ) {
        return Ok(page);
    }
    if let Some(html) = in_tab(invocation, runner, most) {
        return Ok(page(&html, invocation));
    }
    let served_type = served_content_type(invocation);
    if let Some(page) = wget_main_file(invocation).and_then(|path| saved(path, &served_type)) {
        return Ok(page);
    }
    let within = runner.remaining();
    let fetched = fetch::get(runner, invocation, &url, most, within)?;
    parse(fetched)
}

/// Parses a fetched page. Error pages are pages too, as in browsers. A response without a body or
/// with another content type is a finding.
pub fn parse(fetched: Fetched) -> Result<ParsedPage, Finding> {
    let last = fetched.last();
    if let Some(problem) = fetched.problem.as_ref().filter(|_| fetched.body.is_empty()) {
        return Err(Finding::failed(problem.clone()));
    }
    let kind = last.header("content-type").unwrap_or_default();
    if !kind.is_empty() && !is_html(kind) {
        return Err(Finding::noresults(format!(
            "not an HTML page: {}",
            html::one_line(kind, 100)
        )));
    }
    let text = charset::decode(&fetched.body, kind);
    Ok(ParsedPage {
        html: Html::parse_document(&text),
        address: last.url.clone(),
    })
}

fn is_html(content_type: &str) -> bool {
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

fn essence(content_type: &str) -> String {
    content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
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
    Url::parse(&in_browser.or_else(in_headers)?)
        .ok()
        .filter(|url| url.has_host())
}

/// The page's HTML from chromium, if the snapshot has a tab. Errors are only logged, because the
/// caller has other sources of the page.
fn in_tab(invocation: &Invocation, runner: &mut ProgramRunner, most: u64) -> Option<String> {
    chromium::navigation(invocation)?;
    // The renderer process of a busy page does not answer.
    let within = runner.remaining() / 2;
    let read = chromium::with_page(invocation, runner, most, async |view| {
        let late = |_| Finding::failed("chromium did not answer");
        Ok(timeout(within, view.html()).await.map_err(late)??)
    });
    match read {
        Ok((html, _)) if (html.len() as u64) <= most => Some(html),
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

/// Path of the main file that wget's record names. Prefers the copy from before wget rewrote the
/// links.
fn wget_main_file(invocation: &Invocation) -> Option<PathBuf> {
    let output = read_start(&invocation.sibling("wget", "stdout.log"), 1 << 20)?;
    let text = String::from_utf8_lossy(&output);
    let mut records = text
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_success =
        |record: &Value| record["type"] == "ArchiveResult" && record["status"] == "succeeded";
    let record = records.find(is_success)?;
    let main = Path::new(record["output_str"].as_str()?);
    let inside = main
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let page = matches!(main.extension()?.to_str()?, "html" | "htm" | "xhtml");
    let saved = invocation.sibling("wget", "").join(main);
    let original = PathBuf::from(format!("{}.orig", saved.display()));
    (inside && page).then(|| if original.is_file() { original } else { saved })
}

/// The first `most` bytes of a regular file. `None` if the file is empty or cannot be read.
pub fn read_start(path: &Path, most: u64) -> Option<Vec<u8>> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(most)
        .read_to_end(&mut bytes)
        .ok()?;
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
        Invocation::read(
            "title",
            schema,
            &["--url=http://a.test/".into()],
            environment,
        )
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
        assert_eq!(
            record("a.test/index.html"),
            Some(wget.join("a.test/index.html"))
        );
        assert_eq!(record("../../etc/x.html"), None);
        assert_eq!(record("/etc/x.html"), None);
        assert_eq!(record("a.test/logo.png"), None);
        fs::write(wget.join("a.test/index.html.orig"), "y").unwrap();
        assert_eq!(
            record("a.test/index.html"),
            Some(wget.join("a.test/index.html.orig"))
        );
    }

    #[test]
    fn viewable_content_types_are_those_that_browsers_show() {
        for kind in [
            "",
            "text/html; charset=utf-8",
            "image/png",
            "text/plain",
            "application/xhtml+xml",
        ] {
            assert!(is_viewable(kind), "{kind}");
        }
        for kind in [
            "application/pdf",
            "application/octet-stream",
            "application/zip",
            "video/mp4",
        ] {
            assert!(!is_viewable(kind), "{kind}");
        }
    }
}
