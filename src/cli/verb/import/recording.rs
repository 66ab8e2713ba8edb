//! The pages of a recording that another program made. The file becomes one of the
//! archive, named after its digest, and its pages become snapshots that refer to it: their bodies stay
//! where they are, because no file says which records belong to which page.

use super::reader::read;
use super::{ImportArgs, Surveyed, failed};
use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Local};
use crate::client::owner::as_owner;
use crate::client::paging::Paging;
use crate::client::server::{Server, decode};
use crate::client::wait::{self, Form};
use crate::display::{listing, style};
use crate::verb::add::summary;
use crate::verb::backup::need_root;
use crate::verb::urls::Urls;
use archivist_config::Scope;
use archivist_core::model::{CrawlId, PageUrl};
use archivist_core::text::clean;
use archivist_plugin::files;
use archivist_plugin::files::digest::sha256;
use archivist_shared::archive::{IMPORT_FILE, IMPORT_PLUGIN, IMPORT_SOURCE, IMPORT_TAG, IMPORTED};
use archivist_shared::bus::documents::report::{AddOptions, Added, Filter, Snapshot};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Faults that are printed.
const FAULTS_MAX: usize = 20;
/// Mode of the directory of imported files, as of the archive.
const MODE: u32 = 0o750;
/// Name of a file that is not complete.
const PARTIAL: &str = ".partial";

/// A page of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Page {
    url: String,
    title: String,
    time: String,
}

/// Imports a recording.
pub async fn import(path: &Path, args: &ImportArgs, scope: &Scope) -> Result<Exit, Failure> {
    need_root(scope, "import into")?;
    if Fleet::reach(scope, Local::default()).await?.is_some() {
        return Err(Failure::failed(
            "a node of a fleet imports nothing: other nodes would not have the file",
        ));
    }
    let server = Server::reach(scope).await?;
    let archive = scope.data_dir().join("archive");
    let kept = Kept::copy(path, &archive)?;
    let surveyed = survey(&kept.file);
    let (pages, faults) = surveyed.inspect_err(|_| kept.remove(&archive))?;
    let shown = clean(&path.display().to_string());
    for fault in faults.iter().take(FAULTS_MAX) {
        eprintln!("'{shown}': {}, ignoring", clean(fault));
    }
    if let Some(more @ 1..) = faults.len().checked_sub(FAULTS_MAX) {
        eprintln!("'{shown}': {more} more faults");
    }
    let so_far = if faults.is_empty() { Exit::Done } else { Exit::Partly };
    if pages.is_empty() {
        kept.remove(&archive);
        return Err(Failure::failed(format!("'{shown}' has no page")));
    }
    let name = kept.keep(&archive)?;
    let tag = format!("{IMPORT_TAG}{}", &name[..16]);
    let filter = Filter { tag: Some(tag.clone()), ..Filter::default() };
    let before: Vec<Snapshot> = Paging::new(&server, filter).collect().await?;
    let known: BTreeSet<(String, String)> =
        before.into_iter().filter_map(|page| Some((page.url, page.bookmarked_at?))).collect();
    let options = AddOptions {
        tags: [vec![tag], args.tags.clone()].concat(),
        plugins: vec![IMPORT_PLUGIN.to_owned()],
        config: BTreeMap::from([
            (IMPORT_FILE.to_owned(), name),
            (IMPORT_SOURCE.to_owned(), source_name(path)),
        ]),
        ..AddOptions::default()
    };
    let rounds = rounds(pages, &known);
    if rounds.is_empty() {
        style::print("nothing new: the archive has all pages of this file\n")?;
        return Ok(so_far);
    }
    let mut exit = so_far;
    for round in rounds {
        let (crawl, refused) = add(&round, &options, &server).await?;
        if refused {
            exit = Exit::Partly;
        }
        if args.wait
            && let Some(crawl) = crawl
        {
            match wait::wait(&server, None, crawl, Form::Lines).await? {
                Exit::Done => {}
                other => exit = other,
            }
        }
    }
    Ok(exit)
}

/// Queues the pages of a round. Returns its crawl, if it has one, and whether a page was refused.
async fn add(
    pages: &[Page],
    options: &AddOptions,
    server: &Server,
) -> Result<(Option<CrawlId>, bool), Failure> {
    let failed = |error: serde_json::Error| Failure::failed(format!("failed to write: {error}"));
    let mut urls = Urls::default();
    let mut lines = Vec::new();
    for page in pages {
        let line = json!({"url": page.url, "title": page.title, "bookmarked_at": page.time});
        lines.extend(serde_json::to_vec(&line).map_err(failed)?);
        lines.push(b'\n');
    }
    urls.add_list(&lines[..], "the list of pages")?;
    let options = serde_json::to_string(options).map_err(failed)?;
    let memfd = urls.to_memfd()?;
    let call = server.proxy().add(memfd.as_fd().into(), &options);
    let added: Added = decode(&server.call_with_urls(urls.len(), call).await?)?;
    listing::report(&added.refused, |refused| urls.located(refused.clone()).to_string());
    style::print(&format!("{}\n", summary(&added)))?;
    let crawl = (added.accepted > 0).then_some(added.crawl);
    Ok((crawl, !added.refused.is_empty()))
}

