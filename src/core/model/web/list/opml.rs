//! OPML 2.0: outlines with the feeds of a reader and their pages.

use super::bookmarks::{attributes, is_tag};
use super::draft::DraftEntry;
use super::{Folders, Place};

/// Folders above an entry that are read.
const DEPTH_MAX: usize = 16;

/// Returns the pages of the outlines: that of the feed, else the feed itself.
pub fn entries(text: &str, folders: Folders) -> Vec<(Place, String)> {
    let mut entries = Vec::new();
    let mut above: Vec<String> = Vec::new();
    let (mut at, mut line, mut counted) = (0, 1, 0);
    while let Some(begin) = text[at..].find('<').map(|found| at + found) {
        let rest = &text[begin..];
        if rest.starts_with("<!--") {
            at = rest.find("-->").map_or(text.len(), |end| begin + end);
            continue;
        }
        if is_tag(rest, "/outline") {
            above.pop();
        }
        if !is_tag(rest, "outline") {
            at = begin + 1;
            continue;
        }
        const NAME: usize = "<outline".len();
        let (found, length) = attributes(&rest[NAME..]);
        at = begin + NAME + length;
        let value = |name: &str| {
            let found = found.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
        };
        let title = value("title").or_else(|| value("text")).unwrap_or_default();
        let url = ["htmlurl", "url", "xmlurl"].into_iter().find_map(value);
        if let Some(url) = url {
            line += text[counted..begin].matches('\n').count() as u64;
            counted = begin;
            let mut tags: Vec<String> = value("category")
                .map(|names| names.split(',').map(|name| name.trim_matches('/')))
                .map(|names| names.map(str::to_owned).collect())
                .unwrap_or_default();
            if folders == Folders::AsTags {
                let named = above.iter().filter(|name| !name.is_empty());
                tags.extend(named.take(DEPTH_MAX).cloned());
            }
            let entry = DraftEntry {
                url: url.to_owned(),
                title: title.to_owned(),
                tags,
                time: value("created").unwrap_or_default().to_owned(),
            };
            entries.push((Place::Line(line), entry.into_line()));
        }
        if !text[..at].ends_with("/>") {
            above.push(title.to_owned());
        }
    }
    entries
}
