use super::*;
use HookMode::*;
use proptest::prelude::*;

fn sequence(modes: &[HookMode], hold: bool) -> Sequence {
    let purpose = if hold {
        Purpose::Pages
    } else {
        Purpose::Beside
    };
    sequence_for(modes, purpose)
}

fn sequence_for(modes: &[HookMode], purpose: Purpose) -> Sequence {
    let hook = |(place, mode): (usize, &HookMode)| HookTask {
        key: format!("p/{place}"),
        plugin: "p".into(),
        hook: place.to_string(),
        mode: *mode,
        limit: Duration::from_secs(60),
        patience: Duration::ZERO,
        after_background: false,
    };
    let hooks = modes.iter().enumerate().map(hook).collect();
    Sequence::new(
        hooks,
        &[],
        purpose,
        Duration::from_secs(5),
        Duration::from_secs(15),
    )
}

const T0: Duration = Duration::ZERO;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn foreground_is_waited_for_and_background_until_ready() {
    let mut s = sequence(&[Daemon, Foreground, Finite], false);
    assert_eq!(s.handle(Input::Begin, T0), [Action::Start(0)]);
    assert_eq!(s.deadline(), Some(at(5)));
    assert_eq!(s.handle(Input::Ready(0), at(1)), [Action::Start(1)]);
    assert_eq!(s.deadline(), None);
    assert_eq!(s.handle(Input::Ended(1), at(2)), [Action::Start(2)]);
    assert_eq!(s.handle(Input::Ready(2), at(3)), [Action::Forwarded]);
    assert_eq!(s.handle(Input::Ended(2), at(9)), [Action::Stop(0)]);
    assert_eq!(s.deadline(), Some(at(24)));
    assert_eq!(s.handle(Input::Ended(0), at(10)), [Action::Done]);
}

#[test]
fn a_hook_that_prints_nothing_does_not_block() {
    let mut s = sequence(&[Daemon, Foreground], false);
    s.handle(Input::Begin, T0);
    assert_eq!(s.handle(Input::Deadline, at(5)), [Action::Start(1)]);
}

#[test]
fn daemons_end_last_started_first_and_the_stubborn_by_force() {
    let mut s = sequence(&[Daemon, Daemon], false);
    s.handle(Input::Begin, T0);
    s.handle(Input::Ready(0), at(1));
    let actions = s.handle(Input::Ready(1), at(2));
    assert_eq!(
        actions,
        [Action::Forwarded, Action::Stop(1), Action::Stop(0)]
    );
    assert_eq!(s.handle(Input::Ended(0), at(3)), []);
    assert_eq!(s.handle(Input::Deadline, at(17)), [Action::Kill(1)]);
    assert_eq!(s.deadline(), None);
    assert_eq!(s.handle(Input::Ended(1), at(18)), [Action::Done]);
}

#[test]
fn daemons_with_nothing_beside_them_have_their_own_time() {
    let begun = |purpose| {
        let mut s = sequence_for(&[Daemon, Daemon, Finite], purpose);
        for (hook, patience) in s.hooks.iter_mut().zip([60, 30, 90]) {
            hook.patience = at(patience);
        }
        s.handle(Input::Begin, T0);
        s.handle(Input::Ready(0), at(1));
        s.handle(Input::Ready(1), at(2));
        assert_eq!(s.handle(Input::Ready(2), at(3)), [Action::Forwarded]);
        s
    };
    let mut s = begun(Purpose::Own);
    assert_eq!(s.deadline(), None, "a finite hook ends by its unit's limit");
    assert_eq!(s.handle(Input::Ended(2), at(9)), []);
    assert_eq!(s.deadline(), Some(at(31)));
    assert_eq!(s.handle(Input::Deadline, at(31)), [Action::Stop(1)]);
    assert_eq!(s.handle(Input::Ended(1), at(32)), []);
    assert_eq!(s.deadline(), Some(at(60)));
    assert_eq!(s.handle(Input::Ended(0), at(40)), [Action::Done]);

    let mut s = begun(Purpose::Beside);
    let actions = s.handle(Input::Ended(2), at(9));
    assert_eq!(actions, [Action::Stop(1), Action::Stop(0)]);

    let mut s = begun(Purpose::Pages);
    assert_eq!(s.handle(Input::Ended(2), at(9)), []);
    let actions = s.handle(Input::Release, at(20));
    assert_eq!(actions, [Action::Stop(1), Action::Stop(0)]);
}

