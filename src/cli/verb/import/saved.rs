//! Pages that other programs saved as a file or folder: each becomes a snapshot with that file, and nothing is
//! requested. The pages of a command are one crawl, or several if there are many or a URL has several.

use super::{ImportArgs, failed};
use crate::client::exit::{Exit, Failure};
use crate::client::owner::as_owner;
use crate::client::server::Server;
use crate::display::style;
use crate::staging::copy::{
    DIRECTORY_MODE, FILE_MODE, PLUGIN_MODE, Tally, Target, copy, copy_content, copy_open, finish,
    make, result, write_records,
};
use crate::staging::stage::{Key, Queue, ROUND_MAX, Stage, StagedEntry};
use archivist_config::Scope;
use archivist_core::model::{PageUrl, Time};
use archivist_core::text::clean;
use archivist_hooks::page::saved::SavedPage;
use archivist_plugin::Directory;
use archivist_shared::archive::{IMPORT_PLUGIN, IMPORT_SOURCE};
use archivist_shared::bus::documents::report::AddOptions;
use archivist_shared::staged::StagedPage;
use jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Component, Path};

/// Plugin of saved pages, except those of SingleFile.
const PLUGIN: &str = "saved";
/// The file of `archivist import` about a page.
const ABOUT: &str = "saved.json";
/// Name of the document of a page in UTF-8, next to a file that is none itself.
const DOCUMENT: &str = "document.html";
/// Names in the directory of a plugin that are not those of a saved file.
const RESERVED: [&str; 3] = ["stdout.log", "stderr.log", DOCUMENT];
const SINGLE_FILE: (&str, &str) = ("singlefile", "singlefile.html");
/// Document of a folder.
pub const INDEX: &str = "index.html";

pub enum Source<'a> {
    File(&'a File, &'a Path),
    /// A folder with the document [`INDEX`], and its path.
    Folder(&'a Directory, &'a Path),
}

impl Source<'_> {
    fn path(&self) -> &Path {
        match self {
            Source::File(_, path) | Source::Folder(_, path) => path,
        }
    }

    /// When the file, or the document of the folder, was changed.
    fn changed(&self) -> Option<Time> {
        let metadata = match self {
            Source::File(file, _) => file.metadata(),
            Source::Folder(directory, _) => directory.read(INDEX).and_then(|file| file.metadata()),
        };
        let changed = metadata.and_then(|metadata| metadata.modified()).ok()?;
        Some(Timestamp::try_from(changed).ok()?.into())
    }

    /// The name that the file or folder gets.
    fn name(&self) -> OsString {
        let own = self.path().canonicalize();
        let own = own.as_deref().unwrap_or(self.path());
        let name = own.file_name().unwrap_or(OsStr::new("page"));
        let text = name.to_string_lossy();
        if text.starts_with('.') || RESERVED.contains(&&*text) {
            return format!("saved-{text}").into();
        }
        name.to_owned()
    }
}

pub struct SavedPages<'a> {
    args: &'a ImportArgs,
    scope: &'a Scope,
    open: Option<(Stage, BTreeSet<Key>, Server)>,
    queue: Option<Round>,
    found: u64,
    queued: u64,
    known: u64,
    exit: Exit,
}

/// The pages of the next crawl.
struct Round {
    queue: Queue,
    urls: BTreeSet<String>,
    first: String,
}

/// A page whose address and time are known.
struct Entry {
    url: String,
    time: Time,
    page: SavedPage,
}

