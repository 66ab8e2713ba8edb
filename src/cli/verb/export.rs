//! `archivist export`: writes the recordings of pages into one WACZ, or the pages as files.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet::{Fleet, Local};
use crate::client::paging::{Paging, Source};
use crate::client::reader_files::{self, Wanted};
use crate::client::server::Server;
use crate::display::bookmarks::netscape;
use crate::display::{listing, style};
use crate::recording::recordings::Located;
use crate::survey::export::{self, About, Written};
use crate::survey::job::ReaderJob;
use archivist_config::Scope;
use archivist_core::model::web::pattern::UrlPattern;
use archivist_core::model::{Owner, SnapshotId};
use archivist_core::text::{clean, human_size};
use archivist_hooks::bodies::of_digest;
use archivist_plugin::files::whole::{Survives, replace};
use archivist_shared::bus::documents::report::{Filter, Snapshot};
use archivist_warc::wacz::Summary;
use clap::Args;
use jiff::Timestamp;
use nix::libc::O_TMPFILE;
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

mod html;

/// End of the name of a file that is not complete.
const PARTIAL: &str = ".partial";
/// Pages that are named because they are missing.
const NAMED_MAX: usize = 20;
/// Bytes that the reader may print: faults.
const ANSWER_MAX_BYTES: u64 = 256 << 20;

/// Write recorded pages into one WACZ file, as files for any browser, or as a bookmark file
///
/// The file has all that was recorded of the pages, as it was recorded, and replays without this
/// archive: `archivist replay FILE`, or another viewer of WACZ files. It has the cookies and passwords
/// that the browser sent, unless they were left out of the recordings. Pages without a recording are
/// named, and the exit status is 3.
#[derive(Args)]
pub struct ExportArgs {
    /// Crawls (c12) and snapshots (s345)
    #[arg(value_name = "ID", required_unless_present_any = ["tag", "url"])]
    ids: Vec<Owner>,
    /// All snapshots with this tag, or of crawls with it
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// All snapshots of these URLs, as for list; with --tag, those that have the tag, too
    #[arg(long, value_name = "URL|PREFIX*|*.HOST")]
    url: Option<UrlPattern>,
    /// The file; an existing one is replaced when the new one is complete
    #[arg(short, long, value_name = "FILE", required_unless_present = "html")]
    output: Option<PathBuf>,
    /// Write the pages as files that any browser opens, into a new or empty directory
    ///
    /// Open index.html in the directory: the page, or a list of the pages, which lead to each other. No
    /// server, network or archivist is needed, so the directory can be copied to a USB stick. Pages are
    /// as the browser saw them, without scripts. What they refer to and the recordings do not have stays
    /// an address of the web, which no page loads by itself, and is counted.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "netscape"])]
    html: Option<PathBuf>,
    /// Write a bookmark file instead: addresses, titles, tags and dates
    ///
    /// In the format of Netscape, which browsers and services for bookmarks read.
    #[arg(long)]
    netscape: bool,
    #[command(flatten)]
    local: Local,
}

pub async fn run(args: ExportArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let pages = pages(&args, &server, scope).await?;
    let output = args.output.as_deref().unwrap_or(Path::new(""));
    if args.netscape {
        return bookmarks(output, &pages);
    }
    let mut missing = Vec::new();
    let mut found = Vec::new();
    for page in pages.into_values() {
        match Located::of_listed(&page, &server).await? {
            Ok(located) => found.push((page, located)),
            Err(reason) => missing.push((page.id, reason)),
        }
    }
    if found.is_empty() {
        name(&missing);
        return Err(Failure::failed("there is no recording to export"));
    }
    let about = about(&args, &found);
    if let Some(directory) = &args.html {
        return html::write(directory, about.title, &found, missing);
    }
    let done = write(output, &about, &found)?;
    let pages = found.len();
    let plural = if pages == 1 { "" } else { "s" };
    style::print(&format!(
        "{}: {pages} page{plural}, {} records, {}\n",
        clean(&output.display().to_string()),
        done.entries,
        human_size(done.bytes)
    ))?;
    name(&missing);
    Ok(if missing.is_empty() { Exit::Done } else { Exit::Partly })
}

fn bookmarks(path: &Path, pages: &BTreeMap<SnapshotId, Snapshot>) -> Result<Exit, Failure> {
    let shown = clean(&path.display().to_string());
    let text = netscape(pages.values());
    replace(path, text.as_bytes(), 0o644, Survives::PowerCut)
        .map_err(|error| Failure::failed(format!("failed to write '{shown}': {error}")))?;
    let plural = if pages.len() == 1 { "" } else { "s" };
    style::print(&format!("{shown}: {} bookmark{plural}\n", pages.len()))?;
    Ok(Exit::Done)
}

/// Prints which pages are not in the file.
fn name(missing: &[(SnapshotId, String)]) {
    for (id, reason) in missing.iter().take(NAMED_MAX) {
        eprintln!("not exported: {id}: {}", clean(reason));
    }
    if let Some(more @ 1..) = missing.len().checked_sub(NAMED_MAX) {
        eprintln!("not exported: {more} more pages");
    }
}