#[test]
fn a_daemon_past_its_time_still_gets_some_grace() {
    let mut s = sequence(&[Daemon], true);
    s.handle(Input::Begin, T0);
    assert_eq!(s.handle(Input::Ready(0), at(1)), [Action::Forwarded]);
    assert_eq!(s.handle(Input::Release, at(900)), [Action::Stop(0)]);
    assert_eq!(s.deadline(), Some(at(902)));
}

#[test]
fn what_was_done_before_is_not_done_again() {
    let mut s = sequence(&[Foreground, Foreground], false);
    s.states[0] = State::Ended;
    assert_eq!(s.handle(Input::Begin, T0), [Action::Start(1)]);
}

#[test]
fn what_a_hook_asks_for_has_its_turn_last_and_once() {
    let mut s = sequence(&[Foreground, Foreground], true);
    let wish = || HookTask::sonic("p", at(60));
    s.handle(Input::Begin, T0);
    assert!(s.add(wish()) && !s.add(wish()));
    assert_eq!(s.handle(Input::Ended(0), at(1)), [Action::Start(1)]);
    assert_eq!(s.handle(Input::Ended(1), at(2)), [Action::Start(2)]);
    assert_eq!(s.handle(Input::Ready(2), at(3)), [Action::Forwarded]);
    let mut other = wish();
    other.key = "p/late".into();
    assert!(!s.add(other));
    assert_eq!(s.handle(Input::Release, at(4)), [Action::Stop(2)]);
    assert_eq!(s.handle(Input::Ended(2), at(5)), [Action::Done]);
}

#[test]
fn a_crawl_s_daemon_that_dies_is_started_again_a_few_times() {
    let mut s = sequence(&[Daemon], true);
    s.handle(Input::Begin, T0);
    assert_eq!(s.handle(Input::Ready(0), at(1)), [Action::Forwarded]);
    for time in 1..=3 {
        let died = s.handle(Input::Died(0), at(10 * time));
        assert_eq!(died, [Action::Start(0)]);
        assert_eq!(s.handle(Input::Ready(0), at(10 * time + 1)), []);
    }
    assert_eq!(s.handle(Input::Died(0), at(50)), []);
    assert_eq!(s.handle(Input::Release, at(60)), [Action::Done]);
}

#[test]
fn what_never_was_up_or_was_told_to_end_stays_down() {
    let mut s = sequence(&[Daemon, Foreground], true);
    s.handle(Input::Begin, T0);
    assert_eq!(s.handle(Input::Died(0), at(1)), [Action::Start(1)]);

    let mut s = sequence(&[Daemon], true);
    s.handle(Input::Begin, T0);
    s.handle(Input::Ready(0), at(1));
    assert_eq!(s.handle(Input::Release, at(2)), [Action::Stop(0)]);
    assert_eq!(s.handle(Input::Died(0), at(3)), [Action::Done]);

    // A page's daemon dies with what it was for; nothing waits for another one.
    let mut s = sequence(&[Daemon, Foreground], false);
    s.handle(Input::Begin, T0);
    s.handle(Input::Ready(0), at(1));
    assert_eq!(s.handle(Input::Died(0), at(2)), []);
}

#[test]
fn one_that_is_coming_up_again_is_ended_with_the_others() {
    let mut s = sequence(&[Daemon], true);
    s.handle(Input::Begin, T0);
    s.handle(Input::Ready(0), at(1));
    s.handle(Input::Died(0), at(2));
    assert_eq!(s.handle(Input::Release, at(2)), [Action::Stop(0)]);
    assert_eq!(s.handle(Input::Ended(0), at(3)), [Action::Done]);
}

#[test]
fn nothing_to_do_is_done_at_once() {
    let mut s = sequence(&[], false);
    assert_eq!(
        s.handle(Input::Begin, T0),
        [Action::Forwarded, Action::Done]
    );
}

#[test]
fn a_hook_that_wants_quiet_waits_for_the_background() {
    let mut s = sequence(&[Daemon, Foreground], false);
    s.hooks[1].after_background = true;
    s.handle(Input::Begin, T0);
    assert_eq!(s.handle(Input::Ready(0), at(1)), [Action::Stop(0)]);
    assert_eq!(s.handle(Input::Ended(0), at(2)), [Action::Start(1)]);
}

