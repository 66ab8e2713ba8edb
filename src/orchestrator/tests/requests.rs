//! Requests of users, in tests.

use super::bed::Bed;
use super::world::Mood;
use crate::bus::call::{Answer, Refusal, Reply};
use crate::calls::requests::Request;
use crate::deletion::Delete;
use crate::main_loop::event::Event;
use crate::main_loop::order::Call;
use crate::main_loop::order::Order;
use crate::main_loop::rooms::Which;
use crate::programs::Install;
use crate::query::orders::Query;
use archivist_core::model::{CrawlId, Lifecycle, Owner, ResultState, RunId, Time};
use archivist_shared::bus::documents::report::{AddOptions, Added, Deleted, Details, Filter};
use archivist_shared::bus::documents::report::{Registration, Snapshot, Status};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

/// Settings of a crawl whose pages are entries that are kept without a visit.
const KEPT: [(&str, &str); 2] = [("IMPORT_KEEP", "true"), ("IMPORT_SOURCE", "list.csv")];

/// An answer that may not have come yet.
pub struct Pending(pub oneshot::Receiver<Result<Answer, Refusal>>);

impl Pending {
    /// Returns the answer as a text, if it is there.
    pub fn try_recv(&mut self) -> Result<Result<String, Refusal>, TryRecvError> {
        let answer = self.0.try_recv()?;
        Ok(answer.map(|answer| match answer {
            Answer::Text(text) => text,
            Answer::Number(number) => number.to_string(),
            Answer::Done | Answer::Descriptor(_) => String::new(),
        }))
    }
}

impl Bed {
    /// Takes a call in one turn. Returns where its answer arrives.
    pub fn call(&mut self, order: impl Order) -> Pending {
        let (reply, answer) = Reply::new();
        self.turn(vec![Event::Call(Call { order: Arc::new(order), reply })]);
        Pending(answer)
    }

    /// Returns the answer as a text, if the turn sent one.
    pub fn request(&mut self, order: impl Order) -> Option<Result<String, Refusal>> {
        self.call(order).try_recv().ok()
    }

    /// Returns the document or the number that is the answer.
    pub fn document<T: DeserializeOwned>(&mut self, order: impl Order) -> T {
        serde_json::from_str(&self.request(order).unwrap().unwrap()).unwrap()
    }

    pub fn add(&mut self, urls: usize) {
        let lines = (0..urls).map(|n| format!("http://{n}.example/\n"));
        self.request(Request::Add {
            lines: Arc::new(lines.collect::<String>().into_bytes()),
            options: AddOptions::default(),
            user: 0,
            joins: false,
            so_far: None,
        });
    }

    /// Keeps entries of a list without a visit.
    pub fn keep(&mut self, entries: usize) {
        let lines = (0..entries).map(|n| format!("http://{n}.example/\n"));
        let config = KEPT.map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.request(Request::Add {
            lines: Arc::new(lines.collect::<String>().into_bytes()),
            options: AddOptions {
                plugins: vec!["import".to_owned()],
                config: config.into(),
                ..AddOptions::default()
            },
            user: 0,
            joins: false,
            so_far: None,
        });
    }

    pub fn install(&mut self) {
        let names = vec!["beta".to_owned()];
        self.request(Install { names, user: 0 });
    }

    pub fn hold(&mut self, n: usize) {
        let Some(crawl) = self.crawl(n) else { return };
        let cancel = true;
        self.request(Request::Hold { crawl, cancel, claim: Default::default() });
    }

    /// The caller that holds a crawl disconnects.
    pub fn abandon(&mut self, n: usize, cancel: bool) {
        let held: Vec<CrawlId> = self.engine.held.keys().copied().collect();
        if let Some(crawl) = held.get(n % held.len().max(1)).copied() {
            self.turn(vec![Event::Abandoned { crawl, cancel }]);
        }
    }

    pub fn abort(&mut self, n: usize) {
        let Some(id) = self.crawl(n) else { return };
        self.request(Request::Abort { id });
    }

    pub fn interrupt(&mut self, n: usize) {
        let Some(id) = self.owner(n) else { return };
        self.request(Request::Interrupt { id });
    }

    pub fn cancel_run(&mut self, id: RunId) -> Result<(), Refusal> {
        self.request(Request::CancelRun { id }).unwrap().map(drop)
    }

    pub fn show_run(&mut self, id: RunId) -> Result<Details, Refusal> {
        let shown = self.request(Query::ShowRun { id });
        shown.unwrap().map(|text| serde_json::from_str(&text).unwrap())
    }

    pub fn proceed(&mut self, n: usize, again: bool) {
        let Some(crawl) = self.crawl(n) else { return };
        self.request(Request::Proceed { crawl, again });
    }

    pub fn cancel(&mut self, n: usize) {
        let Some(id) = self.owner(n) else { return };
        self.request(Request::Cancel { id });
    }

