//! Bookmark files and reading lists: their pages are queued as one crawl.

use super::{FolderChoice, ImportArgs, Surveyed, failed, saved};
use crate::client::exit::{Exit, Failure};
use crate::client::paging::Paging;
use crate::client::server::{Server, decode};
use crate::display::style;
use crate::display::text::cut_middle;
use crate::progress::wait::{self, Form};
use crate::queue::urls::Urls;
use crate::queue::{summary, with_details};
use crate::staging::reader;
use crate::staging::recording::source_name;
use crate::staging::stage::{ROUND_MAX, Stage, StagedEntry};
use archivist_config::Scope;
use archivist_core::model::{LineEntry, Owner, Place, Tags, parse_line};
use archivist_core::text::clean;
use archivist_hooks::page::saved::SavedPage;
use archivist_plugin::files::digest::sha256;
use archivist_shared::archive::{IMPORT_KEEP, IMPORT_PLUGIN, IMPORT_SOURCE};
use archivist_shared::bus::documents::report::{AddOptions, Added, Crawl, Filter, Snapshot};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::path::Path;

/// Setting of a crawl with the digest of the list that it was made of.
const DIGEST: &str = "IMPORT_DIGEST";
/// Begin of the name of the format that has texts of pages.
const WALLABAG: &str = "wallabag";
/// Refused entries that are printed.
const REFUSED_MAX: usize = 100;

/// A list as its reader found it.
#[derive(Debug, Default)]
pub struct FoundList {
    format: String,
    pages: Vec<PageEntry>,
    refused: Vec<String>,
    /// Number of entries whose page another entry has.
    repeated: usize,
    keeps_texts: bool,
}

/// A page of the list, with what all entries of it say.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PageEntry {
    place: String,
    url: String,
    title: Option<String>,
    tags: Tags,
    time: Option<String>,
    /// Text of the page as HTML, if the list has it and it is kept.
    text: Option<String>,
}

pub enum Content {
    Recording,
    List(FoundList),
    Page(Box<SavedPage>),
}

/// Reads the file. With `is_page`, any HTML document is a page.
pub fn read(file: &File, args: &ImportArgs, is_page: bool) -> Result<Content, Failure> {
    let mut arguments = vec!["--lists"];
    if args.folders == FolderChoice::Tags {
        arguments.push("--folders");
    }
    if is_page {
        arguments.push("--page");
    }
    let mut found = FoundList { keeps_texts: args.keep_only, ..FoundList::default() };
    let mut places = HashMap::new();
    let mut other = None;
    reader::read(file, &arguments, reader::LIST_MAX_BYTES, |line| match line {
        Surveyed::Recording => other = Some(Content::Recording),
        Surveyed::Saved(page) => other = Some(Content::Page(page)),
        Surveyed::Format(format) => found.format = format,
        Surveyed::Entry { place, line } => found.add(place, &line, &mut places),
        Surveyed::Fault(fault) => found.refused.push(fault),
        _ => {}
    })?;
    Ok(other.unwrap_or(Content::List(found)))
}

