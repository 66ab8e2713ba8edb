//! Lists the files of a hook's output directory with type and size.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use archivist_core::model::Time;
use serde::{Deserialize, Serialize};

use crate::files::beneath::Directory;
use crate::files::walk::{DEPTH_MAX, EntryKind, PATH_BYTES_MAX, WalkBounds, walk};

/// An output file, named relative to the output directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OutputFile {
    /// Relative path, with `/` between its parts.
    pub path: String,
    /// Lower case, without the dot; empty if there is none.
    pub extension: String,
    /// Guessed from the name; empty if unknown.
    pub mimetype: String,
    /// In bytes.
    pub size: u64,
}

pub const FILES_MAX: usize = 20_000;
/// Largest number of visited directory entries, so that empty directories cannot keep the runner
/// busy.
const ENTRIES_MAX: usize = 200_000;
/// Bytes of the name of a plugin's directory, which is below that of the page.
const PLUGIN_BYTES: usize = 256;
/// Bounds for directories of plugins that hooks may still change.
pub(crate) const BOUNDS: WalkBounds = WalkBounds {
    entries: ENTRIES_MAX,
    depth: DEPTH_MAX - 1,
    path: PATH_BYTES_MAX - PLUGIN_BYTES,
    unlock: false,
};

/// Lists the regular files below `dir`, sorted by path, at most [`FILES_MAX`]. Skips files of the
/// runner (logs, pid files, `.hooks/`) and relative paths for which `exclude` returns true.
///
/// Symbolic links are neither listed nor followed, because a hook may change the directory at the
/// same time. Unreadable subdirectories are skipped.
///
/// # Errors
/// If `dir` itself cannot be read.
pub fn scan(dir: &Directory, exclude: impl Fn(&str) -> bool) -> io::Result<Vec<OutputFile>> {
    let mut files = Vec::new();
    walk(dir, BOUNDS, &mut |entry| {
        if entry.kind == EntryKind::File && files.len() < FILES_MAX {
            let path = entry.path();
            if !is_bookkeeping(&path) && !exclude(&path) {
                files.push(describe(&path, entry.size()));
            }
        }
    })?;
    files.sort();
    Ok(files)
}

/// Size and modification time of a directory's files at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing(BTreeMap<String, (u64, i128)>);

impl Listing {
    /// Reads the files that [`scan`] lists. An unreadable directory counts as empty.
    pub fn of(dir: &Directory) -> Listing {
        let mut files = BTreeMap::new();
        let _ = walk(dir, BOUNDS, &mut |entry| {
            if entry.kind == EntryKind::File && files.len() < FILES_MAX {
                let path = entry.path();
                if !is_bookkeeping(&path) {
                    files.insert(path, (entry.size(), entry.modified()));
                }
            }
        });
        Listing(files)
    }

    /// Whether a file is new or was changed since `before`.
    pub fn has_news_since(&self, before: &Listing) -> bool {
        let mut files = self.0.iter();
        files.any(|(path, looks)| before.0.get(path) != Some(looks))
    }

    /// Size of a file in bytes; `None` if there was no such file.
    pub(crate) fn size(&self, path: &str) -> Option<u64> {
        self.0.get(path).map(|(size, _)| *size)
    }
}

/// Time of the last change of a file that [`scan`] lists; None without files. Hooks cannot set it.
pub fn last_change(dir: &Directory) -> Option<Time> {
    let mut last = None;
    let _ = walk(dir, BOUNDS, &mut |entry| {
        if entry.kind == EntryKind::File && !is_bookkeeping(&entry.path()) {
            last = last.max(Some(Time(entry.changed())));
        }
    });
    last
}

/// The main file of the output: the first HTML file, else the first file.
pub fn main_file(files: &[OutputFile]) -> Option<&OutputFile> {
    let html = |file: &&OutputFile| ["html", "htm"].contains(&file.extension.as_str());
    files.iter().find(html).or(files.first())
}

/// Name of a log without the number of its attempt, as in `stdout.log.1`.
fn unnumbered(name: &str) -> &str {
    let is_log =
        |(log, number): &(&str, &str)| log.ends_with(".log") && number.parse::<u32>().is_ok();
    let numbered = name.rsplit_once('.').filter(is_log);
    numbered.map_or(name, |(log, _)| log)
}

/// Whether a file belongs to the runner or to the machinery of hooks. Only the top level has such
/// files: a page's `build.log` or `install.sh` in a subdirectory is output.
pub(crate) fn is_bookkeeping(path: &str) -> bool {
    const NAMES: [&str; 5] = ["stdout.log", "stderr.log", "cmd.sh", ".heartbeat.json", ".hooks"];
    let (top, below) = match path.split_once('/') {
        Some((top, _)) => (top, true),
        None => (path, false),
    };
    if below {
        return top == ".hooks" || top == ".abx-dl";
    }
    let top = unnumbered(top);
    let of_hook = top.starts_with("on_") && (top.ends_with(".log") || top.ends_with(".sh"));
    let lock = top.starts_with('.') && top.ends_with(".lock");
    let endings = [".stdout.log", ".stderr.log", ".pid"];
    NAMES.contains(&top) || of_hook || lock || endings.iter().any(|end| top.ends_with(end))
}

