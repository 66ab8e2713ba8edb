//! The recording that an argument names: one of the archive, or a file.

use crate::client::exit::Failure;
use crate::client::location::{fetch, place_of};
use crate::client::paging::{Paging, Source};
use crate::client::server::Server;
use archivist_config::Scope;
use archivist_core::model::{Lifecycle, Owner, SnapshotId};
use archivist_core::text::clean;
use archivist_hooks::bodies;
use archivist_hooks::replay::{WebUrl, World};
use archivist_hooks::source::results::RecordingFile;
use archivist_shared::archive::IMPORTED;
use archivist_shared::bus::documents::report::{Filter, Snapshot};
use archivist_warc::lookup::Index;
use archivist_warc::wacz::Wacz;
use jiff::Timestamp;
use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// Path of what names the file of a page that was imported.
const REFERENCE: &str = "import/recording.json";
/// Longest reference in bytes.
const REFERENCE_MAX_BYTES: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A crawl or snapshot of the archive.
    Id(Owner),
    /// The newest recorded snapshot of a URL.
    Url(String),
    /// A WACZ or WARC file.
    File(PathBuf),
}

impl FromStr for Target {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Target, Self::Err> {
        let is_url = text.starts_with("http://") || text.starts_with("https://");
        Ok(match text.parse() {
            Ok(id) => Target::Id(id),
            Err(_) if is_url => Target::Url(text.to_owned()),
            Err(_) => Target::File(PathBuf::from(text)),
        })
    }
}

/// An open recording, and the page of it that is shown first.
pub struct Recording {
    pub path: PathBuf,
    pub file: Arc<Wacz>,
    /// URL of the first page.
    pub url: WebUrl,
    /// When the first page was recorded.
    pub time: Timestamp,
    /// The snapshot of the first page, if it is one of the archive.
    pub page: Option<SnapshotId>,
}

impl Recording {
    /// Opens what the argument names.
    ///
    /// # Errors
    /// If there is no such recording, or it cannot be read.
    pub async fn open(target: &Target, scope: &Scope) -> Result<Recording, Failure> {
        let located = Located::find(target, scope).await?;
        let file = located.open(target)?;
        let name = located.path.display().to_string();
        let failed = |error: &dyn fmt::Display| {
            let error = clean(&error.to_string());
            Failure::failed(format!("failed to read '{name}': {error}"))
        };
        let file = bodies::open(&located.path, file).map_err(|error| failed(&error))?;
        Recording::of(file, located, &name).map_err(Failure::failed)
    }

    /// The recording in an open file, whose name is shown.
    ///
    /// # Errors
    /// If it has no page.
    pub fn of(file: Wacz, located: Located, name: &str) -> Result<Recording, String> {
        let Located { page, path, shown } = located;
        let (url, time) = shown.or_else(|| first_page(&file)).ok_or_else(|| {
            let flaw = file.noticed().first().map(|flaw| clean(&flaw.to_string()));
            let why = flaw.map_or_else(String::new, |flaw| format!(": {flaw}"));
            format!("the recording '{name}' has no page{why}")
        })?;
        Ok(Recording { path, file: Arc::new(file), url, time, page })
    }

    /// The world in which the first page was recorded.
    pub fn world(&self) -> World {
        World::recorded(&self.file, &self.url, self.time)
    }

    /// The index of this file alone.
    pub fn index(&self) -> Index {
        let mut index = Index::new();
        index.add(self.file.clone());
        index
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The snapshot, if it is one of the archive.
    pub page: Option<SnapshotId>,
    pub path: PathBuf,
    /// URL and time of the page, if the file has several.
    pub shown: Option<(WebUrl, Timestamp)>,
}

impl Located {
    fn whole(page: Option<SnapshotId>, path: PathBuf) -> Located {
        Located { page, path, shown: None }
    }

    /// Finds what an argument names.
    ///
    /// # Errors
    /// If there is no such recording.
    pub async fn find(target: &Target, scope: &Scope) -> Result<Located, Failure> {
        match target {
            Target::File(path) => Ok(Located::whole(None, path.clone())),
            Target::Id(id @ Owner::Snapshot(page)) => of_snapshot(*id, *page, scope).await,
            Target::Id(id @ Owner::Crawl(_)) => of_crawl(*id, scope).await,
            Target::Url(url) => of_url(url, scope).await,
        }
    }

