//! Tests of watches, and the invariants of their checks after each turn.

mod certificates;
mod url_file;

use crate::bus::call::{Refusal, Reply};
use crate::database::UnitRow;
use crate::main_loop::event::Event;
use crate::main_loop::order;
use crate::tests::bed::Bed;
use crate::tests::requests::Pending;
use crate::tests::retry::{install_late, runs_of_pages};
use crate::tests::world::{Call, Mood, State};
use crate::watch::answers::without_details;
use crate::watch::orders::WatchCall;
use archivist_core::model::{CheckKind, Outcome, RunId};
use archivist_core::unit::UnitKind;
use archivist_shared::bus::documents::watches::{HistoryFilter, Queued};
use std::fs;
use std::time::Duration;

pub const NAMES: [&str; 3] = ["one", "two", "three"];
const DAY: u64 = 86_400_000;

impl Bed {
    /// Writes NAME.watch.
    pub fn declare(&self, name: &str, text: &str) {
        let directory = self.engine.scope.root.join("etc/archivist");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("{name}.watch")), text).unwrap();
    }

    pub fn ask(&mut self, call: WatchCall) -> Pending {
        Bed::call(self, call)
    }

    pub fn queue(&mut self, name: &str, kinds: &[CheckKind]) -> Result<Queued, Refusal> {
        let call = WatchCall::Check { watch: name.to_owned(), kinds: kinds.to_vec() };
        let text = self.ask(call).try_recv().unwrap()?;
        Ok(serde_json::from_str(&text).unwrap())
    }

    pub fn history(&mut self, name: &str) -> Vec<archivist_shared::bus::documents::watches::Check> {
        let all = HistoryFilter::default();
        self.look(|tx| tx.check_history(name, &all))
    }

    /// A check of which unit ends, after it printed this.
    fn answers(&mut self, unit: &str, record: &str) {
        let id = unit.rsplit_once('-').unwrap().1.strip_suffix(".service").unwrap();
        let scope = &self.engine.scope;
        let place =
            if unit.contains("-lighthouse-") { scope.data_dir() } else { scope.runtime_dir() };
        let path = place.join(format!("checks/archivist-{id}.json"));
        fs::write(path, record).unwrap();
        self.world.end(unit, 1, 0, "success");
        self.until_quiet();
    }
}

pub fn elapse(bed: &mut Bed, n: usize) {
    let name = NAMES[n % NAMES.len()];
    if !bed.engine.scope.root.join("etc").exists() {
        for name in NAMES {
            let text = format!(
                "[Watch]\nURL=http://a.{name}.example http://b.{name}.example\nOnDown=/bin/true\n"
            );
            bed.declare(name, &text);
        }
    }
    let kinds = CheckKind::SCHEDULED[..3].to_vec();
    bed.queue(name, &[kinds[n / 3 % 3]]).unwrap();
}

/// No pool exceeds its size, and every started check has a unit or a call in progress.
pub fn checks_are_sound(bed: &mut Bed) {
    let units = bed.look(|tx| tx.open_units());
    let is_check = |unit: &UnitRow| matches!(unit.kind, UnitKind::Check | UnitKind::Alert);
    let started: Vec<UnitRow> = units.into_iter().filter(is_check).collect();
    let kinds = bed.look(|tx| {
        let check = |unit: &UnitRow| tx.open_check(unit.id).unwrap().unwrap().kind;
        Ok(started.iter().map(check).collect::<Vec<_>>())
    });
    let of = |pool| kinds.iter().filter(|kind| kind.pool() == pool).count() as u32;
    let limits = bed.engine.limits();
    assert!(of(archivist_core::model::Pool::Fast) <= limits.fast_checks);
    assert!(of(archivist_core::model::Pool::Slow) <= limits.slow_checks);
    if bed.world.is_quiet() {
        for check in &started {
            let state = bed.world.units.get(&check.unit).map(|unit| &unit.state);
            assert_eq!(state, Some(&State::Running), "{} is open", check.unit);
        }
    }
}

pub fn watched(text: &str) -> Bed {
    let bed = Bed::new();
    bed.declare("site", &format!("[Watch]\nURL=http://a.example\n{text}"));
    bed
}

/// One status check that found this, from its queueing to its end.
pub fn status(bed: &mut Bed, record: &str) {
    bed.pass(180_000);
    bed.queue("site", &[CheckKind::Status]).unwrap();
    bed.until_quiet();
    let unit = bed.running_of("-check-status-").pop().unwrap();
    bed.answers(&unit, record);
}

