//! Writes units into the directory that systemd passes.

use super::unit_file::{Content, Units};
use archivist_core::text::Problem;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Writes all units below `directory`, which must exist. A failure is returned as a problem and
/// does not stop the rest.
pub fn units(units: &Units, directory: &Path) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, content) in &units.files {
        let path = directory.join(name);
        if let Err(error) = put(&path, content) {
            problems.push(Problem::of(&path, format!("failed to write it: {error}")));
        }
    }
    problems
}

fn put(path: &Path, content: &Content) -> std::io::Result<()> {
    match create(path, content) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            create(path, content)
        }
        result => result,
    }
}

fn create(path: &Path, content: &Content) -> std::io::Result<()> {
    match content {
        Content::Text(text) => fs::File::create_new(path)?.write_all(text.as_bytes()),
        Content::Link(target) => std::os::unix::fs::symlink(target, path),
    }
}
