use super::*;
use HookMode::*;
use proptest::prelude::*;

fn sequence(modes: &[HookMode], hold: bool) -> Sequence {
    let purpose = if hold { Purpose::CrawlPages } else { Purpose::OtherHooks };
    sequence_for(modes, purpose)
}

fn sequence_for(modes: &[HookMode], purpose: Purpose) -> Sequence {
    let hook = |(position, mode): (usize, &HookMode)| HookTask {
        key: format!("p/{position}"),
        plugin: "p".into(),
        hook: position.to_string(),
        mode: *mode,
        limit: Duration::from_secs(60),
        patience: Duration::ZERO,
        alongside: Vec::new(),
        after_background: false,
        uses_daemon: false,
        awaits: Vec::new(),
        needs: None,
    };
    let hooks = modes.iter().enumerate().map(hook).collect();
    Sequence::new(hooks, &[], purpose, Duration::from_secs(5), Duration::from_secs(60))
}

const T0: Duration = Duration::ZERO;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn sequence_waits_for_foreground_hooks_and_until_daemons_are_ready() {
    let mut s = sequence(&[Daemon, Foreground, Finite], false);
    assert_eq!(s.handle(HookEvent::Begin, T0), [HookAction::Start(0)]);
    assert_eq!(s.deadline(), Some(at(5)));
    assert_eq!(s.handle(HookEvent::Ready(0), at(1)), [HookAction::Start(1)]);
    assert_eq!(s.deadline(), None);
    assert_eq!(
        s.handle(HookEvent::Ended(1), at(2)),
        [HookAction::Start(2), HookAction::AllStarted]
    );
    assert_eq!(s.handle(HookEvent::Ended(2), at(9)), [HookAction::Stop(0)]);
    assert_eq!(s.deadline(), Some(at(24)));
    assert_eq!(s.handle(HookEvent::Ended(0), at(10)), [HookAction::Done]);
}

/// Hooks 2 and 3 work with hook 0, hook 1 does not.
#[test]
fn hooks_wait_for_the_daemons_with_which_they_work() {
    let begun = || {
        let mut s = sequence(&[Daemon, Finite, Foreground, Foreground], false);
        s.hooks[0].patience = Duration::from_secs(60);
        s.hooks[2].awaits = vec!["p/0".into()];
        s.hooks[3].awaits = vec!["p/0".into()];
        assert_eq!(s.handle(HookEvent::Begin, T0), [HookAction::Start(0)]);
        let started = s.handle(HookEvent::Deadline, at(5));
        assert_eq!(started, [HookAction::Start(1)]);
        assert_eq!(s.deadline(), Some(at(60)));
        assert_eq!(s.handle(HookEvent::Ended(1), at(40)), []);
        s
    };
    let mut opened = begun();
    let started = opened.handle(HookEvent::Ready(0), at(50));
    assert_eq!(started, [HookAction::Start(2)]);
    let mut failed = begun();
    let started = failed.handle(HookEvent::Ended(0), at(50));
    assert_eq!(started, [HookAction::Start(2)]);
    let mut silent = begun();
    assert_eq!(silent.handle(HookEvent::Deadline, at(59)), []);
    let started = silent.handle(HookEvent::Deadline, at(60));
    assert_eq!(started, [HookAction::Start(2)]);
    let next = silent.handle(HookEvent::Ended(2), at(61));
    assert_eq!(next, [HookAction::Start(3)]);
}

/// Hooks 1 and 3 may run alongside hook 0, hook 2 alongside no other.
#[test]
fn hooks_run_alongside_those_that_they_name_and_no_others() {
    let mut s = sequence(&[Foreground; 4], false);
    for (hook, plugin) in s.hooks.iter_mut().zip(["a", "b", "c", "d"]) {
        hook.plugin = plugin.into();
    }
    s.hooks[1].alongside = vec!["a".into()];
    s.hooks[3].alongside = vec!["a".into(), "c".into()];
    let begun = s.handle(HookEvent::Begin, T0);
    assert_eq!(begun, [HookAction::Start(0), HookAction::Start(1)]);
    assert_eq!(s.handle(HookEvent::Ended(1), at(1)), []);
    assert_eq!(s.handle(HookEvent::Ended(0), at(2)), [HookAction::Start(2), HookAction::Start(3)]);
    assert_eq!(s.handle(HookEvent::Ended(2), at(3)), [], "one still runs");
    assert_eq!(s.handle(HookEvent::Ended(3), at(4)), [HookAction::AllStarted, HookAction::Done]);
}

