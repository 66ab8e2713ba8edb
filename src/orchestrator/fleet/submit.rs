//! Crawls that are added on this node of a fleet, and pages that its hooks find: both go to the
//! fleet's database, which decides which node archives them.

use crate::database::rows::fleet::GivenCrawl;
use crate::fleet::send_to_fleet;
use crate::main_loop::turn::{Turn, TurnResult, failed, invalid};
use archivist_core::fleet::bounds::DOCUMENT_MAX;
use archivist_core::fleet::{CrawlSpec, HostKey, NewPage, NodeRequest, Submit};
use archivist_core::model::{CrawlId, LineEntry};
use archivist_shared::bus::documents::report::AddOptions;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const PAGES_PER_REQUEST: usize = 500;
/// Size of the pages in one request as JSON, in bytes.
const BYTES_PER_REQUEST: usize = 1 << 20;

/// What orchestrators know of a crawl, and the database only stores.
#[derive(Serialize, Deserialize)]
pub(crate) struct CrawlDocument {
    /// Its URL, with user name and password if it has any.
    pub url: String,
    /// Plugins that run; empty means all.
    pub plugins: Vec<String>,
    /// Settings, secrets included.
    pub config: BTreeMap<String, String>,
    pub tags: Vec<String>,
    /// Pages that the archive has are left out.
    #[serde(default)]
    pub only_new: bool,
}

/// Queues a crawl of the fleet, with an id that the fleet reserved for this node.
///
/// # Errors
/// If no reserved id is left: the database was not reached for a long time; or if the options are too long.
pub(crate) fn add_fleet_crawl(
    turn: &mut Turn<'_>,
    url: &str,
    options: &AddOptions,
    user: u32,
) -> TurnResult<CrawlId> {
    let id = turn.tx.take_crawl_id()?.ok_or_else(|| {
        failed("the fleet has reserved no id for a further crawl of this node: its database was not reached; see: archivist doctor")
    })?;
    let document = CrawlDocument {
        url: url.to_owned(),
        plugins: options.plugins.clone(),
        config: options.config.clone(),
        tags: options.tags.clone(),
        only_new: options.only_new,
    };
    let spec = CrawlSpec {
        max_depth: options.depth,
        urls_max: None,
        only_new: options.only_new,
        document: row_of(&document)?,
    };
    turn.tx.add_given_crawl(
        &GivenCrawl {
            id,
            url,
            max_depth: options.depth,
            plugins: &options.plugins,
            config: &options.config,
            user,
        },
        turn.now,
    )?;
    for tag in &options.tags {
        turn.tx.tag_crawl(id, tag)?;
    }
    if options.only_new {
        turn.tx.set_only_new(id)?;
    }
    send_to_fleet(
        turn,
        &NodeRequest::Submit(Submit { crawl: id, spec: Some(spec), pages: Vec::new() }),
    )?;
    Ok(id)
}

/// Returns a document as the database stores it.
///
/// # Errors
/// If the database permits no such long one.
fn row_of(document: &CrawlDocument) -> TurnResult<String> {
    let row = serde_json::to_string(document)?;
    if row.len() <= DOCUMENT_MAX {
        return Ok(row);
    }
    Err(invalid(format!(
        "settings, plugins and tags of {} bytes: those of a crawl of a fleet have at most {DOCUMENT_MAX}",
        row.len()
    )))
}

/// Sends pages of a list to the fleet. Returns their number.
pub(crate) fn send_entries(
    turn: &mut Turn<'_>,
    crawl: CrawlId,
    entries: &[LineEntry],
    options: &AddOptions,
) -> TurnResult<usize> {
    let pages = entries.iter().map(|entry| NewPage {
        url: entry.url.as_str().to_owned(),
        host: HostKey(entry.url.domain()),
        depth: entry.depth,
        given: true,
        title: entry.title.clone(),
        bookmarked_at: entry.bookmarked_at.clone(),
        tags: options.tags.iter().chain(&entry.tags).cloned().collect(),
    });
    send_pages(turn, crawl, pages.collect())?;
    Ok(entries.len())
}

pub(crate) fn send_pages(
    turn: &mut Turn<'_>,
    crawl: CrawlId,
    pages: Vec<NewPage>,
) -> TurnResult<()> {
    for pages in requests(pages)? {
        send_to_fleet(turn, &NodeRequest::Submit(Submit { crawl, spec: None, pages }))?;
    }
    Ok(())
}

/// Divides pages into requests that are within the limits, in order. A page that is larger is alone.
fn requests(pages: Vec<NewPage>) -> TurnResult<Vec<Vec<NewPage>>> {
    let mut requests: Vec<Vec<NewPage>> = Vec::new();
    let mut room = 0;
    for page in pages {
        let size = serde_json::to_string(&page)?.len();
        match requests.last_mut() {
            Some(last) if size <= room && last.len() < PAGES_PER_REQUEST => last.push(page),
            _ => {
                requests.push(vec![page]);
                room = BYTES_PER_REQUEST;
            }
        }
        room = room.saturating_sub(size);
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(url: &str, title: usize) -> NewPage {
        NewPage {
            url: url.to_owned(),
            host: HostKey("a.test".into()),
            depth: 0,
            given: true,
            title: Some("t".repeat(title)),
            bookmarked_at: None,
            tags: Vec::new(),
        }
    }

    #[test]
    fn pages_are_divided_by_number_and_size() {
        let lengths = |pages| {
            let requests = requests(pages).unwrap();
            requests.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(Vec::new()), [0; 0]);
        let short = |_| page("http://a.test/", 0);
        assert_eq!(lengths((0..1001).map(short).collect()), [500, 500, 1]);
        let long = |_| page("http://a.test/", 300_000);
        assert_eq!(lengths((0..7).map(long).collect()), [3, 3, 1]);
        let huge = |n| page("http://a.test/", if n == 1 { 2 << 20 } else { 0 });
        assert_eq!(lengths((0..3).map(huge).collect()), [1, 1, 1]);
    }

    #[test]
    fn document_that_the_database_does_not_permit_is_refused() {
        let of = |length| CrawlDocument {
            url: String::new(),
            plugins: Vec::new(),
            config: BTreeMap::from([("A".to_owned(), "\u{1}".repeat(length))]),
            tags: Vec::new(),
            only_new: false,
        };
        // JSON has six bytes for each.
        assert!(row_of(&of(DOCUMENT_MAX / 6 - 20)).is_ok());
        let refused = row_of(&of(DOCUMENT_MAX / 6)).unwrap_err().to_string();
        assert!(refused.contains("have at most 524288"), "{refused}");
    }

    #[test]
    fn divided_pages_keep_their_order() {
        let pages = (0..40).map(|n| page(&format!("http://a.test/{n}"), 100_000));
        let pages: Vec<_> = pages.collect();
        assert_eq!(requests(pages.clone()).unwrap().concat(), pages);
    }
}
