//! Documents that list pages: feeds (RSS, RDF, Atom, JSON Feed), sitemaps and their indexes, and
//! plain text with one URL per line; each may be compressed with gzip.

use super::coding;
use super::html::{one_line, resolve};
use super::xml::{self, Name, Piece, TEXT_MAX_BYTES};
use super::{charset, sitemap};
use archivist_core::model::{TAGS_MAX, Tags, parse_line};
use scraper::Html;
use serde_json::Value;
pub use url::Url;

/// Entries of a document that are read.
const ENTRIES_MAX: usize = 50_000;
/// Bytes of a document after decompression.
const UNPACKED_MAX_BYTES: u64 = 64 << 20;
/// Longest title in characters, and in bytes with its tags.
const TITLE_MAX_CHARS: usize = 300;
const TITLE_MAX_BYTES: usize = 2048;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingEntry {
    pub url: Url,
    /// Title on one line.
    pub title: Option<String>,
    /// Time of the page: RFC 3339, or a date.
    pub date: Option<String>,
    /// Categories, each on one line.
    pub tags: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub title: Option<String>,
    pub entries: Vec<ListingEntry>,
}

/// Reads a document of this content type from this address. `None` if it lists no pages, as a page
/// of HTML. Text is a list only if its content type says that it is text.
pub fn read(bytes: &[u8], content_type: &str, address: &Url) -> Option<Listing> {
    // A truncated document counts up to its end.
    let unpacked = coding::unpacked(bytes, UNPACKED_MAX_BYTES);
    let is_packed = unpacked.is_some();
    let bytes = unpacked.as_ref().map_or(bytes, |(content, _)| content);
    let kind = super::content_type::essence(content_type);
    let content_type = if is_packed { "text/plain" } else { content_type };
    let text = charset::decode(bytes, content_type, Some(address)).text;
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if text.starts_with('<') {
        return in_xml(text, address);
    }
    let is_json = text.starts_with('{') && (kind.contains("json") || kind.starts_with("text/"));
    let feed = is_json.then(|| json_feed(text, address)).flatten();
    let is_text = is_packed || kind.starts_with("text/") && kind != "text/html";
    feed.or_else(|| is_text.then(|| lines(text)).flatten())
}

fn in_xml(text: &str, address: &Url) -> Option<Listing> {
    match root(text)?.local.as_str() {
        "rss" | "RDF" | "feed" => Some(feed(text, address)),
        "urlset" | "sitemapindex" => {
            let sitemap = sitemap::read_text(text, address, ENTRIES_MAX);
            Some(Listing { title: None, entries: [sitemap.files, sitemap.pages].concat() })
        }
        _ => None,
    }
}

/// Name of the first element.
fn root(text: &str) -> Option<Name> {
    let mut found = None;
    xml::walk(text, |piece, _| {
        if let Piece::Start(name, _) = piece {
            found = Some(name);
        }
        found.is_none()
    });
    found
}

#[derive(Default)]
struct OpenEntry {
    title: String,
    link: String,
    /// Target of `link href=`, for a feed whose links have no text.
    href: String,
    guid: String,
    enclosure: String,
    published: String,
    updated: String,
    categories: Vec<String>,
    base: Option<Url>,
}

/// A field that the text of an element fills.
#[derive(Clone, Copy, PartialEq)]
enum Field {
    FeedTitle,
    Title,
    Link,
    Guid,
    Published,
    Updated,
    Category,
}