impl SavedPages<'_> {
    pub fn new<'a>(args: &'a ImportArgs, scope: &'a Scope) -> SavedPages<'a> {
        SavedPages {
            args,
            scope,
            open: None,
            queue: None,
            found: 0,
            queued: 0,
            known: 0,
            exit: Exit::Done,
        }
    }

    /// Copies a page, and queues it soon. Returns whether all of it was copied.
    pub async fn take(&mut self, source: &Source<'_>, page: SavedPage) -> Result<Exit, Failure> {
        let shown = clean(&source.path().display().to_string());
        for fault in &page.faults {
            eprintln!("'{shown}': {}, ignoring", clean(fault));
        }
        let mut exit = if page.faults.is_empty() { Exit::Done } else { Exit::Partly };
        let entry = self.entry(source, page)?;
        style::print(&format!("'{shown}': {}\n", description(&entry)))?;
        self.found += 1;
        if self.args.dry_run {
            return Ok(exit);
        }
        if self.open.is_none() {
            self.open = Some(Stage::open(self.scope).await?);
        }
        let key = (entry.url.clone(), Some(entry.time.to_string()));
        let is_known = |(_, known, _): &(_, BTreeSet<Key>, _)| known.contains(&key);
        if self.open.as_ref().is_some_and(is_known) {
            self.known += 1;
            return Ok(exit);
        }
        let is_full =
            |round: &Round| round.urls.len() >= ROUND_MAX || round.urls.contains(&entry.url);
        if self.queue.as_ref().is_some_and(is_full) {
            self.flush().await?;
        }
        let tally = self.copy(source, entry)?;
        if let Some((_, known, _)) = &mut self.open {
            known.insert(key);
        }
        for fault in &tally.faults {
            eprintln!("'{shown}': left out: {}", clean(fault));
            exit = Exit::Partly;
        }
        Ok(exit)
    }

    /// Returns the page with its URL and time: those of the options, of the file, or, for the time, of its last change.
    fn entry(&self, source: &Source<'_>, page: SavedPage) -> Result<Entry, Failure> {
        let url = match (&self.args.url, &page.url) {
            (Some(url), _) => url.as_str().to_owned(),
            (None, Some(found)) => PageUrl::parse(found)
                .map_err(|error| {
                    Failure::failed(format!("its page '{}' is refused: {error}", clean(found)))
                })?
                .as_str()
                .to_owned(),
            (None, None) => {
                return Err(Failure::failed(format!(
                    "{} does not say of which page it is: name it with --url",
                    page.format
                )));
            }
        };
        let own = page.time.as_deref().and_then(time_of);
        let time = self.args.date.or(own).or_else(|| source.changed());
        let time = time.ok_or_else(|| Failure::failed("failed to read the time of the file"))?;
        Ok(Entry { url, time, page })
    }

    fn copy(&mut self, source: &Source<'_>, entry: Entry) -> Result<Tally, Failure> {
        if self.queue.is_none()
            && let Some((stage, ..)) = &self.open
        {
            self.queue = Some(Round {
                queue: stage.begin()?,
                urls: BTreeSet::new(),
                first: source.name().to_string_lossy().into_owned(),
            });
        }
        let Some(round) = &mut self.queue else {
            return Ok(Tally::default());
        };
        let copied = copy_page(source, &entry, &round.queue);
        let tally = copied.map_err(|error| failed("copy", source.path(), &error))?;
        round.urls.insert(entry.url.clone());
        round.queue.entries.push(StagedEntry {
            url: entry.url,
            title: entry.page.title,
            tags: Vec::new(),
            time: Some(entry.time.to_string()),
        });
        Ok(tally)
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        let (Some(round), Some((_, _, server))) = (self.queue.take(), &self.open) else {
            return Ok(());
        };
        // Without any, the first page could not be copied.
        let source = match round.urls.len() {
            0 | 1 => round.first,
            pages => format!("{} and {} more", round.first, pages - 1),
        };
        let source = clean(&source).chars().take(200).collect();
        let options = AddOptions {
            tags: self.args.tags.clone(),
            plugins: vec![IMPORT_PLUGIN.to_owned(), "text".to_owned()],
            config: BTreeMap::from([(IMPORT_SOURCE.to_owned(), source)]),
            ..AddOptions::default()
        };
        if let Some((added, ended)) = round.queue.add(options, self.args.wait, server).await? {
            self.queued += added.accepted;
            if ended != Exit::Done {
                self.exit = ended;
            }
        }
        Ok(())
    }

    pub async fn finish(mut self) -> Result<Exit, Failure> {
        if self.found == 0 || self.args.dry_run {
            return Ok(Exit::Done);
        }
        self.flush().await?;
        let what = if self.found == 1 { "page" } else { "pages" };
        style::print(&format!(
            "{} saved {what}: {} taken, {} known\n",
            self.found, self.queued, self.known
        ))?;
        Ok(self.exit)
    }
}

/// A time as in RFC 3339.
fn time_of(text: &str) -> Option<Time> {
    text.parse::<Timestamp>().ok().map(Time::from)
}

fn description(entry: &Entry) -> String {
    let title = entry.page.title.as_deref().unwrap_or_default();
    let title = match title {
        "" => String::new(),
        title => format!(" '{}',", clean(title)),
    };
    let (url, time) = (clean(&entry.url), entry.time);
    format!("{},{title} {url}, of {time}", clean(&entry.page.format))
}

