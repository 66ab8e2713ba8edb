//! The pages of a recording that another program made. The file becomes one of the
//! archive, named after its digest, and its pages become snapshots that refer to it: their bodies stay
//! where they are, because no file says which records belong to which page. Their texts and pictures are staged
//! ([`archivist_shared::staged`]).

use super::copy::{FILE_MODE, PLUGIN_MODE, Target, finish, make, result};
use super::reader::{RECORDING_MAX_BYTES, read};
use super::stage::{Queue, Stage, StagedEntry};
use super::{failed, report_faults};
use crate::client::exit::{Exit, Failure};
use crate::client::owner::as_owner;
use crate::client::paging::Paging;
use crate::display::style;
use crate::survey::{PageParts, Surveyed};
use archivist_config::Scope;
use archivist_core::model::{PageUrl, Time};
use archivist_core::text::clean;
use archivist_plugin::files;
use archivist_plugin::files::digest::sha256;
use archivist_shared::archive::{IMPORT_FILE, IMPORT_PLUGIN, IMPORT_SOURCE, IMPORT_TAG, IMPORTED};
use archivist_shared::bus::documents::report::{AddOptions, Filter, Snapshot};
use archivist_shared::staged::StagedPage;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Faults that are printed.
const FAULTS_MAX: usize = 20;
/// Mode of the directory of imported files, as of the archive.
const MODE: u32 = 0o750;
/// Name of a file that is not complete.
const PARTIAL: &str = ".partial";

/// URL and time of a page.
type Key = (String, String);

struct Page {
    url: String,
    title: String,
    time: String,
    parts: PageParts,
}

/// Imports a recording, whose pages get these tags.
pub async fn import(
    path: &Path,
    tags: &[String],
    waits: bool,
    scope: &Scope,
) -> Result<Exit, Failure> {
    let shown = clean(&path.display().to_string());
    let (stage, _, server) = Stage::open(scope).await?;
    let archive = scope.data_dir().join("archive");
    let kept = Kept::copy(path, &archive)?;
    let tag = format!("{IMPORT_TAG}{}", &kept.name[..16]);
    let filter = Filter { tag: Some(tag.clone()), ..Filter::default() };
    let before: Vec<Snapshot> = Paging::new(&server, filter).collect().await?;
    let known = before.into_iter().filter_map(|page| Some((page.url, page.bookmarked_at?)));
    let mut rounds = Rounds {
        stage: &stage,
        seen: known.collect(),
        counts: BTreeMap::new(),
        queues: Vec::new(),
    };
    let surveyed = survey(&kept.file, |page| rounds.add(page));
    let (pages, faults) = surveyed.inspect_err(|_| kept.remove(&archive))?;
    report_faults(&shown, &faults, FAULTS_MAX);
    let mut exit = if faults.is_empty() { Exit::Done } else { Exit::Partly };
    if pages == 0 {
        kept.remove(&archive);
        return Err(Failure::failed(format!("'{shown}' has no page")));
    }
    let queues = std::mem::take(&mut rounds.queues);
    let name = kept.keep(&archive)?;
    if queues.is_empty() {
        style::print("nothing new: the archive has all pages of this file\n")?;
        return Ok(exit);
    }
    let options = AddOptions {
        tags: [&[tag][..], tags].concat(),
        plugins: vec![IMPORT_PLUGIN.to_owned()],
        config: BTreeMap::from([
            (IMPORT_FILE.to_owned(), name),
            (IMPORT_SOURCE.to_owned(), source_name(path)),
        ]),
        ..AddOptions::default()
    };
    for queue in queues {
        match queue.add(options.clone(), waits, &server).await? {
            None | Some((_, Exit::Done)) => {}
            Some((_, other)) => exit = other,
        }
    }
    Ok(exit)
}

/// Prints the pages of a file, and what of it cannot be used.
pub fn dry_run(path: &Path) -> Result<Exit, Failure> {
    let shown = clean(&path.display().to_string());
    let file = File::open(path).map_err(|error| failed("open", path, &error))?;
    let mut seen = BTreeSet::new();
    let mut lines = String::new();
    let (pages, faults) = survey(&file, |page| {
        let title = match &page.title[..] {
            "" => String::new(),
            title => format!(" '{}',", clean(title)),
        };
        let what = match (&page.parts.text, &page.parts.picture) {
            (Some(_), Some(_)) => ", with text and picture",
            (Some(_), None) => ", with text",
            (None, Some(_)) => ", with a picture",
            (None, None) => "",
        };
        if seen.insert((page.url.clone(), page.time.clone())) {
            let (url, time) = (clean(&page.url), clean(&page.time));
            lines.push_str(format!("{title} {url}, of {time}{what}\n").trim_start());
        }
        Ok(())
    })?;
    let count = match seen.len() {
        1 => "1 page".to_owned(),
        n => format!("{n} pages"),
    };
    let again = match pages - seen.len() {
        0 => String::new(),
        n => format!(", {n} of them again"),
    };
    style::print(&format!("'{shown}': a recording of {count}{again}\n{lines}"))?;
    report_faults(&shown, &faults, FAULTS_MAX);
    Ok(if faults.is_empty() { Exit::Done } else { Exit::Partly })
}

