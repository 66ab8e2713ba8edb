//! Calls about watches. What is to be watched is in files, which are read when they are asked for;
//! when, is systemd's to know: its timers make these calls.

use crate::main_loop::action::Action;
use crate::main_loop::turn::{Turn, TurnError, TurnResult, invalid};
use crate::query::documents::{documents, without_details};
use crate::store::NewCheck;
use archivist_core::model::{CheckKind, CheckRecord, CrawlId, Entry, Outcome, Reading, RunId};
use archivist_core::model::{parse_line, without_userinfo};
use archivist_shared::bus::call::{Refusal, Reply, WatchCall};
use archivist_shared::bus::documents::report::AddOptions;
use archivist_shared::bus::documents::watches;
use archivist_shared::bus::documents::watches::{Check, Queued, Site};
use archivist_shared::bus::documents::work::Ended;
use archivist_shared::declare::files;
use archivist_shared::declare::watch::{Watch, is_name};
use archivist_shared::declare::{Declaration, Kind};
use serde_json::json;
use std::io::Read;
use std::path::Path;

/// URLs of one watch.
const URLS_MAX: usize = 10_000;
/// Longest file of URLs, in bytes.
const FILE_MAX: u64 = 16 << 20;

impl Turn<'_> {
    pub(crate) fn watches(&mut self, call: &WatchCall, reply: &Reply<String>) -> TurnResult<()> {
        let text = match call {
            WatchCall::Check { watch, kinds } => {
                let queued = self.check(watch, kinds)?;
                serde_json::to_string(&queued)?
            }
            WatchCall::Await(id) => return self.await_check(*id, reply),
            WatchCall::List(name) => {
                let scope = &self.engine.scope;
                let declared = match name {
                    Some(name) => vec![self.declared(name)?],
                    None => files::read(scope).0,
                };
                let watches = declared.iter().filter(|found| found.kind == Kind::Watch);
                let watches = watches.map(|found| self.shown(found));
                serde_json::to_string(&watches.collect::<TurnResult<Vec<_>>>()?)?
            }
            WatchCall::History { watch, filter } => {
                let checks = self.tx.check_history(watch, filter)?;
                if checks.is_empty() {
                    self.declared(watch)?;
                }
                let shown = if filter.full {
                    Check::from
                } else {
                    without_details
                };
                let checks: Vec<Check> = checks.into_iter().map(shown).collect();
                serde_json::to_string(&checks)?
            }
            WatchCall::Why(name) => {
                let watch = self.shown(&self.declared(name)?)?;
                serde_json::to_string(&self.why_watch(&watch)?)?
            }
        };
        self.answer_text(reply, text);
        Ok(())
    }

    fn declared(&self, name: &str) -> TurnResult<Declaration> {
        let none = || {
            let text =
                format!("there is no watch '{name}' (a file {name}.watch, see archivist.watch(5))");
            TurnError::Refused(Refusal::NoSuch(text))
        };
        if !is_name(name) {
            return Err(none());
        }
        let found = files::read_named(&self.engine.scope, Kind::Watch, name);
        found
            .map_err(|problem| invalid(problem.text))?
            .ok_or_else(none)
    }

    pub(crate) fn watch_named(&self, name: &str) -> TurnResult<Watch> {
        let declared = self.declared(name)?;
        Ok(Watch::read(name, &declared.entries).0)
    }

    /// Whether nobody wants to know of its sites any more.
    pub(crate) fn is_gone(&self, name: &str) -> bool {
        matches!(
            self.declared(name),
            Err(TurnError::Refused(Refusal::NoSuch(_)))
        )
    }

    /// Queues checks, of each kind one for each URL that has none open.
    fn check(&mut self, name: &str, kinds: &[CheckKind]) -> TurnResult<Queued> {
        let declared = self.declared(name)?;
        let (watch, problems) = Watch::read(name, &declared.entries);
        for problem in &problems {
            tracing::warn!("{}, ignoring", told(problem, &declared.path));
        }
        let urls = urls(&watch)?;
        let kinds = match kinds {
            [] => watch.kinds(),
            some => some.to_vec(),
        };
        let mut queued = Queued {
            watch: name.to_owned(),
            ..Queued::default()
        };
        for kind in kinds {
            if kind == CheckKind::Archive {
                self.archive(&watch, &urls, &mut queued)?;
                continue;
            }
            for url in &urls {
                let library = self.engine.scope.data_dir().join("lib");
                let request = json!({ "url": url, "settings": { "lib_dir": library } });
                match self.queue(&watch, kind, url, &request.to_string())? {
                    Some(id) => queued.queued.push(id),
                    None => queued.open += 1,
                }
            }
        }
        Ok(queued)
    }

    fn queue(
        &self,
        watch: &Watch,
        kind: CheckKind,
        url: &str,
        request: &str,
    ) -> TurnResult<Option<RunId>> {
        Ok(self.tx.queue_check(&NewCheck {
            watch: &watch.name,
            kind,
            url,
            request,
            keep: watch.retention,
            now: self.now,
        })?)
    }

    /// Adds a crawl, unless the one before is at work still, or there is nothing new.
    fn archive(&mut self, watch: &Watch, urls: &[String], queued: &mut Queued) -> TurnResult<()> {
        if let Some(before) = self.tx.last_archive(&watch.name)?
            && let Some(crawl) = self.tx.crawl(before)?
            && !crawl.status.is_final()
        {
            queued.open += 1;
            queued.crawl = Some(before);
            return Ok(());
        }
        let how = &watch.archiving;
        let mut wanted = Vec::new();
        for url in urls {
            let known = how.only_new && how.depth == 0;
            if !known || !self.tx.is_archived(url, CrawlId(0))? {
                wanted.push(url.as_str());
            }
        }
        let crawl = if wanted.is_empty() {
            None
        } else {
            let options = AddOptions {
                depth: how.depth,
                tags: how.tags.clone(),
                plugins: how.plugins.clone(),
                ..AddOptions::default()
            };
            // What watches are to do is root's declaration.
            const ROOT: u32 = 0;
            let added = self.add(wanted.join("\n").as_bytes(), &options, ROOT)?;
            Some(added.crawl)
        };
        if let Some(crawl) = crawl.filter(|_| how.only_new) {
            self.tx.set_only_new(crawl)?;
        }
        let first = urls.first().map_or("", String::as_str);
        let Some(id) = self.queue(watch, CheckKind::Archive, first, "")? else {
            return Ok(());
        };
        let record = CheckRecord {
            ok: true,
            crawl,
            ..CheckRecord::default()
        };
        let found = (Some(true), &record);
        self.tx
            .end_check(id, None, &Reading::default(), found, self.now)?;
        queued.queued.push(id);
        queued.crawl = crawl;
        Ok(())
    }

    fn await_check(&mut self, id: RunId, reply: &Reply<String>) -> TurnResult<()> {
        if self.tx.open_check(id)?.is_some() {
            let reply = reply.clone();
            self.actions.push(Action::Join { run: id, reply });
            return Ok(());
        }
        let ended = Ended {
            run: Some(id),
            ..Ended::without_run(Outcome::Exit(0))
        };
        self.answer_text(reply, serde_json::to_string(&ended)?);
        Ok(())
    }

    fn shown(&self, declared: &Declaration) -> TurnResult<watches::Watch> {
        let (watch, problems) = Watch::read(&declared.name, &declared.entries);
        let mut problems: Vec<String> = problems
            .iter()
            .map(|problem| told(problem, &declared.path))
            .collect();
        let urls = urls(&watch).unwrap_or_else(|error| {
            if let TurnError::Refused(Refusal::Invalid(why)) = error {
                problems.push(why);
            }
            Vec::new()
        });
        let sites = urls.iter().map(|url| self.site(&watch.name, url));
        let sites = sites.collect::<TurnResult<_>>()?;
        let kinds = CheckKind::SCHEDULED.into_iter();
        Ok(watches::Watch {
            file: declared.path.to_string_lossy().into_owned(),
            problems,
            schedules: kinds
                .map(|kind| (kind, watch.schedule(kind).words))
                .collect(),
            retention_s: watch.retention.as_secs(),
            sites,
            name: watch.name,
        })
    }

    fn site(&self, watch: &str, url: &str) -> TurnResult<Site> {
        let health = self.tx.health(watch, url)?;
        let (all, good) = self.tx.uptime(watch, url)?;
        let mut last = Vec::new();
        for kind in CheckKind::SCHEDULED {
            let check = self.tx.last_check(watch, kind, url)?;
            last.extend(check.map(without_details));
        }
        Ok(Site {
            url: without_userinfo(url),
            down_since: health.down_since,
            failures: health.failures,
            uptime: (all > 0).then(|| good as f64 * 100.0 / all as f64),
            status_checks: all,
            last,
            open: documents(self.tx.open_checks_of(watch, url)?),
        })
    }
}

