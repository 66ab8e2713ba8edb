//! `archivist import`: adds the pages of recordings and of data directories of ArchiveBox, and queues those of
//! bookmark files and reading lists, that other programs wrote. Files are read by a process without rights ([`super::survey`]), because
//! their content is foreign.

mod archivebox;
mod copy;
mod list;
mod reader;
mod recording;
mod stage;

use crate::client::exit::{Exit, Failure};
use crate::verb::survey::Surveyed;
use archivist_config::Scope;
use archivist_core::text::clean;
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Add the pages of recordings, bookmark files, reading lists and ArchiveBox that other programs wrote
///
/// The content of a file decides what it is, not its name. The pages of a recording (WACZ, WARC) are
/// added with the dates of their recording, and nothing is requested from the web. The pages of a
/// bookmark file or reading list are queued as one crawl for each file, with their titles, tags and
/// dates; those that the archive has, or is going to have, are left out, and so are all that were
/// imported from the same file before. A directory is the data directory of ArchiveBox: its snapshots
/// become snapshots with their files, results, tags and dates, and nothing is requested either.
#[derive(Args)]
pub struct ImportArgs {
    /// The files, and data directories of ArchiveBox
    #[arg(value_name = "FILE|DIR", required = true)]
    files: Vec<PathBuf>,
    /// Tag the pages; may be given more than once
    #[arg(long = "tag", value_name = "T")]
    tags: Vec<String>,
    /// Say what the folders of bookmarks become
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    folders: FolderChoice,
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

fn failed(verb: &str, path: &Path, error: &io::Error) -> Failure {
    let path = clean(&path.display().to_string());
    Failure::failed(format!("failed to {verb} '{path}': {error}"))
}

pub async fn run(args: ImportArgs, scope: &Scope) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    let several = args.files.len() > 1;
    for path in &args.files {
        match import(path, &args, scope).await {
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
    Ok(exit)
}

async fn import(path: &Path, args: &ImportArgs, scope: &Scope) -> Result<Exit, Failure> {
    if path.is_dir() {
        return archivebox::import(path, args, scope).await;
    }
    let mut file = File::open(path).map_err(|error| failed("open", path, &error))?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        let path = clean(&path.display().to_string());
        let what = "is neither a regular file nor a directory";
        return Err(Failure::usage(format!("'{path}' {what}")));
    }
    let mut start = Vec::new();
    let read = file.by_ref().take(4).read_to_end(&mut start);
    read.map_err(|error| failed("read", path, &error))?;
    let found = match start.as_slice() {
        b"WARC" | [0x1f, 0x8b, ..] => None,
        _ => list::read(&file, args.folders)?,
    };
    match found {
        Some(found) => list::import(path, &file, found, args, scope).await,
        None if args.dry_run => Err(Failure::usage(
            "--dry-run is for bookmark files and reading lists, and this is a recording",
        )),
        None => recording::import(path, args, scope).await,
    }
}
