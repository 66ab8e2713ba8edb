//! Adding a list of pages. A long list is queued in chunks, one in each turn, so that other calls
//! are answered in between. The crawl starts after the last chunk.

use crate::crawl::listed::Listed;
use crate::main_loop::log::CrawlLog;
use crate::main_loop::turn::{Turn, TurnResult, invalid};
use crate::store::rows::fleet::FleetCrawl;
use crate::store::{NewCrawl, NewSnapshot, StoreError, Tx};
use archivist_core::fleet::{Command, CommandVerb, Request};
use archivist_core::model::web::filter::UrlFilter;
use archivist_core::model::{CrawlId, Entry, Owner, Time, without_userinfo};
use archivist_core::plan::Notice;
use archivist_shared::bus::call::Adding;
use archivist_shared::bus::documents::report::{AddOptions, Added};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// Pages that one turn queues.
const PAGES_PER_TURN: usize = 1_000;
/// How long a crawl waits for the next chunk of its list. Chunks follow each other at once.
const NEXT_CHUNK_TIMEOUT: Duration = Duration::from_secs(600);
/// Reason while the list of a crawl is being queued.
const ADDING: &str = "its list is being added";
/// Reason for cancelling a crawl whose list was queued in part.
pub(crate) const HALF: &str =
    "the orchestrator ended while the list was being added; add the list again";

/// The state of adding a list.
pub(crate) enum Progress {
    Done(Added),
    /// The next turn continues.
    More(Box<Adding>),
}

