//! Pages that `archivist import` has copied into the archive, before the worker of each takes its own.
//!
//! A crawl of such pages has the setting [`STAGED_SETTING`]: the name of a directory in [`STAGED`] of the
//! archive. Each page has a directory in it, named by [`name_of`] its URL: the file [`RECORD`] is a
//! [`StagedPage`], and each other entry is the directory of a plugin.

use archivist_core::model::{Time, Verdict};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub const STAGED: &str = ".importing";
/// Setting of a crawl that names its directory in [`STAGED`].
pub const STAGED_SETTING: &str = "IMPORT_STAGED";
/// Begin of the names of the hooks of results of ArchiveBox. None of them can run again.
pub const STAGED_HOOK: &str = "archivebox";
/// Name of the hook of a page that another program saved as a file, or in a recording. It cannot run again.
pub const SAVED_HOOK: &str = "saved";
/// The file of a page with its results.
pub const RECORD: &str = "page.json";
/// Longest record in bytes.
pub const RECORD_MAX: u64 = 16 << 20;
pub const RESULTS_MAX: usize = 1000;

/// A page as another program recorded it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedPage {
    /// Results in the order in which they were recorded.
    pub results: Vec<StagedResult>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedResult {
    pub plugin: String,
    /// Name of the hook, which is not that of any installed one.
    pub hook: String,
    pub verdict: Verdict,
    /// A path or a short text.
    pub output: Option<String>,
    /// When the program began to make it.
    pub started_at: Option<Time>,
    /// When the program ended it.
    pub ended_at: Option<Time>,
    /// Whether the files in the directory of the plugin are those of this result.
    pub has_files: bool,
}

pub fn name_of(url: &str) -> String {
    let digest = Sha256::digest(url.as_bytes());
    digest[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether `name` may be that of a directory in [`STAGED`]. Users can set any.
pub fn is_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_and_plain() {
        assert!(is_name(&name_of("http://a.test/")));
        for bad in ["", "..", "a/b", &"g".repeat(32), &"a".repeat(33)] {
            assert!(!is_name(bad), "{bad}");
        }
        assert_ne!(name_of("http://a.test/"), name_of("http://a.test/#x"));
    }
}
