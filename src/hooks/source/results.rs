//! Results of the hooks that ran before, from their output.

use crate::process::files::read_start;
use crate::process::invocation::Invocation;
use crate::visit;
use crate::visit::recording;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Field of a result: id of the visit of the page from which its files are.
pub const VISIT: &str = "visit";

/// Path of the recording of the browser in the directory of a snapshot.
const OF_BROWSER: &str = "wacz/page.wacz";
/// Path of the recording that wget makes of a page without one.
const OF_WGET: &str = "wget/page.wacz";

/// The recording in the directory of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingFile {
    pub path: PathBuf,
    /// Whether the browser has made it.
    pub is_of_browser: bool,
}

impl RecordingFile {
    /// That of the browser, unless it has no answer of a server and wget has made one.
    pub fn of(snapshot: &Path) -> RecordingFile {
        let (of_browser, of_wget) = (snapshot.join(OF_BROWSER), snapshot.join(OF_WGET));
        let description =
            recording::Description::read(&of_browser.with_file_name("recording.json"));
        let is_empty = description.is_some_and(|description| !description.has_answers());
        if of_wget.is_file() && (is_empty || !of_browser.is_file()) {
            RecordingFile { path: of_wget, is_of_browser: false }
        } else {
            RecordingFile { path: of_browser, is_of_browser: true }
        }
    }
}

/// The HTML that `dom` saved of the visit that chromium has reported last, if it did. That of an
/// earlier visit may be of another state of the page.
pub fn saved_dom(invocation: &Invocation) -> Option<PathBuf> {
    let visit = visit::navigation(invocation)?.target;
    let record = last_success(invocation, "dom")?;
    let is_own = !visit.is_empty() && record[VISIT] == visit.as_str();
    is_own.then(|| invocation.sibling("dom", "output.html"))
}

/// The last result of a plugin that succeeded, in the output of its last run.
pub fn last_success(invocation: &Invocation, plugin: &str) -> Option<Value> {
    let output = read_start(&invocation.sibling(plugin, "stdout.log"), 1 << 20)?;
    let text = String::from_utf8_lossy(&output);
    let mut records =
        text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.find(|record| record["type"] == "ArchiveResult" && record["status"] == "succeeded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recording_of_wget_stands_in_for_an_empty_one() {
        let top = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = top.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let is_of_browser = |expected: bool| {
            let found = RecordingFile::of(top.path());
            let path = top.path().join(if expected { OF_BROWSER } else { OF_WGET });
            assert_eq!(found, RecordingFile { path, is_of_browser: expected });
        };
        is_of_browser(true);
        write(OF_WGET, "");
        is_of_browser(false);
        write(OF_BROWSER, "");
        is_of_browser(true);
        write("wacz/recording.json", r#"{"isComplete": true, "kept": 0}"#);
        is_of_browser(false);
        write("wacz/recording.json", r#"{"isComplete": true, "kept": 9}"#);
        is_of_browser(true);
    }
}