fn copy_page(source: &Source<'_>, entry: &Entry, queue: &Queue) -> io::Result<Tally> {
    let archive = &queue.archive;
    let mut tally = Tally::default();
    let directory = queue.page(&entry.url)?;
    let target = Target { archive, directory: &directory };
    let own_name = source.name();
    let (plugin, name) = match (source, entry.page.is_single_file) {
        (Source::File(..), true) => (SINGLE_FILE.0, OsString::from(SINGLE_FILE.1)),
        _ => (PLUGIN, own_name.clone()),
    };
    let directory = make(&target, OsStr::new(plugin), PLUGIN_MODE)?;
    let into = Target { archive, directory: &directory };
    let mut output = format!("{plugin}/{}", name.to_string_lossy());
    match source {
        Source::File(file, path) => {
            copy_open(file, &name, &into)?;
            if plugin == PLUGIN && entry.page.document.is_none() {
                copy_companions(path, &entry.page.requisites, &into, &mut tally)?;
            }
        }
        Source::Folder(from, _) => {
            let folder = make(&into, &name, DIRECTORY_MODE)?;
            let into = Target { archive, directory: &folder };
            copy_content(from, Some(&into), 1, &mut tally)?;
            output = format!("{output}/{INDEX}");
        }
    }
    if let Some(document) = &entry.page.document {
        as_owner(archive, || {
            let mut file = directory.create(DOCUMENT, FILE_MODE)?;
            file.write_all(document.as_bytes())
        })?;
    }
    let page = StagedPage { results: vec![result(plugin, output, Some(entry.time))] };
    write_records(&page, &target)?;
    let about = json!({
        "format": entry.page.format, "file": own_name.to_string_lossy(), "url": entry.url,
        "title": entry.page.title, "saved_at": entry.time,
    });
    finish(&page, Some((ABOUT, &about)), &target)?;
    Ok(tally)
}

/// Keeps the text of a page that a list has, as HTML.
///
/// # Errors
/// If the archive cannot be written.
pub fn keep_text(
    entry: &StagedEntry,
    html: &str,
    list: (&str, &str),
    queue: &Queue,
) -> io::Result<()> {
    let directory = queue.page(&entry.url)?;
    let target = Target { archive: &queue.archive, directory: &directory };
    let own = make(&target, OsStr::new(PLUGIN), PLUGIN_MODE)?;
    as_owner(&queue.archive, || {
        let mut file = own.create(DOCUMENT, FILE_MODE)?;
        file.write_all(b"<!doctype html>\n<meta charset=\"utf-8\">\n")?;
        file.write_all(html.as_bytes())
    })?;
    let time = entry.time.as_deref().and_then(time_of);
    let page = StagedPage { results: vec![result(PLUGIN, format!("{PLUGIN}/{DOCUMENT}"), time)] };
    write_records(&page, &target)?;
    let about = json!({
        "format": list.0, "file": list.1, "url": entry.url, "title": entry.title,
        "tags": entry.tags, "bookmarked_at": entry.time,
    });
    finish(&page, Some((ABOUT, &about)), &target)
}

/// Copies the folders in which a browser saved what an HTML file shows, and names the files that are in none of
/// them. Each browser names the folder in its language, such as `NAME_files` or `NAME-Dateien` of `NAME.html`.
fn copy_companions(
    path: &Path,
    requisites: &[String],
    into: &Target<'_>,
    tally: &mut Tally,
) -> io::Result<()> {
    let Some(stem) = path.file_stem() else {
        return Ok(());
    };
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut of_chromium = stem.to_owned();
    of_chromium.push("_files");
    let stem = stem.to_string_lossy();
    let shown = requisites.iter().filter_map(|file| file.split_once('/'));
    // A short name is also the begin of words.
    let is_of_page = |folder: &&str| {
        let rest = folder.strip_prefix(&*stem);
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    let of_page = shown.map(|(folder, _)| folder).filter(is_of_page);
    let mut folders: BTreeSet<OsString> = of_page.map(OsString::from).collect();
    folders.insert(of_chromium);
    // Without the directory, each file is missing.
    if let Ok(parent) = Directory::open(parent) {
        folders.retain(|folder| parent.enter(folder).is_ok());
        for folder in &folders {
            copy(&parent, folder, Some(into), 1, tally)?;
        }
    }
    for file in requisites {
        let is_copied = file.split_once('/').is_some_and(|(folder, rest)| {
            let is_plain = Path::new(rest).components().all(|c| matches!(c, Component::Normal(_)));
            folders.contains(OsStr::new(folder)) && is_plain && parent.join(file).is_file()
        });
        if !is_copied {
            tally.left_out(file, "the page shows it, and it is in no folder of the page");
        }
    }
    Ok(())
}
