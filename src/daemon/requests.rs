//! Calls of people.

use super::action::{Action, Answer};
use super::ends::ABORTED;
use super::gate;
use super::listed::Listed;
use super::turn::{Turn, TurnError, TurnResult, failed, invalid};
use crate::bus::call::{Refusal, Reply, Request};
use crate::bus::report::{self, AddOptions, Added, Details, Filter, ROWS_MAX};
use crate::journal::message;
use crate::model::{CrawlId, Entry, Lifecycle, Owner, ResultState, without_userinfo};
use crate::plugin::{Skip, Values};
use crate::store::{NewCrawl, NewSnapshot, Users};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::OwnedFd;

/// Deepest crawl that can be asked for.
const DEPTH_MAX: u32 = 4;
/// Pages of one list that are queued at once, between two beats for the watchdog.
const AT_ONCE: usize = 10_000;

impl Turn<'_> {
    pub(super) fn request(&mut self, request: &Request) -> TurnResult<()> {
        match request {
            Request::Add {
                lines,
                options,
                user,
                reply,
            } => {
                let added = self.add(lines, options, *user)?;
                self.answer_text(reply, serde_json::to_string(&added)?);
            }
            Request::Install { names, user, reply } => {
                let added = self.install(names, *user)?;
                self.answer_text(reply, serde_json::to_string(&added)?);
            }
            Request::Cancel { id, reply } => {
                self.cancel(*id)?;
                self.answer(reply);
            }
            Request::Abort { id, reply } => {
                self.proceed(*id, false)?;
                self.abort(*id, ABORTED)?;
                self.answer(reply);
            }
            Request::Pause { id, reply } => {
                self.pause(*id)?;
                self.answer(reply);
            }
            Request::Resume { id, reply } => {
                self.resume(*id)?;
                self.answer(reply);
            }
            Request::Amend {
                id,
                config,
                user,
                reply,
            } => {
                self.amend(*id, config, *user)?;
                self.answer(reply);
            }
            Request::Retry { id, hook, reply } => {
                let count = match id {
                    Some(id) => self.retry(*id, hook.as_deref())?,
                    None => self.retry_failed(hook.as_deref())?,
                };
                self.actions
                    .push(Action::Answer(Answer::Number(reply.clone(), Ok(count))));
            }
            Request::Status { reply } => {
                let status = self.status()?;
                self.answer_text(reply, serde_json::to_string(&status)?);
            }
            Request::List {
                what,
                filter,
                reply,
            } => {
                if what == "binaries" && self.looks_first(request)? {
                    return Ok(());
                }
                let text = self.list(what, filter)?;
                self.answer_text(reply, text);
            }
            Request::Show { id, reply } => {
                let details = self.details(*id)?;
                self.answer_text(reply, serde_json::to_string(&details)?);
            }
            Request::Why { id, reply } => {
                let why = self.why(*id)?;
                self.answer_text(reply, serde_json::to_string(&why)?);
            }
            Request::Plugins { reply } => {
                let plugins = self.plugins()?;
                self.answer_text(reply, serde_json::to_string(&plugins)?);
            }
            Request::Watch { crawl, reply } => self.watch(*crawl, reply)?,
            Request::Hold {
                crawl,
                cancel,
                reply,
            } => self.hold(*crawl, *cancel, reply)?,
            Request::Interrupt { id, reply } => {
                let interrupted = self.interrupt(*id)?;
                self.answer_text(reply, serde_json::to_string(&interrupted)?);
            }
            Request::Proceed {
                crawl,
                again,
                reply,
            } => {
                let count = self.proceed(*crawl, *again)?;
                self.actions
                    .push(Action::Answer(Answer::Number(reply.clone(), Ok(count))));
            }
            Request::Draft {
                options,
                user,
                reply,
            } => {
                let users = Some(BTreeSet::from([*user]));
                self.check_options(options, &users)?;
                let draft = self.draft(options, &users)?;
                self.answer_text(reply, serde_json::to_string(&draft)?);
            }
            Request::Watches { call, reply } => self.watches(call, reply)?,
            Request::Reload { reply } => self.answer(reply),
        }
        Ok(())
    }

    /// Queues a crawl of the URLs in `lines` for the user of this id.
    pub(super) fn add(
        &mut self,
        lines: &[u8],
        options: &AddOptions,
        user: u32,
    ) -> TurnResult<Added> {
        self.check_options(options, &Some(BTreeSet::from([user])))?;
        let filter = self.engine.url_filter(&options.config).map_err(invalid)?;
        let mut listed = Listed::new(lines, options.depth, &filter);
        let Some(first) = listed.next() else {
            let what = match listed.refused.first() {
                Some(line) => format!("'{}': {}", line.text, line.why),
                None => "there is no URL in it".to_owned(),
            };
            return Err(invalid(what));
        };
        let url = first.url.clone();
        let crawl = self.tx.add_crawl(&NewCrawl {
            url: url.as_str(),
            max_depth: options.depth,
            plugins: &options.plugins,
            config: &options.config,
            user,
            now: self.now,
        })?;
        for tag in &options.tags {
            self.tx.tag_crawl(crawl, tag)?;
        }
        let mut accepted = 0u64;
        let mut rest = std::iter::once(first).chain(listed.by_ref());
        loop {
            let entries = rest.by_ref().take(AT_ONCE).collect::<Vec<_>>();
            if entries.is_empty() {
                break;
            }
            super::notify::beat();
            accepted += self.add_pages(crawl, &entries, options)? as u64;
        }
        tracing::info!(
            message_id = message::CRAWL_ADDED,
            archivist_crawl_id = crawl.0,
            archivist_url = without_userinfo(url.as_str()),
            archivist_urls = accepted,
            "crawl {crawl} is added: {accepted} URLs, depth {}",
            options.depth
        );
        Ok(Added {
            crawl,
            accepted,
            refused: listed.refused,
        })
    }

    /// Queues the pages of `entries`; how many of them the crawl did not have yet.
    fn add_pages(
        &self,
        crawl: CrawlId,
        entries: &[Entry],
        options: &AddOptions,
    ) -> TurnResult<usize> {
        let hosts = entries.iter().map(|entry| entry.url.domain());
        let hosts = hosts.collect::<Vec<_>>();
        let pages = entries.iter().zip(&hosts).map(|(entry, host)| NewSnapshot {
            url: entry.url.as_str(),
            host,
            title: entry.title.as_deref(),
            bookmarked_at: entry.bookmarked_at.as_deref(),
            depth: entry.depth,
        });
        let pages = pages.collect::<Vec<_>>();
        let added = self.tx.add_snapshots(crawl, None, &pages, self.now)?;
        let own_tags = entries.iter().filter(|entry| !entry.tags.is_empty());
        let own_tags = own_tags.map(|entry| (entry.url.as_str(), &entry.tags));
        let own_tags = own_tags.rev().collect::<HashMap<_, _>>();
        for (id, url) in &added {
            let own = own_tags.get(url.as_str()).copied().into_iter().flatten();
            for tag in options.tags.iter().chain(own) {
                self.tx.tag_snapshot(*id, tag)?;
            }
        }
        Ok(added.len())
    }

    /// Refuses settings that nothing would read, and plugins that there are not, before anything
    /// is queued.
    fn check_options(&self, options: &AddOptions, users: &Users) -> TurnResult<()> {
        if options.depth > DEPTH_MAX {
            return Err(invalid(format!(
                "depth {} is not in 0..={DEPTH_MAX}",
                options.depth
            )));
        }
        self.check_settings(&options.plugins, &options.config, users)
    }

    pub(super) fn check_settings(
        &self,
        plugins: &[String],
        config: &BTreeMap<String, String>,
        users: &Users,
    ) -> TurnResult<()> {
        let known = self.engine.catalogue.known_keys();
        if let Some(key) = config.keys().find(|key| !known.contains(*key)) {
            return Err(invalid(format!(
                "no plugin has a setting '{key}'; see: archivist plugins"
            )));
        }
        let persona = self.engine.persona(config, users).map_err(invalid)?;
        self.engine
            .select(plugins, config, persona.is_some())
            .map_err(invalid)?;
        self.engine.url_filter(config).map_err(invalid)?;
        self.engine.crawl_limits(config).map_err(invalid)?;
        self.engine.check_network().map_err(failed)
    }

    fn cancel(&mut self, id: Owner) -> TurnResult<()> {
        let reason = "cancelled by request";
        if self.is_already(id, "cancel", |status| status == Lifecycle::Cancelled)? {
            return Ok(());
        }
        match id {
            Owner::Crawl(id) => {
                self.proceed(id, false)?;
                self.cancel_crawl(id, reason)
            }
            Owner::Snapshot(id) => {
                let snapshot = self.snapshot_of(id)?;
                self.cancel_snapshot(snapshot.crawl, id, reason)?;
                self.tidy_crawl(snapshot.crawl)
            }
        }
    }

    fn status(&self) -> TurnResult<report::Status> {
        let open = Filter {
            status: Some("open".into()),
            ..Filter::default()
        };
        let running = self.tx.list_runs(&open)?;
        let (crawls, snapshots) = (
            self.tx.counts("crawl", None)?,
            self.tx.counts("snapshot", None)?,
        );
        let view = self.view(&self.engine.limits())?;
        Ok(report::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            systemd: self.engine.systemd.clone(),
            data: self.engine.scope.data_dir().to_string_lossy().into_owned(),
            line: super::notify::line(
                &crawls,
                &snapshots,
                &super::notify::units(&running),
                self.tx.check_counts()?,
            ),
            crawls,
            snapshots,
            running,
            next: view.next_due,
            runners: self.runners()?,
            blocked: super::pressure::blocked(&view).map(str::to_owned),
            network: self.engine.network_line(),
            address_filter: self.engine.filter_holds,
        })
    }

    fn runners(&self) -> TurnResult<Vec<report::Runner>> {
        let Some(me) = &self.engine.me else {
            return Ok(Vec::new());
        };
        let runners = self.tx.runners()?;
        Ok(gate::reported(&runners, me.seat, &me.place, &me.seats))
    }

    fn list(&self, what: &str, filter: &Filter) -> TurnResult<String> {
        let known: Vec<&str> = match what {
            "crawls" | "snapshots" => Lifecycle::ALL.iter().map(|state| state.as_str()).collect(),
            "results" => ResultState::ALL
                .iter()
                .map(|state| state.as_str())
                .collect(),
            "runs" => vec!["starting", "running", "ended", "open"],
            "binaries" | "timeline" => Vec::new(),
            _ => {
                return Err(invalid(format!(
                    "'{what}' is none of crawls, snapshots, results, runs, timeline, binaries"
                )));
            }
        };
        if let Some(status) = &filter.status
            && !known.contains(&status.as_str())
        {
            let known = known.join(", ");
            return Err(invalid(format!(
                "'{status}' is no status of {what}: {known}"
            )));
        }
        let filter = filter.piece();
        Ok(match what {
            "crawls" => serde_json::to_string(&self.tx.list_crawls(&filter)?)?,
            "snapshots" => serde_json::to_string(&self.snapshots(&filter)?)?,
            "binaries" => serde_json::to_string(&self.binaries()?)?,
            "results" => serde_json::to_string(&self.tx.list_results(&filter)?)?,
            "timeline" => serde_json::to_string(&self.tx.list_spans(&filter)?)?,
            _ => serde_json::to_string(&self.tx.list_runs(&filter)?)?,
        })
    }

    /// Programs are looked at before they are listed; the request comes again after that.
    fn looks_first(&mut self, request: &Request) -> TurnResult<bool> {
        let none = Values::new();
        let layers = self.engine.layers(&none, &none);
        let plugins = self.engine.catalogue.plugins.iter();
        let programs = self.engine.programs(plugins, &layers);
        self.inspect(&programs, Some(request.clone()))
    }

    fn details(&self, id: Owner) -> TurnResult<Details> {
        self.tx.status_of(id)?;
        let filter = Filter {
            owner: Some(id),
            limit: ROWS_MAX,
            ..Filter::default()
        };
        let none = || TurnError::Refused(Refusal::NoSuch(format!("there is no {id}")));
        let mut snapshots = self.snapshots(&filter)?;
        let (mut results, mut runs) = (self.tx.list_results(&filter)?, self.tx.list_runs(&filter)?);
        // One id is read like a story, from its beginning.
        snapshots.reverse();
        results.reverse();
        runs.reverse();
        Ok(match id {
            Owner::Crawl(_) => {
                let crawl = self
                    .tx
                    .list_crawls(&filter)?
                    .into_iter()
                    .next()
                    .ok_or_else(none)?;
                Details::Crawl {
                    crawl,
                    snapshots,
                    results,
                    runs,
                }
            }
            Owner::Snapshot(_) => {
                let snapshot = snapshots.pop().ok_or_else(none)?;
                Details::Snapshot {
                    snapshot,
                    results,
                    runs,
                }
            }
        })
    }

    fn plugins(&self) -> TurnResult<report::Plugins> {
        let selected = self
            .engine
            .select(&[], &Default::default(), false)
            .map_err(invalid)?;
        let uses = self.tx.uses()?;
        let skip = |name: &str| {
            let mut pairs = selected.skipped.iter();
            let (_, skip) = pairs.find(|(plugin, _)| plugin.name == name)?;
            Some(skip)
        };
        let plugin = |plugin: &crate::plugin::Plugin| report::Plugin {
            name: plugin.name.clone(),
            directory: plugin.dir.to_string_lossy().into_owned(),
            description: plugin.schema.description.clone(),
            hooks: plugin.hooks.iter().map(|hook| hook.id.clone()).collect(),
            skipped: skip(&plugin.name).map(ToString::to_string),
            by_choice: skip(&plugin.name).is_some_and(Skip::is_by_choice),
            fix: skip(&plugin.name).and_then(|skip| skip.fix().map(str::to_owned)),
            uses: uses.get(&plugin.name).copied().unwrap_or_default(),
        };
        let problem = |problem: &crate::plugin::Problem| report::Problem {
            path: problem.path.to_string_lossy().into_owned(),
            what: problem.what.clone(),
        };
        let catalogue = &self.engine.catalogue;
        Ok(report::Plugins {
            plugins: catalogue.plugins.iter().map(plugin).collect(),
            problems: catalogue.problems.iter().map(problem).collect(),
        })
    }

    fn watch(&mut self, crawl: CrawlId, reply: &Reply<OwnedFd>) -> TurnResult<()> {
        self.crawl_of(crawl)?;
        let first = self.present_state(crawl)?;
        self.actions.push(Action::Follow {
            crawl,
            first,
            reply: reply.clone(),
        });
        Ok(())
    }
}
