//! A temporary directory that goes away with its owner.

use crate::process::record::Finding;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A directory under TMPDIR, readable by its owner only, removed on drop.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes the directory `archivist-PURPOSE-PID-N`; one that is there already is never used.
    pub fn new(purpose: &str) -> Result<Scratch, Finding> {
        let parent = std::env::temp_dir();
        for attempt in 0..100 {
            let path = parent.join(format!(
                "archivist-{purpose}-{}-{attempt}",
                std::process::id()
            ));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Scratch(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let place = parent.display();
                    return Err(Finding::failed(format!(
                        "failed to make a temporary directory in {place}: {error}"
                    )));
                }
            }
        }
        Err(Finding::failed(format!(
            "no free temporary name in {}",
            parent.display()
        )))
    }

    /// The directory, or a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() {
            self.0.clone()
        } else {
            self.0.join(name)
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("failed to remove {}: {error}, ignoring", self.0.display());
        }
    }
}
