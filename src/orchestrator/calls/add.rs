//! Adding a list of pages. A long list is queued in chunks, one in each turn, so that other calls
//! are answered in between. The crawl starts after the last chunk.

use crate::calls::listed::Listed;
use crate::calls::requests;
use crate::database::rows::fleet::FleetCrawl;
use crate::database::{DatabaseError, NewCrawl, NewSnapshot, Tx};
use crate::fleet;
use crate::main_loop;
use crate::main_loop::access;
use crate::main_loop::saved;
use crate::main_loop::turn::{Change, Turn, TurnResult, invalid};
use crate::notices;
use crate::work;
use archivist_core::fleet::{Command, CommandVerb, NodeRequest};
use archivist_core::model::web::filter::UrlFilter;
use archivist_core::model::{Act, CrawlId, LineEntry, Owner, SnapshotId, Time, without_userinfo};
use archivist_core::plan::Notice;
use archivist_plugin::Values;
use archivist_shared::archive::{IMPORT_KEEP, IMPORT_PLUGIN};
use archivist_shared::bus::documents::report::{AddOptions, Added, Refused};
use archivist_shared::journal::message;
use archivist_shared::staged::STAGED_SETTING;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

const PAGES_PER_TURN: usize = 1_000;
/// Versions of a known page among which is the one that gets what the list says.
const VERSIONS_READ: u32 = 100;
/// How long a crawl waits for the next chunk of its list. Chunks follow each other at once.
const NEXT_CHUNK_TIMEOUT: Duration = Duration::from_secs(600);
/// Reason while the list of a crawl is being queued.
const ADDING: &str = "its list is being added";
/// Reason for cancelling a crawl whose list was queued in part.
pub(crate) const HALF: &str =
    "the orchestrator ended while the list was being added; add the list again";

#[derive(Clone, Debug, Default)]
pub struct Adding {
    /// `None` before the first line that names a page.
    pub crawl: Option<CrawlId>,
    pub accepted: u64,
    pub refused: Vec<Refused>,
    /// Number of pages that are left out because the archive has them.
    pub known: u64,
    /// Number of those that got tags, a title or a date from the list.
    pub completed: u64,
    /// Crawl of the first of them.
    pub known_in: Option<CrawlId>,
    /// Settings of the persona of the crawl, which filter its pages.
    pub persona: BTreeMap<String, String>,
    /// Processed lines, and their bytes.
    pub lines: usize,
    /// Bytes of these lines.
    pub bytes: usize,
}

pub(crate) enum Progress {
    Done(Added),
    /// The next turn continues.
    More(Box<Adding>),
}

/// Queues the first or the next pages of a list. `joins`: follows the open crawl of another
/// command in the foreground instead, if that has the same list, options and user.
pub(crate) fn add_some(
    turn: &mut Turn<'_>,
    lines: &[u8],
    options: &AddOptions,
    user: u32,
    joins: bool,
    so_far: Option<&Adding>,
) -> TurnResult<Progress> {
    let foreground = joins.then(|| digest(lines, options, user)).transpose()?;
    if let (Some(digest), None) = (&foreground, so_far)
        && let Some((crawl, since)) = turn.tx.foreground_crawl(digest)?
    {
        return Ok(Progress::Done(Added {
            crawl,
            accepted: 0,
            refused: Vec::new(),
            known: 0,
            completed: 0,
            joined: Some(since),
        }));
    }
    let mut adding = match so_far {
        Some(adding) => adding.clone(),
        None => begin_adding(turn, options, user)?,
    };
    let filter: UrlFilter =
        turn.engine.url_filter(&options.config, &adding.persona).map_err(invalid)?;
    let refused = std::mem::take(&mut adding.refused);
    let done = (adding.lines, adding.bytes);
    let settings = |own: &Values| work::refuse_own(turn, options, own, user);
    let mut listed = Listed::resume(lines, options.depth, &filter, &settings, done, refused);
    let mut entries: Vec<LineEntry> = listed.by_ref().take(PAGES_PER_TURN).collect();
    (adding.lines, adding.bytes) = listed.done();
    let is_over = listed.is_over();
    adding.refused = listed.refused;
    if options.only_new {
        leave_out_known(turn, &mut entries, &mut adding, user)?;
    }
    if let Some(first) = entries.first() {
        let crawl = match adding.crawl {
            Some(crawl) => still_queued(turn, crawl)?,
            None => {
                let crawl = new_crawl(turn, first.url.as_str(), options, user)?;
                turn.tx.set_foreground(crawl, foreground.as_deref())?;
                crawl
            }
        };
        adding.crawl = Some(crawl);
        adding.accepted += add_pages(turn, crawl, &entries, options)? as u64;
    }
    match (is_over, adding.crawl.or(adding.known_in)) {
        (true, Some(crawl)) if adding.crawl.is_none() => Ok(Progress::Done(Added {
            crawl,
            accepted: 0,
            refused: adding.refused,
            known: adding.known,
            completed: adding.completed,
            joined: None,
        })),
        (false, _) => {
            let crawl = adding.crawl;
            if let Some(crawl) = crawl {
                let until = turn.now.after(NEXT_CHUNK_TIMEOUT);
                turn.tx.put_off_crawl(crawl, until, Some(ADDING))?;
            }
            Ok(Progress::More(Box::new(adding)))
        }
        (true, Some(crawl)) => added(turn, crawl, adding, options.depth),
        (true, None) => Err(invalid(match adding.refused.first() {
            Some(line) => format!("'{}': {}", line.text, line.why),
            None => "the list contains no URL".to_owned(),
        })),
    }
}