    /// Opens the file that an argument names.
    ///
    /// # Errors
    /// If it cannot be opened, or is no file.
    pub fn open(&self, target: &Target) -> Result<File, Failure> {
        let shown = self.path.display();
        let file = File::open(&self.path).map_err(|error| match (error.kind(), target) {
            (ErrorKind::NotFound, Target::File(_)) => Failure::usage(format!(
                "'{}' is no file, no URL and no id (c12 is a crawl, s345 a snapshot)",
                clean(&shown.to_string())
            )),
            (ErrorKind::NotFound, _) => Failure::failed(format!(
                "the page has no recording: '{shown}' does not exist\n\
                 recordings are made by the plugin 'wacz', see archivist-hooks(7)"
            )),
            (ErrorKind::PermissionDenied, _) => Failure::failed(format!(
                "failed to open '{shown}': {error}\n\
                 the archive is not readable by all users: run this with sudo, or copy the file"
            )),
            _ => Failure::failed(format!("failed to open '{shown}': {error}")),
        })?;
        if file.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Failure::usage(format!("'{shown}' is not a regular file")));
        }
        Ok(file)
    }

    /// The recording of a page of a list, whose files are restored if only the store has them, or why it
    /// has none.
    ///
    /// # Errors
    /// If this user may not read the archive, or the files cannot be restored.
    pub async fn of_listed(
        page: &Snapshot,
        server: &Server,
    ) -> Result<Result<Located, String>, Failure> {
        if page.status != Lifecycle::Sealed {
            return Ok(Err(format!("is {}", page.status)));
        }
        let Some(directory) = page.directory.as_deref() else {
            let node = page.node.as_deref().unwrap_or("another machine");
            return Ok(Err(format!("is on {node}")));
        };
        if let Err(error) = fs::read_dir(directory)
            && error.kind() == ErrorKind::PermissionDenied
        {
            return Err(Failure::failed(format!(
                "failed to open '{directory}': {error}\n\
                 the archive is not readable by all users: run this with sudo"
            )));
        }
        fetch(server, page.id, Some(directory)).await?;
        Ok(Located::of(page).ok_or_else(|| "has no recording".to_owned()))
    }

    /// The recording of a snapshot; `None` if there is none on this machine.
    pub fn of(page: &Snapshot) -> Option<Located> {
        let directory = Path::new(page.directory.as_deref()?);
        let own = RecordingFile::of(directory).path;
        if own.is_file() {
            return Some(Located::whole(Some(page.id), own));
        }
        let path = imported(directory)?;
        let time = page.bookmarked_at.as_ref()?.parse().ok()?;
        let url = WebUrl::of(&page.url)?;
        Some(Located { page: Some(page.id), path, shown: Some((url, time)) })
    }
}

/// The imported file that the directory of a page refers to.
fn imported(directory: &Path) -> Option<PathBuf> {
    let mut text = Vec::new();
    let reference = File::open(directory.join(REFERENCE)).ok()?;
    let mut reference = reference.take(REFERENCE_MAX_BYTES);
    reference.read_to_end(&mut text).ok()?;
    let reference: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let name = reference["file"].as_str()?;
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.';
    if name.starts_with('.') || !name.chars().all(is_letter) {
        return None;
    }
    // DAY/HOST/ID in the archive.
    let archive = directory.ancestors().nth(3)?;
    Some(archive.join(IMPORTED).join(name)).filter(|path| path.is_file())
}

/// The recording of a snapshot, whose files are restored if only the store has them.
async fn of_snapshot(id: Owner, page: SnapshotId, scope: &Scope) -> Result<Located, Failure> {
    let directory = place_of(id, scope).await?.directory;
    let own = RecordingFile::of(&directory).path;
    if own.is_file() || imported(&directory).is_none() {
        return Ok(Located::whole(Some(page), own));
    }
    let server = Server::reach(scope).await?;
    let row = Source::Machine(&server).find::<Snapshot>(id).await?;
    let located = row.as_ref().and_then(Located::of);
    Ok(located.unwrap_or_else(|| Located::whole(Some(page), own)))
}

