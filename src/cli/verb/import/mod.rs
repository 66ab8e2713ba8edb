//! `archivist import`: adds the pages of recordings, saved pages and data directories of ArchiveBox, and queues those of
//! bookmark files and reading lists, that other programs wrote. Files are read by a process without rights ([`crate::survey`]), because
//! their content is foreign.

mod archivebox;
mod list;
mod saved;

use crate::client::exit::{Exit, Failure};
use crate::staging::{failed, recording};
use crate::survey::Surveyed;
use archivist_config::Scope;
use archivist_core::model::{PageUrl, Time, moment};
use archivist_core::text::clean;
use archivist_plugin::Directory;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use list::Content;
use saved::{SavedPages, Source};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

/// Begin of an ARC file.
const ARC: &[u8] = b"filedesc://";

/// Add the pages of recordings, saved pages, bookmark files, reading lists and ArchiveBox
///
/// The content of a file decides what it is, not its name. The pages of a recording (WACZ, WARC) are
/// added with the dates of their recording, and nothing is requested from the web. The pages of a
/// bookmark file or reading list are queued as one crawl for each file, with their titles, tags and
/// dates; those that the archive has, or is going to have, are left out, and so are all that were
/// imported from the same file before. A page that another program saved (SingleFile, MHTML, web
/// archives of Safari, WebScrapBook, MAFF, HTML) becomes a snapshot with that file, and nothing is
/// requested. A directory is the data directory of ArchiveBox, whose snapshots become snapshots with
/// their files, results, tags and dates, or a page of WebScrapBook.
#[derive(Args)]
pub struct ImportArgs {
    /// The files, data directories of ArchiveBox, and folders of saved pages
    #[arg(value_name = "FILE|DIR", required = true)]
    files: Vec<PathBuf>,
    /// Tag the pages; may be given more than once
    #[arg(long = "tag", value_name = "T")]
    tags: Vec<String>,
    /// Say what the folders of bookmarks become
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    folders: FolderChoice,
    /// Record the entries of a list without a visit of their pages
    ///
    /// Each becomes a sealed snapshot with address, title, tags and date, which lists and searches
    /// find, and the archive does not count as archived. Of wallabag, the text of each page is kept.
    #[arg(long)]
    keep_only: bool,
    /// Say of which page the saved file is, such as HTML that does not say so itself
    ///
    /// It takes precedence over what the file says.
    #[arg(long, value_name = "URL", value_parser = page_url)]
    url: Option<PageUrl>,
    /// Say when the page was saved, such as 2024-05-01 or 2024-05-01T12:00:00Z
    ///
    /// Without it, the file says so, and otherwise it is the time at which the file was changed.
    #[arg(long, value_name = "TIME", value_parser = time)]
    date: Option<Time>,
    /// Say what the files have, and add nothing
    #[arg(long)]
    dry_run: bool,
    /// Show the progress until all snapshots are sealed
    #[arg(long)]
    wait: bool,
}

/// What the folders of bookmarks become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum FolderChoice {
    /// Tags of the pages in them
    #[default]
    Tags,
    /// Nothing
    Ignore,
}

fn page_url(text: &str) -> Result<PageUrl, String> {
    PageUrl::parse(text).map_err(|error| error.to_string())
}

/// A time, or the begin of a day, in UTC.
fn time(text: &str) -> Result<Time, String> {
    let begin = format!("{text}T00:00:00Z");
    let found = moment(text).filter(|time| time.contains('T'));
    let parsed = found.unwrap_or(begin).parse::<Timestamp>();
    parsed
        .map(Time::from)
        .map_err(|_| "it is no time in UTC, such as 2024-05-01 or 2024-05-01T12:00:00Z".to_owned())
}

pub async fn run(args: ImportArgs, scope: &Scope) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    let several = args.files.len() > 1;
    if several && args.url.is_some() {
        return Err(Failure::usage("--url is for one file"));
    }
    let mut pages = SavedPages::new(&args, scope);
    for path in &args.files {
        match import(path, &args, scope, &mut pages).await {
            Ok(Exit::Done) => {}
            Ok(other) => exit = other,
            // The other files are imported nevertheless.
            Err(failure) if several && !failure.message().is_empty() => {
                let path = clean(&path.display().to_string());
                eprintln!("archivist: '{path}': {}", failure.message());
                exit = Exit::Partly;
            }
            Err(failure) => return Err(failure),
        }
    }
    match pages.finish().await? {
        Exit::Done => Ok(exit),
        other => Ok(other),
    }
}

async fn import(
    path: &Path,
    args: &ImportArgs,
    scope: &Scope,
    pages: &mut SavedPages<'_>,
) -> Result<Exit, Failure> {
    let is_page = args.url.is_some();
    if path.is_dir() {
        let folder = Directory::open(path).map_err(|error| failed("open", path, &error))?;
        let index = match folder.read(saved::INDEX) {
            Ok(index) if !archivebox::is_box(&folder) => index,
            _ => return archivebox::import(path, args, scope).await,
        };
        return match list::read(&index, args, is_page)? {
            Content::Page(page) => pages.take(&Source::Folder(&folder, path), *page).await,
            _ => Err(Failure::usage(format!(
                "'{}' is neither a data directory of ArchiveBox nor a page of WebScrapBook",
                clean(&path.display().to_string())
            ))),
        };
    }
    let mut file = File::open(path).map_err(|error| failed("open", path, &error))?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        let path = clean(&path.display().to_string());
        let what = "is neither a regular file nor a directory";
        return Err(Failure::usage(format!("'{path}' {what}")));
    }
    let mut start = Vec::new();
    let read = file.by_ref().take(ARC.len() as u64).read_to_end(&mut start);
    read.map_err(|error| failed("read", path, &error))?;
    let found = match start.as_slice() {
        // A reader says what an ARC file is.
        [b'W', b'A', b'R', b'C', ..] | [0x1f, 0x8b, ..] | ARC => Content::Recording,
        _ => list::read(&file, args, is_page)?,
    };
    match found {
        Content::Page(page) => {
            file.rewind().map_err(|error| failed("read", path, &error))?;
            pages.take(&Source::File(&file, path), *page).await
        }
        _ if is_page => Err(Failure::usage("--url is for a saved page, and this is none")),
        Content::List(found) => list::import(path, &file, found, args, scope).await,
        Content::Recording if args.dry_run => recording::dry_run(path),
        Content::Recording => recording::import(path, &args.tags, args.wait, scope).await,
    }
}
