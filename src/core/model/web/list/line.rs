//! One line of a list: an address, an address in the marks that people write around one, or a JSON
//! object.
//!
//! The URL standard accepts blanks and much else in an address, so `https://a.test/x | Title` would
//! be the address of another page. A line is therefore either an address, or one of few forms that
//! have a single meaning, or it is refused.

use super::object;
use super::spot::{Spotted, spot};
use crate::model::cut;
use crate::model::web::url::{PageUrl, UrlError};
use crate::text::trim_blanks;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineEntry {
    pub url: PageUrl,
    /// Number of links from a page that the user added, which has depth 0.
    pub depth: u32,
    pub title: Option<String>,
    /// Time as in the list of bookmarks.
    pub bookmarked_at: Option<String>,
    /// Tags in the list, in its order.
    pub tags: Vec<String>,
    /// Settings of the page alone.
    pub config: BTreeMap<String, String>,
}

/// Parses one line of a list: an address, also as `<URL>`, `"URL"`, `[TITLE](URL)`, `- URL`,
/// `1. URL`, `URL # comment`, `URL | TITLE`, or with a tab or two blanks before a title; or a JSON
/// object. `None` for blank lines and those that begin with `#`.
pub fn parse_line(line: &[u8]) -> Option<Result<LineEntry, UrlError>> {
    let decoded = String::from_utf8_lossy(line);
    let text = trim_blanks(&decoded);
    if text.is_empty() || text.starts_with('#') {
        return None;
    }
    if text.starts_with('{') {
        return Some(object::parse(text));
    }
    Some(spot(text).and_then(Spotted::into_entry))
}

impl Spotted<'_> {
    fn into_entry(self) -> Result<LineEntry, UrlError> {
        let title = self.title.map(trim_blanks).filter(|text| !text.is_empty());
        Ok(LineEntry {
            url: PageUrl::parse(self.address)?,
            depth: 0,
            title: title.map(|title| cut(title.to_owned())),
            bookmarked_at: None,
            tags: Vec::new(),
            config: BTreeMap::new(),
        })
    }
}

#[cfg(test)]
mod tests;