/// The pages that are not known, in rounds: a crawl has a URL once, and a file may have it at several
/// times.
fn rounds(pages: Vec<Page>, known: &BTreeSet<(String, String)>) -> Vec<Vec<Page>> {
    let mut rounds: Vec<Vec<Page>> = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut seen = known.clone();
    for page in pages {
        if !seen.insert((page.url.clone(), page.time.clone())) {
            continue;
        }
        let round = counts.entry(page.url.clone()).or_default();
        if *round == rounds.len() {
            rounds.push(Vec::new());
        }
        rounds[*round].push(page);
        *round += 1;
    }
    rounds
}

/// The name of the file, as it was.
pub fn source_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    clean(&name).chars().take(200).collect()
}

/// A copy of the file in the archive, which has no name yet.
struct Kept {
    file: File,
    suffix: &'static str,
}

impl Kept {
    /// Copies a file.
    fn copy(path: &Path, archive: &Path) -> Result<Kept, Failure> {
        let mut source = File::open(path).map_err(|error| failed("open", path, &error))?;
        let metadata = source.metadata();
        if !metadata.is_ok_and(|metadata| metadata.is_file()) {
            let path = clean(&path.display().to_string());
            return Err(Failure::usage(format!("'{path}' is not a regular file")));
        }
        let mut start = [0; 4];
        let read = source.read_exact(&mut start).and_then(|()| source.rewind());
        let suffix = match (read, &start) {
            (Ok(()), b"PK\x03\x04") => "wacz",
            (Ok(()), b"WARC") => "warc",
            (Ok(()), [0x1f, 0x8b, ..]) => "warc.gz",
            _ => {
                let path = clean(&path.display().to_string());
                let reason = "is neither a WACZ nor a WARC file";
                return Err(Failure::failed(format!("'{path}' {reason}")));
            }
        };
        let directory = archive.join(IMPORTED);
        let copied = as_owner(archive, || {
            let mut builder = DirBuilder::new();
            builder.mode(MODE).recursive(true).create(&directory)?;
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).mode(0o640);
            let mut file = options.open(directory.join(PARTIAL))?;
            file.try_lock()
                .map_err(|_| io::Error::other("another command imports a file at the moment"))?;
            file.set_len(0)?;
            files::copy::copy(&source, &file)?;
            file.sync_all()?;
            file.rewind()?;
            Ok(file)
        });
        let file = copied.map_err(|error| failed("copy", path, &error))?;
        Ok(Kept { file, suffix })
    }

    /// Removes the copy. The error that counts is the one before.
    fn remove(&self, archive: &Path) {
        let _ = as_owner(archive, || fs::remove_file(archive.join(IMPORTED).join(PARTIAL)));
    }

    /// Gives the copy the name of its digest, and returns that.
    fn keep(mut self, archive: &Path) -> Result<String, Failure> {
        let directory = archive.join(IMPORTED);
        let named = as_owner(archive, || {
            self.file.rewind()?;
            let (hex, _) = sha256(&self.file)?;
            let name = format!("{hex}.{}", self.suffix);
            fs::rename(directory.join(PARTIAL), directory.join(&name))?;
            File::open(&directory)?.sync_all()?;
            Ok(name)
        });
        named.map_err(|error| failed("keep a file in", &directory, &error))
    }
}

/// Returns the pages of the file and its faults.
fn survey(file: &File) -> Result<(Vec<Page>, Vec<String>), Failure> {
    let mut pages = Vec::new();
    let mut faults = Vec::new();
    read(file, &[], |line| match line {
        Surveyed::Page { url, title, time } => {
            pages.push(Page { url: as_archived(url), title, time })
        }
        Surveyed::Fault(fault) => faults.push(fault),
        _ => {}
    })?;
    Ok((pages, faults))
}

/// A URL in the form that the archive has it in, which distinguishes known pages.
fn as_archived(url: String) -> String {
    PageUrl::parse(&url).map_or(url, |parsed| parsed.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_once_in_a_round_and_known_pages_are_left_out() {
        let page = |url: &str, time: &str| Page {
            url: url.to_owned(),
            title: String::new(),
            time: time.to_owned(),
        };
        let pages = vec![
            page("http://a/", "1"),
            page("http://a/", "2"),
            page("http://b/", "1"),
            page("http://a/", "2"),
            page("http://a/", "3"),
        ];
        let known = BTreeSet::from([("http://a/".to_owned(), "1".to_owned())]);
        let expected =
            [vec![page("http://a/", "2"), page("http://b/", "1")], vec![page("http://a/", "3")]];
        assert_eq!(rounds(pages.clone(), &known), expected);
        assert_eq!(rounds(pages, &BTreeSet::new()).len(), 3);
    }
}