#[test]
fn open_check_is_not_queued_twice() {
    let mut bed = watched("");
    let first = bed.queue("site", &[CheckKind::Status]).unwrap();
    assert_eq!((first.queued.len(), first.open), (1, 0));
    let second = bed.queue("site", &[CheckKind::Status]).unwrap();
    assert_eq!((second.queued.len(), second.open), (0, 1));
    assert_eq!((second.open_ids, first.open_ids), (first.queued, Vec::new()));
    bed.until_quiet();
    let third = bed.queue("site", &[]).unwrap();
    assert_eq!((third.queued.len(), third.open), (2, 1), "while it runs as well");
    bed.until_quiet();
    assert_eq!(bed.world.running().len(), 3);
    assert!(bed.queue("other", &[]).is_err());
    assert!(bed.queue("../site", &[]).is_err());
}

#[test]
fn record_is_kept_and_its_file_is_removed() {
    let mut bed = watched("");
    status(
        &mut bed,
        "noise\n{\"ok\":true,\"status_code\":200,\"response_ms\":12,\"headers\":{\"server\":\"x\"}}\n",
    );
    let check = bed.history("site").remove(0);
    assert_eq!((check.ok, check.record.status_code), (Some(true), Some(200)));
    assert_eq!(check.outcome, Some(Outcome::Exit(0)));
    assert_eq!(check.record.headers.len(), 1);
    let short = without_details(check);
    assert!(short.record.headers.is_empty(), "users ask for headers");
    let files = fs::read_dir(bed.engine.scope.runtime_dir().join("checks")).unwrap();
    assert_eq!(files.count(), 0);
}