#[test]
fn refused_visit_starts_no_further_hook_and_stops_all() {
    let mut s = sequence(&[Finite, Daemon, Foreground, Foreground, Finite], false);
    s.handle(HookEvent::Begin, T0);
    s.handle(HookEvent::Ready(1), at(1));
    assert_eq!(
        s.handle(HookEvent::EndVisit, at(2)),
        [HookAction::Stop(2), HookAction::Stop(1), HookAction::Stop(0)]
    );
    assert_eq!(s.handle(HookEvent::Ended(2), at(3)), []);
    assert_eq!(s.handle(HookEvent::EndVisit, at(3)), []);
    assert_eq!(s.handle(HookEvent::FoundNothing(0), at(3)), []);
    assert_eq!(s.deadline(), Some(at(17)), "then the daemon is killed");
    assert_eq!(s.handle(HookEvent::Deadline, at(17)), [HookAction::Kill(1, at(15))]);
    assert_eq!(s.handle(HookEvent::Ended(1), at(18)), [HookAction::Done]);
    assert_eq!(s.handle(HookEvent::EndVisit, at(19)), []);
}

/// The daemon of a tab reports the answer when all hooks have ended.
#[test]
fn refusal_that_is_known_last_ends_the_visit() {
    let mut s = sequence(&[Daemon], false);
    s.handle(HookEvent::Begin, T0);
    s.handle(HookEvent::Ready(0), at(1));
    assert_eq!(s.handle(HookEvent::EndVisit, at(2)), []);
    assert_eq!(s.handle(HookEvent::Ended(0), at(3)), [HookAction::Done]);
}

#[test]
fn daemon_without_output_delays_the_next_hook_up_to_the_limit() {
    let mut s = sequence(&[Daemon, Foreground], false);
    s.handle(HookEvent::Begin, T0);
    assert_eq!(s.handle(HookEvent::Deadline, at(5)), [HookAction::Start(1)]);
}

#[test]
fn finite_hooks_never_delay_other_hooks() {
    let mut s = sequence(&[Finite, Finite, Foreground, Finite], false);
    assert_eq!(
        s.handle(HookEvent::Begin, T0),
        [HookAction::Start(0), HookAction::Start(1), HookAction::Start(2)]
    );
    assert_eq!(s.deadline(), None);
    assert_eq!(
        s.handle(HookEvent::Ended(2), at(1)),
        [HookAction::Start(3), HookAction::AllStarted]
    );
}

#[test]
fn daemons_stop_in_reverse_order_and_are_killed_after_the_grace() {
    let mut s = sequence(&[Daemon, Daemon], false);
    s.handle(HookEvent::Begin, T0);
    s.handle(HookEvent::Ready(0), at(1));
    let actions = s.handle(HookEvent::Ready(1), at(2));
    assert_eq!(actions, [HookAction::AllStarted, HookAction::Stop(1), HookAction::Stop(0)]);
    assert_eq!(s.handle(HookEvent::Ended(0), at(3)), []);
    assert_eq!(s.handle(HookEvent::Deadline, at(17)), [HookAction::Kill(1, at(15))]);
    assert_eq!(s.deadline(), None);
    assert_eq!(s.handle(HookEvent::Ended(1), at(18)), [HookAction::Done]);
}

