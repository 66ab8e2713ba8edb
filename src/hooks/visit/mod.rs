//! The files through which hooks find the browser and its tab.
//!
//! `CRAWL_DIR/chromium` belongs to the crawl's browser: `browser.json` appears when the browser is
//! ready or has failed; `cdp_url.txt` and the socket that it names exist while the browser runs.
//! `SNAP_DIR/chromium` belongs to the snapshot's tab: `cdp_url.txt`, `target_id.txt`, `url.txt`,
//! `navigation.json`, which appears when the page has loaded or failed, `responses.json` before it,
//! if the server has answered, with the directory `document`, if that was a file that hooks read, and `icon.json`,
//! when the browser has got the page's icon or failed to. Hooks remove the files of a browser or tab
//! that is gone.

pub mod browser;
pub mod identity;
mod navigation;
pub mod recording;
mod tab;

pub use browser::{BrowserInfo, Seed, crawl_directory, publish_socket, socket_in};
pub use navigation::Navigation;
pub use tab::{
    Icon, await_tab, awaited_navigation, directory, document, found_no_page, icon, is_recorded,
    navigation, responses, skip_if_unreachable, unanswered, without_page,
};

use crate::process::files;
use crate::process::finding::Finding;
use archivist_plugin::files::remove::remove_tree;
use archivist_plugin::files::whole::{self, Survives};
use futures_util::StreamExt;
use inotify::{Inotify, WatchMask};
use serde::{Deserialize, Serialize};
use std::fs::{self};
use std::io;
use std::path::{Path, PathBuf};

pub const PLUGIN: &str = "chromium";
/// Name of the browser's socket.
pub const SOCKET: &str = "cdp.sock";
pub const CDP_URL: &str = "cdp_url.txt";
pub const TARGET_ID: &str = "target_id.txt";
pub const URL: &str = "url.txt";
pub const BROWSER: &str = "browser.json";
pub const NAVIGATION: &str = "navigation.json";
pub const RESPONSES: &str = "responses.json";
pub const ICON: &str = "icon.json";
pub const DOCUMENT: &str = "document";

/// Writes a JSON document into the working directory.
pub fn write(name: &str, document: &impl Serialize) -> Result<(), Finding> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Finding::failed(format!("failed to write {name}: {error}")))?;
    files::write(name, format!("{text}\n").as_bytes())
}

/// Writes a JSON document into the directory of another plugin.
pub fn write_in(directory: &Path, name: &str, document: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(document)?;
    whole::replace(
        &directory.join(name),
        format!("{text}\n").as_bytes(),
        files::MODE,
        Survives::Kill,
    )
}

/// Removes files of the working directory that describe a browser or tab which is gone.
pub fn remove_files(names: &[&str]) {
    for name in names {
        match fs::remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                eprintln!("failed to remove {name}: {error}, ignoring");
            }
            _ => {}
        }
    }
}

/// Removes a file or directory of the working directory, if there is one.
pub fn remove_all(name: &str) {
    if let Err(error) = remove_tree(Path::new(name)) {
        eprintln!("failed to remove {name}: {error}, ignoring");
    }
}

/// Makes the directory of the file that is saved in place of a page, and returns the path of the file.
///
/// # Errors
/// If the directory cannot be made.
pub fn new_document(name: &str) -> io::Result<PathBuf> {
    remove_all(DOCUMENT);
    fs::create_dir(DOCUMENT)?;
    Ok(Path::new(DOCUMENT).join(name))
}

/// The file that was saved in place of a page in a directory of the plugin.
pub fn document_in(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory.join(DOCUMENT)).ok()?.flatten();
    // One that begins with a dot is not complete.
    let is_whole = |entry: &fs::DirEntry| !entry.file_name().as_encoded_bytes().starts_with(b".");
    let mut files = entries.filter(is_whole).map(|entry| entry.path());
    files.find(|path| path.symlink_metadata().is_ok_and(|found| found.is_file()))
}

/// Renames a file or directory of the working directory, if there is one.
pub fn rename_file(from: &str, to: &str) {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            eprintln!("failed to rename {from}: {error}, ignoring");
        }
        _ => {}
    }
}

/// Waits until a file exists and parses it as JSON. The caller sets the deadline.
pub async fn wait_for<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, Finding> {
    let fail = |error: &dyn std::fmt::Display| {
        Finding::failed(format!("failed to read '{}': {error}", path.display()))
    };
    appears(path).await.map_err(|error| fail(&error))?;
    let bytes =
        files::read_start(path, 1 << 20).ok_or_else(|| fail(&"not a regular file, or empty"))?;
    serde_json::from_slice(&bytes).map_err(|error| fail(&error))
}

/// Waits until a file or directory exists, whose directory must exist. The caller sets the deadline.
pub async fn appears(path: &Path) -> io::Result<()> {
    changes(path, || path.exists().then_some(())).await
}

/// Waits until a JSON document, whose directory must exist, is as `is_wanted` says. The caller sets
/// the deadline.
pub async fn becomes<T: for<'a> Deserialize<'a>>(
    path: &Path,
    is_wanted: impl Fn(&T) -> bool,
) -> io::Result<T> {
    changes(path, || read(path).filter(&is_wanted)).await
}

/// Reads a JSON document. `None` if it does not exist, or is none.
pub fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    serde_json::from_slice(&files::read_start(path, 1 << 20)?).ok()
}

/// Waits until `look` finds something, after each change in the directory of a file.
async fn changes<T>(path: &Path, look: impl Fn() -> Option<T>) -> io::Result<T> {
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    let directory = directory.unwrap_or(Path::new("."));
    let inotify = Inotify::init()?;
    // Watch first and look afterwards, so that no file is missed in between.
    inotify.watches().add(directory, WatchMask::MOVED_TO | WatchMask::CREATE)?;
    let mut events = inotify.into_event_stream([0; 4096])?;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        events.next().await.ok_or(io::ErrorKind::UnexpectedEof)??;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn file_that_appears_later_is_read() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join(NAVIGATION);
        let wait = wait_for::<Navigation>(&file);
        let write = async {
            fs::write(top.path().join("other"), "x").unwrap();
            tokio::task::yield_now().await;
            let part = top.path().join("part");
            fs::write(&part, "{\"finalUrl\": \"http://b.test/\"}").unwrap();
            fs::rename(part, &file).unwrap();
        };
        let both = async { tokio::join!(wait, write).0 };
        let seen = tokio::time::timeout(Duration::from_secs(5), both).await.unwrap();
        assert_eq!(seen.unwrap().final_url, "http://b.test/");
    }
}
