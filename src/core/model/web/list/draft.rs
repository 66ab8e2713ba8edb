//! An entry that a reader of a format has found.

use super::moment::moment;
use serde_json::json;

/// An entry, whose address was not judged yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DraftEntry {
    /// As it is in the file.
    pub url: String,
    /// On one line; empty without one.
    pub title: String,
    /// Of the entry, and of its folders.
    pub tags: Vec<String>,
    /// As it is in the file; empty without one.
    pub time: String,
}

impl DraftEntry {
    /// Returns the entry as a line for [`parse_line`](super::parse_line).
    pub fn into_line(self) -> String {
        let time = moment(&self.time).unwrap_or(self.time);
        let line = json!({
            "url": self.url, "title": self.title, "tags": self.tags, "bookmarked_at": time,
        });
        line.to_string()
    }
}

/// Splits the tags of an attribute or a column: at commas or bars, or the elements of a list in brackets,
/// as JSON and Python write it.
pub fn split_tags(text: &str) -> Vec<String> {
    let text = text.trim();
    let inside = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(inside) = inside {
        if let Ok(names) = serde_json::from_str(text) {
            return names;
        }
        let quotes = ['\'', '"'];
        let names = inside.split(',').map(|name| name.trim().trim_matches(quotes));
        return names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    }
    let names = text.split([',', '|', ';']).map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