#[test]
fn what_missed_something_has_one_more_try_beside_the_daemons() {
    let mut s = sequence(&[Daemon, Finite, Foreground, Foreground], false);
    s.handle(Input::Begin, T0);
    s.handle(Input::Ready(0), at(1));
    s.handle(Input::Ready(1), at(2));
    assert_eq!(s.handle(Input::Missed(2), at(3)), [Action::Start(3)]);
    assert_eq!(s.handle(Input::Ended(3), at(4)), [Action::Forwarded]);
    assert_eq!(s.handle(Input::Ended(1), at(9)), [Action::Start(2)]);
    assert_eq!(s.handle(Input::Missed(2), at(10)), [Action::Stop(0)]);
    assert_eq!(s.handle(Input::Ended(0), at(11)), [Action::Done]);
}

#[test]
fn tries_again_come_one_after_the_other_in_order() {
    let mut s = sequence(&[Finite, Foreground, Foreground], false);
    s.handle(Input::Begin, T0);
    s.handle(Input::Ready(0), at(1));
    s.handle(Input::Missed(1), at(2));
    assert_eq!(s.handle(Input::Missed(2), at(3)), [Action::Forwarded]);
    assert_eq!(s.handle(Input::Ended(0), at(4)), [Action::Start(1)]);
    assert_eq!(s.handle(Input::Ended(1), at(5)), [Action::Start(2)]);
    assert_eq!(s.handle(Input::Ended(2), at(6)), [Action::Done]);
}

#[test]
fn no_other_try_where_nothing_new_can_be_there() {
    // No finite hook at all, one that was over before, and a background hook that failed.
    let mut s = sequence(&[Daemon, Foreground], false);
    s.handle(Input::Begin, T0);
    s.handle(Input::Ready(0), at(1));
    let actions = s.handle(Input::Missed(1), at(2));
    assert_eq!(actions, [Action::Forwarded, Action::Stop(0)]);

    let mut s = sequence(&[Finite, Foreground], false);
    s.handle(Input::Begin, T0);
    assert_eq!(s.handle(Input::Missed(0), at(1)), [Action::Start(1)]);
    let actions = s.handle(Input::Missed(1), at(2));
    assert_eq!(actions, [Action::Forwarded, Action::Done]);
}

fn mode() -> impl Strategy<Value = HookMode> {
    prop_oneof![Just(Foreground), Just(Finite), Just(Daemon)]
}

proptest! {
    /// Whatever happens in whatever order: each hook starts in order and once, a foreground hook
    /// perhaps once more at the end, nothing is stopped that does not run, and it comes to an
    /// end.
    #[test]
    fn always_comes_to_an_end(
        modes in prop::collection::vec(mode(), 0..8),
        choices in prop::collection::vec(0usize..4, 200),
        patience in prop::collection::vec(0u64..20, 8),
        attend: bool,
    ) {
        let purpose = if attend { Purpose::Own } else { Purpose::Beside };
        let mut s = sequence_for(&modes, purpose);
        for (hook, patience) in s.hooks.iter_mut().zip(patience) {
            hook.patience = at(patience);
        }
        let mut now = T0;
        let mut started: Vec<usize> = Vec::new();
        let mut running: Vec<usize> = Vec::new();
        let mut queue = s.handle(Input::Begin, now);
        let mut choices = choices.into_iter().cycle();
        for _ in 0..200 {
            for action in std::mem::take(&mut queue) {
                match action {
                    Action::Start(n) => { started.push(n); running.push(n); }
                    Action::Stop(n) | Action::Kill(n) => prop_assert!(running.contains(&n)),
                    Action::Forwarded => {}
                    Action::Done => {
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
                (0, Some(deadline)) => { now = now.max(deadline); Input::Deadline }
                (1, _) if !running.is_empty() => Input::Ready(running[0]),
                (2, _) if !running.is_empty() => Input::Missed(running.remove(0)),
                _ if !running.is_empty() => Input::Ended(running.remove(0)),
                _ => Input::Deadline,
            };
            queue = s.handle(input, now);
        }
        prop_assert!(false, "no end after 200 steps");
    }
}
