//! `archivist share-bodies`, hidden: the worker of a page runs it when the recording is complete. Bodies of
//! the recording become files of their own, which the recordings of other visits share. Other hooks of the
//! page may run: they may read the recording, and what they change in its directory is followed nowhere and
//! believed by no other recording.
//!
//! Each body has a name in the directory of each recording that needs it, `wacz/bodies/SHA256.warc.gz`,
//! and one in the archive, where the next recording finds it: hard links. The file system counts them, so
//! no recording loses a body when another one is deleted, copied to the store or damaged by hand. The
//! names in the directory of the page are durable before the recording that needs them replaces the one
//! that does not.

use crate::client::exit::{Exit, Failure};
use archivist_core::text::{clean, human_size};
use archivist_hooks::bodies;
use archivist_plugin::Directory;
use archivist_plugin::files::whole::{Survives, Whole};
use archivist_warc::wacz::{Shared, Shelf, Wacz, share};
use clap::Args;
use nix::libc::{S_IFDIR, S_IFMT};
use nix::unistd::geteuid;
use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Directory and name of the recording of a page.
const PLUGIN: &str = "wacz";
const RECORDING: &str = "page.wacz";
/// Name of a recording that is not complete.
const PART: &str = ".page.wacz.part";
/// Begin of the names of files that are not complete.
const NEW: &str = ".new-";
/// Mode of a directory that only its owner enters: hooks find no body of another page.
const POOL_MODE: u32 = 0o700;
/// Hooks may read the bodies of their page, and write to none of them.
const BODIES_MODE: u32 = 0o750;
const BODY_MODE: u32 = 0o440;
/// As hooks write recordings with the umask of their units.
const RECORDING_MODE: u32 = 0o660;

#[derive(Args)]
pub struct ShareBodiesArgs {
    /// The directory of bodies in the archive
    pool: PathBuf,
    /// The directory of a snapshot
    snapshot: PathBuf,
}

pub fn run(args: &ShareBodiesArgs) -> Result<Exit, Failure> {
    let failed = |error: String| {
        let shown = clean(&args.snapshot.display().to_string());
        Failure::failed(format!(
            "failed to share bodies of '{shown}/{PLUGIN}/{RECORDING}': {}",
            clean(&error)
        ))
    };
    let recordings = match Directory::open(&args.snapshot).and_then(|own| own.enter(PLUGIN)) {
        Ok(recordings) => recordings,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Exit::Done),
        Err(error) => return Err(failed(error.to_string())),
    };
    let done = share_of(&recordings, &args.pool);
    let tidied = tidy(&recordings);
    let shared = done.map_err(failed)?;
    tidied.map_err(|error| failed(error.to_string()))?;
    if let Some(shared) = shared {
        // For the journal.
        eprintln!(
            "shared {} bodies of the recording, {} of them with earlier ones: {} instead of {}",
            shared.bodies,
            shared.known,
            human_size(shared.after),
            human_size(shared.before),
        );
    }
    Ok(Exit::Done)
}

/// Replaces the recording by one whose bodies are next to it. `None` if there is nothing to share.
fn share_of(recordings: &Directory, pool: &Path) -> Result<Option<Shared>, String> {
    let text = |error: io::Error| error.to_string();
    let file = match recordings.read(RECORDING) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(text(error)),
    };
    let mut shelf = Links { pool: pool.to_owned(), bodies: make_bodies(recordings).map_err(text)? };
    let whole = Whole::within(recordings, RECORDING, RECORDING_MODE).map_err(text)?;
    let written = whole.file().try_clone().map_err(text)?;
    let shared = share(file, written, &mut shelf).map_err(|error| error.to_string())?;
    if shared.is_some() {
        shelf.bodies.sync().map_err(text)?;
        whole.place(Survives::PowerCut).map_err(text)?;
    }
    Ok(shared)
}

