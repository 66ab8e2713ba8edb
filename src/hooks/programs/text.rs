//! `text`: writes the text of the page to `text.txt`, and what it is to `text.json`. The text comes
//! from the files of other hooks, so the site is not visited.

mod archivebox;
mod language;
mod prose;
mod source;

use crate::page::{self, read_start};
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::{Outcome, chromium};
use archivist_core::model::TextDigest;
use archivist_core::text::{human_size, simhash};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;

/// Name of the file with the text.
const TEXT: &str = "text.txt";
/// Name of the file that describes it, and most bytes of it that are read.
const DESCRIPTION: &str = "text.json";
const DESCRIPTION_MAX_BYTES: u64 = 64 << 10;
/// Longest text in bytes.
const TEXT_MAX_BYTES: usize = 1 << 20;

/// `text.json`: what is known about the text of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Language of the text as in HTML, such as `en`.
    pub language: Option<String>,
    /// Title of the page.
    pub title: Option<String>,
    /// Plugin whose file has the text.
    pub source: String,
    /// Characters of the text.
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

/// Reads the text in the directory of a snapshot. `None` if the snapshot has none.
pub fn of_snapshot(directory: &Path) -> Option<String> {
    let bytes = read_start(&directory.join("text").join(TEXT), TEXT_MAX_BYTES as u64)?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The text of a page.
struct PageText {
    /// Lines, without blank ones.
    text: String,
    title: Option<String>,
    /// Language that the document declares.
    declared: Option<String>,
    /// Plugin whose file it is from.
    source: &'static str,
}

/// Reads the page from the best file and writes its text.
pub fn run(invocation: &Invocation) -> Outcome {
    let mut runner = ProgramRunner::new(invocation.budget())?;
    let Some(page) = source::read(invocation, &mut runner) else {
        chromium::skip_if_unreachable(invocation)?;
        let none = "no plugin has kept a file with text of the page";
        return Ok(Finding::noresults(none));
    };
    let truncated = page.text.len() > TEXT_MAX_BYTES;
    let text = &page.text[..page.text.floor_char_boundary(TEXT_MAX_BYTES)];
    let description = Description {
        language: language::of(text, page.declared.as_deref()),
        title: page.title,
        source: page.source.to_owned(),
        characters: text.chars().count(),
        truncated,
        sha256: format!("{:x}", Sha256::digest(text)),
        simhash: format!("{:016x}", simhash(text)),
    };
    let json = serde_json::to_string_pretty(&description)
        .map_err(|error| Finding::failed(format!("failed to write JSON: {error}")))?;
    page::write(TEXT, text.as_bytes())?;
    page::write(DESCRIPTION, format!("{json}\n").as_bytes())?;
    let longest = human_size(TEXT_MAX_BYTES as u64);
    let note = truncated.then(|| format!("only the first {longest} are kept"));
    Ok(Finding::succeeded(TEXT).with_note(note))
}