    pub fn delete(&mut self, n: usize) {
        if let Some(id) = self.owner(n) {
            self.delete_these(&[id], false);
        }
    }

    /// Deletes these, and notes which rows may be gone then.
    pub fn delete_these(&mut self, ids: &[Owner], dry_run: bool) -> Deleted {
        let pages = self.look(|tx| tx.list_snapshots(&Filter::default()));
        let goes = |page: &&Snapshot| {
            let owners = [Owner::Snapshot(page.id), Owner::Crawl(page.crawl)];
            owners.iter().any(|owner| ids.contains(owner))
        };
        // A crawl goes with its last page.
        let gone = pages.iter().filter(goes);
        let gone = gone.flat_map(|page| [Owner::Snapshot(page.id), Owner::Crawl(page.crawl)]);
        let before = self.deleted.clone();
        self.deleted.extend(gone.chain(ids.iter().copied()));
        let answer = self.request(Delete { ids: ids.to_vec(), dry_run, user: 0 });
        let answer = answer.unwrap().unwrap();
        let answer: Deleted = serde_json::from_str(&answer).unwrap();
        if dry_run || answer.pages == 0 && !answer.left.is_empty() {
            self.deleted = before;
        }
        answer
    }

    pub fn retry(&mut self, n: usize) {
        let Some(id) = self.owner(n) else { return };
        self.retry_some(Some(id), Which::Failed);
    }

    /// Every page that has a failed result.
    pub fn retry_failed(&mut self) {
        self.retry_some(None, Which::Failed);
    }

    /// The crawl that was added first, for one of its hooks.
    pub fn retry_hook(&mut self, hook: &str) {
        let id = Owner::Crawl(self.crawl(0).unwrap());
        self.retry_some(Some(id), Which::Hook(hook.to_owned()));
    }

    pub fn retry_some(&mut self, id: Option<Owner>, which: Which) -> Option<u32> {
        // What this asks for may leave its final state.
        self.finals.clear();
        let retried = self.request(Request::Retry { id, which, user: 0, so_far: None });
        retried.and_then(Result::ok).map(|count| count.parse().unwrap())
    }

    /// Queues a page with these options, and returns the answer.
    pub fn add_with(&mut self, url: &str, options: AddOptions) -> Added {
        self.document(Request::Add {
            lines: Arc::new(format!("{url}\n").into_bytes()),
            options,
            user: 0,
            joins: false,
            so_far: None,
        })
    }
}

/// The browser of the crawl is on its way out: the page waits for the next one.
#[test]
fn page_retried_during_last_hooks_waits_for_the_next_worker() {
    let mut bed = Bed::new();
    bed.add(1);
    let last_hook = loop {
        bed.until_quiet();
        let hook = bed.running_hook().unwrap();
        if hook.contains("end") {
            break hook;
        }
        let status = i32::from(hook.contains("alpha"));
        let result = ["success", "exit-code"][status as usize];
        bed.world.end(&hook, 1, status, result);
    };
    let pages = |bed: &mut Bed| {
        let units = bed.world.running();
        let pages = units.iter().filter(|unit| unit.contains("-snapshot-"));
        pages.count()
    };
    bed.retry(1);
    bed.until_quiet();
    assert_eq!(pages(&mut bed), 0);
    bed.world.end(&last_hook, 1, 0, "success");
    bed.until_quiet();
    assert_eq!(pages(&mut bed), 0, "the setup runs first");
    let setup = bed.running_hook().unwrap();
    assert!(setup.contains("setup"), "{setup}");
    bed.world.end(&setup, 1, 0, "success");
    bed.until_quiet();
    assert_eq!(pages(&mut bed), 1);
    bed.come_to_an_end();
    let results = bed.look(|tx| tx.list_results(&Filter::default()));
    let alpha = results.iter().find(|result| result.plugin == "alpha");
    assert_eq!(alpha.unwrap().status, ResultState::Succeeded);
}

/// Other requests are answered between the chunks.
#[test]
fn large_crawl_is_cancelled_in_chunks() {
    let waiting = |bed: &mut Bed| {
        let counts = bed.look(|tx| tx.counts("snapshot", None));
        counts.get("queued").copied().unwrap_or(0)
    };
    let mut bed = Bed::new();
    bed.add(2600);
    while waiting(&mut bed) < 2600 {
        bed.turn_with(0, 1, 0);
    }
    bed.cancel(0);
    let left = waiting(&mut bed);
    assert!((1..2600).contains(&left), "{left}");
    bed.come_to_an_end();
    assert_eq!(waiting(&mut bed), 0);
    let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
    assert_eq!(crawls[0].status, Lifecycle::Cancelled);
}