impl Turn<'_> {
    /// Queues all pages of a short list, for the user with this id.
    pub(crate) fn add(
        &mut self,
        lines: &[u8],
        options: &AddOptions,
        user: u32,
    ) -> TurnResult<Added> {
        let mut so_far = None;
        loop {
            match self.add_some(lines, options, user, false, so_far.as_deref())? {
                Progress::Done(added) => return Ok(added),
                Progress::More(adding) => so_far = Some(adding),
            }
        }
    }

    /// Queues the first or the next pages of a list. `joins`: follows the open crawl of another
    /// command in the foreground instead, if that has the same list, options and user.
    pub(crate) fn add_some(
        &mut self,
        lines: &[u8],
        options: &AddOptions,
        user: u32,
        joins: bool,
        so_far: Option<&Adding>,
    ) -> TurnResult<Progress> {
        let foreground = joins.then(|| digest(lines, options, user)).transpose()?;
        if let (Some(digest), None) = (&foreground, so_far)
            && let Some((crawl, since)) = self.tx.foreground_crawl(digest)?
        {
            return Ok(Progress::Done(Added {
                crawl,
                accepted: 0,
                refused: Vec::new(),
                known: 0,
                joined: Some(since),
            }));
        }
        let mut adding = match so_far {
            Some(adding) => adding.clone(),
            None => self.begin_adding(options, user)?,
        };
        let filter: UrlFilter = self
            .engine
            .url_filter(&options.config, &adding.persona)
            .map_err(invalid)?;
        let refused = std::mem::take(&mut adding.refused);
        let done = (adding.lines, adding.bytes);
        let mut listed = Listed::resume(lines, options.depth, &filter, done, refused);
        let mut entries: Vec<Entry> = listed.by_ref().take(PAGES_PER_TURN).collect();
        (adding.lines, adding.bytes) = listed.done();
        let is_over = listed.is_over();
        adding.refused = listed.refused;
        if options.only_new {
            self.leave_out_known(&mut entries, &mut adding)?;
        }
        if let Some(first) = entries.first() {
            let crawl = match adding.crawl {
                Some(crawl) => self.still_queued(crawl)?,
                None => {
                    let crawl = self.new_crawl(first.url.as_str(), options, user)?;
                    self.tx.set_foreground(crawl, foreground.as_deref())?;
                    crawl
                }
            };
            adding.crawl = Some(crawl);
            adding.accepted += self.add_pages(crawl, &entries, options)? as u64;
        }
        match (is_over, adding.crawl.or(adding.known_in)) {
            (true, Some(crawl)) if adding.crawl.is_none() => Ok(Progress::Done(Added {
                crawl,
                accepted: 0,
                refused: adding.refused,
                known: adding.known,
                joined: None,
            })),
            (false, _) => {
                let crawl = adding.crawl;
                if let Some(crawl) = crawl {
                    let until = self.now.after(NEXT_CHUNK_TIMEOUT);
                    self.tx.put_off_crawl(crawl, until, Some(ADDING))?;
                }
                Ok(Progress::More(Box::new(adding)))
            }
            (true, Some(crawl)) => self.added(crawl, adding, options.depth),
            (true, None) => Err(invalid(match adding.refused.first() {
                Some(line) => format!("'{}': {}", line.text, line.why),
                None => "the list contains no URL".to_owned(),
            })),
        }
    }

    fn begin_adding(&self, options: &AddOptions, user: u32) -> TurnResult<Adding> {
        let users = BTreeSet::from([user]);
        self.check_options(options, &users)?;
        let engine = &self.engine;
        let persona = engine.persona(&options.config, &users).map_err(invalid)?;
        let own = engine.persona_settings(persona.as_deref());
        Ok(Adding {
            persona: own.map_err(invalid)?,
            ..Adding::default()
        })
    }

    /// Leaves out the pages that another crawl has, and counts them.
    fn leave_out_known(&self, entries: &mut Vec<Entry>, adding: &mut Adding) -> TurnResult<()> {
        let own = adding.crawl.unwrap_or(CrawlId(0));
        let mut new = Vec::with_capacity(entries.len());
        for entry in entries.drain(..) {
            let url = entry.url.as_str();
            if !self.tx.is_archived(url, own)? {
                new.push(entry);
                continue;
            }
            adding.known += 1;
            if adding.known_in.is_none() {
                adding.known_in = self.tx.archived_in(url)?;
            }
        }
        *entries = new;
        Ok(())
    }

    fn new_crawl(&mut self, url: &str, options: &AddOptions, user: u32) -> TurnResult<CrawlId> {
        if self.tx.node()?.is_some() || self.engine.settings.is_in_fleet() {
            return self.add_fleet_crawl(url, options, user);
        }
        let crawl = self.tx.add_crawl(&NewCrawl {
            url,
            max_depth: options.depth,
            plugins: &options.plugins,
            config: &options.config,
            user,
            now: self.now,
        })?;
        for tag in &options.tags {
            self.tx.tag_crawl(crawl, tag)?;
        }
        if options.only_new {
            self.tx.set_only_new(crawl)?;
        }
        Ok(crawl)
    }

    /// The crawl, unless it was cancelled between two turns.
    fn still_queued(&self, crawl: CrawlId) -> TurnResult<CrawlId> {
        if self.tx.status_of(Owner::Crawl(crawl))?.is_final() {
            Err(invalid(format!(
                "crawl {crawl} was cancelled while its list was being added"
            )))
        } else {
            Ok(crawl)
        }
    }

    fn added(&mut self, crawl: CrawlId, adding: Adding, depth: u32) -> TurnResult<Progress> {
        self.still_queued(crawl)?;
        self.tx.put_off_crawl(crawl, self.now, None)?;
        let work = self.crawl_of(crawl)?;
        let log = CrawlLog::Added {
            url: without_userinfo(work.url.as_str()),
            urls: adding.accepted,
            depth,
        };
        self.log_crawl(crawl, log);
        self.announce_crawl(crawl, Notice::Added)?;
        Ok(Progress::Done(Added {
            crawl,
            accepted: adding.accepted,
            refused: adding.refused,
            known: adding.known,
            joined: None,
        }))
    }

    /// Queues the pages of `entries`, and returns how many are new to the crawl.
    fn add_pages(
        &mut self,
        crawl: CrawlId,
        entries: &[Entry],
        options: &AddOptions,
    ) -> TurnResult<usize> {
        let hosts = entries
            .iter()
            .map(|entry| entry.url.domain())
            .collect::<Vec<_>>();
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
        if self.tx.fleet_crawl(crawl)? != FleetCrawl::No {
            return self.send_entries(crawl, entries, options);
        }
        let added = self.tx.add_snapshots(crawl, None, &pages, self.now)?;
        let own_tags = entries
            .iter()
            .filter(|entry| !entry.tags.is_empty())
            .map(|entry| (entry.url.as_str(), &entry.tags))
            .rev()
            .collect::<HashMap<_, _>>();
        for (id, url) in &added {
            let own = own_tags.get(url.as_str()).copied().into_iter().flatten();
            for tag in options.tags.iter().chain(own) {
                self.tx.tag_snapshot(*id, tag)?;
            }
        }
        self.announce_pages(crawl, &added)?;
        Ok(added.len())
    }
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
pub(crate) fn cancel_half_added(tx: &Tx<'_>, now: Time) -> Result<Vec<CrawlId>, StoreError> {
    let crawls = tx.crawls_put_off(ADDING)?;
    for crawl in crawls.iter().copied() {
        tx.cancel_unbegun(crawl, HALF, now, crate::main_loop::notify::beat)?;
        tx.step_crawl(
            crawl,
            archivist_core::model::Step::Cancel,
            None,
            Some(HALF),
            now,
        )?;
        if tx.fleet_crawl(crawl)? != FleetCrawl::No {
            tx.add_to_outbox(&Request::Command(Command {
                verb: CommandVerb::Cancel,
                target: Owner::Crawl(crawl),
            }))?;
        }
    }
    Ok(crawls)
}
