//! What the event stream of a crawl amounts to: pure, fed by `wait`, shown by `progress`.

use crate::client::exit::Exit;
use crate::display::look::Tone;
use crate::display::text;
use archivist_core::model::{CrawlId, Lifecycle, Owner, ResultState, SnapshotId, Time};
use archivist_core::text::{clean, human_span};
use archivist_shared::bus::documents::report::{Counts, Crawl, Event, HookResult, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

/// A line worth showing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub text: String,
    pub tone: Tone,
    /// Worth a line even where bars show the rest.
    pub lasting: bool,
}

/// A page that is being worked on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub url: String,
    pub started_at: Option<Time>,
    /// Hooks that run, with their start.
    pub hooks: BTreeMap<String, Option<Time>>,
}

/// Everything known of the crawl that is followed.
#[derive(Debug)]
pub struct Follow {
    id: CrawlId,
    crawl: Option<Crawl>,
    statuses: BTreeMap<SnapshotId, Lifecycle>,
    /// Pages that ended badly, with the reason.
    bad_pages: BTreeSet<SnapshotId>,
    /// URLs of pages and of the crawl, for the lines of hooks.
    urls: BTreeMap<Owner, String>,
    /// Pages that have a worker.
    working: BTreeMap<SnapshotId, Page>,
    results: BTreeMap<(Owner, String, String), ResultState>,
    problems: BTreeMap<(Owner, String), String>,
}

impl Follow {
    pub fn new(id: CrawlId) -> Follow {
        Follow {
            id,
            crawl: None,
            statuses: BTreeMap::new(),
            bad_pages: BTreeSet::new(),
            urls: BTreeMap::new(),
            working: BTreeMap::new(),
            results: BTreeMap::new(),
            problems: BTreeMap::new(),
        }
    }

    /// Takes one event in; a note comes back when it is news. A stream that begins anew repeats
    /// what is known already.
    pub fn apply(&mut self, event: Event) -> Option<Note> {
        match event {
            Event::Crawl { crawl } => self.crawl_event(crawl),
            Event::Snapshot { snapshot } => self.snapshot_event(snapshot),
            Event::Hook { result } => self.hook_event(result),
        }
    }

    /// A stream begins: it tells what is being worked on, and what is not told any more has ended
    /// meanwhile.
    pub fn stream_begins(&mut self) {
        self.working.clear();
    }

    /// Whether the streams left out pages or failures that the crawl counts.
    pub fn has_gaps(&self) -> bool {
        let Some(crawl) = &self.crawl else {
            return false;
        };
        let pages: u64 = crawl.snapshots.values().sum();
        let ended = self.statuses.values().filter(|status| status.is_final());
        let failed = self.results.values();
        let failed = failed.filter(|status| **status == ResultState::Failed);
        (ended.count() as u64) < pages
            || (failed.count() as u64) < crawl.results.get("failed").copied().unwrap_or(0)
    }

    fn crawl_event(&mut self, crawl: Crawl) -> Option<Note> {
        let before = self.crawl.as_ref().map(|known| known.status);
        let owner = Owner::Crawl(crawl.id);
        self.urls.insert(owner, crawl.url.clone());
        let note = (before != Some(crawl.status)).then(|| Note {
            text: with_reason(
                format!("{} {}", crawl.id, crawl.status),
                crawl.reason.as_deref(),
            ),
            tone: text::tone_of_lifecycle(crawl.status, crawl.reason.as_deref()),
            lasting: false,
        });
        self.crawl = Some(crawl);
        note
    }

    fn snapshot_event(&mut self, snapshot: Snapshot) -> Option<Note> {
        let owner = Owner::Snapshot(snapshot.id);
        let before = self.statuses.insert(snapshot.id, snapshot.status);
        self.urls.insert(owner, snapshot.url.clone());
        if snapshot.status == Lifecycle::Started {
            let page = self.working.entry(snapshot.id).or_default();
            page.url.clone_from(&snapshot.url);
            page.started_at = snapshot.started_at;
        } else {
            self.working.remove(&snapshot.id);
        }
        let bad = snapshot.status == Lifecycle::Cancelled
            || (snapshot.status == Lifecycle::Sealed && snapshot.reason.is_some());
        if bad {
            self.bad_pages.insert(snapshot.id)
        } else {
            self.bad_pages.remove(&snapshot.id)
        };
        let key = (owner, String::new());
        if bad {
            self.problems.insert(key, page_line(&snapshot))
        } else {
            self.problems.remove(&key)
        };
        (before != Some(snapshot.status) && snapshot.status != Lifecycle::Queued).then(|| Note {
            text: page_line(&snapshot),
            tone: text::tone_of_lifecycle(snapshot.status, snapshot.reason.as_deref()),
            lasting: snapshot.status.is_final(),
        })
    }