/// The same for pages that were started before.
#[test]
fn large_crawl_that_is_retried_is_cancelled_in_chunks() {
    let mut bed = crawl_of(450);
    let id = bed.crawl(0).unwrap();
    let tx = bed.database.begin().unwrap();
    for page in tx.open_snapshots(id).unwrap() {
        tx.equip_snapshot(page, "", "/archive").unwrap();
    }
    tx.commit().unwrap();
    bed.request(Request::Cancel { id: Owner::Crawl(id) });
    let left = pages_in(&mut bed, "queued");
    assert!((300..450).contains(&left), "{left}");
    bed.come_to_an_end();
    assert_eq!(pages_in(&mut bed, "queued"), 0);
}

fn pages_in(bed: &mut Bed, state: &str) -> u64 {
    let counts = bed.look(|tx| tx.counts("snapshot", None));
    counts.get(state).copied().unwrap_or(0)
}

/// A crawl with this number of pages, none of which has started.
fn crawl_of(pages: usize) -> Bed {
    let mut bed = Bed::new();
    bed.add(pages);
    while pages_in(&mut bed, "queued") < pages as u64 {
        bed.turn_with(0, 1, 0);
    }
    bed
}

fn cancelled(pages: usize) -> Bed {
    let mut bed = crawl_of(pages);
    bed.cancel(0);
    bed.come_to_an_end();
    assert_eq!(pages_in(&mut bed, "cancelled"), pages as u64);
    bed
}

#[test]
fn pages_over_a_limit_are_left_out_in_chunks() {
    let mut bed = crawl_of(1300);
    let id = bed.crawl(0).unwrap();
    let limit = ("CRAWL_MAX_URLS".to_owned(), "1".to_owned());
    bed.request(Request::Amend { id: Owner::Crawl(id), config: [limit].into(), user: 0 });
    let (mut left, mut most) = (pages_in(&mut bed, "queued"), 0);
    while bed.moves_on() {
        let now = pages_in(&mut bed, "queued");
        most = most.max(left.saturating_sub(now));
        left = now;
    }
    assert!((100..600).contains(&most), "{most}");
    bed.come_to_an_end();
    let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
    let reason = crawls[0].reason.clone().unwrap_or_default();
    assert!(reason.starts_with("CRAWL_MAX_URLS=1 reached, 1299 pages left out"), "{reason}");
}

/// The orchestrator is killed between two chunks.
#[test]
fn pages_over_a_limit_are_left_out_after_a_kill() {
    let mut bed = crawl_of(1300);
    let id = bed.crawl(0).unwrap();
    bed.request(Request::Amend {
        id: Owner::Crawl(id),
        config: [("CRAWL_MAX_URLS".to_owned(), "1".to_owned())].into(),
        user: 0,
    });
    while pages_in(&mut bed, "cancelled") == 0 {
        assert!(bed.moves_on());
    }
    assert!(pages_in(&mut bed, "queued") > 500);
    bed.restart(0);
    bed.come_to_an_end();
    assert_eq!(pages_in(&mut bed, "cancelled"), 1299);
    let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
    assert_eq!(crawls[0].status, Lifecycle::Sealed);
}

/// The worker of the crawl fails in every attempt.
#[test]
fn pages_of_a_crawl_that_is_given_up_are_cancelled_in_pieces() {
    let mut bed = crawl_of(1300);
    let (mut left, mut most) = (pages_in(&mut bed, "queued"), 0);
    while bed.look(|tx| tx.list_crawls(&Filter::default()))[0].status != Lifecycle::Sealed {
        for worker in bed.world.running() {
            bed.world.end(&worker, 1, 1, "exit-code");
        }
        let moved = bed.world.handle(Mood::Fine);
        if !bed.world.signals.is_empty() || !bed.world.answers.is_empty() {
            bed.turn_with(3, 3, 0);
        } else if !moved {
            bed.until_woken();
        }
        let now = pages_in(&mut bed, "queued");
        most = most.max(left.saturating_sub(now));
        left = now;
    }
    assert!((100..=500).contains(&most), "{most}");
    assert_eq!(pages_in(&mut bed, "cancelled"), 1300);
    let reason = bed.look(|tx| tx.list_crawls(&Filter::default()))[0].reason.clone();
    let reason = reason.unwrap_or_default();
    assert!(reason.starts_with("given up after 3 attempts"), "{reason}");
}

/// Has all pages of the first crawl retried. Returns the answer, which arrives after the last turn.
fn retry_to_the_end(bed: &mut Bed) -> u32 {
    let id = Some(Owner::Crawl(bed.crawl(0).unwrap()));
    bed.finals.clear();
    let mut answer = bed.call(Request::Retry { id, which: Which::Failed, user: 0, so_far: None });
    loop {
        if let Ok(count) = answer.try_recv() {
            return count.unwrap().parse().unwrap();
        }
        bed.finals.clear();
        bed.turn_with(0, 1, 0);
    }
}

