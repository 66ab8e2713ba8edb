//! What the index gets of a snapshot: its entry and its files, which are hostile input.

use archivist_core::model::search::SearchEntry;
use archivist_plugin::Directory;
use archivist_plugin::files::beneath::is_file;
use serde::Deserialize;
use std::io::Read;
use std::string::FromUtf8Error;

/// Directory of the plugin that writes the text, and its files.
const PLUGIN: &str = "text";
const TEXT: &str = "text.txt";
const DESCRIPTION: &str = "text.json";
/// Most bytes of the text: those that the plugin writes.
const TEXT_MAX: u64 = 1 << 20;
/// Most bytes of its description.
const DESCRIPTION_MAX: u64 = 64 << 10;
const PLUGINS_MAX: usize = 256;

#[derive(Debug, Default)]
pub struct PageFiles {
    /// The text of the page; `None` if its files are only in the store, or never were.
    pub text: Option<String>,
    /// Title as the page has it.
    pub title: Option<String>,
    pub language: Option<String>,
    /// Names of the plugins that kept files.
    pub plugins: Vec<String>,
}

/// Members of `text.json` that count.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Description {
    language: Option<String>,
    title: Option<String>,
}

#[derive(Debug, Default)]
pub struct PageText {
    /// The text; `None` if its file is only in the store, or never was.
    pub text: Option<String>,
    /// Title as the page has it.
    pub title: Option<String>,
    pub language: Option<String>,
}

/// Reads what there is. No file is followed out of the directory of the snapshot.
pub fn read(entry: &SearchEntry) -> PageFiles {
    let Ok(directory) = Directory::open(&entry.directory) else {
        return PageFiles::default();
    };
    let names = directory.names().unwrap_or_default();
    let names = names.into_iter().filter_map(|name| name.into_string().ok());
    let visible = names.filter(|name| !name.starts_with('.'));
    let is_plugin = |name: &String| {
        let entered = directory.enter(name);
        entered.is_ok_and(|inside| inside.names().is_ok_and(|files| !files.is_empty()))
    };
    let plugins = visible.filter(is_plugin).take(PLUGINS_MAX).collect();
    let PageText { text, title, language } = text_in(&directory);
    PageFiles { text, title, language, plugins }
}

/// Reads the text alone, for an answer.
pub fn text(entry: &SearchEntry) -> PageText {
    match Directory::open(&entry.directory) {
        Ok(directory) => text_in(&directory),
        Err(_) => PageText::default(),
    }
}

fn text_in(directory: &Directory) -> PageText {
    let Ok(own) = directory.enter(PLUGIN) else {
        return PageText::default();
    };
    let description: Description = start_of(&own, DESCRIPTION, DESCRIPTION_MAX)
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let text = start_of(&own, TEXT, TEXT_MAX);
    let decode = |bytes| {
        let lossy = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
        String::from_utf8(bytes).unwrap_or_else(lossy)
    };
    PageText { text: text.map(decode), title: description.title, language: description.language }
}

/// The first bytes of a regular file.
fn start_of(directory: &Directory, name: &str, most: u64) -> Option<Vec<u8>> {
    let found = directory.stat(name).ok()?;
    if !is_file(&found) {
        return None;
    }
    let size = u64::try_from(found.st_size).unwrap_or(0).min(most);
    // One byte more shows the end of the file without another buffer.
    let mut bytes = Vec::with_capacity(size as usize + 1);
    let file = directory.read(name).ok()?;
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
