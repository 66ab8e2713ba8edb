//! Compares the files of a page with the digests that the plugin `hashes` wrote.

use super::finding::{Checked, Finding, Kind};
use super::page::locate;
use archivist_plugin::Directory;
use archivist_plugin::files::digest::sha256;
use serde::Deserialize;
use std::io::{self, ErrorKind, Read};

pub const PLUGIN: &str = "hashes";
const FILE: &str = "hashes/hashes.json";
/// Longest list of digests that is read, in bytes: a page has at most some 100,000 files.
const LIST_MAX: u64 = 64 << 20;

#[derive(Deserialize)]
struct Hashes {
    files: Vec<Hashed>,
}

#[derive(Deserialize)]
struct Hashed {
    path: String,
    /// SHA-256 in hexadecimal.
    hash: String,
}

/// Returns the files whose content is not the one that was hashed. A file that is missing is that of a
/// result, and found there, or no result has it. `is_covered` says whether the files of a plugin were
/// written before they were hashed.
///
/// # Errors
/// If this user has no permission to read the files.
pub fn compare(
    directory: &Directory,
    is_covered: impl Fn(&str) -> bool,
    checked: &mut Checked,
) -> io::Result<Vec<Finding>> {
    let list = directory.path().join(FILE);
    let unreadable = |error: &dyn std::fmt::Display| {
        let what = format!("its digests cannot be read: {error}");
        vec![Finding::new(Kind::Digest, list.to_string_lossy(), what)]
    };
    let hashes: Hashes = match read(directory) {
        Ok(text) => match serde_json::from_slice(&text) {
            Ok(hashes) => hashes,
            Err(error) => return Ok(unreadable(&error)),
        },
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
        // Its result has the file, which is missing then.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Ok(unreadable(&error)),
    };
    let mut findings = Vec::new();
    for Hashed { path, hash } in hashes.files {
        let Some((plugin, _)) = path.split_once('/') else {
            // Files of the worker.
            continue;
        };
        if !is_covered(plugin) {
            continue;
        }
        let opened = locate(directory, &path).and_then(|(parent, name)| parent.read(name));
        let digest = opened.and_then(sha256);
        let what = match digest {
            Ok((digest, length)) if digest == hash => {
                checked.digests += 1;
                checked.bytes += length;
                continue;
            }
            Ok((digest, length)) => {
                checked.bytes += length;
                format!("its SHA-256 is {digest}, {FILE} says {hash}")
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => format!("it cannot be read: {error}"),
        };
        checked.digests += 1;
        let path = directory.path().join(&path);
        findings.push(Finding::new(Kind::Digest, path.to_string_lossy(), what));
    }
    Ok(findings)
}

fn read(directory: &Directory) -> io::Result<Vec<u8>> {
    let (parent, name) = locate(directory, FILE)?;
    let mut text = Vec::new();
    parent.read(name)?.take(LIST_MAX).read_to_end(&mut text)?;
    Ok(text)
}
