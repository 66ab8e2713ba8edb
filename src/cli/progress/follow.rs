//! State of a crawl as its event stream reports it. Pure: `wait` feeds it and `progress` shows it.

use crate::client::exit::Exit;
use crate::display::style::Tone;
use crate::display::text;
use archivist_core::model::is_http_error;
use archivist_core::model::{CrawlId, Lifecycle, Owner, ResultState, SnapshotId, Time};
use archivist_core::plan::{CrawlEnd, is_incomplete, partial_text};
use archivist_core::text::{clean, human_span};
use archivist_shared::bus::documents::report::{
    Counts, Crawl, CrawlEvent, HookResult, Snapshot, sum_up,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub text: String,
    pub tone: Tone,
    /// Print the line even while a screen shows the rest.
    pub lasting: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub url: String,
    pub started_at: Option<Time>,
    pub hooks: BTreeMap<String, Option<Time>>,
}

#[derive(Debug)]
pub struct Follow {
    id: CrawlId,
    crawl: Option<Crawl>,
    statuses: BTreeMap<SnapshotId, Lifecycle>,
    /// Pages that were cancelled, or sealed with a reason or with the document of an HTTP error.
    bad_pages: BTreeSet<SnapshotId>,
    /// Sealed pages whose documents are HTTP errors, with the status.
    http_errors: BTreeMap<SnapshotId, u16>,
    /// URLs of the crawl and its pages, for the lines of hooks.
    urls: BTreeMap<Owner, String>,
    working: BTreeMap<SnapshotId, Page>,
    results: BTreeMap<(Owner, String, String), ResultState>,
    /// Skipped hooks of pages that have not ended: most of them have the same reason.
    skipped: BTreeMap<Owner, Vec<HookResult>>,
    /// Lines about bad pages and failed hooks, with the reason.
    problems: BTreeMap<(Owner, String), (String, Option<String>)>,
}

impl Follow {
    pub fn new(id: CrawlId) -> Follow {
        Follow {
            id,
            crawl: None,
            statuses: BTreeMap::new(),
            bad_pages: BTreeSet::new(),
            http_errors: BTreeMap::new(),
            urls: BTreeMap::new(),
            working: BTreeMap::new(),
            results: BTreeMap::new(),
            skipped: BTreeMap::new(),
            problems: BTreeMap::new(),
        }
    }

    /// Applies one event; returns lines if the event changes the state. A stream that starts again
    /// repeats what is known already. Skipped hooks have lines when their page has ended.
    pub fn apply(&mut self, event: CrawlEvent, now: Time) -> Vec<Note> {
        let (mut notes, note) = match event {
            CrawlEvent::Crawl { crawl } if crawl.status.is_final() => {
                (self.skipped_of(Owner::Crawl(crawl.id), None), self.crawl_event(crawl))
            }
            CrawlEvent::Crawl { crawl } => (Vec::new(), self.crawl_event(crawl)),
            CrawlEvent::Snapshot { snapshot } if snapshot.status != Lifecycle::Started => {
                let skipped = self.skipped_of(Owner::Snapshot(snapshot.id), snapshot.lack());
                (skipped, self.snapshot_event(snapshot, now))
            }
            CrawlEvent::Snapshot { snapshot } => (Vec::new(), self.snapshot_event(snapshot, now)),
            CrawlEvent::Hook { result } => (Vec::new(), self.hook_event(result)),
        };
        notes.extend(note);
        notes
    }

    fn skipped_of(&mut self, owner: Owner, reason: Option<&str>) -> Vec<Note> {
        let results = self.skipped.remove(&owner).unwrap_or_default();
        let (alone, sums) = sum_up(&results);
        let url = clean(self.urls.get(&owner).map_or("", String::as_str));
        let alone = alone
            .into_iter()
            .map(|result| self.hook_line(result, &text::hook_label(&result.plugin, &result.hook)));
        let sums = sums.iter().map(|sum| format!("{owner} {url} {}", clean(&sum.text("", reason))));
        let tone = text::tone_of_result(ResultState::Skipped);
        alone.chain(sums).map(|text| Note { text, tone, lasting: false }).collect()
    }

    /// A new stream starts with everything that is running: forget running pages that it does not
    /// repeat.
    pub fn stream_begins(&mut self) {
        self.working.clear();
    }

