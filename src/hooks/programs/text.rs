//! `text`: writes the text of the page to `text.txt`, and what it is to `text.json`. The text comes
//! from the files of other hooks, so the site is not visited.

mod archivebox;
mod document;
mod language;
mod prose;
mod source;

use crate::process::files;
use crate::visit;
pub use document::{READERS, Reader};

use crate::process::files::read_start;
use crate::process::finding::Finding;
use crate::process::finding::Outcome;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use archivist_core::model::TextDigest;
use archivist_core::text::{human_size, simhash};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;
use url::Url;

const TEXT: &str = "text.txt";
/// Name of the file that describes it, and most bytes of it that are read.
const DESCRIPTION: &str = "text.json";
const DESCRIPTION_MAX_BYTES: u64 = 64 << 10;
/// Longest text in bytes.
pub const TEXT_MAX_BYTES: usize = 1 << 20;

/// `text.json`: what is known about the text of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Language of the text as in HTML, such as `en`.
    pub language: Option<String>,
    pub title: Option<String>,
    /// Plugin whose file has the text.
    pub source: String,
    pub characters: usize,
    /// Whether the text of the page is longer.
    pub truncated: bool,
    /// SHA-256 of the text in hexadecimal.
    pub sha256: String,
    /// SimHash of its words in hexadecimal.
    pub simhash: String,
}

impl Description {
    /// Reads the description in the directory of a snapshot. `None` if the snapshot has no text.
    pub fn of_snapshot(directory: &Path) -> Option<Description> {
        let path = directory.join("text").join(DESCRIPTION);
        serde_json::from_slice(&read_start(&path, DESCRIPTION_MAX_BYTES)?).ok()
    }

    /// The digests by which the text is compared with others.
    pub fn digest(self) -> TextDigest {
        TextDigest { sha256: self.sha256, simhash: self.simhash }
    }
}

struct PageText {
    /// Lines, without blank ones.
    text: String,
    title: Option<String>,
    /// Language that the document declares.
    declared: Option<String>,
    /// What it lacks.
    missing: Option<String>,
    /// Plugin whose file it is from.
    source: &'static str,
}

/// The text of a page and its description, as files of this plugin have them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextFiles {
    pub text: String,
    pub description: Description,
}

impl TextFiles {
    fn new(page: PageText) -> TextFiles {
        let truncated = page.text.len() > TEXT_MAX_BYTES;
        let mut text = page.text;
        text.truncate(text.floor_char_boundary(TEXT_MAX_BYTES));
        let description = Description {
            language: language::of(&text, page.declared.as_deref()),
            title: page.title,
            source: page.source.to_owned(),
            characters: text.chars().count(),
            truncated,
            sha256: format!("{:x}", Sha256::digest(&text)),
            simhash: format!("{:016x}", simhash(&text)),
        };
        TextFiles { text, description }
    }

    /// The text of a document of this media type, which a plugin has kept. `None` if it has none, such as a
    /// picture.
    pub fn of_document(
        plugin: &'static str,
        document: &[u8],
        media_type: &str,
        address: &Url,
    ) -> Option<TextFiles> {
        source::of_document(plugin, document, media_type, address).map(TextFiles::new)
    }

    /// A text that a plugin has kept as such.
    pub fn of_text(plugin: &'static str, text: &str) -> TextFiles {
        TextFiles::new(source::plain(plugin, text))
    }

    /// The files of the plugin, with their names.
    ///
    /// # Errors
    /// If JSON cannot be written.
    pub fn files(self) -> serde_json::Result<[(&'static str, Vec<u8>); 2]> {
        let json = serde_json::to_string_pretty(&self.description)?;
        Ok([(TEXT, self.text.into_bytes()), (DESCRIPTION, format!("{json}\n").into_bytes())])
    }
}

/// Reads the page from the best file and writes its text.
pub fn run(invocation: &Invocation) -> Outcome {
    let mut runner = ProgramRunner::new(invocation.budget())?;
    let mut page = match source::read(invocation, &mut runner) {
        Ok(page) => page,
        Err(reason) => {
            visit::skip_if_unreachable(invocation)?;
            let none = "no plugin has kept a file with text of the page";
            return Ok(Finding::noresults(reason.as_deref().unwrap_or(none)));
        }
    };
    let missing = page.missing.take();
    let files = TextFiles::new(page);
    let truncated = files.description.truncated;
    let files =
        files.files().map_err(|error| Finding::failed(format!("failed to write JSON: {error}")))?;
    for (name, content) in files {
        files::write(name, &content)?;
    }
    let longest = human_size(TEXT_MAX_BYTES as u64);
    let note = truncated.then(|| format!("only the first {longest} are kept"));
    Ok(Finding::succeeded(TEXT).lacking([note, missing]))
}
