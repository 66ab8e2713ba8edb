//! Tests of what follows a run.

use super::*;
use archivist_core::model::{CrawlId, SnapshotId};
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::work::Derived;

#[test]
fn hook_that_failed_by_itself_without_files_may_be_retried() {
    let of = |owner, outcome, state, files| {
        let verdict = Verdict { state, error: None };
        let file = report::File {
            path: "x".into(),
            mimetype: String::new(),
            size: 1,
        };
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
            retry_after: None,
            crawl_delay: None,
            ready_at: None,
        };
        matches!(
            next(owner, HookMode::Foreground, &outcome, &report),
            Next::RetryLater
        )
    };
    use ResultState::{Failed, Skipped};
    let (page, crawl) = (Owner::Snapshot(SnapshotId(1)), Owner::Crawl(CrawlId(1)));
    assert!(of(page, Outcome::Exit(1), Failed, 0));
    assert!(of(page, Outcome::Exit(0), Failed, 0));
    assert!(!of(page, Outcome::Exit(1), Failed, 1));
    assert!(!of(page, Outcome::Exit(10), Skipped, 0));
    assert!(!of(page, Outcome::TimeLimit, Failed, 0));
    assert!(!of(page, Outcome::Signal(9), Failed, 0));
    assert!(!of(crawl, Outcome::Exit(1), Failed, 0));
}