fn begin_adding(turn: &Turn<'_>, options: &AddOptions, user: u32) -> TurnResult<Adding> {
    let users = BTreeSet::from([user]);
    requests::check_options(turn, options, &users)?;
    for admit in turn.rooms.parts().admit_new {
        admit(turn, &options.tags, user)?;
    }
    let engine = &turn.engine;
    let persona = engine.persona(&options.config, &users).map_err(invalid)?;
    let own = engine.persona_settings(persona.as_deref());
    Ok(Adding { persona: own.map_err(invalid)?, ..Adding::default() })
}

/// Leaves out the pages that another crawl has, and counts them. What the list says of a page of the
/// user is added to its newest version.
fn leave_out_known(
    turn: &mut Turn<'_>,
    entries: &mut Vec<LineEntry>,
    adding: &mut Adding,
    user: u32,
) -> TurnResult<()> {
    let own = adding.crawl.unwrap_or(CrawlId(0));
    let mut new = Vec::with_capacity(entries.len());
    for entry in entries.drain(..) {
        let url = entry.url.as_str();
        if !saved::is_archived(turn, url, own)? {
            new.push(entry);
            continue;
        }
        adding.known += 1;
        adding.completed += u64::from(complete(turn, &entry, own, user)?);
        if adding.known_in.is_none() {
            adding.known_in = turn.tx.archived_in(url)?;
        }
    }
    *entries = new;
    Ok(())
}

/// Gives the newest version of a page that the user may change the tags of its line, and the title and the
/// date if it has none. Returns whether anything is new. Tags decide how long a page is kept, and those of
/// pages of a fleet are in its database.
fn complete(turn: &mut Turn<'_>, entry: &LineEntry, own: CrawlId, user: u32) -> TurnResult<bool> {
    let url = entry.url.as_str();
    let versions = turn.tx.archived_versions(url, own, VERSIONS_READ)?;
    let mut versions = versions.into_iter();
    let may_change =
        |id: &SnapshotId| access::check_one(turn, Act::Change, Owner::Snapshot(*id), user).is_ok();
    let Some(id) = versions.find(may_change) else {
        return Ok(false);
    };
    let crawl = main_loop::snapshot_of(turn, id)?.crawl;
    if turn.tx.fleet_crawl(crawl)? != FleetCrawl::No {
        return Ok(false);
    }
    let (title, date) = (entry.title.as_deref(), entry.bookmarked_at.as_deref());
    let mut is_new = turn.tx.complete_from_list(id, title, date)?;
    for tag in &entry.tags {
        is_new |= turn.tx.tag_snapshot(id, tag)?;
    }
    if is_new {
        turn.changes.insert(Change::Snapshot { crawl, id });
    }
    Ok(is_new)
}

fn new_crawl(
    turn: &mut Turn<'_>,
    url: &str,
    options: &AddOptions,
    user: u32,
) -> TurnResult<CrawlId> {
    if turn.tx.node()?.is_some() || turn.engine.settings.is_in_fleet() {
        return fleet::add_fleet_crawl(turn, url, options, user);
    }
    let crawl = turn.tx.add_crawl(&NewCrawl {
        url,
        max_depth: options.depth,
        plugins: &options.plugins,
        config: &options.config,
        user,
        now: turn.now,
    })?;
    for tag in &options.tags {
        turn.tx.tag_crawl(crawl, tag)?;
    }
    if options.only_new {
        turn.tx.set_only_new(crawl)?;
    }
    Ok(crawl)
}

/// The crawl, unless it was cancelled between two turns.
fn still_queued(turn: &Turn<'_>, crawl: CrawlId) -> TurnResult<CrawlId> {
    if turn.tx.status_of(Owner::Crawl(crawl))?.is_final() {
        Err(invalid(format!("crawl {crawl} was cancelled while its list was being added")))
    } else {
        Ok(crawl)
    }
}