    fn hook_event(&mut self, result: HookResult) -> Option<Note> {
        let label = text::hook_label(&result.plugin, &result.hook);
        if let Owner::Snapshot(id) = result.owner {
            if result.status == ResultState::Started {
                let page = self.working.entry(id).or_default();
                page.hooks.insert(label.clone(), result.started_at);
            } else if let Some(page) = self.working.get_mut(&id) {
                page.hooks.remove(&label);
            }
        }
        let line = self.hook_line(&result, &label);
        let key = (result.owner, label);
        match result.status {
            ResultState::Failed => self.problems.insert(key, line.clone()),
            _ => self.problems.remove(&key),
        };
        let key = (result.owner, result.plugin.clone(), result.hook.clone());
        let before = self.results.insert(key, result.status);
        let told = result.status.is_final() || result.status == ResultState::Backoff;
        (before != Some(result.status) && told).then(|| Note {
            text: line,
            tone: text::tone_of_result(result.status),
            lasting: result.status == ResultState::Failed,
        })
    }

    fn hook_line(&self, result: &HookResult, label: &str) -> String {
        let url = self.urls.get(&result.owner).map_or("", String::as_str);
        let mut line = format!("{} {} {label} {}", result.owner, clean(url), result.status);
        if let (Some(from), Some(to)) = (result.started_at, result.ended_at) {
            line.push(' ');
            line.push_str(&human_span(to.until(from)));
        }
        let why = match result.status {
            ResultState::Failed | ResultState::Skipped | ResultState::Backoff => {
                result.error.as_deref().or(result.output.as_deref())
            }
            _ => None,
        };
        with_reason(line, why)
    }

    /// Whether the crawl is over.
    pub fn is_final(&self) -> bool {
        self.crawl
            .as_ref()
            .is_some_and(|crawl| crawl.status.is_final())
    }

    /// Pages with a worker, oldest id first.
    pub fn working(&self) -> &BTreeMap<SnapshotId, Page> {
        &self.working
    }

    /// Pages that are done, and all.
    pub fn pages(&self) -> (u64, u64) {
        let counted = |of: &dyn Fn(Lifecycle) -> bool| {
            self.statuses.values().filter(|status| of(**status)).count() as u64
        };
        // The stream may leave out pages that were done before it began.
        let from_crawl = self.crawl.as_ref().map(|crawl| {
            let ended = ["sealed", "cancelled"];
            let finals: u64 = ended.iter().filter_map(|s| crawl.snapshots.get(*s)).sum();
            (finals, crawl.snapshots.values().sum())
        });
        let (done, all) = from_crawl.unwrap_or((0, 0));
        (
            done.max(counted(&Lifecycle::is_final)),
            all.max(counted(&|_| true)),
        )
    }

    /// Results by status, as far as they were told.
    pub fn results(&self) -> Counts {
        let mut counts = Counts::new();
        for status in self.results.values() {
            *counts.entry(status.as_str().to_owned()).or_default() += 1;
        }
        match &self.crawl {
            Some(crawl) if crawl.results.values().sum::<u64>() >= counts.values().sum() => {
                crawl.results.clone()
            }
            _ => counts,
        }
    }

    /// What went wrong, a line each.
    pub fn problems(&self) -> impl ExactSizeIterator<Item = &str> {
        self.problems.values().map(String::as_str)
    }

    /// The exit status that the present state stands for.
    pub fn exit(&self) -> Exit {
        let crawl_bad = self.crawl.as_ref().is_none_or(|crawl| {
            crawl.status != Lifecycle::Sealed
                || crawl.reason.is_some()
                || crawl.snapshots.get("cancelled").is_some_and(|n| *n > 0)
        });
        let failed = self.results().get("failed").is_some_and(|n| *n > 0);
        if crawl_bad || failed || !self.bad_pages.is_empty() {
            Exit::Partly
        } else {
            Exit::Done
        }
    }

    /// The last lines of `--wait`.
    pub fn summary(&self, now: Time) -> String {
        const SHOWN: usize = 10;
        let (done, all) = self.pages();
        let pages = match all {
            1 => "1 page".to_owned(),
            _ if done == all => format!("{all} pages"),
            _ => format!("{done} of {all} pages"),
        };
        let mut out = String::new();
        for problem in self.problems().take(SHOWN) {
            out.push_str(&format!("  {problem}\n"));
        }
        if self.problems.len() > SHOWN {
            out.push_str(&format!("  … and {} more\n", self.problems.len() - SHOWN));
        }
        let Some(crawl) = &self.crawl else {
            return out;
        };
        let took = text::elapsed(crawl.started_at, crawl.ended_at, now);
        let results = text::counts(&self.results(), &text::result_states());
        let status = with_reason(crawl.status.to_string(), crawl.reason.as_deref());
        out.push_str(&format!(
            "{} {status}: {pages}, results: {results}",
            self.id
        ));
        if !took.is_empty() {
            out.push_str(&format!(", in {took}"));
        }
        out.push_str(&format!("\nsee: archivist show {}\n", self.id));
        out
    }
}

fn page_line(snapshot: &Snapshot) -> String {
    let line = format!(
        "{} {} {}",
        snapshot.id,
        clean(&snapshot.url),
        snapshot.status
    );
    with_reason(line, snapshot.reason.as_deref())
}

fn with_reason(mut line: String, reason: Option<&str>) -> String {
    if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
        line.push_str(": ");
        line.push_str(&clean(reason));
    }
    line
}

#[cfg(test)]
mod tests;