    /// Returns whether the streams left out pages or failures that the crawl counts.
    pub fn has_gaps(&self) -> bool {
        let Some(crawl) = &self.crawl else {
            return false;
        };
        let pages: u64 = crawl.snapshots.values().sum();
        let ended = self.statuses.values().filter(|status| status.is_final());
        let failed = self.results.values().filter(|status| **status == ResultState::Failed);
        (ended.count() as u64) < pages
            || (failed.count() as u64) < crawl.results.get("failed").copied().unwrap_or(0)
    }

    fn crawl_event(&mut self, crawl: Crawl) -> Option<Note> {
        let before = self.crawl.as_ref().map(|known| known.status);
        let owner = Owner::Crawl(crawl.id);
        self.urls.insert(owner, crawl.url.clone());
        let note = (before != Some(crawl.status)).then(|| Note {
            text: with_reason(format!("{} {}", crawl.id, crawl.status), crawl.reason.as_deref()),
            tone: text::tone_of_lifecycle(crawl.status, crawl.reason.as_deref()),
            lasting: false,
        });
        self.crawl = Some(crawl);
        note
    }

    fn snapshot_event(&mut self, snapshot: Snapshot, now: Time) -> Option<Note> {
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
            || http_error(&snapshot).is_some()
            || is_incomplete(snapshot.status, snapshot.reason.as_deref());
        if bad {
            self.bad_pages.insert(snapshot.id)
        } else {
            self.bad_pages.remove(&snapshot.id)
        };
        match http_error(&snapshot) {
            Some(status) => self.http_errors.insert(snapshot.id, status),
            None => self.http_errors.remove(&snapshot.id),
        };
        let key = (owner, String::new());
        if bad {
            self.problems.insert(key, (page_line(&snapshot), snapshot.reason.clone()))
        } else {
            self.problems.remove(&key)
        };
        let waits = waiting(&snapshot, now);
        let is_reported = snapshot.status != Lifecycle::Queued || waits.is_some();
        (before != Some(snapshot.status) && is_reported).then(|| Note {
            lasting: snapshot.status.is_final() || waits.is_some(),
            text: match waits {
                Some(waits) => format!("{} {} {waits}", snapshot.id, clean(&snapshot.url)),
                None => page_line(&snapshot),
            },
            tone: text::tone_of_lifecycle(snapshot.status, snapshot.reason.as_deref()),
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
            ResultState::Failed => self.problems.insert(key, (line.clone(), result.error.clone())),
            _ => self.problems.remove(&key),
        };
        if let Some(skipped) = self.skipped.get_mut(&result.owner) {
            // The hook runs again.
            skipped.retain(|known| (&known.plugin, &known.hook) != (&result.plugin, &result.hook));
        }
        let key = (result.owner, result.plugin.clone(), result.hook.clone());
        let status = result.status;
        let is_new = self.results.insert(key, status) != Some(status);
        if status == ResultState::Skipped && is_new {
            self.skipped.entry(result.owner).or_default().push(result);
            return None;
        }
        let reported = status.is_final() || status == ResultState::Backoff;
        (is_new && reported).then(|| Note {
            text: line,
            tone: text::tone_of_result(status),
            lasting: status == ResultState::Failed,
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

    pub fn is_final(&self) -> bool {
        self.crawl.as_ref().is_some_and(|crawl| crawl.status.is_final())
    }

    /// Running pages, lowest id first.
    pub fn working(&self) -> &BTreeMap<SnapshotId, Page> {
        &self.working
    }

    /// Returns the numbers of ended pages and of all pages.
    pub fn pages(&self) -> (u64, u64) {
        let counted = |of: &dyn Fn(Lifecycle) -> bool| {
            self.statuses.values().filter(|status| of(**status)).count() as u64
        };
        // The stream may leave out pages that ended before it began.
        let from_crawl = self.crawl.as_ref().map(|crawl| {
            let ended = ["sealed", "cancelled"];
            let finals: u64 = ended.iter().filter_map(|s| crawl.snapshots.get(*s)).sum();
            (finals, crawl.snapshots.values().sum())
        });
        let (done, all) = from_crawl.unwrap_or((0, 0));
        (done.max(counted(&Lifecycle::is_final)), all.max(counted(&|_| true)))
    }

    /// Number of results by status, of those that the stream reported.
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

    /// One line for each failure, but for those of hooks that are the reason of their page.
    pub fn problems(&self) -> Vec<&str> {
        let page = |owner: Owner| self.problems.get(&(owner, String::new()));
        let is_said = |owner, reason: &Option<String>| {
            let of_page = page(owner).and_then(|(_, reason)| reason.as_deref());
            of_page
                .zip(reason.as_deref())
                .is_some_and(|(of_page, reason)| of_page.ends_with(reason))
        };
        let shown = self
            .problems
            .iter()
            .filter(|((owner, label), (_, reason))| label.is_empty() || !is_said(*owner, reason));
        shown.map(|(_, (line, _))| line.as_str()).collect()
    }

    pub fn exit(&self) -> Exit {
        let count = |counts: &Counts, status: &str| counts.get(status).copied().unwrap_or(0);
        let is_success = self.crawl.as_ref().is_some_and(|crawl| {
            let end = CrawlEnd {
                status: crawl.status,
                has_reason: crawl.reason.is_some(),
                failed_results: count(&self.results(), "failed"),
                bad_pages: count(&crawl.snapshots, "cancelled") + self.bad_pages.len() as u64,
            };
            end.is_success()
        });
        if is_success { Exit::Done } else { Exit::Partly }
    }

    /// Summary that `--wait` prints at the end.
    pub fn summary(&self, now: Time) -> String {
        const SHOWN: usize = 10;
        let (done, all) = self.pages();
        let pages = match all {
            1 => "1 page".to_owned(),
            _ if done == all => format!("{all} pages"),
            _ => format!("{done} of {all} pages"),
        };
        let mut out = String::new();
        let problems = self.problems();
        for problem in problems.iter().take(SHOWN) {
            out.push_str(&format!("  {problem}\n"));
        }
        if problems.len() > SHOWN {
            out.push_str(&format!("  … and {} more\n", problems.len() - SHOWN));
        }
        let mut statuses = BTreeMap::new();
        for status in self.http_errors.values() {
            *statuses.entry(*status).or_insert(0u64) += 1;
        }
        for (status, count) in statuses {
            out.push_str(&format!("{}\n", answered(count, all, status)));
        }
        let Some(crawl) = &self.crawl else {
            return out;
        };
        if let Some(text) = partial_text(crawl.partial) {
            out.push_str(&format!(
                "{text}; see: archivist list snapshots {} --status partial\n",
                self.id
            ));
        }
        let took = text::elapsed(crawl.started_at, crawl.ended_at, now);
        let results = text::counts(&self.results(), &text::result_states());
        let status = with_reason(crawl.status.to_string(), crawl.reason.as_deref());
        out.push_str(&format!("{} {status}: {pages}, results: {results}", self.id));
        if !took.is_empty() {
            out.push_str(&format!(", in {took}"));
        }
        out.push_str(&format!("\nsee: archivist show {}\n", self.id));
        out
    }
}

/// Returns the status of a sealed page whose document is an HTTP error.
fn http_error(snapshot: &Snapshot) -> Option<u16> {
    let is_sealed = snapshot.status == Lifecycle::Sealed;
    snapshot.http_status.filter(|status| is_sealed && is_http_error(*status))
}

/// Returns how many pages the server answered with this status.
fn answered(count: u64, all: u64, status: u16) -> String {
    match all {
        1 => format!("the page answered {status}"),
        _ => format!("{count} of {all} pages answered {status}"),
    }
}

/// Why a queued page waits for its next attempt, and when that is due. `None` for a page that does not.
pub fn waiting(snapshot: &Snapshot, now: Time) -> Option<String> {
    let reason = snapshot.reason.as_deref().filter(|_| snapshot.status == Lifecycle::Queued)?;
    let next = snapshot.retry_at.filter(|time| *time > now);
    let next = next.map(|time| format!("; next attempt {}", text::relative(time, now)));
    Some(format!("queued: {}{}", clean(reason), next.unwrap_or_default()))
}

fn page_line(snapshot: &Snapshot) -> String {
    let line = format!("{} {} {}", snapshot.id, clean(&snapshot.url), snapshot.status);
    let status = http_error(snapshot).map(|status| format!("http {status}"));
    with_reason(line, snapshot.reason.as_deref().or(status.as_deref()))
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