/// Reads RSS, RDF and Atom. Names have the prefix of the root, except those of dates and of links in
/// the name space of Atom.
fn feed(text: &str, address: &Url) -> Listing {
    let mut listing = Listing::default();
    let mut own = String::new();
    let mut bases = vec![(0, address.clone())];
    let mut entry: Option<OpenEntry> = None;
    let mut field: Option<(Field, usize)> = None;
    let mut feed_title = String::new();
    // What is wrong with a feed is no reason to leave out its first entries.
    let _ = xml::walk(text, |piece, path| {
        let depth = path.len();
        match piece {
            Piece::Start(name, attributes) => {
                let attribute = |wanted: &str| {
                    let found = attributes.iter().find(|(name, _)| name == wanted);
                    found.map(|(_, value)| value.as_str())
                };
                if depth == 1 && name.local != "RDF" {
                    own = name.prefix.clone();
                }
                let base = attribute("xml:base");
                if let Some(base) = base.and_then(|base| bases.last()?.1.join(base).ok()) {
                    bases.push((depth, base));
                }
                if field.is_some() {
                    return true;
                }
                let is_own = name.prefix == own;
                let parent = depth.checked_sub(2).map(|at| path[at].local.as_str());
                let started = match (&mut entry, parent, name.local.as_str()) {
                    (None, _, "item" | "entry") if is_own => {
                        entry = Some(OpenEntry {
                            base: bases.last().map(|(_, base)| base.clone()),
                            ..OpenEntry::default()
                        });
                        None
                    }
                    (None, Some("channel" | "feed"), "title") if is_own => Some(Field::FeedTitle),
                    (Some(_), Some("item" | "entry"), "title") if is_own => Some(Field::Title),
                    (Some(entry), Some("item" | "entry"), "link") => {
                        let is_page = attribute("rel").is_none_or(|rel| rel == "alternate");
                        if let Some(href) = attribute("href").filter(|_| is_page) {
                            if entry.href.is_empty() {
                                let base = bases.last().map(|(_, base)| base);
                                entry.href = base
                                    .and_then(|base| resolve(base, href))
                                    .map(String::from)
                                    .unwrap_or_default();
                            }
                            None
                        } else {
                            (is_own && entry.link.trim().is_empty()).then_some(Field::Link)
                        }
                    }
                    (Some(_), Some("item"), "guid") if is_own => attribute("isPermaLink")
                        .is_none_or(|is| !is.trim().eq_ignore_ascii_case("false"))
                        .then_some(Field::Guid),
                    (Some(entry), Some("item"), "enclosure") if is_own => {
                        entry.enclosure = attribute("url").unwrap_or_default().to_owned();
                        None
                    }
                    (
                        Some(_),
                        Some("item" | "entry"),
                        "pubDate" | "published" | "date" | "issued",
                    ) => Some(Field::Published),
                    (Some(entry), Some("item" | "entry"), "category")
                        if is_own && entry.categories.len() < TAGS_MAX =>
                    {
                        entry.categories.push(attribute("term").unwrap_or_default().to_owned());
                        Some(Field::Category)
                    }
                    (Some(_), Some("item" | "entry"), "updated" | "modified") => {
                        Some(Field::Updated)
                    }
                    _ => None,
                };
                field = started.map(|field| (field, depth));
            }
            Piece::Text(text) => {
                let Some((field, _)) = field else { return true };
                let target = match (field, &mut entry) {
                    (Field::FeedTitle, _) => &mut feed_title,
                    (Field::Title, Some(entry)) => &mut entry.title,
                    (Field::Link, Some(entry)) => &mut entry.link,
                    (Field::Guid, Some(entry)) => &mut entry.guid,
                    (Field::Published, Some(entry)) => &mut entry.published,
                    (Field::Updated, Some(entry)) => &mut entry.updated,
                    (Field::Category, Some(entry)) => match entry.categories.last_mut() {
                        Some(category) => category,
                        None => return true,
                    },
                    (_, None) => return true,
                };
                if target.len() < TEXT_MAX_BYTES {
                    target.push_str(&text);
                }
            }
            Piece::End => {
                if field.is_some_and(|(_, own)| own >= depth) {
                    field = None;
                }
                if bases.last().is_some_and(|(own, _)| *own >= depth) {
                    bases.pop();
                }
                let is_entry = path.last().is_some_and(|name| {
                    name.prefix == own && matches!(name.local.as_str(), "item" | "entry")
                });
                if is_entry && let Some(entry) = entry.take() {
                    listing.entries.extend(entry.finish(address));
                }
            }
        }
        listing.entries.len() < ENTRIES_MAX
    });
    listing.title = title(&feed_title);
    listing
}

