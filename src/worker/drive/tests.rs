//! Tests of what follows a run, and of which hooks run in a new attempt.

use super::*;
use archivist_core::model::{CrawlId, SnapshotId};
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::work::{Derived, Known};

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

#[test]
fn retry_restarts_daemons_and_their_foreground_hooks() {
    let hook = |plugin: &str, key: &str, mode: HookMode| HookTask {
        key: key.into(),
        plugin: plugin.into(),
        hook: key.into(),
        mode,
        limit: Duration::from_secs(60),
        patience: Duration::ZERO,
        after_background: false,
    };
    let hooks = [
        hook("browser", "profile", HookMode::Foreground),
        hook("browser", "tab", HookMode::Daemon),
        hook("browser", "navigate", HookMode::Foreground),
        hook("picture", "picture", HookMode::Foreground),
        hook("title", "title", HookMode::Foreground),
    ];
    let judged = |states: [ResultState; 5], up: bool| {
        let known = hooks.iter().zip(states).map(|(hook, state)| Known {
            key: hook.key.clone(),
            state,
            joinable: up && hook.key == "tab",
        });
        let hooks_known = known.collect();
        done(&hooks, &Standing { hooks: hooks_known })
    };
    use ResultState::{Failed, Queued, Started, Succeeded};
    assert_eq!(judged([Queued; 5], false), [false; 5]);
    let all = [Succeeded, Succeeded, Succeeded, Failed, Succeeded];
    assert_eq!(judged(all, false), [true; 5]);
    let picture = [Succeeded, Succeeded, Succeeded, Queued, Succeeded];
    assert_eq!(judged(picture, false), [true, false, false, false, true]);
    // A worker replaces one that crashed while the tab still has its page.
    let taken_over = [Succeeded, Started, Succeeded, Queued, Queued];
    assert_eq!(judged(taken_over, true), [true, false, true, false, false]);
    assert_eq!(
        judged(taken_over, false),
        [true, false, false, false, false]
    );
}
