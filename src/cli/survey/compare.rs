//! What two snapshots of a page are compared by, for the command.

use super::job::ReaderJob;
use super::texts::LineChange;
use crate::client::exit::Failure;
use crate::client::reader::reopened;
use crate::client::reader_files::{self, Wanted};
use archivist_plugin::Directory;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Bytes that the reader of two texts may print.
const CHANGES_MAX_BYTES: u64 = 64 << 20;

/// What is compared, which hooks have made of a page of the web.
#[derive(Clone, Copy)]
pub enum Part {
    Text,
    Picture,
}

impl Part {
    /// Plugin and name of the file.
    pub fn place(self) -> (&'static str, &'static str) {
        match self {
            Part::Text => ("text", "text.txt"),
            Part::Picture => ("screenshot", "screenshot.png"),
        }
    }

    /// Opens the file of a snapshot.
    ///
    /// # Errors
    /// If there is none, or this user may not read it.
    pub fn open(self, directory: &Path) -> io::Result<File> {
        let (plugin, name) = self.place();
        Directory::open(directory)?.enter(plugin)?.read(name)
    }
}

/// Opens the files of a job: two to read, and one to write.
pub fn file_of<'a>(
    files: &'a [File; 2],
    output: Option<&'a File>,
) -> impl FnMut(Wanted) -> io::Result<Vec<OwnedFd>> + Send + 'a {
    move |wanted| {
        let file = match wanted {
            Wanted::File(number @ 0..2) => reopened(&files[number])?,
            Wanted::Output if output.is_some() => output.ok_or(ErrorKind::NotFound)?.try_clone()?,
            _ => return Err(ErrorKind::NotFound.into()),
        };
        Ok(vec![file.into()])
    }
}

/// Lets a reader compare two texts.
///
/// # Errors
/// If the reader fails.
pub fn compare_texts(files: &[File; 2]) -> Result<Vec<LineChange>, Failure> {
    let mut changes = Vec::new();
    reader_files::read(&ReaderJob::Texts, CHANGES_MAX_BYTES, file_of(files, None), |part| {
        changes.push(part)
    })?;
    Ok(changes)
}