#[test]
fn daemons_without_foreground_hooks_run_until_their_own_limit() {
    let begun = |purpose| {
        let mut s = sequence_for(&[Daemon, Daemon, Finite], purpose);
        for (hook, patience) in s.hooks.iter_mut().zip([60, 30, 90]) {
            hook.patience = at(patience);
        }
        s.handle(HookEvent::Begin, T0);
        s.handle(HookEvent::Ready(0), at(1));
        assert_eq!(
            s.handle(HookEvent::Ready(1), at(2)),
            [HookAction::Start(2), HookAction::AllStarted]
        );
        s
    };
    let mut s = begun(Purpose::OwnWork);
    assert_eq!(s.deadline(), None, "a finite hook ends by its unit's limit");
    assert_eq!(s.handle(HookEvent::Ended(2), at(9)), []);
    assert_eq!(s.deadline(), Some(at(31)));
    assert_eq!(s.handle(HookEvent::Deadline, at(31)), [HookAction::Stop(1)]);
    assert_eq!(s.handle(HookEvent::Ended(1), at(32)), []);
    assert_eq!(s.deadline(), Some(at(60)));
    assert_eq!(s.handle(HookEvent::Ended(0), at(40)), [HookAction::Done]);

    let mut s = begun(Purpose::OtherHooks);
    let actions = s.handle(HookEvent::Ended(2), at(9));
    assert_eq!(actions, [HookAction::Stop(1), HookAction::Stop(0)]);

    let mut s = begun(Purpose::CrawlPages);
    assert_eq!(s.handle(HookEvent::Ended(2), at(9)), []);
    let actions = s.handle(HookEvent::Release, at(20));
    assert_eq!(actions, [HookAction::Stop(1), HookAction::Stop(0)]);
}

#[test]
fn grace_is_the_rest_of_the_plugins_limit_within_bounds() {
    let grace = |patience, max, released| {
        let mut s = sequence(&[Daemon], true);
        s.hooks[0].patience = at(patience);
        s.grace_max = at(max);
        s.handle(HookEvent::Begin, T0);
        assert_eq!(s.handle(HookEvent::Ready(0), at(1)), [HookAction::AllStarted]);
        assert_eq!(s.handle(HookEvent::Release, at(released)), [HookAction::Stop(0)]);
        s.deadline().unwrap() - at(released)
    };
    assert_eq!(grace(60, 120, 20), at(40));
    assert_eq!(grace(60, 120, 50), GRACE_MIN, "less is left");
    assert_eq!(grace(60, 120, 900), GRACE_MIN, "nothing is left");
    assert_eq!(grace(3600, 120, 20), at(120), "the administrator's cap");
    assert_eq!(grace(60, 5, 20), at(5), "a cap below the usual minimum");
}

#[test]
fn finished_hooks_do_not_run_again() {
    let mut s = sequence(&[Foreground, Foreground], false);
    s.states[0] = HookState::Ended;
    assert_eq!(s.handle(HookEvent::Begin, T0), [HookAction::Start(1)]);
}

#[test]
fn requested_hook_runs_last_and_once() {
    let mut s = sequence(&[Foreground, Foreground], true);
    let wish = || HookTask::sonic("p", at(60));
    s.handle(HookEvent::Begin, T0);
    assert!(s.add(wish()) && !s.add(wish()));
    assert_eq!(s.handle(HookEvent::Ended(0), at(1)), [HookAction::Start(1)]);
    assert_eq!(s.handle(HookEvent::Ended(1), at(2)), [HookAction::Start(2)]);
    assert_eq!(s.handle(HookEvent::Ready(2), at(3)), [HookAction::AllStarted]);
    let mut other = wish();
    other.key = "p/late".into();
    assert!(!s.add(other));
    assert_eq!(s.handle(HookEvent::Release, at(4)), [HookAction::Stop(2)]);
    assert_eq!(s.handle(HookEvent::Ended(2), at(5)), [HookAction::Done]);
}

#[test]
fn failed_daemon_of_a_crawl_is_restarted_up_to_the_limit() {
    let mut s = sequence(&[Daemon], true);
    s.handle(HookEvent::Begin, T0);
    assert_eq!(s.handle(HookEvent::Ready(0), at(1)), [HookAction::AllStarted]);
    for time in 1..=3 {
        let died = s.handle(HookEvent::DaemonFailed(0), at(10 * time));
        assert_eq!(died, [HookAction::Start(0)]);
        assert_eq!(s.handle(HookEvent::Ready(0), at(10 * time + 1)), []);
    }
    assert_eq!(s.handle(HookEvent::DaemonFailed(0), at(50)), []);
    assert_eq!(s.handle(HookEvent::Release, at(60)), [HookAction::Done]);
}

