//! Pages of a file that has no list of them: the HTML documents that no other page embeds, and visits that
//! found them unchanged.

use super::contents::{Contents, PAGES_MAX};
use super::entry::Entry;
use super::index;
use super::read::Warc;
use super::survey;
use super::write::Page;
use crate::head;
use crate::record::Found;
use archivist_core::model::is_web;
use std::collections::{HashMap, VecDeque};

const HTML: &str = "text/html";
/// Records between a request and its response, at most.
const NEAR: usize = 16;

/// Collects documents from the records of a file, one after another.
#[derive(Default)]
pub(super) struct Documents {
    found: Vec<Document>,
    /// Texts and pictures of pages, that other programs write.
    resources: Vec<Entry>,
    /// Responses that are no pages, according to requests before them.
    embedded: VecDeque<String>,
}

struct Document {
    /// The identifier of the record.
    id: String,
    page: Page,
    entry: Entry,
    /// Of a visit that found the page unchanged, the URL of the record that it refers to.
    refers: Option<String>,
    /// An error of the server is a page of a file that has no other.
    is_error: bool,
}

impl Documents {
    /// Adds a record of the WARC file with this number.
    pub(super) fn add(&mut self, found: &Found, warcs: &[Warc], number: usize) {
        let id = found.field("warc-record-id");
        let other = found.field("warc-concurrent-to");
        match found.field("warc-type") {
            "request" if is_of_page(found) => {}
            "request" => {
                let response = |document: &Document| document.id == other;
                match self.found.iter().rev().take(NEAR).position(response) {
                    Some(back) => {
                        self.found.remove(self.found.len() - 1 - back);
                    }
                    // The response may name its request, or the request its response.
                    None => {
                        self.embedded.extend([id.to_owned(), other.to_owned()]);
                        let excess = self.embedded.len().saturating_sub(2 * NEAR);
                        self.embedded.drain(..excess);
                    }
                }
            }
            "resource" if survey::is_resource(found.url()) => {
                self.resources.extend(entry(found, warcs, number));
            }
            kind @ ("response" | "resource" | "revisit") if self.found.len() < PAGES_MAX => {
                let is_embedded = |name: &str| self.embedded.iter().any(|known| known == name);
                let refers = (kind == "revisit").then(|| {
                    let named = found.field("warc-refers-to-target-uri");
                    let url = if named.is_empty() { found.url() } else { named };
                    url.trim_matches(['<', '>']).to_owned()
                });
                let page = match refers {
                    Some(_) => page(found).map(|page| (page, false)),
                    None => document(found),
                };
                if !is_embedded(id)
                    && (other.is_empty() || !is_embedded(other))
                    && let Some(((page, is_error), entry)) = page.zip(entry(found, warcs, number))
                {
                    self.found.push(Document { id: id.to_owned(), page, entry, refers, is_error });
                }
            }
            _ => {}
        }
    }

    /// Adds the pages and their entries. A visit that found a page unchanged gets the entry of that.
    pub(super) fn end(mut self, contents: &mut Contents) {
        if self.found.iter().any(|one| !one.is_error) {
            self.found.retain(|one| !one.is_error);
        }
        let mut by_url: HashMap<&str, Vec<&Entry>> = HashMap::new();
        let mut by_digest: HashMap<&str, &Entry> = HashMap::new();
        for Document { entry, .. } in self.found.iter().filter(|one| one.refers.is_none()) {
            by_url.entry(&entry.url).or_default().push(entry);
            if let Some(digest) = &entry.digest {
                by_digest.insert(digest, entry);
            }
        }
        for Document { page, entry, refers, .. } in &self.found {
            let original = refers.as_ref().map_or(Some(entry), |url| {
                let same = by_url.get(url.as_str()).into_iter().flatten().copied();
                let nearest = same.min_by_key(|one| entry.time.duration_since(one.time).abs());
                nearest.or_else(|| by_digest.get(entry.digest.as_deref()?).copied())
            });
            if let Some(original) = original {
                contents.pages.push(page.clone());
                contents.documents.push(original.clone());
            }
        }
        contents.entries.extend(self.resources);
    }
}

fn entry(found: &Found, warcs: &[Warc], number: usize) -> Option<Entry> {
    Entry::of(index::line(found, "")?, warcs, Some(number)).ok().flatten()
}

/// Whether a request may be one that shows a page: a GET of no frame and no script.
fn is_of_page(request: &Found) -> bool {
    let Some(http) = &request.http else {
        return true;
    };
    let destination = head::value(&http.fields, "sec-fetch-dest");
    http.first.starts_with("GET ") && matches!(destination, None | Some("document"))
}

/// The page of a response, or of a file that a program such as warcit put into a resource, if it can be one.
/// Says whether it is that of an error.
fn document(found: &Found) -> Option<(Page, bool)> {
    let (status, media_type) = match &found.http {
        Some(http) => {
            let media_type = match head::value(&http.fields, "content-type") {
                Some(media_type) => crate::record::essence(media_type),
                // Browsers look at the body, too.
                None if http.start.trim_ascii_start().starts_with(b"<") => HTML.to_owned(),
                None => return None,
            };
            (head::status(&http.first)?.0, media_type)
        }
        None if found.field("warc-type") == "resource" => (200, found.media_type()),
        None => return None,
    };
    let is_html = [HTML, "application/xhtml+xml"].contains(&&media_type[..]);
    let is_error = status >= 400;
    Some((page(found)?, is_error)).filter(|_| is_html && (status == 200 || is_error))
}

/// The page of a record, if its answer is one.
fn page(found: &Found) -> Option<Page> {
    let kind = found.field("warc-resource-type");
    let is_page = kind.is_empty() || kind.eq_ignore_ascii_case("document");
    let url = found.url();
    let time = found.field("warc-date").parse().ok()?;
    (is_page && is_web(url)).then(|| Page {
        url: url.to_owned(),
        title: String::new(),
        time,
        text: None,
    })
}
