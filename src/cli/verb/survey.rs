//! `archivist survey`, hidden: reads files for other verbs in a process without rights. Without `--job`, the file is
//! one that `archivist import` has got.

use crate::client::exit::{Exit, Failure};
use crate::survey::{archivebox, job, list_or_page, recording};
use archivist_core::model::Folders;
use archivist_shared::reader::{COMPARER_MEMORY_MAX_BYTES, READER_MEMORY_MAX_BYTES, confine};
use clap::Args;
use std::fs::File;
use std::io::{stdin, stdout};
use std::os::fd::AsFd;

#[derive(Args)]
pub struct SurveyArgs {
    /// Read bookmark files, reading lists and saved pages
    #[arg(long)]
    lists: bool,
    /// Take any HTML document for a saved page
    #[arg(long)]
    page: bool,
    /// Make tags of folders
    #[arg(long)]
    folders: bool,
    /// Read files of ArchiveBox about snapshots
    #[arg(long)]
    archivebox: bool,
    /// Do a job with the files that the caller gives over standard input
    #[arg(long, exclusive = true)]
    job: bool,
}

pub fn run(args: &SurveyArgs) -> Result<Exit, Failure> {
    let failed =
        |error: std::io::Error| Failure::failed(format!("failed to read the file: {error}"));
    let memory = if args.job { COMPARER_MEMORY_MAX_BYTES } else { READER_MEMORY_MAX_BYTES };
    confine(memory).map_err(failed)?;
    if args.job {
        job::run()?;
    } else if args.archivebox {
        archivebox::read(stdin().lock(), stdout().lock()).map_err(failed)?;
    } else {
        let file = File::from(stdin().as_fd().try_clone_to_owned().map_err(failed)?);
        if args.lists {
            let folders = if args.folders { Folders::AsTags } else { Folders::Ignored };
            list_or_page(file, args.page, folders)?;
        } else {
            recording(file)?;
        }
    }
    Ok(Exit::Done)
}