#[test]
fn daemon_that_was_never_ready_or_was_stopped_is_not_restarted() {
    let mut s = sequence(&[Daemon, Foreground], true);
    s.handle(HookEvent::Begin, T0);
    assert_eq!(s.handle(HookEvent::DaemonFailed(0), at(1)), [HookAction::Start(1)]);

    let mut s = sequence(&[Daemon], true);
    s.handle(HookEvent::Begin, T0);
    s.handle(HookEvent::Ready(0), at(1));
    assert_eq!(s.handle(HookEvent::Release, at(2)), [HookAction::Stop(0)]);
    assert_eq!(s.handle(HookEvent::DaemonFailed(0), at(3)), [HookAction::Done]);

    // A daemon of a page is not restarted.
    let mut s = sequence(&[Daemon, Foreground], false);
    s.handle(HookEvent::Begin, T0);
    s.handle(HookEvent::Ready(0), at(1));
    assert_eq!(s.handle(HookEvent::DaemonFailed(0), at(2)), []);
}

#[test]
fn restarting_daemon_is_stopped_with_the_others() {
    let mut s = sequence(&[Daemon], true);
    s.handle(HookEvent::Begin, T0);
    s.handle(HookEvent::Ready(0), at(1));
    s.handle(HookEvent::DaemonFailed(0), at(2));
    assert_eq!(s.handle(HookEvent::Release, at(2)), [HookAction::Stop(0)]);
    assert_eq!(s.handle(HookEvent::Ended(0), at(3)), [HookAction::Done]);
}

#[test]
fn empty_sequence_is_done_immediately() {
    let mut s = sequence(&[], false);
    assert_eq!(s.handle(HookEvent::Begin, T0), [HookAction::AllStarted, HookAction::Done]);
}

#[test]
fn after_background_hook_waits_for_background_hooks() {
    let mut s = sequence(&[Daemon, Foreground], false);
    s.hooks[1].after_background = true;
    s.handle(HookEvent::Begin, T0);
    assert_eq!(s.handle(HookEvent::Ready(0), at(1)), [HookAction::Stop(0)]);
    assert_eq!(s.handle(HookEvent::Ended(0), at(2)), [HookAction::Start(1)]);
}

/// The end of a hook that changed a file last at this time.
fn left_files(position: usize, changed: u64, now: u64) -> HookEvent {
    let age = at(now) - at(changed);
    HookEvent::LeftFiles { position, age }
}

#[test]
fn hook_that_found_nothing_is_retried_once_while_daemons_run() {
    let mut s = sequence(&[Daemon, Finite, Foreground, Foreground], false);
    s.handle(HookEvent::Begin, T0);
    s.handle(HookEvent::Ready(0), at(1));
    assert_eq!(s.handle(HookEvent::FoundNothing(2), at(3)), [HookAction::Start(3)]);
    assert_eq!(s.handle(HookEvent::Ended(3), at(4)), [HookAction::AllStarted]);
    assert_eq!(s.handle(left_files(1, 8, 9), at(9)), [HookAction::Start(2)]);
    assert_eq!(s.handle(HookEvent::FoundNothing(2), at(10)), [HookAction::Stop(0)]);
    assert_eq!(s.handle(HookEvent::Ended(0), at(11)), [HookAction::Done]);
}

#[test]
fn retries_run_one_after_another_in_order() {
    let mut s = sequence(&[Finite, Foreground, Foreground], false);
    s.handle(HookEvent::Begin, T0);
    s.handle(HookEvent::FoundNothing(1), at(2));
    assert_eq!(s.handle(HookEvent::FoundNothing(2), at(3)), [HookAction::AllStarted]);
    assert_eq!(s.handle(left_files(0, 4, 4), at(4)), [HookAction::Start(1)]);
    assert_eq!(s.handle(HookEvent::Ended(1), at(5)), [HookAction::Start(2)]);
    assert_eq!(s.handle(HookEvent::Ended(2), at(6)), [HookAction::Done]);
}

#[test]
fn hook_is_not_retried_without_a_finite_hook() {
    let mut s = sequence(&[Daemon, Foreground], false);
    s.handle(HookEvent::Begin, T0);
    s.handle(HookEvent::Ready(0), at(1));
    let actions = s.handle(HookEvent::FoundNothing(1), at(2));
    assert_eq!(actions, [HookAction::AllStarted, HookAction::Stop(0)]);
}

