//! The snapshot's page as other hooks left it, or fetched anew; and files written in one go.

pub mod fetch;
pub mod html;

use super::chromium;
use crate::page::fetch::Fetched;
use crate::process::invocation::Invocation;
use crate::process::program::Runner;
use crate::process::record::Finding;
use scraper::Html;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use tokio::time::timeout;
use url::Url;

/// A page that was read.
pub struct Page {
    /// Its HTML.
    pub html: Html,
    /// Its address, after redirects.
    pub address: Url,
}

/// Finds the page: as chromium has it, as wget saved it, else with curl, in this order.
pub fn find(it: &Invocation, runner: &mut Runner) -> Result<Page, Finding> {
    let url = it.web_url()?;
    let most = it.settings.size("PAGE_MAX_SIZE");
    let page = |html: &str, it: &Invocation| Page {
        html: Html::parse_document(html),
        address: final_url(it).unwrap_or_else(|| url.clone()),
    };
    let saved = |path: PathBuf| {
        let bytes = start_of(&path, most)?;
        eprintln!("reading {}", path.display());
        Some(page(&html::decode(&bytes, ""), it))
    };
    if let Some(page) = saved(it.sibling("dom", "output.html")) {
        return Ok(page);
    }
    if let Some(html) = in_tab(it, runner, most) {
        return Ok(page(&html, it));
    }
    if let Some(page) = wget_main_file(it).and_then(saved) {
        return Ok(page);
    }
    let within = runner.left();
    let fetched = fetch::get(runner, it, &url, most, within)?;
    parse(fetched)
}

/// A fetched page; one without a body, or that is no HTML, is a finding.
/// An error page is a page: browsers show it too.
pub fn parse(fetched: Fetched) -> Result<Page, Finding> {
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
    let text = html::decode(&fetched.body, kind);
    Ok(Page {
        html: Html::parse_document(&text),
        address: last.url.clone(),
    })
}

fn is_html(content_type: &str) -> bool {
    let kind = essence(content_type);
    matches!(kind.as_str(), "text/html" | "application/xhtml+xml") || kind.ends_with("+xml")
}

/// Whether a browser shows it as a page: no PDF, no archive, no download.
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

fn headers_json(it: &Invocation) -> Option<Value> {
    let bytes = start_of(&it.sibling("headers", "headers.json"), 1 << 20)?;
    serde_json::from_slice(&bytes).ok()
}

/// Where the URL led to: by what chromium saw, which follows scripts too, else by the headers.
fn final_url(it: &Invocation) -> Option<Url> {
    let seen = chromium::navigation(it).map(|navigation| navigation.final_url);
    let said = || Some(headers_json(it)?["final_url"].as_str()?.to_owned());
    Url::parse(&seen.or_else(said)?)
        .ok()
        .filter(|url| url.has_host())
}

/// The page as it is in chromium, if the snapshot has a tab; its trouble is not ours, there are
/// other ways to the page.
fn in_tab(it: &Invocation, runner: &mut Runner, most: u64) -> Option<String> {
    chromium::navigation(it)?;
    // A page that keeps its process busy never answers.
    let within = runner.left() / 2;
    let read = chromium::of_page(it, runner, most, async |view| {
        let late = |_| Finding::failed("no answer");
        Ok(timeout(within, view.html()).await.map_err(late)??)
    });
    match read {
        Ok((html, _)) if (html.len() as u64) <= most => Some(html),
        Ok(_) => None,
        Err(finding) => {
            eprintln!("no page in chromium: {}", finding.output_str.escape_debug());
            None
        }
    }
}

/// What wget's record names as its main file, before wget rewrote the links in it.
fn wget_main_file(it: &Invocation) -> Option<PathBuf> {
    let text = start_of(&it.sibling("wget", "stdout.log"), 1 << 20)?;
    let text = String::from_utf8_lossy(&text);
    let mut records = text
        .lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let record = records.find(|it| it["type"] == "ArchiveResult" && it["status"] == "succeeded")?;
    let main = Path::new(record["output_str"].as_str()?);
    let inside = main
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let page = matches!(main.extension()?.to_str()?, "html" | "htm" | "xhtml");
    let saved = it.sibling("wget", "").join(main);
    let original = PathBuf::from(format!("{}.orig", saved.display()));
    (inside && page).then(|| if original.is_file() { original } else { saved })
}

/// The start of a regular file that has something in it.
pub fn start_of(path: &Path, most: u64) -> Option<Vec<u8>> {
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

/// Writes a file of the output directory whole: a run that fails leaves the older one in place.
pub fn write(name: &str, bytes: &[u8]) -> Result<(), Finding> {
    let part = format!(".{name}.part");
    let written = fs::write(&part, bytes).and_then(|()| fs::rename(&part, name));
    written.map_err(|error| {
        let _ = fs::remove_file(&part);
        Finding::failed(format!("failed to write {name}: {error}"))
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
    fn wget_s_main_file_is_found_by_its_record_and_only_inside() {
        let snap = tempfile::tempdir().unwrap();
        let it = invocation(snap.path());
        let wget = snap.path().join("wget");
        fs::create_dir_all(wget.join("a.test")).unwrap();
        fs::write(wget.join("a.test/index.html"), "x").unwrap();
        let record = |path: &str| {
            let line = serde_json::json!({"type": "ArchiveResult", "status": "succeeded", "output_str": path});
            fs::write(wget.join("stdout.log"), format!("saving\n{{\n{line}\n")).unwrap();
            wget_main_file(&it)
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
    fn what_browsers_show() {
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
