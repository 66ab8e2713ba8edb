//! Tests of what follows a run.

use super::*;
use archivist_core::model::{CrawlId, SnapshotId};
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::work::Derived;

#[test]
fn hook_that_its_limit_ended_names_the_limit() {
    let hook = HookTask::sonic("sonic", Duration::from_secs(90));
    let remark = |outcome, seconds: i64| {
        let ended = Ended {
            started_at: Some(Time(5_000)),
            ended_at: Some(Time(5_000 + 1000 * seconds)),
            ..Ended::without_run(outcome)
        };
        limit_reached(&hook, &ended)
    };
    let said = remark(Outcome::TimeLimit, 91);
    assert_eq!(said.as_deref(), Some("the limit of the hook is 1min 30s"));
    // A drop-in of the unit has a lower one.
    let said = remark(Outcome::TimeLimit, 4);
    assert_eq!(
        said.as_deref(),
        Some(
            "it is one of the unit, such as RuntimeMaxSec= in a drop-in; the limit of the hook is 1min 30s"
        )
    );
    assert_eq!(remark(Outcome::Exit(1), 91), None);
}

#[test]
fn hook_of_a_page_that_found_nothing_by_itself_may_be_retried() {
    let of = |owner, outcome, state, files| {
        let verdict = Verdict { state, error: None };
        let file = report::File { path: "x".into(), mimetype: String::new(), size: 1 };
        let report = Report {
            key: "p/h".into(),
            verdict,
            output: None,
            files: vec![file; files],
            size: 0,
            children: Vec::new(),
            tags: Vec::new(),
            title: None,
            binary: None,
            derived: Derived::default(),
            http_status: None,
            http_plugin: None,
            network_fault: None,
            retry_after: None,
            crawl_delay: None,
            ready_at: None,
            recorded: None,
            figures: Default::default(),
        };
        matches!(next(owner, HookMode::Foreground, &outcome, &report), Next::RetryLater)
    };
    use ResultState::{Failed, NoResults, Skipped, Succeeded};
    let (page, crawl) = (Owner::Snapshot(SnapshotId(1)), Owner::Crawl(CrawlId(1)));
    assert!(of(page, Outcome::Exit(1), Failed, 0));
    assert!(of(page, Outcome::Exit(0), Failed, 0));
    assert!(!of(page, Outcome::Exit(1), Failed, 1));
    assert!(of(page, Outcome::Exit(10), Skipped, 0));
    assert!(!of(page, Outcome::Exit(0), Skipped, 0), "by a setting");
    assert!(of(page, Outcome::Exit(0), NoResults, 0));
    assert!(!of(page, Outcome::Exit(0), NoResults, 1));
    assert!(!of(page, Outcome::Exit(0), Succeeded, 0));
    let refused = Outcome::NotStarted("the page is too large".into());
    assert!(!of(page, refused, Skipped, 0));
    assert!(!of(page, Outcome::TimeLimit, Failed, 0));
    assert!(!of(page, Outcome::Signal(9), Failed, 0));
    assert!(!of(crawl, Outcome::Exit(1), Failed, 0));
}
