//! `archivist watch`: what is asked of the orchestrator, and what becomes of its answers. Timers are
//! systemd's, which is not on this bus.

use super::{Bus, Cardboard, json};
use archivist_core::model::{CheckKind, CheckRecord, Outcome, RunId, Time};
use archivist_shared::bus::documents::report::{Reason, WhyWatch};
use archivist_shared::bus::documents::watches::{Check, HistoryFilter, Queued, Site, Watch};
use std::sync::Arc;

/// Two checks of one site: `r8` is running and ends when a caller waits for it; the older one failed.
fn checks(done: bool) -> [Check; 2] {
    let before = Check {
        id: RunId(7),
        watch: "site".into(),
        kind: CheckKind::Status,
        url: "https://a/".into(),
        state: "done".into(),
        queued_at: Time(900),
        started_at: Some(Time(1000)),
        ended_at: Some(Time(1500)),
        unit: Some("archivist-check-status-7.service".into()),
        outcome: Some(Outcome::Exit(0)),
        ok: Some(false),
        record: CheckRecord {
            status_code: Some(503),
            response_ms: Some(12),
            ..CheckRecord::default()
        },
    };
    let now = Check {
        id: RunId(8),
        state: if done { "done" } else { "running" }.into(),
        ended_at: done.then_some(Time(2500)),
        ok: done.then_some(true),
        record: CheckRecord {
            status_code: Some(200),
            response_ms: Some(34),
            ..CheckRecord::default()
        },
        ..before.clone()
    };
    [now, before]
}

fn no_such(watch: &str) -> zbus::fdo::Result<()> {
    match watch {
        "site" | "" => Ok(()),
        _ => Err(zbus::fdo::Error::UnknownObject(format!("there is no watch '{watch}'"))),
    }
}

pub struct WatchesFace(pub Arc<Cardboard>);

#[zbus::interface(name = "org.archivist1.Watches")]
impl WatchesFace {
    fn check(&self, watch: &str, kinds: Vec<String>) -> zbus::fdo::Result<String> {
        no_such(watch)?;
        self.0.say(format!("check {watch} {}", kinds.join(",")));
        Ok(json(&Queued {
            watch: watch.into(),
            queued: vec![RunId(8)],
            open: 1,
            // It ends before the command asks again.
            open_ids: vec![RunId(7)],
            crawl: None,
        }))
    }

    #[zbus(name = "Await")]
    fn wait(&self, id: &str) -> String {
        self.0.say(format!("await {id}"));
        json(&archivist_shared::bus::documents::work::Ended::without_run(Outcome::Exit(0)))
    }

    fn list(&self, name: &str) -> zbus::fdo::Result<String> {
        no_such(name)?;
        self.0.say(format!("watches {name}"));
        let [open, last] = checks(false);
        Ok(json(&[Watch {
            name: "site".into(),
            label: "The shop\u{1b}[2J".into(),
            notes: vec!["Ask Eve".into()],
            file: "/etc/archivist/site.watch".into(),
            problems: vec!["site.watch:3: no such key\u{1b}[2J".into()],
            headers: Vec::new(),
            left_out: Vec::new(),
            schedules: [(CheckKind::Status, "every 3min".into())].into(),
            retention_s: [(CheckKind::Status, 259_200)].into(),
            sites: vec![Site {
                url: "https://a/".into(),
                down_since: Some(Time(1000)),
                failures: 2,
                uptime: Some(50.0),
                status_checks: 2,
                last: vec![last],
                open: vec![open],
            }],
        }]))
    }

    fn history(&self, watch: &str, filter: &str) -> zbus::fdo::Result<String> {
        no_such(watch)?;
        self.0.say(format!("history {watch}"));
        *self.0.filter.lock().unwrap() = filter.to_owned();
        let done = self.0.said().iter().any(|call| call == "await r8");
        Ok(json(&checks(done)))
    }

    fn why(&self, name: &str) -> zbus::fdo::Result<String> {
        no_such(name)?;
        Ok(json(&WhyWatch {
            watch: name.into(),
            reasons: vec![Reason {
                code: "pool-full".into(),
                text: "status of https://a/ is queued\u{1b}[31m".into(),
                until: None,
            }],
        }))
    }
}