fn told(problem: &archivist_shared::declare::watch::Problem, file: &Path) -> String {
    match &problem.place {
        Some(place) => format!("{place}: {}", problem.what),
        None => format!("{}: {}", file.display(), problem.what),
    }
}

/// The URLs of the file and of the file that it names.
fn urls(watch: &Watch) -> TurnResult<Vec<String>> {
    let mut urls = watch.urls.clone();
    if let Some(path) = &watch.url_file {
        let failed = |error: std::io::Error| {
            invalid(format!(
                "failed to read URLFile '{}': {error}",
                path.display()
            ))
        };
        let about = std::fs::metadata(path).map_err(failed)?;
        if !about.is_file() || about.len() > FILE_MAX {
            let what = format!("URLFile '{}' is not a file of at most 16M", path.display());
            return Err(invalid(what));
        }
        let mut text = Vec::new();
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(FILE_MAX).read_to_end(&mut text).map_err(failed)?;
        let lines = text.split(|byte| *byte == b'\n').filter_map(parse_line);
        let entries = lines.filter_map(Result::ok);
        urls.extend(entries.map(|Entry { url, .. }| url.as_str().to_owned()));
    }
    let mut seen = std::collections::BTreeSet::new();
    urls.retain(|url| seen.insert(url.clone()));
    match urls.len() {
        0 => Err(invalid(format!("watch '{}' has no URL", watch.name))),
        n if n > URLS_MAX => Err(invalid(format!(
            "watch '{}' has {n} URLs, more than {URLS_MAX}",
            watch.name
        ))),
        _ => Ok(urls),
    }
}
