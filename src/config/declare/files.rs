//! Finds and reads declarations. The file of the strongest directory counts; a link to /dev/null or
//! an empty file there masks it. Drop-ins of all directories apply, as in systemd.unit(5).

use crate::declare::declaration::{Declaration, Kind, NAME_ALLOWED};
use crate::fragments;
use crate::ini;
use crate::scope::Scope;
use archivist_core::text::Problem;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Largest file, in bytes.
const SIZE_MAX: u64 = 1 << 20;

/// Declarations in the directories.
#[derive(Default)]
pub struct Found {
    files: Vec<Listed>,
    directories: Vec<PathBuf>,
    /// Files and directories that cannot be read.
    pub problems: Vec<Problem>,
}

/// A declaration that can be read.
struct Listed {
    kind: Kind,
    name: String,
    path: PathBuf,
    /// Name of its drop-in directories, if any exist.
    overlay: Option<String>,
}

/// Lists the declarations of `scope`, by kind and name.
pub fn find(scope: &Scope) -> Found {
    let directories = scope.declaration_dirs();
    let mut listing = Listing::default();
    for directory in &directories {
        listing.read_directory(directory);
    }
    let files = listing.files.into_iter().map(|((kind, name), path)| {
        let overlay = format!("{name}.{}.d", kind.as_str());
        Listed { overlay: listing.drop_ins.contains(&overlay).then_some(overlay), kind, name, path }
    });
    Found { files: files.collect(), directories, problems: listing.problems }
}

impl Found {
    /// Returns the number of declarations.
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// Returns whether any of them is of this kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.files.iter().any(|file| file.kind == kind)
    }

    /// Reads the declarations at these positions.
    pub fn read(&self, places: Range<usize>) -> (Vec<Declaration>, Vec<Problem>) {
        let (mut declarations, mut problems) = (Vec::new(), Vec::new());
        for file in &self.files[places] {
            let overlay = file.overlay.as_deref();
            match declaration(file.kind, &file.name, &file.path, &self.directories, overlay) {
                Ok(Some(declaration)) => declarations.push(declaration),
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
        (declarations, problems)
    }
}

/// Reads all declarations of `scope`.
pub fn read(scope: &Scope) -> (Vec<Declaration>, Vec<Problem>) {
    let mut found = find(scope);
    let (declarations, problems) = found.read(0..found.count());
    found.problems.extend(problems);
    (declarations, found.problems)
}

/// Returns the declaration of this name from all directories; `None` if there is none.
pub fn read_named(scope: &Scope, kind: Kind, name: &str) -> Result<Option<Declaration>, Problem> {
    let directories = scope.declaration_dirs();
    let file = format!("{name}.{}", kind.as_str());
    let overlay = format!("{file}.d");
    let mut paths = directories.iter().rev().map(|dir| dir.join(&file));
    match paths.find(|path| path.symlink_metadata().is_ok()) {
        Some(path) => declaration(kind, name, &path, &directories, Some(&overlay)),
        None => Ok(None),
    }
}

/// Whether no directory has a file for this name: it is not declared any more. False if a directory cannot
/// be read.
pub fn is_removed(scope: &Scope, kind: Kind, name: &str) -> bool {
    let file = format!("{name}.{}", kind.as_str());
    let is_hidden = |directory: &PathBuf| {
        let found = directory.join(&file).symlink_metadata();
        found.is_err_and(|error| {
            !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        })
    };
    matches!(read_named(scope, kind, name), Ok(None))
        && !scope.declaration_dirs().iter().any(is_hidden)
}

/// Returns the declaration in a file anywhere, with the drop-ins next to it.
pub fn read_one(path: &Path) -> Result<Declaration, Problem> {
    let file = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let Some((kind, name)) = Kind::of_file(file) else {
        let what = "the name of the file ends in neither .pool nor .watch; rename it";
        return Err(Problem::of(path, what));
    };
    check_name(kind, name, path)?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let overlay = format!("{name}.{}.d", kind.as_str());
    let found = declaration(kind, name, path, &[directory], Some(&overlay))?;
    found.ok_or_else(|| Problem::of(path, "the file is empty, or a link to /dev/null"))
}

fn check_name(kind: Kind, name: &str, path: &Path) -> Result<(), Problem> {
    if kind.allows(name) {
        Ok(())
    } else {
        let what = format!("the name of a {} is {NAME_ALLOWED}; rename the file", kind.as_str());
        Err(Problem::of(path, what))
    }
}

/// What was found so far; a file of a stronger directory replaces that of a weaker one.
#[derive(Default)]
struct Listing {
    files: BTreeMap<(Kind, String), PathBuf>,
    /// Names of directories with drop-ins.
    drop_ins: BTreeSet<String>,
    problems: Vec<Problem>,
}

impl Listing {
    fn read_directory(&mut self, directory: &Path) {
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => {
                let what = format!("failed to read the directory: {error}");
                self.problems.push(Problem::of(directory, what));
                return;
            }
        };
        for entry in entries.flatten() {
            let file_name = entry.file_name();
            let file = file_name.to_string_lossy();
            let Some((kind, name)) = Kind::of_file(&file) else {
                if file.ends_with(".d") {
                    self.drop_ins.insert(file.into_owned());
                }
                continue;
            };
            match check_name(kind, name, &entry.path()) {
                Ok(()) => {
                    self.files.insert((kind, name.to_owned()), entry.path());
                }
                Err(problem) => self.problems.push(problem),
            }
        }
    }
}

/// Reads a declaration; returns `None` if it is masked.
fn declaration(
    kind: Kind,
    name: &str,
    path: &Path,
    directories: &[PathBuf],
    overlay: Option<&str>,
) -> Result<Option<Declaration>, Problem> {
    let Some(text) = text_of(path)?.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let mut parsed = ini::parse(&text, path);
    if let Some(overlay) = overlay {
        let drop_ins = liboverdrop::scan(directories, overlay, &["conf"], true);
        for path in drop_ins.into_values() {
            let Some(text) = text_of(&path)? else {
                continue;
            };
            let more = ini::parse(&text, &path);
            parsed.entries.extend(more.entries);
            parsed.malformed.extend(more.malformed);
        }
    }
    Ok(Some(Declaration {
        kind,
        name: name.to_owned(),
        path: path.to_owned(),
        entries: parsed.entries,
        malformed: parsed.malformed,
    }))
}

/// Reads a file; returns `None` for /dev/null. Only regular files are read: a named pipe would
/// block the boot.
fn text_of(path: &Path) -> Result<Option<String>, Problem> {
    let failed = |error: std::io::Error| {
        let what = match error.kind() {
            ErrorKind::NotFound => "it is a link to a missing file".to_owned(),
            _ => format!("failed to read it: {error}"),
        };
        Problem::of(path, what)
    };
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY)
        .open(path)
        .map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if about.file_type().is_char_device() {
        return Ok(None);
    }
    if !about.is_file() {
        return Err(Problem::of(path, "it is not a regular file"));
    }
    if about.len() > SIZE_MAX {
        return Err(Problem::of(path, "it is larger than 1M"));
    }
    let bytes = whole(file, about.len()).map_err(failed)?;
    fragments::text(bytes, path).map(Some)
}

/// Reads a whole file of this size, with one call unless it grows.
fn whole(mut file: std::fs::File, size: u64) -> std::io::Result<Vec<u8>> {
    let size = usize::try_from(size).unwrap_or(0);
    let mut bytes = vec![0; size + 1];
    let count = file.read(&mut bytes)?;
    bytes.truncate(count);
    if count != size {
        file.take(SIZE_MAX).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