#[test]
fn site_is_down_after_two_failures_and_up_after_one_success() {
    let mut bed = watched("OnDown=/usr/bin/mail x\nOnRecovery=notify@.service\n");
    let bad = r#"{"ok":false,"status_code":500,"error":"no\ngood"}"#;
    status(&mut bed, bad);
    assert!(bed.running_of("-alert-").is_empty(), "once is not enough");
    // An unknown result does not count.
    bed.queue("site", &[CheckKind::Status]).unwrap();
    bed.until_quiet();
    let unit = bed.running_of("-check-").pop().unwrap();
    bed.world.end(&unit, 2, 9, "oom-kill");
    bed.until_quiet();
    assert!(bed.running_of("-alert-").is_empty());
    status(&mut bed, bad);
    let alert = bed.running_of("-alert-").pop().unwrap();
    status(&mut bed, bad);
    assert_eq!(bed.running_of("-alert-"), [alert], "told once");
    let health = bed.look(|tx| tx.health("site", "http://a.example/"));
    assert_eq!((health.failures, health.down_since.is_some()), (3, true));
    status(&mut bed, r#"{"ok":true,"status_code":200}"#);
    let alerts = bed.running_of("-alert-");
    assert_eq!(alerts.len(), 2, "one that hangs does not hold up another");
    for alert in alerts {
        bed.world.end(&alert, 1, 0, "success");
    }
    bed.until_quiet();
    let history = bed.history("site");
    let alerts = history.iter().filter(|check| check.kind == CheckKind::Alert);
    assert!(alerts.map(|check| check.ok).eq([Some(true), Some(true)]));
}

#[test]
fn time_limit_counts_as_failure() {
    let mut bed = watched("");
    bed.queue("site", &[CheckKind::Status]).unwrap();
    bed.until_quiet();
    let unit = bed.running_of("-check-").pop().unwrap();
    bed.world.end(&unit, 2, 15, "timeout");
    bed.until_quiet();
    let check = bed.history("site").remove(0);
    assert_eq!((check.ok, check.record.status_code), (Some(false), Some(408)));
    assert_eq!(check.record.error.as_deref(), Some("time limit reached"));
}

/// The setting of the watch precedes that of the configuration.
#[test]
fn checks_wait_for_slow_servers() {
    let limit_of = |own: &str, all: &str| {
        let mut bed = watched(own);
        let values = &mut bed.engine.settings.values;
        values.extend((!all.is_empty()).then(|| ("ANSWER_TIMEOUT".to_owned(), all.to_owned())));
        bed.queue("site", &[CheckKind::Status]).unwrap();
        let start = bed.world.calls.iter().find_map(|call| match call {
            Call::Start(start) => Some(start.clone()),
            _ => None,
        });
        let start = start.unwrap();
        let request = String::from_utf8(start.stdin.unwrap().to_vec()).unwrap();
        (start.spec.limit.unwrap().as_secs(), request)
    };
    let (limit, request) = limit_of("", "");
    assert_eq!((limit, request.contains("read_s")), (60, false));
    let (limit, request) = limit_of("", "40");
    assert_eq!((limit, request.contains(r#""read_s":40"#)), (180, true), "{request}");
    let (limit, request) = limit_of("ArchiveSettings=ANSWER_TIMEOUT=50\n", "40");
    assert_eq!((limit, request.contains(r#""read_s":50"#)), (210, true), "{request}");
}

/// Whatever is killed, no row stays running for ever.
#[test]
fn lost_check_ends_and_can_be_queued_again() {
    let mut bed = watched("");
    bed.queue("site", &[]).unwrap();
    bed.until_quiet();
    for unit in bed.world.running() {
        bed.world.units.remove(&unit);
    }
    bed.restart(0);
    bed.until_quiet();
    assert!(!bed.has_checks());
    let known = bed.history("site").iter().filter(|check| check.ok.is_some()).count();
    assert_eq!(known, 0);
    assert_eq!(bed.queue("site", &[]).unwrap().queued.len(), 3);
    // Systemd refuses, or cannot execute it.
    while bed.world.handle(Mood::Broken) {}
    bed.until_quiet();
    assert!(!bed.has_checks());
}

#[test]
fn history_is_paged() {
    let mut bed = watched("");
    bed.queue("site", &[]).unwrap();
    let all: Vec<RunId> = bed.history("site").iter().map(|check| check.id).collect();
    assert_eq!(all.len(), 3);
    let mut pieces = Vec::new();
    let mut filter = HistoryFilter { limit: 2, ..HistoryFilter::default() };
    loop {
        let piece = bed.look(|tx| tx.check_history("site", &filter));
        pieces.extend(piece.iter().map(|check| check.id));
        filter.before = piece.last().map(|check| check.id);
        if piece.len() < 2 {
            break;
        }
    }
    assert_eq!(pieces, all);
}

#[test]
fn slow_checks_do_not_delay_fast_checks() {
    let mut bed = Bed::new();
    for n in 0..6 {
        let name = format!("site{n}");
        bed.declare(&name, "[Watch]\nURL=http://a.example\n");
        bed.queue(&name, &[CheckKind::Lighthouse]).unwrap();
    }
    bed.until_quiet();
    assert_eq!(bed.running_of("-check-lighthouse-").len(), 2);
    bed.fill_disk(true);
    bed.queue("site0", &[CheckKind::Status]).unwrap();
    bed.until_quiet();
    assert_eq!(bed.running_of("-check-status-").len(), 1, "even on a full disk");
}

#[test]
fn queued_checks_of_a_removed_watch_end() {
    let mut bed = watched("");
    bed.declare("busy", "[Watch]\nURL=http://a.example http://b.example\n");
    bed.queue("busy", &[CheckKind::Lighthouse]).unwrap();
    bed.queue("site", &[CheckKind::Lighthouse]).unwrap();
    bed.until_quiet();
    let file = bed.engine.scope.root.join("etc/archivist/site.watch");
    fs::remove_file(file).unwrap();
    for unit in bed.world.running() {
        bed.world.end(&unit, 1, 0, "success");
    }
    bed.until_quiet();
    assert!(!bed.has_checks());
    let error = bed.history("site").remove(0).record.error.unwrap();
    assert_eq!(error, "could not be started: its watch was removed");
}

#[test]
fn results_expire_after_retention() {
    let mut bed = watched("Retention=2d\n");
    status(&mut bed, r#"{"ok":true}"#);
    bed.pass(DAY);
    status(&mut bed, r#"{"ok":true}"#);
    bed.pass(DAY + 1000);
    assert_eq!(bed.history("site").len(), 2, "once a day is enough");
    bed.until_woken();
    assert_eq!(bed.history("site").len(), 1);
    bed.pass(30 * DAY);
    assert_eq!(bed.history("site").len(), 1, "the newest result stays");
    status(&mut bed, r#"{"ok":true}"#);
    bed.pass(4 * DAY);
    assert_eq!(bed.history("site").len(), 1, "and a newer one replaces it");
    bed.until_woken();
    assert_eq!(bed.history("site").len(), 0, "a year later, it expires as well");
}

/// A weekly crawl has a result between two runs, and status checks do not keep theirs longer.
#[test]
fn retention_of_a_kind_does_not_affect_other_kinds() {
    let mut bed = watched("StatusRetention=1d\nCrawlRetention=30d\n");
    for _ in 0..2 {
        bed.queue("site", &[CheckKind::Status, CheckKind::Crawl]).unwrap();
        bed.until_quiet();
        for unit in bed.running_of("-check-") {
            bed.answers(&unit, r#"{"ok":true}"#);
        }
        bed.pass(7 * DAY);
    }
    let kinds: Vec<_> = bed.history("site").into_iter().map(|check| check.kind).collect();
    let crawls = kinds.iter().filter(|kind| **kind == CheckKind::Crawl);
    assert_eq!((kinds.len(), crawls.count()), (3, 2));
}

#[test]
fn archive_check_passes_settings_to_its_crawl() {
    let mut bed = watched("ArchiveSettings=CRAWL_MAX_URLS=7\n");
    let queued = bed.queue("site", &[CheckKind::Archive]).unwrap();
    let crawl = bed.look(|tx| tx.crawl(queued.crawl.unwrap())).unwrap();
    assert_eq!(crawl.config["CRAWL_MAX_URLS"], "7");
    bed.declare("site", "[Watch]\nURL=http://a.example\nArchivePersona=nosuch\n");
    bed.cancel(0);
    bed.come_to_an_end();
    let refused = bed.queue("site", &[CheckKind::Archive]);
    assert!(refused.is_err(), "no persona has this name");
}

#[test]
fn open_crawl_keeps_its_archive_check() {
    let mut bed = watched("Archive=daily\nArchiveRetention=1d\n");
    let mut crawls = Vec::new();
    for _ in 0..2 {
        let queued = bed.queue("site", &[CheckKind::Archive]).unwrap();
        crawls.push(queued.crawl);
        bed.cancel(0);
        bed.come_to_an_end();
    }
    assert_ne!(crawls[0], crawls[1]);
    // Opens the older crawl again.
    bed.retry(1);
    bed.pass(3 * DAY);
    assert_eq!(bed.history("site").len(), 2);
    let again = bed.queue("site", &[CheckKind::Archive]).unwrap();
    assert_eq!((again.crawl, again.open), (crawls[0], 1));
}

#[test]
fn archive_check_adds_one_crawl_at_a_time() {
    let mut bed = watched("Archive=daily\nArchivePages=only-new\nArchiveTags=news\n");
    let first = bed.queue("site", &[CheckKind::Archive]).unwrap();
    let crawl = first.crawl.unwrap();
    let again = bed.queue("site", &[CheckKind::Archive]).unwrap();
    assert_eq!((again.crawl, again.open), (Some(crawl), 1));
    bed.come_to_an_end();
    let crawls = |bed: &mut Bed| bed.look(|tx| tx.list_crawls(&Default::default()));
    assert_eq!(crawls(&mut bed)[0].tags, ["news"]);
    let nothing_new = bed.queue("site", &[CheckKind::Archive]).unwrap();
    assert_eq!((nothing_new.crawl, nothing_new.queued.len()), (None, 1));
    bed.declare("site", "[Watch]\nURL=http://a.example http://b.example\nArchivePages=only-new\n");
    assert!(bed.queue("site", &[CheckKind::Archive]).unwrap().crawl.is_some());
    let newest = crawls(&mut bed).remove(0);
    assert_eq!(newest.snapshots.values().sum::<u64>(), 1, "only the new one");
}

#[test]
fn await_check_returns_when_it_ends() {
    let mut bed = watched("");
    let id = bed.queue("site", &[CheckKind::Status]).unwrap().queued[0];
    bed.until_quiet();
    let mut answer = bed.ask(WatchCall::Await(id));
    assert!(answer.try_recv().is_err());
    let unit = bed.running_of("-check-").pop().unwrap();
    bed.answers(&unit, "{}");
    assert!(answer.try_recv().unwrap().is_ok());
    assert!(bed.ask(WatchCall::Await(id)).try_recv().unwrap().is_ok());
    bed.pass(Duration::from_secs(1).as_millis() as u64);
}

#[test]
fn why_shows_what_blocks_a_check_and_what_failed() {
    let mut bed = watched("URL=http://b.example http://c.example\nDownAfter=1\n");
    let why = |bed: &mut Bed| {
        let text = bed.ask(WatchCall::Why("site".into())).try_recv().unwrap();
        let why: archivist_shared::bus::documents::report::WhyWatch =
            serde_json::from_str(&text.unwrap()).unwrap();
        assert_eq!(why.watch, "site");
        let reasons = why.reasons.into_iter();
        reasons.map(|why| (why.code, why.text)).collect::<Vec<_>>()
    };
    let codes = |why: &[(String, String)]| {
        let codes = why.iter().map(|(code, _)| code.as_str());
        codes.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(codes(&why(&mut bed)), "never");
    bed.queue("site", &[CheckKind::Lighthouse]).unwrap();
    bed.until_quiet();
    let waits = why(&mut bed);
    assert_eq!(codes(&waits), "running running pool-full");
    let text = &waits[2].1;
    let full = "waiting for a free slot: 2 of 2 slow checks busy (SlowChecks=2)";
    assert!(text.contains("lighthouse of http://c.example/") && text.ends_with(full), "{text}");
    for unit in bed.running_of("-check-lighthouse-") {
        bed.answers(&unit, r#"{"ok": true}"#);
    }
    let last = bed.running_of("-check-lighthouse-").pop().unwrap();
    bed.world.end(&last, 2, 9, "signal");
    bed.until_quiet();
    bed.queue("site", &[CheckKind::Status]).unwrap();
    bed.until_quiet();
    let unit = bed.running_of("-check-status-").remove(0);
    bed.answers(&unit, r#"{"ok": false, "status_code": 500}"#);
    let bad = why(&mut bed);
    assert!(codes(&bad).contains("failed"), "{bad:?}");
    assert!(
        bad.iter().any(|(code, text)| code == "failed" && text.ends_with("the answer was 500"))
    );
    let lost = bad.iter().find(|(code, _)| code == "unknown").unwrap();
    let again = "; to check again: archivist watch run --kind lighthouse site";
    assert!(lost.1.contains("SIGKILL") && lost.1.ends_with(again), "{}", lost.1);
    assert!(bed.ask(WatchCall::Why("../site".into())).try_recv().unwrap().is_err());
}

#[test]
fn cancelled_checks_end_without_a_verdict() {
    let mut bed = watched("OnDown=/bin/true\n");
    bed.declare("other", "[Watch]\nURL=http://b.example\n");
    bed.queue("site", &[CheckKind::Status]).unwrap();
    bed.queue("other", &[CheckKind::Status]).unwrap();
    bed.until_quiet();
    assert_eq!(bed.running_of("-check-").len(), 2, "{:?}", bed.world.running());
    let request = |call: WatchCall| {
        let (reply, answer) = Reply::new();
        (Event::Call(order::Call::new(call, &reply)), Pending(answer))
    };
    let kinds = vec![CheckKind::Crawl];
    let (queue, _queued) = request(WatchCall::Check { watch: "site".to_owned(), kinds });
    let (cancel, mut cancelled) = request(WatchCall::Cancel("site".to_owned()));
    // In one turn, so that the second check does not start.
    bed.turn(vec![queue, cancel]);
    assert_eq!(cancelled.try_recv().unwrap().unwrap(), "2");
    bed.until_quiet();
    let history = bed.history("site");
    assert_eq!(history.len(), 2);
    for check in history {
        assert_eq!((check.ok, check.record.error.as_deref()), (None, Some("interrupted by user")));
    }
    assert_eq!(bed.running_of("-check-").len(), 1, "the check of the other watch");
    let mut cancel = |name: &str| bed.ask(WatchCall::Cancel(name.to_owned())).try_recv().unwrap();
    assert_eq!(cancel("site").unwrap(), "0");
    assert!(matches!(cancel("nosuch"), Err(Refusal::NoSuch(_))));
}

#[test]
fn why_explains_a_single_check() {
    let mut bed = Bed::new();
    bed.declare("site", "[Watch]\nURL=http://a.example\n");
    let queued = bed.queue("site", &[CheckKind::Status]).unwrap();
    let id = queued.queued[0].to_string();
    bed.until_quiet();
    assert_eq!(bed.codes(&id), ["running"]);
    bed.come_to_an_end();
    let why = bed.why(&id);
    assert_eq!(why[0].0, "unknown", "without a record: {why:?}");
}

#[test]
fn a_watch_updates_the_archive() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.come_to_an_end();
    let mut want = runs_of_pages(&mut bed);
    install_late(&mut bed);
    let watch = "[Watch]\nURL=archivebox://update\nArchive=weekly\n";
    bed.declare("weekly", watch);
    let queued = bed.queue("weekly", &[]).unwrap();
    assert_eq!((queued.queued.len(), queued.crawl), (1, None));
    // Complete pages leave their final state in the next turn.
    bed.finals.clear();
    bed.turn_with(0, 1, 0);
    bed.come_to_an_end();
    assert_eq!(bed.history("weekly")[0].ok, Some(true));
    want.push("late".to_owned());
    assert_eq!(runs_of_pages(&mut bed), want);
    let refused = bed.queue("weekly", &[CheckKind::Status]);
    assert!(refused.is_err(), "there is no site");
}