fn describe(path: &str, size: u64) -> OutputFile {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = Path::new(name).extension().map(|end| end.to_string_lossy().to_lowercase());
    OutputFile {
        path: path.to_owned(),
        mimetype: mimetype(name),
        extension: extension.unwrap_or_default(),
        size,
    }
}

/// MIME type by name. A compressed file has the type of its content, if known.
fn mimetype(name: &str) -> String {
    let name = name.to_lowercase();
    let guess = |name: &str| match Path::new(name).extension()?.to_str()? {
        "warc" => Some("application/warc".to_owned()),
        "jsonl" => Some("application/x-ndjson".to_owned()),
        "wacz" => Some("application/wacz".to_owned()),
        _ => mime_guess::from_path(name).first_raw().map(str::to_owned),
    };
    match name.strip_suffix(".gz") {
        Some(inner) => guess(inner).unwrap_or_else(|| "application/gzip".to_owned()),
        None => guess(&name).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn listed(dir: &Path, exclude: impl Fn(&str) -> bool) -> Vec<OutputFile> {
        scan(&Directory::open(dir).unwrap(), exclude).unwrap()
    }

    fn put(dir: &Path, path: &str, size: usize) {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![b'x'; size]).unwrap();
    }

    fn paths(files: &[OutputFile]) -> Vec<&str> {
        files.iter().map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn last_change_is_that_of_output_alone() {
        let dir = tempfile::tempdir().unwrap();
        let last = || last_change(&Directory::open(dir.path()).unwrap());
        put(dir.path(), "stdout.log", 1);
        assert_eq!(last(), None);
        put(dir.path(), "sub/index.html", 1);
        let first = last().unwrap();
        let file = fs::File::open(dir.path().join("sub/index.html")).unwrap();
        let long_ago = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
        file.set_times(long_ago).unwrap();
        assert!(last().unwrap() >= first, "a time that the hook set");
    }

    #[test]
    fn output_files_are_listed_without_runner_files() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "index.html",
            "warc/1.warc.gz",
            "host+80/build.log",
            "install.sh",
            "Cargo.lock",
            "host+80/stdout.log",
            "build.log.1",
        ] {
            put(dir.path(), path, 3);
        }
        for path in [
            "stdout.log",
            "stderr.log",
            "hook.pid",
            "cmd.sh",
            ".hooks/on_Snapshot__06_wget/stdout.log",
            "on_Snapshot__06_wget.finite.bg.17.sh",
            "on_Snapshot__06_wget.finite.bg.17.stdout.log",
            "on_Snapshot__06_wget.finite.bg.stdout.log.2",
            "stdout.log.1",
            ".launch.lock",
        ] {
            put(dir.path(), path, 3);
        }
        let files = listed(dir.path(), |_| false);
        let wanted = [
            "Cargo.lock",
            "build.log.1",
            "host+80/build.log",
            "host+80/stdout.log",
            "index.html",
            "install.sh",
            "warc/1.warc.gz",
        ];
        assert_eq!(paths(&files), wanted);
        assert_eq!(main_file(&files).unwrap().path, "index.html");
        assert_eq!(files.iter().map(|file| file.size).sum::<u64>(), 21);
        let files = listed(dir.path(), |path| path.starts_with("host"));
        assert_eq!(files.len(), 5);
    }

    #[test]
    fn mime_types_are_guessed_from_names() {
        for (name, extension, mimetype) in [
            ("a/output.PDF", "pdf", "application/pdf"),
            ("1700.warc.gz", "gz", "application/warc"),
            ("1700.warc", "warc", "application/warc"),
            ("x.gz", "gz", "application/gzip"),
            ("page.html.gz", "gz", "text/html"),
            ("screenshot.png", "png", "image/png"),
            ("favicon.ico", "ico", "image/x-icon"),
            ("urls.jsonl", "jsonl", "application/x-ndjson"),
            ("noextension", "", ""),
            (".hidden", "", ""),
            ("x.unheardof", "unheardof", ""),
        ] {
            let file = describe(name, 1);
            assert_eq!(
                (file.extension.as_str(), file.mimetype.as_str()),
                (extension, mimetype),
                "{name}"
            );
        }
    }

    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "sub/real.txt", 1);
        symlink("/etc", dir.path().join("etc")).unwrap();
        symlink("/etc/passwd", dir.path().join("passwd")).unwrap();
        symlink("..", dir.path().join("sub/up")).unwrap();
        symlink("real.txt", dir.path().join("sub/alias.txt")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(paths(&listed(dir.path(), |_| false)), ["sub/real.txt"]);
    }

    #[test]
    fn depth_and_number_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), &format!("{}deep.txt", "d/".repeat(DEPTH_MAX + 5)), 1);
        put(dir.path(), &format!("{}fine.txt", "e/".repeat(DEPTH_MAX - 1)), 1);
        assert_eq!(listed(dir.path(), |_| false).len(), 1);
    }
}
