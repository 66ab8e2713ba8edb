//! Tests of which hooks run in a new attempt.

use super::*;
use archivist_core::model::{Owner, SnapshotId, Time};
use archivist_shared::bus::documents::report::File;
use archivist_shared::bus::documents::work::Known;

#[test]
fn retry_restarts_daemons_and_their_foreground_hooks() {
    let hook = |plugin: &str, key: &str, mode: HookMode| HookTask {
        key: key.into(),
        plugin: plugin.into(),
        hook: key.into(),
        mode,
        limit: Duration::from_secs(60),
        patience: Duration::ZERO,
        alongside: Vec::new(),
        after_background: false,
        uses_daemon: false,
        awaits: Vec::new(),
        needs: None,
    };
    let hooks = [
        hook("browser", "profile", HookMode::Foreground),
        hook("browser", "tab", HookMode::Daemon),
        hook("browser", "navigate", HookMode::Foreground),
        hook("picture", "picture", HookMode::Foreground),
        hook("title", "title", HookMode::Foreground),
        HookTask { after_background: true, ..hook("text", "text", HookMode::Foreground) },
    ];
    let judged = |states: [ResultState; 6], up: bool| {
        let known = hooks.iter().zip(states).map(|(hook, state)| Known {
            key: hook.key.clone(),
            state,
            joinable: up && hook.key == "tab",
        });
        let hooks_known = known.collect();
        done(&hooks, &Standing { hooks: hooks_known, earlier: None })
    };
    use ResultState::{Failed, Queued, Started, Succeeded};
    assert_eq!(judged([Queued; 6], false), [false; 6]);
    let all = [Succeeded, Succeeded, Succeeded, Failed, Succeeded, Succeeded];
    assert_eq!(judged(all, false), [true; 6]);
    let picture = [Succeeded, Succeeded, Succeeded, Queued, Succeeded, Succeeded];
    assert_eq!(judged(picture, false), [true, false, false, false, true, true]);
    let text = [Succeeded, Succeeded, Succeeded, Succeeded, Succeeded, Queued];
    assert_eq!(judged(text, false), [true, true, true, true, true, false]);
    // A worker replaces one that crashed while the tab still has its page.
    let taken_over = [Succeeded, Started, Succeeded, Queued, Queued, Queued];
    assert_eq!(judged(taken_over, true), [true, false, true, false, false, false]);
    assert_eq!(judged(taken_over, false), [true, false, false, false, false, false]);
}

#[test]
fn killed_hook_names_its_limit() {
    let hook = HookTask {
        key: "tab/tab".into(),
        plugin: "tab".into(),
        hook: "tab".into(),
        mode: HookMode::Daemon,
        limit: Duration::from_secs(600),
        patience: Duration::from_secs(20),
        alongside: Vec::new(),
        after_background: false,
        uses_daemon: false,
        awaits: Vec::new(),
        needs: None,
    };
    // The time of the last look at the clock counts, too.
    let (four, fifteen) = (Duration::from_secs(4), Duration::from_micros(15_250_701));
    assert_eq!(
        why_killed(&hook, four, four),
        "it did not end within 4s after SIGTERM (StopTimeoutSec=4s)"
    );
    assert_eq!(
        why_killed(&hook, fifteen, Duration::from_secs(90)),
        "it did not end within 15s after SIGTERM (its time limit is 20s)"
    );
}

/// A worker that is killed between the end of a finite hook and the retries loses none of them.
#[test]
fn retries_after_a_finite_hook_outlast_their_worker() {
    let hook = |name: &str, mode: HookMode| HookTask {
        key: format!("{name}/{name}"),
        plugin: name.into(),
        hook: name.into(),
        mode,
        limit: Duration::from_secs(60),
        patience: Duration::ZERO,
        alongside: Vec::new(),
        after_background: false,
        uses_daemon: false,
        awaits: Vec::new(),
        needs: None,
    };
    let hooks = [
        hook("media", HookMode::Finite),
        hook("text", HookMode::Foreground),
        hook("title", HookMode::Foreground),
    ];
    let result = |name: &str, status: ResultState, begin: i64, end: i64| HookResult {
        id: None,
        owner: Owner::Snapshot(SnapshotId(1)),
        plugin: name.into(),
        hook: name.into(),
        status,
        output: None,
        error: None,
        files: Vec::new(),
        size: 0,
        attempts: 1,
        started_at: Some(Time(begin)),
        ended_at: Some(Time(end)),
        figures: Default::default(),
    };
    let media = HookResult {
        files: vec![File { path: "video.webm".into(), mimetype: "video/webm".into(), size: 1 }],
        ..result("media", ResultState::Succeeded, 0, 5_000)
    };
    let text = result("text", ResultState::Failed, 1_000, 2_000);
    let title = result("title", ResultState::Succeeded, 2_000, 3_000);
    let earlier = |results: &[HookResult], done: &[bool]| earlier_runs(&hooks, done, results);
    let all = [media.clone(), text.clone(), title.clone()];
    let lost = earlier(&all, &[true; 3]);
    assert_eq!(lost.found_nothing, [1]);
    assert!(lost.left_files);
    let mut sequence = Sequence::new(
        hooks.to_vec(),
        &[true; 3],
        Purpose::OtherHooks,
        Duration::ZERO,
        Duration::ZERO,
    );
    sequence.continue_retries(&lost);
    let actions = sequence.handle(HookEvent::Begin, Duration::ZERO);
    assert!(actions.contains(&HookAction::Start(1)), "{actions:?}");
    // The finite hook still runs: its end decides.
    assert!(!earlier(&all, &[false, true, true]).left_files);
    // It was retried, it reached its limit, or the files are older.
    let retried = HookResult { attempts: 2, ..text.clone() };
    let slow = result("text", ResultState::Failed, 1_000, 61_000);
    for other in [retried, slow] {
        let none = earlier(&[media.clone(), other], &[true; 3]);
        assert_eq!(none, EarlierRuns::default());
    }
    let late = result("text", ResultState::Failed, 6_000, 7_000);
    assert!(!earlier(&[media, late], &[true; 3]).left_files);
}