impl OpenEntry {
    fn finish(self, address: &Url) -> Option<ListingEntry> {
        let base = self.base.unwrap_or_else(|| address.clone());
        let texts = [&self.link, &self.href, &self.guid, &self.enclosure];
        // An id that is not a URL would be resolved to one.
        let is_id = |text: &str| Url::parse(text.trim()).is_err();
        let url = texts
            .into_iter()
            .filter(|text| !(std::ptr::eq(*text, &self.guid) && is_id(text)))
            .find_map(|text| resolve(&base, text))?;
        Some(ListingEntry {
            url,
            title: title(&self.title),
            date: date(&self.published).or_else(|| date(&self.updated)),
            tags: tags(self.categories.iter().map(String::as_str)),
        })
    }
}

/// Reads a JSON Feed (jsonfeed.org).
fn json_feed(text: &str, address: &Url) -> Option<Listing> {
    let document: Value = serde_json::from_str(text).ok()?;
    let items = document.get("items")?.as_array()?;
    let is_feed =
        document["version"].as_str().is_some_and(|version| version.contains("jsonfeed.org"));
    let entry = |item: &Value| {
        let field = |name: &str| item[name].as_str();
        let id = field("id").filter(|id| Url::parse(id).is_ok());
        let url = [field("url"), field("external_url"), id]
            .into_iter()
            .flatten()
            .find_map(|text| resolve(address, text))?;
        Some(ListingEntry {
            url,
            title: field("title").and_then(title),
            date: field("date_published")
                .and_then(date)
                .or_else(|| field("date_modified").and_then(date)),
            tags: tags(item["tags"].as_array().into_iter().flatten().filter_map(Value::as_str)),
        })
    };
    is_feed.then(|| Listing {
        title: document["title"].as_str().and_then(title),
        entries: items.iter().take(ENTRIES_MAX).filter_map(entry).collect(),
    })
}

/// Reads text: each line that is a URL, as in lists that users add. `None` if no line is.
fn lines(text: &str) -> Option<Listing> {
    let entries: Vec<_> = text
        .lines()
        .take(ENTRIES_MAX)
        .filter(|line| line.len() <= TEXT_MAX_BYTES)
        .filter_map(|line| parse_line(line.as_bytes())?.ok())
        .filter_map(|entry| {
            Some(ListingEntry {
                url: Url::parse(entry.url.as_str()).ok()?,
                title: entry.title.as_deref().and_then(title),
                date: entry.bookmarked_at,
                tags: entry.tags,
            })
        })
        .collect();
    (!entries.is_empty()).then_some(Listing { title: None, entries })
}

/// A title on one line, without the tags of HTML that many feeds have in it. `None` if it is empty.
pub(super) fn title(text: &str) -> Option<String> {
    let text = &text[..text.floor_char_boundary(TITLE_MAX_BYTES)];
    let plain = if text.contains(['<', '&']) {
        let parsed = Html::parse_fragment(text);
        one_line(&parsed.root_element().text().collect::<String>(), TITLE_MAX_CHARS)
    } else {
        one_line(text, TITLE_MAX_CHARS)
    };
    Some(plain).filter(|text| !text.is_empty())
}

/// Tags of categories: distinct, on one line, up to the limits of a page.
fn tags<'a>(categories: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut tags = Tags::default();
    tags.extend(categories.filter_map(title));
    tags.into_names()
}

/// A time of RFC 2822 or RFC 3339 in UTC, or a date. `None` if the text is neither.
pub(super) fn date(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.len() > 64 {
        return None;
    }
    let time = || text.parse::<jiff::Timestamp>().ok();
    let mail = || {
        let parsed = jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true);
        parsed.parse_timestamp(text).ok()
    };
    let day = || Some(text.parse::<jiff::civil::Date>().ok()?.to_string());
    time().or_else(mail).map(|time| time.to_string()).or_else(day)
}

#[cfg(test)]
mod tests;