fn added(turn: &mut Turn<'_>, crawl: CrawlId, adding: Adding, depth: u32) -> TurnResult<Progress> {
    still_queued(turn, crawl)?;
    turn.tx.put_off_crawl(crawl, turn.now, None)?;
    let work = main_loop::crawl_of(turn, crawl)?;
    let (url, urls) = (without_userinfo(work.url.as_str()), adding.accepted);
    turn.log(move || {
        tracing::info!(
            message_id = message::CRAWL_ADDED,
            archivist_crawl_id = crawl.0,
            archivist_url = url.as_str(),
            archivist_urls = urls,
            "crawl {crawl} is added: {urls} URLs, depth {depth}"
        )
    });
    notices::announce_crawl(turn, crawl, Notice::Added)?;
    Ok(Progress::Done(Added {
        crawl,
        accepted: adding.accepted,
        refused: adding.refused,
        known: adding.known,
        completed: adding.completed,
        joined: None,
    }))
}

/// Queues the pages of `entries`, and returns how many are new to the crawl.
fn add_pages(
    turn: &mut Turn<'_>,
    crawl: CrawlId,
    entries: &[LineEntry],
    options: &AddOptions,
) -> TurnResult<usize> {
    let hosts = entries.iter().map(|entry| entry.url.domain()).collect::<Vec<_>>();
    let pages = entries
        .iter()
        .zip(&hosts)
        .map(|(entry, host)| NewSnapshot {
            url: entry.url.as_str(),
            host,
            title: entry.title.as_deref(),
            bookmarked_at: entry.bookmarked_at.as_deref(),
            depth: entry.depth,
            given: true,
        })
        .collect::<Vec<_>>();
    if turn.tx.fleet_crawl(crawl)? != FleetCrawl::No {
        return fleet::send_entries(turn, crawl, entries, options);
    }
    let added = turn.tx.add_snapshots(crawl, None, &pages, turn.now)?;
    let with_own = entries
        .iter()
        .filter(|entry| !entry.tags.is_empty() || !entry.config.is_empty())
        .map(|entry| (entry.url.as_str(), entry))
        .rev()
        .collect::<HashMap<_, _>>();
    for (id, url) in &added {
        let own = with_own.get(url.as_str());
        for tag in options.tags.iter().chain(own.iter().flat_map(|entry| &entry.tags)) {
            turn.tx.tag_snapshot(*id, tag)?;
        }
        if let Some(entry) = own.filter(|entry| !entry.config.is_empty()) {
            turn.tx.set_snapshot_config(*id, &entry.config)?;
        }
    }
    if is_kept(options) {
        let pages: Vec<_> = added.iter().map(|(id, _)| *id).collect();
        turn.tx.add_entries(crawl, &pages)?;
    }
    notices::announce_pages(turn, crawl, &added)?;
    Ok(added.len())
}

/// Whether the pages are entries that are kept without a visit and without files: no hook has to run.
fn is_kept(options: &AddOptions) -> bool {
    let keeps = options.config.get(IMPORT_KEEP);
    keeps.is_some_and(|keeps| keeps == "true")
        && options.plugins == [IMPORT_PLUGIN]
        && options.depth == 0
        && !options.config.contains_key(STAGED_SETTING)
}

/// Returns what two commands have in common that do the same work: list, options and user.
fn digest(lines: &[u8], options: &AddOptions, user: u32) -> TurnResult<Vec<u8>> {
    let options = serde_json::to_vec(options)?;
    let mut digest = Sha256::new();
    for part in [&user.to_le_bytes()[..], &options, lines] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    Ok(digest.finalize().to_vec())
}

/// Cancels crawls whose lists were added in part when the orchestrator ended, and returns them.
/// Their callers got an error.
pub(crate) fn cancel_half_added(tx: &Tx<'_>, now: Time) -> Result<Vec<CrawlId>, DatabaseError> {
    let crawls = tx.crawls_put_off(ADDING)?;
    for crawl in crawls.iter().copied() {
        tx.cancel_unbegun(crawl, HALF, now, crate::machine::notify::beat)?;
        tx.step_crawl(crawl, archivist_core::model::Step::Cancel, None, Some(HALF), now)?;
        if tx.fleet_crawl(crawl)? != FleetCrawl::No {
            tx.add_to_outbox(&NodeRequest::Command(Command {
                verb: CommandVerb::Cancel,
                target: Owner::Crawl(crawl),
            }))?;
        }
    }
    Ok(crawls)
}