/// The caller of a retry that was killed in between repeats it.
#[test]
fn large_crawl_is_retried_after_a_kill() {
    let mut bed = cancelled(400);
    let id = Some(Owner::Crawl(bed.crawl(0).unwrap()));
    bed.finals.clear();
    let mut answer = bed.call(Request::Retry { id, which: Which::Failed, user: 0, so_far: None });
    let first = pages_in(&mut bed, "queued");
    assert!((1..400).contains(&first), "{first}");
    bed.restart(0);
    assert!(answer.try_recv().is_err(), "the caller has no answer");
    assert_eq!(u64::from(retry_to_the_end(&mut bed)) + first, 400);
    assert_eq!(pages_in(&mut bed, "cancelled"), 0);
}

#[test]
fn large_crawl_is_retried_in_chunks() {
    let mut bed = cancelled(400);
    let id = Some(Owner::Crawl(bed.crawl(0).unwrap()));
    bed.finals.clear();
    let mut answer = bed.call(Request::Retry { id, which: Which::Failed, user: 0, so_far: None });
    let first = pages_in(&mut bed, "queued");
    assert!((1..=100).contains(&first), "{first}");
    // Its pages wait for the last of them.
    let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
    assert_eq!(crawls[0].status, Lifecycle::Queued);
    assert!(crawls[0].retry_at.unwrap() > bed.now);
    while answer.try_recv().ok().is_none_or(|count| {
        assert_eq!(count.unwrap(), "400");
        false
    }) {
        bed.finals.clear();
        bed.turn_with(0, 1, 0);
    }
    assert_eq!(pages_in(&mut bed, "queued"), 400);
    let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
    assert_eq!(crawls[0].status, Lifecycle::Started);
}

#[test]
fn retry_of_a_crawl_cancelled_in_between_is_refused() {
    let mut bed = cancelled(400);
    let id = Some(Owner::Crawl(bed.crawl(0).unwrap()));
    bed.finals.clear();
    let mut answer = bed.call(Request::Retry { id, which: Which::Failed, user: 0, so_far: None });
    bed.cancel(0);
    bed.come_to_an_end();
    let refused = answer.try_recv().unwrap().unwrap_err();
    assert!(matches!(refused, Refusal::Invalid(why) if why.contains("was cancelled while")));
    assert_eq!(pages_in(&mut bed, "cancelled"), 400);
}

/// Pages that an interrupt cancelled stay cancelled when one page is retried, however many there
/// are.
#[test]
fn many_pages_are_left_behind_in_chunks() {
    let mut bed = crawl_of(1500);
    bed.abort(0);
    bed.come_to_an_end();
    let (page, crawl) = (bed.owner(1).unwrap(), bed.crawl(0).unwrap());
    bed.finals.clear();
    let request = Request::Retry { id: Some(page), which: Which::Failed, user: 0, so_far: None };
    let mut answer = bed.call(request);
    assert!(answer.try_recv().is_err());
    while answer.try_recv().ok().is_none_or(|count| count.unwrap() != "1") {
        bed.turn_with(0, 1, 0);
    }
    let left = bed.look(|tx| tx.left_for(crawl, &crate::work::ends::WITH_CRAWL));
    assert_eq!(left, None);
}

#[test]
fn status_shows_registered_commands_until_they_end() {
    let mut bed = Bed::new();
    bed.add(2);
    let registration = Registration {
        verb: "run".into(),
        targets: ["c1", "s2", "s99"].map(|id| id.parse().unwrap()).into(),
        directory: "/home/me".into(),
        // A clock ahead of the orchestrator's.
        since: Some(Time(bed.now.0 + 1)),
    };
    bed.request(Request::Register {
        command: registration,
        pid: Some(12),
        user: Some(1000),
        claim: Default::default(),
    });
    let status = |bed: &mut Bed| {
        let status: Status = bed.document(Query::Status);
        status.commands
    };
    let commands = status(&mut bed);
    let [command] = &commands[..] else {
        panic!("{commands:?}");
    };
    let shown: Vec<String> =
        command.targets.iter().map(|to| format!("{} {} {}", to.id, to.crawl, to.url)).collect();
    assert_eq!(shown, ["c1 c1 http://0.example/", "s2 c1 http://1.example/"]);
    assert_eq!((command.pid, command.since), (Some(12), bed.now));
    bed.turn(vec![Event::CommandEnded(1)]);
    assert!(status(&mut bed).is_empty());
}

#[test]
fn status_changes_with_work_and_not_with_questions() {
    let mut bed = Bed::new();
    bed.add(1);
    let added = bed.world.status_changes;
    bed.until_quiet();
    let started = bed.world.status_changes;
    assert!(0 < added && added < started, "{added} {started}");
    bed.request(Query::Status);
    assert_eq!(bed.world.status_changes, started);
}