/// The pages that are not known, in rounds: a crawl has a URL once, and a file may have it at several
/// times.
struct Rounds<'a> {
    stage: &'a Stage,
    seen: BTreeSet<Key>,
    counts: BTreeMap<String, usize>,
    queues: Vec<Queue>,
}

impl Rounds<'_> {
    /// Writes what the snapshot of a page gets to the directory of its round.
    fn add(&mut self, page: Page) -> Result<(), Failure> {
        if !self.seen.insert((page.url.clone(), page.time.clone())) {
            return Ok(());
        }
        let round = self.counts.entry(page.url.clone()).or_default();
        if *round == self.queues.len() {
            self.queues.push(self.stage.begin()?);
        }
        let queue = &mut self.queues[*round];
        *round += 1;
        write_parts(&page, queue).map_err(|error| queue.failed(&error))?;
        queue.entries.push(StagedEntry {
            url: page.url,
            title: Some(page.title).filter(|title| !title.is_empty()),
            tags: Vec::new(),
            time: Some(page.time),
        });
        Ok(())
    }
}

fn write_parts(page: &Page, queue: &Queue) -> io::Result<()> {
    let mut plugins = Vec::new();
    if let Some(text) = page.parts.text.clone() {
        plugins.push(("text", Vec::from(text.files()?)));
    }
    let picture = page.parts.picture.as_ref().and_then(|text| STANDARD.decode(text).ok());
    if let Some((picture, name)) =
        picture.and_then(|bytes| picture_name(&bytes).map(|name| (bytes, name)))
    {
        plugins.push(("screenshot", vec![(name, picture)]));
    }
    if plugins.is_empty() {
        return Ok(());
    }
    let directory = queue.page(&page.url)?;
    let target = Target { archive: &queue.archive, directory: &directory };
    let time: Option<Time> = page.time.parse().ok().map(|time: jiff::Timestamp| time.into());
    let mut record = StagedPage::default();
    for (plugin, files) in plugins {
        let own = make(&target, OsStr::new(plugin), PLUGIN_MODE)?;
        record.results.push(result(plugin, files[0].0.to_owned(), time));
        as_owner(&queue.archive, || {
            files
                .iter()
                .try_for_each(|(name, content)| own.create(name, FILE_MODE)?.write_all(content))
        })?;
    }
    finish(&record, None, &target)
}

/// The name that a picture gets, by its first bytes.
fn picture_name(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("screenshot.png"),
        [0xff, 0xd8, 0xff, ..] => Some("screenshot.jpg"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("screenshot.webp"),
        _ => None,
    }
}

/// The name of the file, as it was.
pub fn source_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    clean(&name).chars().take(200).collect()
}

/// A copy of the file in the archive.
struct Kept {
    file: File,
    /// The name that it gets, which is that of its digest.
    name: String,
}

impl Kept {
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
            (Ok(()), b"file") => "arc",
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
            // Not `Whole`: its name is its digest, and a second command must find the lock.
            options.read(true).write(true).create(true).mode(0o640);
            let mut file = options.open(directory.join(PARTIAL))?;
            file.try_lock()
                .map_err(|_| io::Error::other("another command imports a file at the moment"))?;
            file.set_len(0)?;
            files::copy::copy(&source, &file)?;
            file.sync_all()?;
            file.rewind()?;
            let (hex, _) = sha256(&file)?;
            Ok(Kept { file, name: format!("{hex}.{suffix}") })
        });
        copied.map_err(|error| failed("copy", path, &error))
    }

    /// Removes the copy. The error that counts is the one before.
    fn remove(&self, archive: &Path) {
        let _ = as_owner(archive, || fs::remove_file(archive.join(IMPORTED).join(PARTIAL)));
    }

    /// Gives the copy its name, and returns that.
    fn keep(self, archive: &Path) -> Result<String, Failure> {
        let directory = archive.join(IMPORTED);
        let named = as_owner(archive, || {
            fs::rename(directory.join(PARTIAL), directory.join(&self.name))?;
            File::open(&directory)?.sync_all()
        });
        named.map_err(|error| failed("keep a file in", &directory, &error))?;
        Ok(self.name)
    }
}

/// Passes on the pages of a file. Returns their number, and what cannot be used.
fn survey(
    file: &File,
    mut add: impl FnMut(Page) -> Result<(), Failure>,
) -> Result<(usize, Vec<String>), Failure> {
    let (mut pages, mut faults) = (0, Vec::new());
    let mut added = Ok(());
    read(file, &[], RECORDING_MAX_BYTES, |line| match line {
        Surveyed::Page { url, title, time, parts } if added.is_ok() => {
            pages += 1;
            let parts = parts.map(|parts| *parts).unwrap_or_default();
            added = add(Page { url: as_archived(url), title, time, parts });
        }
        Surveyed::Fault(fault) => faults.push(fault),
        _ => {}
    })?;
    added.map(|()| (pages, faults))
}

/// A URL in the form that the archive has it in, which distinguishes known pages.
fn as_archived(url: String) -> String {
    PageUrl::parse(&url).map_or(url, |parsed| parsed.as_str().to_owned())
}
