//! `hashes`: writes the SHA-256 of every file and directory of the snapshot to `hashes.json`.
//!
//! The hash of a directory covers its entries sorted by name: for each `file ` or `dir `, the
//! entry's hash in hexadecimal, a blank, the name, and a NUL byte. So one hash covers the whole
//! tree.

use crate::process::files;
use crate::process::finding::Finding;
use crate::process::finding::Outcome;
use crate::process::invocation::Invocation;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

/// Directories that are not part of the archive at any depth.
const IGNORED_DIRECTORIES: [&str; 3] = [".git", "__pycache__", ".earlier"];

/// Hashes the snapshot's directory.
pub fn run(invocation: &Invocation) -> Outcome {
    let mut tree =
        Tree { deadline: Instant::now() + invocation.budget(), ..Tree::new(&invocation.plugin) };
    let root = tree.directory(&invocation.snap_dir, Path::new("")).map_err(|error| match error
        .kind()
    {
        io::ErrorKind::TimedOut => Finding::failed(format!(
            "stopped after {} s: time limit",
            invocation.budget().as_secs()
        )),
        _ => {
            Finding::failed(format!("failed to hash '{}': {error}", invocation.snap_dir.display()))
        }
    })?;
    files::write("hashes.json", format!("{:#}\n", tree.document(&root)).as_bytes())?;
    Ok(Finding::succeeded("hashes.json").with("root_hash", root.hash))
}

struct Hashed {
    hash: String,
    size: u64,
    files: u64,
}

struct Tree {
    own: String,
    deadline: Instant,
    files: Vec<Value>,
    directories: Vec<Value>,
    unreadable: Vec<Value>,
}

impl Tree {
    fn new(own: &str) -> Tree {
        let (files, directories, unreadable) = (Vec::new(), Vec::new(), Vec::new());
        Tree { own: own.to_string(), deadline: Instant::now(), files, directories, unreadable }
    }

    /// Hashes a directory and everything in it. `path` is relative to the snapshot's directory.
    fn directory(&mut self, dir: &Path, path: &Path) -> io::Result<Hashed> {
        let mut entries: Vec<_> = fs::read_dir(dir)?.collect::<io::Result<_>>()?;
        entries.sort_by_key(|entry| entry.file_name());
        let mut hasher = Sha256::new();
        let mut sum = Hashed { hash: String::new(), size: 0, files: 0 };
        for entry in entries {
            let name = entry.file_name();
            let below = path.join(&name);
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if self.leaves_out(&below, kind.is_dir()) || !(kind.is_dir() || kind.is_file()) {
                continue;
            }
            let result = if kind.is_dir() {
                self.directory(&entry.path(), &below)
            } else {
                self.file(&entry.path(), &below)
            };
            let hashed = match result {
                Ok(hashed) => hashed,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.unreadable
                        .push(json!({"path": below.to_string_lossy(), "error": error.to_string()}));
                    continue;
                }
            };
            hasher.update(if kind.is_dir() { "dir " } else { "file " });
            hasher.update(&hashed.hash);
            hasher.update(b" ");
            hasher.update(name.as_bytes());
            hasher.update(b"\0");
            sum.size += hashed.size;
            sum.files += hashed.files;
        }
        sum.hash = format!("{:x}", hasher.finalize());
        if path != Path::new("") {
            self.directories
                .push(json!({"path": path.to_string_lossy(), "hash": sum.hash, "size": sum.size, "files": sum.files}));
        }
        Ok(sum)
    }

    /// Whether to skip a path: this hook's own output, logs that still grow, and what is not part
    /// of the archive.
    fn leaves_out(&self, path: &Path, is_dir: bool) -> bool {
        let depth = path.components().count();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if is_dir {
            return (depth == 1 && name == *self.own)
                || IGNORED_DIRECTORIES.contains(&name.as_ref());
        }
        match depth {
            1 => name == "index.jsonl" || name == "index.html",
            2 => {
                // Logs of earlier attempts have a number at the end.
                let numbered = |(_, number): &(&str, &str)| number.parse::<u32>().is_ok();
                let log =
                    name.rsplit_once('.').filter(numbered).map_or(name.as_ref(), |(log, _)| log);
                let ends = |end: &str| log.ends_with(end);
                log == "stdout.log" || ends(".stdout.log") || ends(".stderr.log")
            }
            _ => false,
        }
    }

    fn file(&mut self, file: &Path, path: &Path) -> io::Result<Hashed> {
        let mut file = File::open(file)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 256 * 1024];
        let mut size = 0;
        loop {
            if Instant::now() > self.deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match file.read(&mut buffer)? {
                0 => break,
                count => {
                    hasher.update(&buffer[..count]);
                    size += count as u64;
                }
            }
        }
        let hash = format!("{:x}", hasher.finalize());
        self.files.push(json!({"path": path.to_string_lossy(), "hash": hash, "size": size}));
        Ok(Hashed { hash, size, files: 1 })
    }

    fn document(&self, root: &Hashed) -> Value {
        json!({
            "root_hash": root.hash,
            "files": self.files,
            "directories": self.directories,
            "unreadable": self.unreadable,
            "metadata": {"algorithm": "sha256", "file_count": root.files, "total_size": root.size},
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn hash(dir: &Path) -> Value {
        let mut tree =
            Tree { deadline: Instant::now() + Duration::from_secs(60), ..Tree::new("hashes") };
        let root = tree.directory(dir, Path::new("")).unwrap();
        tree.document(&root)
    }

    fn put(dir: &Path, path: &str, content: &str) {
        fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
        fs::write(dir.join(path), content).unwrap();
    }

    #[test]
    fn files_and_directories_have_hashes() {
        let snap = tempfile::tempdir().unwrap();
        assert_eq!(hash(snap.path())["root_hash"], EMPTY);
        put(snap.path(), "title/title.txt", "");
        let found = hash(snap.path());
        assert_eq!(found["files"], json!([{"path": "title/title.txt", "hash": EMPTY, "size": 0}]));
        let entry = |kind: &str, hash: &str, name: &str| {
            format!("{:x}", Sha256::digest(format!("{kind} {hash} {name}\0")))
        };
        let title = entry("file", EMPTY, "title.txt");
        assert_eq!(found["directories"][0]["hash"], title.as_str());
        assert_eq!(found["root_hash"], entry("dir", &title, "title").as_str());
    }

    #[test]
    fn files_that_change_later_are_skipped() {
        let snap = tempfile::tempdir().unwrap();
        put(snap.path(), "wget/a.test/index.html", "page");
        let before = hash(snap.path())["root_hash"].clone();
        put(snap.path(), "hashes/hashes.json", "{}");
        put(snap.path(), "wget/stdout.log", "{}");
        put(snap.path(), "wget/stdout.log.1", "{}");
        put(snap.path(), "wget/on_Snapshot__06_wget.stderr.log", "failed");
        put(snap.path(), "index.jsonl", "{}");
        std::os::unix::fs::symlink("/etc/passwd", snap.path().join("wget/link")).unwrap();
        assert_eq!(hash(snap.path())["root_hash"], before);
        put(snap.path(), "wget/a.test/stdout.log", "a page of that name");
        assert_ne!(hash(snap.path())["root_hash"], before);
    }

    #[test]
    fn hashing_stops_at_the_deadline() {
        let snap = tempfile::tempdir().unwrap();
        put(snap.path(), "a/b", "c");
        let mut tree = Tree::new("hashes");
        std::thread::yield_now();
        assert!(
            tree.directory(snap.path(), Path::new(""))
                .is_err_and(|e| e.kind() == io::ErrorKind::TimedOut)
        );
    }
}