/// URL and time of the first page; of a file without a list of pages, the first HTML document.
pub fn first_page(file: &Wacz) -> Option<(WebUrl, Timestamp)> {
    let listed = file.first_page();
    let listed = listed.and_then(|page| Some((WebUrl::of(&page.url)?, page.time)));
    listed.or_else(|| {
        let documents = file.entries().iter().filter(|entry| {
            entry.method == "GET" && entry.status == Some(200) && entry.media_type == "text/html"
        });
        let documents = documents.filter_map(|entry| Some((WebUrl::of(&entry.url)?, entry.time)));
        documents.min_by_key(|(_, time)| *time)
    })
}

/// The first page of a crawl that has a recording on this machine.
async fn of_crawl(id: Owner, scope: &Scope) -> Result<Located, Failure> {
    let oldest_first = Filter { after_page: Some(0), ..Filter::of(id) };
    let server = Server::reach(scope).await?;
    let first = first_recorded(Paging::new(&server, oldest_first)).await?;
    first.ok_or_else(|| {
        Failure::failed(format!(
            "no page of {id} has a recording on this machine\n\
             recordings are made by the plugin 'wacz', see archivist-hooks(7)"
        ))
    })
}

/// The newest recording of a URL on this machine.
async fn of_url(url: &str, scope: &Scope) -> Result<Located, Failure> {
    let server = Server::reach(scope).await?;
    for variant in variants(url) {
        let filter = Filter { exact_url: Some(variant), ..Filter::default() };
        if let Some(found) = first_recorded(Paging::new(&server, filter)).await? {
            return Ok(found);
        }
    }
    let url = clean(url);
    Err(Failure::failed(format!("no snapshot of '{url}' has a recording on this machine")))
}

/// The first page of a list that has a recording.
async fn first_recorded(mut pages: Paging<'_>) -> Result<Option<Located>, Failure> {
    loop {
        let batch = pages.next::<Snapshot>().await?;
        if batch.rows.is_empty() {
            return Ok(None);
        }
        let sealed = (batch.rows.iter()).filter(|page| page.status == Lifecycle::Sealed);
        if let Some(located) = sealed.filter_map(Located::of).next() {
            return Ok(Some(located));
        }
    }
}

/// The texts that a user or a link may have for the URL of a snapshot: without fragment, with and
/// without a slash as the only path, and over http and https.
pub fn variants(url: &str) -> Vec<String> {
    let url = url.split('#').next().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let host = rest.trim_end_matches('/');
    let rests = if host.contains(['/', '?']) {
        vec![rest.to_owned()]
    } else {
        vec![format!("{host}/"), host.to_owned()]
    };
    let other = if scheme == "http" { "https" } else { "http" };
    let of = |scheme: &str| -> Vec<String> {
        let all = rests.iter();
        all.map(|rest| format!("{scheme}://{rest}")).collect()
    };
    [of(scheme), of(other)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_is_an_id_a_url_or_a_file() {
        let of = |text: &str| text.parse::<Target>().unwrap();
        assert_eq!(of("s3"), Target::Id(Owner::Snapshot(SnapshotId(3))));
        assert_eq!(of("https://a.test/x"), Target::Url("https://a.test/x".to_owned()));
        assert_eq!(of("s03"), Target::File("s03".into()));
        assert_eq!(of("page.wacz"), Target::File("page.wacz".into()));
    }

    #[test]
    fn file_that_cannot_be_opened_is_named() {
        let target = |path: &str| path.parse::<Target>().unwrap();
        let top = tempfile::tempdir().unwrap();
        let missing = Located::whole(None, top.path().join("x.wacz"));
        let failure = missing.open(&target("x.wacz")).err().unwrap();
        assert!(failure.message().contains("is no file, no URL and no id"));
        let failure = missing.open(&target("s3")).err().unwrap();
        assert!(failure.message().contains("the page has no recording"));
        let directory = Located::whole(None, top.path().to_owned());
        let failure = directory.open(&target("/")).err().unwrap();
        assert!(failure.message().contains("is not a regular file"));
    }

    #[test]
    fn fragment_slash_and_scheme_do_not_distinguish_pages() {
        let host = ["http://a.test/", "http://a.test", "https://a.test/", "https://a.test"];
        assert_eq!(variants("http://a.test#b"), host);
        let page =
            ["https://a.test/b/?c=/#", "http://a.test/b/?c=/"].map(|url| url.trim_end_matches('#'));
        assert_eq!(variants("https://a.test/b/?c=/#d"), page);
    }
}