/// Hooks 1 and 2 run from 0 s and from 3 s, hook 0 ends after both.
#[test]
fn hook_is_retried_only_for_files_that_are_newer_than_its_start() {
    let ends_with = |event: HookEvent, uses_daemon: bool| {
        let mut s = sequence(&[Finite, Foreground, Foreground], false);
        s.hooks[1].uses_daemon = uses_daemon;
        s.handle(HookEvent::Begin, T0);
        s.handle(HookEvent::FoundNothing(1), at(3));
        s.handle(HookEvent::FoundNothing(2), at(4));
        let mut actions = s.handle(event, at(9));
        if let [HookAction::Start(position)] = actions[..] {
            actions.extend(s.handle(HookEvent::FoundNothing(position), at(9)));
        }
        actions
    };
    let done = HookAction::Done;
    let start = HookAction::Start;
    assert_eq!(ends_with(left_files(0, 8, 9), false), [start(1), start(2)]);
    // The first hook may have looked before the last file, the second found all of them.
    assert_eq!(ends_with(left_files(0, 2, 9), false), [start(1), done]);
    // The first hook works with the browser.
    assert_eq!(ends_with(left_files(0, 8, 9), true), [start(2), done]);
    // Without files there is nothing to find.
    assert_eq!(ends_with(HookEvent::Ended(0), false), [done]);
    assert_eq!(ends_with(HookEvent::FoundNothing(0), false), [done]);
}

fn mode() -> impl Strategy<Value = HookMode> {
    prop_oneof![Just(Foreground), Just(Finite), Just(Daemon)]
}

proptest! {
    /// For any order of events: hooks start once and in order, foreground hooks overlap only if the
    /// later one names the other, a foreground hook may be retried once at the end, only running hooks
    /// are stopped, and the sequence ends.
    #[test]
    fn sequence_always_ends(
        modes in prop::collection::vec(mode(), 0..8),
        choices in prop::collection::vec(0usize..5, 200),
        patience in prop::collection::vec(0u64..20, 8),
        alongside in prop::collection::vec(prop::collection::vec(0usize..8, 0..8), 8),
        attend: bool,
    ) {
        let purpose = if attend { Purpose::OwnWork } else { Purpose::OtherHooks };
        let mut s = sequence_for(&modes, purpose);
        for (position, hook) in s.hooks.iter_mut().enumerate() {
            hook.patience = at(patience[position]);
            hook.plugin = position.to_string();
            hook.alongside = alongside[position].iter().map(usize::to_string).collect();
        }
        let mut now = T0;
        let mut started: Vec<usize> = Vec::new();
        let mut running: Vec<usize> = Vec::new();
        let mut queue = s.handle(HookEvent::Begin, now);
        let mut choices = choices.into_iter().cycle();
        for _ in 0..200 {
            for action in std::mem::take(&mut queue) {
                match action {
                    HookAction::Start(n) => {
                        let mut others = running.iter().filter(|other| modes[**other] == Foreground);
                        let may_overlap = |other: &usize| alongside[n].contains(other);
                        prop_assert!(modes[n] != Foreground || others.all(may_overlap));
                        started.push(n);
                        running.push(n);
                    }
                    HookAction::Stop(n) | HookAction::Kill(n, _) => prop_assert!(running.contains(&n)),
                    HookAction::AllStarted => {}
                    HookAction::Done => {
                        prop_assert!(running.is_empty());
                        let again = started.split_off(modes.len());
                        prop_assert_eq!(&started, &(0..modes.len()).collect::<Vec<_>>());
                        prop_assert!(again.is_sorted_by(|a, b| a < b));
                        prop_assert!(again.iter().all(|n| modes[*n] == Foreground));
                        return Ok(());
                    }
                }
            }
            now += at(1);
            let input = match (choices.next().unwrap(), s.deadline()) {
                (0, Some(deadline)) => { now = now.max(deadline); HookEvent::Deadline }
                (1, _) if !running.is_empty() => HookEvent::Ready(running[0]),
                (2, _) if !running.is_empty() => HookEvent::FoundNothing(running.remove(0)),
                (3, _) if !running.is_empty() => left_files(running.remove(0), 1, 1),
                _ if !running.is_empty() => HookEvent::Ended(running.remove(0)),
                _ => HookEvent::Deadline,
            };
            queue = s.handle(input, now);
        }
        prop_assert!(false, "no end after 200 steps");
    }
}
