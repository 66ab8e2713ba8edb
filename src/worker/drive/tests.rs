//! Tests of which hooks run in a new attempt.

use super::*;
use archivist_core::model::ResultState;
use archivist_shared::bus::documents::work::Known;
use std::time::Duration;

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
        uses_daemon: false,
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
        done(
            &hooks,
            &Standing {
                hooks: hooks_known,
                earlier: None,
            },
        )
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
