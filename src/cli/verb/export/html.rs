//! Pages as files that any browser opens, written by a reader.

use super::{ANSWER_MAX_BYTES, name};
use crate::client::exit::{Exit, Failure};
use crate::client::reader_files::{self, Wanted};
use crate::display::{listing, style};
use crate::recording::recordings::Located;
use crate::survey::export::ExportedPage;
use crate::survey::html::{HtmlJob, PageFiles, Written};
use crate::survey::job::ReaderJob;
use archivist_core::model::SnapshotId;
use archivist_core::text::clean;
use archivist_hooks::bodies::of_digest;
use archivist_hooks::source::results::RecordingFile;
use archivist_hooks::standalone::FILES_MAX;
use archivist_plugin::files::beneath::Directory;
use archivist_plugin::files::remove::remove_tree;
use archivist_shared::bus::documents::report::Snapshot;
use nix::unistd::syncfs;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// HTML that the browser saved, in the directory of a snapshot.
const DOM: &str = "dom/output.html";
/// Longest name of a file or directory in bytes, and most names in a path.
const NAME_MAX_BYTES: usize = 150;
const LEVELS_MAX: usize = 3;

/// Writes pages into a directory that is new or empty.
pub(super) fn write(
    path: &Path,
    title: String,
    found: &[(Snapshot, Located)],
    mut missing: Vec<(SnapshotId, String)>,
) -> Result<Exit, Failure> {
    let shown = clean(&path.display().to_string());
    let failed = |error: &dyn std::fmt::Display| {
        Failure::failed(format!("failed to write '{shown}': {error}"))
    };
    let mut folder = Folder::create(path).map_err(|error| failed(&error))?;
    let mut files: Vec<PathBuf> = Vec::new();
    let mut numbers: HashMap<PathBuf, usize> = HashMap::new();
    // Pages that were imported share a file.
    let mut number = |path: &Path| {
        *numbers.entry(path.to_owned()).or_insert_with(|| {
            files.push(path.to_owned());
            files.len() - 1
        })
    };
    let mut pages = Vec::new();
    for (page, located) in found {
        let directory = page.directory.as_deref().map(Path::new).unwrap_or(Path::new(""));
        let dom = directory.join(DOM);
        let own = RecordingFile::of(directory);
        let has_dom = own.is_of_browser && located.path == own.path && dom.is_file();
        let page = ExportedPage::of(page, located, number(&located.path));
        pages.push(PageFiles { page, dom: has_dom.then(|| number(&dom)) });
    }
    let job = ReaderJob::Html(HtmlJob { title, pages });
    let open = |wanted| {
        let path = |number: usize| files.get(number).ok_or(io::Error::from(ErrorKind::NotFound));
        Ok(match wanted {
            Wanted::File(number) => vec![File::open(path(number)?)?.into()],
            Wanted::Body(number, hex) => {
                of_digest(path(number)?, &hex)?.map(OwnedFd::from).into_iter().collect()
            }
            Wanted::New(name) => vec![folder.file(&name)?.into()],
            _ => return Err(ErrorKind::NotFound.into()),
        })
    };
    let mut done = None;
    let read = reader_files::read(&job, ANSWER_MAX_BYTES, open, |part| match part {
        Written::Faults(id, faults) => {
            listing::report(&faults, |fault| format!("{id}: {}, ignoring", clean(fault)));
        }
        Written::Missing(id, reason) => missing.push((id, reason)),
        Written::All { pages, files, absent } => done = Some((pages, files, absent)),
    });
    let done = read.map_err(|failure| failed(&failure.message())).and_then(|()| {
        syncfs(&folder.top).map_err(|error| failed(&error))?;
        done.ok_or_else(|| failed(&"the reader has no result"))
    });
    let (pages, files, absent) = match done {
        Ok(done) => done,
        Err(failure) => {
            folder.remove();
            name(&missing);
            return Err(failure);
        }
    };
    let plural = |count| if count == 1 { "" } else { "s" };
    style::print(&format!(
        "{shown}: {pages} page{}, {files} file{}, {absent} address{} not in the recording{}\n",
        plural(pages),
        plural(files),
        if absent == 1 { "" } else { "es" },
        plural(found.len())
    ))?;
    name(&missing);
    Ok(if missing.is_empty() { Exit::Done } else { Exit::Partly })
}

/// The directory of a copy. A reader of foreign files says which files it wants.
struct Folder {
    top: Directory,
    /// Whether the directory itself is new.
    is_new: bool,
    count: usize,
}

impl Folder {
    fn create(path: &Path) -> io::Result<Folder> {
        let is_new = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error),
        };
        if fs::read_dir(path)?.next().is_some() {
            return Err(io::Error::other("the directory is not empty"));
        }
        Ok(Folder { top: Directory::open(path)?, is_new, count: 0 })
    }

    /// Makes a file, and the directories above it.
    fn file(&mut self, name: &str) -> io::Result<File> {
        let parts: Vec<&str> = name.split('/').collect();
        let fits = |part: &&str| {
            let is_plain =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
            (1..=NAME_MAX_BYTES).contains(&part.len())
                && part.chars().all(is_plain)
                && !part.starts_with('.')
                && !part.ends_with('.')
        };
        // Pages and the list of them, in addition.
        if self.count >= 2 * FILES_MAX || parts.len() > LEVELS_MAX || !parts.iter().all(fits) {
            return Err(ErrorKind::InvalidInput.into());
        }
        let (file, above) = parts.split_last().ok_or(ErrorKind::InvalidInput)?;
        let mut directory = self.top.here()?;
        for name in above {
            match directory.make(name, 0o755) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => directory = directory.enter(name)?,
            }
        }
        self.count += 1;
        directory.create_for_writing(file, 0o644)
    }

    /// Removes what was written, as far as that is possible.
    fn remove(&self) {
        let path = self.top.path();
        for entry in self.top.names().unwrap_or_default() {
            let _ = remove_tree(&path.join(entry));
        }
        if self.is_new {
            let _ = fs::remove_dir(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_makes_files_in_the_directory_alone() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("copy");
        let mut folder = Folder::create(&path).unwrap();
        folder.file("files/0a/x-1.png").unwrap();
        folder.file("index.html").unwrap();
        std::os::unix::fs::symlink(top.path(), path.join("files/0b")).unwrap();
        let long = "x".repeat(151);
        for name in [
            "",
            "/x",
            "../x",
            "x/../y",
            "x//y",
            "a/b/c/d",
            ".x",
            "x.",
            "X",
            "x y",
            "x\0",
            "x:y",
            "é",
            "files/0b/x",
            "index.html",
            "index.html/x",
            &long,
        ] {
            assert!(folder.file(name).is_err(), "{name:?}");
        }
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 1);
        assert!(Folder::create(&path).is_err(), "it is not empty");
        folder.remove();
        assert!(!path.exists() && top.path().exists());
    }
}