/// The pages that the arguments name, each once.
async fn pages(
    args: &ExportArgs,
    server: &Server,
    scope: &Scope,
) -> Result<BTreeMap<SnapshotId, Snapshot>, Failure> {
    let mut pages = BTreeMap::new();
    let mut add = |found: Vec<Snapshot>| {
        pages.extend(found.into_iter().map(|page| (page.id, page)));
    };
    if args.tag.is_some() || args.url.is_some() {
        let filter = Filter { tag: args.tag.clone(), url: args.url.clone(), ..Filter::default() };
        add(Paging::new(server, filter).collect().await?);
    }
    let fleet = match args.ids[..] {
        [] => None,
        _ => Fleet::reach(scope, args.local).await?,
    };
    for id in &args.ids {
        let here: Vec<Snapshot> = Paging::new(server, Filter::of(*id)).collect().await?;
        let is_here = !here.is_empty();
        if let Some(fleet) = &fleet {
            let all = Paging::of(Source::Fleet(fleet), Filter::of(*id));
            let all: Vec<Snapshot> = all.collect().await?;
            // The fleet knows of directories of other machines.
            let other = |page: &Snapshot| !fleet.is_here(page.node.as_deref());
            let elsewhere = all.into_iter().filter(other);
            add(elsewhere.map(|page| Snapshot { directory: None, ..page }).collect());
        } else if !is_here {
            return Err(Failure::failed(format!("there is no page of {id}")));
        }
        add(here);
    }
    Ok(pages)
}

fn about(args: &ExportArgs, found: &[(Snapshot, Located)]) -> About {
    let mut words: Vec<String> = args.ids.iter().map(Owner::to_string).collect();
    words.extend(args.tag.iter().map(|tag| format!("tag {tag}")));
    words.extend(args.url.iter().map(ToString::to_string));
    let main = found.first().map(|(page, _)| page);
    let title = main.and_then(|page| page.title.clone());
    About {
        software: format!("archivist {}", env!("CARGO_PKG_VERSION")),
        title: title.filter(|_| found.len() == 1).unwrap_or_else(|| words.join(", ")),
        main_url: main.map(|page| page.url.clone()).unwrap_or_default(),
        created: Timestamp::now().to_string(),
    }
}

/// Writes the file under another name, which it keeps if this program is killed, and renames it.
fn write(path: &Path, about: &About, found: &[(Snapshot, Located)]) -> Result<Summary, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        let shown = path.display();
        Failure::failed(format!("failed to write '{shown}': {error}"))
    };
    let name = path
        .file_name()
        .ok_or_else(|| Failure::usage(format!("'{}' is no name of a file", path.display())))?;
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // Not `Whole`: a second command must find the lock of the first one.
    let mut partial = OsString::from(name);
    partial.push(PARTIAL);
    let partial = directory.join(partial);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(&partial).map_err(|error| failed(&error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(failed(&"another command is writing it"));
        }
        Err(TryLockError::Error(error)) => return Err(failed(&error)),
    }
    let written = file
        .set_len(0)
        .map_err(|error| failed(&error))
        .and_then(|()| fill(&file, directory, about, found, &failed))
        .and_then(|done| {
            file.sync_all()
                .and_then(|()| fs::rename(&partial, path))
                .and_then(|()| File::open(directory)?.sync_all())
                .map_err(|error| failed(&error))?;
            Ok(done)
        });
    if written.is_err() {
        // The error that counts is the one before.
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Lets a reader write the recordings of all pages into an empty file.
fn fill(
    file: &File,
    directory: &Path,
    about: &About,
    found: &[(Snapshot, Located)],
    failed: &dyn Fn(&dyn std::fmt::Display) -> Failure,
) -> Result<Summary, Failure> {
    // Pages that were imported share a file.
    let mut files: Vec<&Path> = Vec::new();
    let mut numbers = BTreeMap::new();
    let mut pages = Vec::new();
    for (page, located) in found {
        let path = located.path.as_path();
        let number = *numbers.entry(path).or_insert_with(|| {
            files.push(path);
            files.len() - 1
        });
        pages.push(export::ExportedPage::of(page, located, number));
    }
    let job = ReaderJob::Export(export::ExportJob { about: about.clone(), pages });
    let open = |wanted| {
        let file = match wanted {
            Wanted::File(number) => File::open(files.get(number).ok_or(ErrorKind::NotFound)?)?,
            Wanted::Body(number, hex) => {
                let path = files.get(number).ok_or(ErrorKind::NotFound)?;
                let body = of_digest(path, &hex)?;
                return Ok(body.map(OwnedFd::from).into_iter().collect());
            }
            Wanted::Output => file.try_clone()?,
            Wanted::Scratch => unnamed(directory).or_else(|_| unnamed(&env::temp_dir()))?,
            _ => return Err(ErrorKind::NotFound.into()),
        };
        Ok(vec![file.into()])
    };
    let mut done = None;
    reader_files::read(&job, ANSWER_MAX_BYTES, open, |part| match part {
        Written::Faults(id, faults) => {
            listing::report(&faults, |fault| format!("{id}: {}, ignoring", clean(fault)));
        }
        Written::All { entries, bytes } => done = Some(Summary { entries, bytes }),
    })
    .map_err(|failure| failed(&failure.message()))?;
    done.ok_or_else(|| failed(&"the reader has no result"))
}

/// A file that is gone with its last descriptor. Not every file system has such files.
fn unnamed(directory: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(O_TMPFILE).mode(0o600).open(directory)
}