/// Opens the directory of the bodies of a recording. What a hook put there is moved away.
fn make_bodies(recordings: &Directory) -> io::Result<Directory> {
    match recordings.make(bodies::DIRECTORY, BODIES_MODE) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let found = recordings.stat(bodies::DIRECTORY)?;
            let is_own = found.st_mode & S_IFMT == S_IFDIR && found.st_uid == geteuid().as_raw();
            if !is_own {
                recordings.clear(bodies::DIRECTORY)?;
                recordings.make(bodies::DIRECTORY, BODIES_MODE)?;
            }
        }
        made => made?,
    }
    recordings.enter(bodies::DIRECTORY)
}

/// Removes what a killed process left, and bodies that the recording does not need.
fn tidy(recordings: &Directory) -> io::Result<()> {
    remove(recordings, PART)?;
    let own = match recordings.enter(bodies::DIRECTORY) {
        Ok(own) => own,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let needed = match recordings.read(RECORDING).map(Wacz::open) {
        Ok(Ok(recording)) => recording.shared_bodies(),
        // A recording that cannot be read may need all of them.
        Ok(Err(_)) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let names = own.names()?;
    let is_needed = |name: &&std::ffi::OsString| {
        needed.iter().any(|hex| name.to_str() == Some(&bodies::name(hex)))
    };
    for name in names.iter().filter(|name| !is_needed(name)) {
        remove(&own, name)?;
    }
    if needed.is_empty() {
        // It stays if a hook put a directory there.
        let _ = recordings.remove_empty(bodies::DIRECTORY);
    }
    Ok(())
}

fn remove(directory: &Directory, name: impl AsRef<std::ffi::OsStr>) -> io::Result<()> {
    match directory.unlink(name) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Bodies as hard links in the directory of a recording and in the archive.
struct Links {
    /// Directory of the archive's bodies.
    pool: PathBuf,
    bodies: Directory,
}

impl Links {
    /// The directory of the archive in which a body is: one for the first two digits.
    fn shelf(&self, hex: &str) -> PathBuf {
        self.pool.join(&hex[..2])
    }

    /// Gives a file of the archive its name in the directory of the recording, in place of another one.
    fn take(&self, shelf: &Directory, from: &str, hex: &str) -> io::Result<()> {
        let (new, name) = (format!("{NEW}{hex}"), bodies::name(hex));
        remove(&self.bodies, &new)?;
        shelf.link_into(from, &self.bodies, &new)?;
        self.bodies.rename(&new, &name)?;
        // Nothing is renamed if both are one file already (rename(2)).
        remove(&self.bodies, &new)
    }
}

impl Shelf for Links {
    fn find(&mut self, hex: &str) -> io::Result<Option<File>> {
        let name = bodies::name(hex);
        let shelf = Directory::open(&self.shelf(hex));
        let linked = shelf.and_then(|shelf| self.take(&shelf, &name, hex));
        match linked {
            Ok(()) => self.bodies.read(name).map(Some),
            // The file has as many names as the file system allows, or there is none.
            Err(error)
                if [ErrorKind::NotFound, ErrorKind::TooManyLinks].contains(&error.kind()) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn keep(&mut self, hex: &str, record: &mut dyn Read) -> io::Result<File> {
        let path = self.shelf(hex);
        DirBuilder::new().recursive(true).mode(POOL_MODE).create(&path)?;
        let shelf = Directory::open(&path)?;
        let (new, name) = (format!("{NEW}{}-{hex}", std::process::id()), bodies::name(hex));
        remove(&shelf, &new)?;
        let mut file = shelf.create_for_writing(&new, BODY_MODE)?;
        let kept = io::copy(record, &mut file)
            // Whatever the umask is: hooks read it, and write to no body.
            .and_then(|_| file.set_permissions(Permissions::from_mode(BODY_MODE)))
            .and_then(|()| file.sync_data())
            // Its page has the body before others find it.
            .and_then(|()| self.take(&shelf, &new, hex))
            .and_then(|()| shelf.rename(&new, &name));
        if kept.is_err() {
            remove(&shelf, &new)?;
        }
        kept?;
        self.bodies.read(name)
    }
}

#[cfg(test)]
mod tests;