#[test]
fn run_queues_and_waits_for_what_it_queued() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let (code, stdout, _) = bus.run(&["watch", "run", "site"]);
    let told = "queued 1 of watch site; 1 already wait or run\n";
    assert_eq!((code, stdout.as_str()), (0, told));
    let (code, _, _) = bus.run(&["watch", "queue", "lighthouse-site"]);
    assert_eq!(code, 0);
    assert_eq!(cardboard.said(), ["check site ", "check site lighthouse"]);

    let (code, stdout, stderr) = bus.run(&["watch", "run", "--kind", "status", "--wait", "site"]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stdout.contains("r8") && stdout.contains("r7"), "{stdout}");
    assert!(stdout.contains("200 34 ms") && stdout.contains("503"), "{stdout}");
    let calls = ["check site status", "await r8", "await r7", "history site"];
    assert_eq!(cardboard.said()[2..], calls);

    for args in [["run", "other"], ["show", "other"], ["history", "other"]] {
        let (code, _, stderr) = bus.run(&["watch", args[0], args[1]]);
        let want = "archivist: there is no watch 'other'\n";
        assert_eq!((code, stderr.as_str()), (1, want), "{args:?}");
    }
    let (code, _, _) = bus.run(&["watch", "run", "--kind", "alert", "site"]);
    assert_eq!(code, 2, "alerts are not queued by hand");
    let (code, _, stderr) = bus.run(&["watch", "queue", "site"]);
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn list_show_and_why_print_cleaned_text() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let (code, stdout, stderr) = bus.run(&["watch", "list"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("down ") && stdout.contains("50.00%"), "{stdout}");
    assert!(stderr.starts_with("site.watch:3: no such key"), "{stderr}");
    let (code, shown, stderr_shown) = bus.run(&["watch", "show", "site"]);
    assert_eq!(code, 0);
    assert!(shown.contains("status: every 3min"), "{shown}");
    let head = "site - The shop\u{fffd}[2J (/etc/archivist/site.watch)\n      notes: Ask Eve\n";
    assert!(shown.starts_with(head), "{shown}");
    assert!(shown.contains("uptime 50.00% of 2 status checks"), "{shown}");
    assert_eq!(cardboard.said(), ["watches ", "watches site"]);
    let (code, why, _) = bus.run(&["why", "site"]);
    assert_eq!(code, 0);
    assert!(why.starts_with("watch site\nstatus of https://a/ is queued"), "{why}");
    for text in [stderr, stderr_shown, why] {
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    let (code, _, stderr) = bus.run(&["why", "other"]);
    let want = "archivist: there is no watch 'other'\n";
    assert_eq!((code, stderr.as_str()), (1, want));
    let (_, stdout, _) = bus.run(&["watch", "list", "--json"]);
    let watches: Vec<Watch> = serde_json::from_str(&stdout).unwrap();
    assert_eq!(watches[0].sites[0].failures, 2);
}

#[test]
fn history_applies_its_filter_and_draws() {
    let cardboard = Arc::<Cardboard>::default();
    let Some(bus) = Bus::start(&cardboard) else {
        return;
    };
    let filter =
        || serde_json::from_str::<HistoryFilter>(&cardboard.filter.lock().unwrap()).unwrap();
    let (code, stdout, _) =
        bus.run(&["watch", "history", "site", "--kind", "status", "--url", "HTTPS://A", "-n", "3"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("503"), "{stdout}");
    let asked = filter();
    assert_eq!((asked.kind, asked.limit), (Some(CheckKind::Status), 3));
    assert_eq!((asked.url.as_deref(), asked.full), (Some("https://a/"), false));
    let (code, stdout, _) = bus.run(&["watch", "history", "site", "--json"]);
    assert_eq!((code, filter().full), (0, true));
    let read: Vec<Check> = serde_json::from_str(&stdout).unwrap();
    assert_eq!(read[1].record.status_code, Some(503));
    let (code, svg, _) = bus.run(&["watch", "history", "site", "--plot", "-"]);
    assert_eq!((code, filter().limit, filter().before), (0, 1000, None));
    assert!(svg.starts_with("<svg ") && svg.contains("of 1 checks"), "{svg}");
}
