//! Which rows of the fleet's database this node takes. Every node and the administrator of the database
//! can write them, so they are read with the rules for lists and options of users, and cannot name
//! crawls and pages of this machine alone. A row that is refused does not concern the others.

use crate::database::rows::fleet::FleetCrawl;
use crate::fleet::submit::CrawlDocument;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::work::bounds::{check_depth_and_tags, check_size};
use archivist_core::fleet::{CrawlSpec, ID_MAX, LeasedPage, NewPage};
use archivist_core::model::{CrawlId, Lifecycle, Owner, PageUrl, TIME_MAX, Tags, cut};
use archivist_plugin::settings::derived::is_derived;
use std::collections::BTreeMap;

/// Crawls that this node cannot take, and why.
pub(crate) type Refused = BTreeMap<CrawlId, String>;

/// Returns why a crawl that this node has is not the one that the fleet means, if so. A node that
/// leaves keeps its crawls as crawls of its own, and may join again.
pub(crate) fn why_other_crawl(
    turn: &Turn<'_>,
    id: CrawlId,
    url: &str,
    spec: &CrawlSpec,
) -> TurnResult<Option<String>> {
    let is_same = turn.tx.fleet_crawl(id)? != FleetCrawl::No
        || turn.tx.was_of_fleet(id)? && document_of(spec).is_ok_and(|it| it.url == url);
    let why = || format!("crawl {id} of the fleet has the id of a crawl of this machine");
    Ok((!is_same).then(why))
}

/// Reads the URL of a page, or returns why the page is refused.
pub(crate) fn readable(
    turn: &Turn<'_>,
    page: &LeasedPage,
    refused: &Refused,
) -> TurnResult<Result<PageUrl, String>> {
    let url = match url_of(page, refused) {
        Ok(url) => url,
        Err(why) => return Ok(Err(why)),
    };
    let id = page.id;
    let is_other = turn
        .tx
        .snapshot(id)?
        .is_some_and(|known| known.crawl != page.crawl || known.url != url.as_str());
    if is_other {
        let why = format!("page {id} of the fleet has the id of another page of this node");
        return Ok(Err(why));
    }
    Ok(Ok(url))
}

/// Returns the state of a crawl or page of the fleet; `None` if this node does not have it, or if it
/// is of this machine alone, which the database cannot command.
pub(crate) fn state_in_fleet(turn: &Turn<'_>, owner: Owner) -> TurnResult<Option<Lifecycle>> {
    let known = match owner {
        Owner::Crawl(id) => turn.tx.crawl(id)?.map(|crawl| (id, crawl.status)),
        Owner::Snapshot(id) => turn.tx.snapshot(id)?.map(|page| (page.crawl, page.status)),
    };
    match known {
        Some((crawl, status)) if turn.tx.fleet_crawl(crawl)? != FleetCrawl::No => Ok(Some(status)),
        _ => Ok(None),
    }
}

/// Reads what the database stores of a crawl, with the rules for options of users.
pub(crate) fn document_of(spec: &CrawlSpec) -> Result<CrawlDocument, String> {
    let document: CrawlDocument = serde_json::from_str(&spec.document)
        .map_err(|error| format!("its crawl is not readable: {error}"))?;
    let problem = PageUrl::parse(&document.url)
        .map_err(|error| format!("URL: {error}"))
        .and_then(|_| check_depth_and_tags(spec.max_depth, &document.tags))
        .and_then(|()| check_size(&document.plugins, &document.config))
        .and_then(|()| match document.config.keys().find(|key| is_derived(key)) {
            Some(key) => Err(format!("'{}' is no setting", key.escape_debug())),
            None => Ok(()),
        });
    match problem {
        Ok(()) => Ok(document),
        Err(why) => Err(format!("its crawl is not readable: {why}")),
    }
}

/// Reads the URL of a page with the rules for lists of URLs.
fn url_of(page: &LeasedPage, refused: &Refused) -> Result<PageUrl, String> {
    if let Some(why) = refused.get(&page.crawl) {
        return Err(why.clone());
    }
    check_id(page.id.0)?;
    let url = PageUrl::parse(&page.page.url).map_err(|error| format!("its URL: {error}"))?;
    if url.domain() != page.page.host.0 {
        return Err("its URL has another host than the page".to_owned());
    }
    check_depth_and_tags(page.page.depth, &[])?;
    Ok(url)
}

/// Returns why a crawl or page cannot have this id, if so.
pub(crate) fn check_id(id: i64) -> Result<(), String> {
    if id > ID_MAX {
        return Err(format!("ids end at {ID_MAX}"));
    }
    Ok(())
}

/// The texts of a page, as long as those of pages in lists may be.
pub(crate) struct PageTexts {
    pub(crate) title: Option<String>,
    pub(crate) bookmarked_at: Option<String>,
    pub(crate) tags: Vec<String>,
}

impl PageTexts {
    pub(crate) fn of(page: &NewPage) -> PageTexts {
        let mut tags = Tags::default();
        tags.extend(page.tags.iter().cloned());
        let bookmarked_at = page.bookmarked_at.clone();
        PageTexts {
            title: page.title.clone().map(cut),
            bookmarked_at: bookmarked_at.filter(|text| text.len() <= TIME_MAX),
            tags: tags.into_names(),
        }
    }
}
