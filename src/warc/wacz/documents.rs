//! Pages of a file that has no list of them: the HTML documents that no other page embeds.

use super::contents::PAGES_MAX;
use super::write::Page;
use crate::head;
use crate::record::Found;
use archivist_core::model::is_web;
use std::collections::VecDeque;

/// Records between a request and its response, at most.
const NEAR: usize = 16;

/// Collects documents from the records of a file, one after another.
#[derive(Default)]
pub(super) struct Documents {
    /// Each with the identifier of its record.
    found: Vec<(String, Page)>,
    /// Responses that are no pages, according to requests before them.
    embedded: VecDeque<String>,
}

impl Documents {
    pub(super) fn add(&mut self, found: &Found) {
        let id = found.field("warc-record-id");
        let other = found.field("warc-concurrent-to");
        match found.field("warc-type") {
            "request" if is_of_page(found) => {}
            "request" => {
                let response = |(id, _): &(String, Page)| id == other;
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
            "response" if self.found.len() < PAGES_MAX => {
                let is_embedded = |name: &str| self.embedded.iter().any(|known| known == name);
                if !is_embedded(id)
                    && (other.is_empty() || !is_embedded(other))
                    && let Some(page) = document(found)
                {
                    self.found.push((id.to_owned(), page));
                }
            }
            _ => {}
        }
    }

    pub(super) fn into_pages(self) -> Vec<Page> {
        self.found.into_iter().map(|(_, page)| page).collect()
    }
}

/// Whether a request may be one that shows a page: a GET of no frame and no script.
fn is_of_page(request: &Found) -> bool {
    let Some(http) = &request.http else {
        return true;
    };
    let destination = head::value(&http.fields, "sec-fetch-dest");
    http.first.starts_with("GET ") && matches!(destination, None | Some("document"))
}

/// The page of a response, if it can be one.
fn document(response: &Found) -> Option<Page> {
    let http = response.http.as_ref()?;
    let (status, _) = head::status(&http.first)?;
    let media_type = head::value(&http.fields, "content-type").map(crate::record::essence);
    let is_html = matches!(media_type.as_deref(), Some("text/html" | "application/xhtml+xml"));
    let kind = response.field("warc-resource-type");
    let is_page = kind.is_empty() || kind.eq_ignore_ascii_case("document");
    let url = response.url();
    let time = response.field("warc-date").parse().ok()?;
    (status == 200 && is_html && is_page && is_web(url)).then(|| Page {
        url: url.to_owned(),
        title: String::new(),
        time,
        text: None,
    })
}
