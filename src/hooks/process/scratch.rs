//! Temporary directories that are removed on drop.

use crate::process::finding::Finding;
use archivist_plugin::files::remove::remove_tree;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory in TMPDIR that only its owner can access. It is removed on drop.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the directory `archivist-PURPOSE-PID-N`. Never uses an existing directory.
    pub fn new(purpose: &str) -> Result<Scratch, Finding> {
        let parent = std::env::temp_dir();
        for attempt in 0..100 {
            let path = parent.join(format!("archivist-{purpose}-{}-{attempt}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Scratch(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let place = parent.display();
                    return Err(Finding::failed(format!(
                        "failed to create a temporary directory in '{place}': {error}"
                    )));
                }
            }
        }
        Err(Finding::failed(format!(
            "failed to create a temporary directory in '{}': all names are in use",
            parent.display()
        )))
    }

    /// Path of a file in the directory; the directory itself for an empty name.
    pub fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.0.clone() } else { self.0.join(name) }
    }

    /// Writes a file of the directory. Returns its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Finding> {
        let path = self.path(name);
        match std::fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(error) => {
                Err(Finding::failed(format!("failed to write '{}': {error}", path.display())))
            }
        }
    }

    pub fn dir(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.0) {
            eprintln!("failed to remove '{}': {error}, ignoring", self.0.display());
        }
    }
}