impl FoundList {
    /// Adds an entry, or says why not. The same page may be in several folders.
    fn add(&mut self, place: String, line: &str, places: &mut HashMap<String, usize>) {
        let entry = match parse_line(line.as_bytes()) {
            None => return,
            Some(Ok(entry)) => entry,
            Some(Err(error)) => {
                let text = cut_middle(&clean(&address(line)), 80);
                self.refused.push(format!("{place}: '{text}' refused: {error}"));
                return;
            }
        };
        let LineEntry { url, title, bookmarked_at, tags, .. } = entry;
        let url = url.as_str().to_owned();
        let text = self.text(line);
        let index = *places.entry(url.clone()).or_insert(self.pages.len());
        let Some(known) = self.pages.get_mut(index) else {
            let mut all = Tags::default();
            all.extend(tags);
            self.pages.push(PageEntry { place, url, title, tags: all, time: bookmarked_at, text });
            return;
        };
        self.repeated += 1;
        known.tags.extend(tags);
        known.title = known.title.take().or(title);
        known.text = known.text.take().or(text);
        known.time = match (known.time.take(), bookmarked_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// The text of the page of an entry of wallabag, if it is kept.
    fn text(&self, line: &str) -> Option<String> {
        if !self.keeps_texts || !self.format.starts_with(WALLABAG) {
            return None;
        }
        let mut entry: serde_json::Value = serde_json::from_str(line).ok()?;
        match entry.get_mut("content")?.take() {
            serde_json::Value::String(text) if !text.trim().is_empty() => Some(text),
            _ => None,
        }
    }

    /// What the file has, in one line.
    fn description(&self) -> String {
        let count = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        let pages = &self.pages;
        let mut parts = vec![count(pages.len(), "page")];
        if self.repeated > 0 {
            parts.push(format!("{} of them again", self.repeated));
        }
        let tagged = pages.iter().filter(|page| !page.tags.names().is_empty()).count();
        parts.push(format!("{tagged} with tags"));
        let times: Vec<&String> = pages.iter().filter_map(|page| page.time.as_ref()).collect();
        let day = |time: Option<&&String>| {
            let day = time.map_or("", |time| time.get(..10).unwrap_or(time));
            clean(day)
        };
        parts.push(match times.len() {
            0 => "none with a date".to_owned(),
            n => format!(
                "{n} with dates from {} to {}",
                day(times.iter().min()),
                day(times.iter().max())
            ),
        });
        if !self.refused.is_empty() {
            parts.push(format!("{} refused", self.refused.len()));
        }
        format!("{}: {}", self.format, parts.join(", "))
    }
}

/// The address in a line of JSON, else the line.
fn address(line: &str) -> String {
    let object: Option<serde_json::Value> = serde_json::from_str(line).ok();
    let url = object.as_ref().and_then(|object| object.get("url")?.as_str());
    url.unwrap_or(line).to_owned()
}

pub async fn import(
    path: &Path,
    file: &File,
    mut found: FoundList,
    args: &ImportArgs,
    scope: &Scope,
) -> Result<Exit, Failure> {
    let shown = clean(&path.display().to_string());
    style::print(&format!("'{shown}': {}\n", found.description()))?;
    for refused in found.refused.iter().take(REFUSED_MAX) {
        eprintln!("'{shown}': {refused}");
    }
    if let Some(more @ 1..) = found.refused.len().checked_sub(REFUSED_MAX) {
        eprintln!("'{shown}': {more} more refused");
    }
    let mut exit = if found.refused.is_empty() { Exit::Done } else { Exit::Partly };
    if args.dry_run {
        return Ok(exit);
    }
    if found.pages.is_empty() {
        return Err(Failure::failed(format!("'{shown}' has no page to archive")));
    }
    let digest = digest(file).map_err(|error| failed("read", path, &error))?;
    let server = Server::reach(scope).await?;
    let before = imported(&digest, args.keep_only, &server).await?;
    let total = found.pages.len();
    found.pages.retain(|page| !before.contains(&page.url));
    let known = (total - found.pages.len()) as u64;
    // Of each line, so that pages that the archive has get them, too.
    for page in &mut found.pages {
        page.tags.extend(args.tags.iter().cloned());
    }
    if found.pages.is_empty() {
        style::print("nothing new: all pages of this file were imported before\n")?;
        return Ok(exit);
    }
    let mut options = AddOptions {
        tags: args.tags.clone(),
        config: BTreeMap::from([
            (DIGEST.to_owned(), digest),
            (IMPORT_SOURCE.to_owned(), source_name(path)),
        ]),
        only_new: true,
        ..AddOptions::default()
    };
    if args.keep_only {
        options.plugins = vec![IMPORT_PLUGIN.to_owned()];
        options.config.insert(IMPORT_KEEP.to_owned(), "true".to_owned());
    }
    let (with_text, pages): (Vec<_>, Vec<_>) =
        std::mem::take(&mut found.pages).into_iter().partition(|page| page.text.is_some());
    // Refused to users who cannot write to the archive before anything is queued.
    let stage = if with_text.is_empty() { None } else { Some(Stage::open(scope).await?) };
    let (mut queued, mut already, mut refused) = (0, known, found.refused.len());
    let mut completed = 0;
    if !pages.is_empty() {
        let added = add(&pages, &options, &server).await?;
        style::print(&format!("{}\n", summary(&added)))?;
        for refused in &added.refused {
            let at = usize::try_from(refused.line.saturating_sub(1)).unwrap_or(usize::MAX);
            let place = pages.get(at).map_or("", |page| &page.place);
            let text = pages.get(at).map_or(&refused.text, |page| &page.url);
            eprintln!("'{shown}': {place}: '{}' refused: {}", clean(text), refused.why);
            exit = Exit::Partly;
        }
        (queued, already) = (added.accepted, known + added.known);
        completed += added.completed;
        refused += added.refused.len();
        if args.wait && added.accepted > 0 {
            match wait::wait(&server, None, added.crawl, Form::Lines).await? {
                Exit::Done => {}
                other => exit = other,
            }
        }
    }
    if let Some((stage, _, server)) = &stage {
        let source = source_name(path);
        let list = (found.format.as_str(), source.as_str());
        let kept = keep_texts(with_text, list, &options, args.wait, (stage, server)).await?;
        queued += kept.added;
        already += kept.known;
        completed += kept.completed;
        refused += kept.refused;
        if kept.exit != Exit::Done {
            exit = kept.exit;
        }
    }
    style::print(&format!(
        "'{shown}': {queued} taken, {already} known, {refused} refused{}\n",
        with_details(completed)
    ))?;
    Ok(exit)
}

struct Kept {
    added: u64,
    known: u64,
    completed: u64,
    refused: usize,
    exit: Exit,
}

async fn keep_texts(
    pages: Vec<PageEntry>,
    list: (&str, &str),
    options: &AddOptions,
    waits: bool,
    (stage, server): (&Stage, &Server),
) -> Result<Kept, Failure> {
    let mut options = options.clone();
    options.plugins.push("text".to_owned());
    let mut kept = Kept { added: 0, known: 0, completed: 0, refused: 0, exit: Exit::Done };
    let mut pages = pages.into_iter().peekable();
    while pages.peek().is_some() {
        let mut queue = stage.begin()?;
        for page in pages.by_ref().take(ROUND_MAX) {
            let entry = StagedEntry {
                url: page.url,
                title: page.title,
                tags: page.tags.names().to_vec(),
                time: page.time,
            };
            let text = page.text.unwrap_or_default();
            saved::keep_text(&entry, &text, list, &queue).map_err(|error| queue.failed(&error))?;
            queue.entries.push(entry);
        }
        if let Some((added, ended)) = queue.add(options.clone(), waits, server).await? {
            kept.added += added.accepted;
            kept.known += added.known;
            kept.completed += added.completed;
            kept.refused += added.refused.len();
            if ended != Exit::Done {
                kept.exit = ended;
            }
        }
    }
    Ok(kept)
}

fn digest(mut file: &File) -> io::Result<String> {
    file.rewind()?;
    Ok(sha256(file)?.0)
}

/// The pages of the crawls that were made of the same list. Entries that were kept without a visit count if
/// entries are kept, those of any list.
async fn imported(
    digest: &str,
    keep_only: bool,
    server: &Server,
) -> Result<BTreeSet<String>, Failure> {
    let crawls: Vec<Crawl> = Paging::new(server, Filter::default()).collect().await?;
    let same = |crawl: &&Crawl| {
        let found = crawl.config.get(DIGEST);
        if crawl.config.contains_key(IMPORT_KEEP) {
            return keep_only;
        }
        found.is_some_and(|found| found == digest)
    };
    let mut urls = BTreeSet::new();
    for crawl in crawls.iter().filter(same) {
        let filter = Filter::of(Owner::Crawl(crawl.id));
        let pages: Vec<Snapshot> = Paging::new(server, filter).collect().await?;
        urls.extend(pages.into_iter().map(|page| page.url));
    }
    Ok(urls)
}

async fn add(pages: &[PageEntry], options: &AddOptions, server: &Server) -> Result<Added, Failure> {
    let failed = |error: serde_json::Error| Failure::failed(format!("failed to write: {error}"));
    let mut urls = Urls::default();
    for (number, page) in (1..).zip(pages) {
        let line = json!({
            "url": page.url, "title": page.title, "tags": page.tags.names(),
            "bookmarked_at": page.time,
        });
        urls.add_line(Place::Line(number), &line.to_string());
    }
    let options = serde_json::to_string(options).map_err(failed)?;
    let memfd = urls.to_memfd()?;
    let call = server.proxy().add(memfd.as_fd().into(), &options);
    decode(&server.call_with_urls(urls.len(), call).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_in_several_folders_has_all_tags_and_its_first_date() {
        let mut found = FoundList { format: "Test file".to_owned(), ..FoundList::default() };
        let mut places = HashMap::new();
        for (number, line) in [
            r#"{"url":"http://a.test/","title":"","tags":["x"],"bookmarked_at":"2020-01-02T00:00:00Z"}"#,
            r#"{"url":"http://a.test","title":"A","tags":["y","x"],"bookmarked_at":"2019-01-02T00:00:00Z"}"#,
            r#"{"url":"place:sort=8","title":"B"}"#,
            "http://b.test/",
        ]
        .into_iter()
        .enumerate()
        {
            found.add(format!("line {number}"), line, &mut places);
        }
        assert_eq!(found.pages.len(), 2);
        assert_eq!(found.pages[0].title.as_deref(), Some("A"));
        assert_eq!(found.pages[0].tags.names(), ["x", "y"]);
        assert_eq!(found.pages[0].time.as_deref(), Some("2019-01-02T00:00:00Z"));
        assert!(found.refused[0].starts_with("line 2: 'place:sort=8' refused: "));
        assert_eq!(
            found.description(),
            "Test file: 2 pages, 1 of them again, 1 with tags, 1 with dates from 2019-01-02 to \
             2019-01-02, 1 refused"
        );
    }
}
