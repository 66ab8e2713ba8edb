//! The lists of the snapshots of a URL: their names, and the links from a snapshot to the next older and
//! newer one.
//!
//! A copy in the store has the page about a snapshot, so that page never changes after the snapshot is
//! sealed. The links do, and are a file outside of the directory of the snapshot, which its page shows as
//! an `object`. A URL with a single snapshot has no such file, and a browser shows nothing then.

use super::frame::strip;
use super::list::ListEntry;
use super::{href, text};
use archivist_core::model::web::surt::page_key;
use archivist_core::model::{SnapshotId, TextDigest, Time};
use archivist_plugin::Directory;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;

/// Directory of the lists, below that of the archive, and of their chunks, below that of all chunks.
pub const URLS: &str = "urls";
/// Names in the path of a list below the directory of the archive.
const LEVELS: usize = 3;
/// Digits of the SHA-256 of the key of a URL in the name of its list.
const DIGITS: usize = 40;
/// Most bytes of the description of a text that are read.
const DESCRIPTION_MAX_BYTES: u64 = 64 << 10;

/// What the list of a URL has of a snapshot, in addition to other lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedVersion {
    /// When it was visited, as in `archivist versions`. The list has the order of these times.
    pub at: Time,
    pub http_status: Option<u16>,
    /// Its text. `None` if it has none, or the store alone has it.
    pub text: Option<TextDigest>,
}

/// Name of the list of a URL. Equal names are those of versions of one page.
pub fn list_of(url: &str) -> String {
    list_of_key(&page_key(url))
}

/// Name of the list of the key of a URL. A URL may have any characters and any length, so the name is a
/// digest.
pub fn list_of_key(key: &str) -> String {
    let digest = format!("{:x}", Sha256::digest(key));
    format!("u{}", &digest[..DIGITS])
}

/// Whether the name of a list is that of a URL.
pub fn is_list_of_url(name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.strip_prefix('u')
        .is_some_and(|digits| digits.len() == DIGITS && digits.bytes().all(is_digit))
}

/// Directory of a list, such as `urls/3f/u3f…`, so that no directory has a million entries.
pub fn directory_of(name: &str) -> String {
    let shelf = name.get(1..3).unwrap_or_default();
    format!("{URLS}/{shelf}/{name}")
}

/// Name of the file with the links of a snapshot, in the directory of its list.
pub fn links_of(id: SnapshotId) -> String {
    format!("{id}.html")
}

/// Returns the digest of the text of a snapshot. Hooks can write to its directory: no link is followed.
pub fn text_of(directory: &Path) -> Option<TextDigest> {
    let own = Directory::open(directory).ok()?.enter("text").ok()?;
    let mut json = Vec::new();
    let file = own.read("text.json").ok()?;
    file.take(DESCRIPTION_MAX_BYTES).read_to_end(&mut json).ok()?;
    serde_json::from_slice::<TextDigest>(&json).ok()?.checked()
}

/// Renders the links of a snapshot to the next older and newer one, and to the list.
pub fn links(id: SnapshotId, older: Option<&ListEntry>, newer: Option<&ListEntry>) -> String {
    let link =
        |entry: &ListEntry| href::relative(LEVELS, &format!("{}/index.html", entry.directory));
    let when = |entry: &ListEntry| -> Markup {
        html! { span { (text::stamp(entry.date())) } }
    };
    let body = html! {
        nav {
            @if let Some(older) = older {
                a href=[link(older)] target="_top" rel="prev" { "← Older " (when(older)) }
            }
            a href={ "./index.html#" (id) } target="_top" rel="up" { "All snapshots" }
            @if let Some(newer) = newer {
                a href=[link(newer)] target="_top" rel="next" { "Newer " (when(newer)) " →" }
            }
        }
    };
    strip("Older and newer snapshots", body)
}
