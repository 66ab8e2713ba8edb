//! The order of the hooks of one crawl or snapshot, as a pure machine: events in, actions out.
//!
//! Hooks start in order. A foreground hook is waited for; a background hook only until it is
//! ready. At the end the finite background hooks first get the rest of their own time. Then those
//! foreground hooks that missed something while these were at work have another try, the daemons
//! still beside them. Then all daemons are asked to end at once, the last started first, each with
//! its remaining time as grace, and what is left after that is ended by force.

use crate::bus::work::{HookMode, HookTask};
use std::collections::VecDeque;
use std::time::Duration;

/// What happened, by the place of a hook in the assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    Begin,
    /// A background hook printed its first line.
    Ready(usize),
    /// A hook ended and its result is recorded.
    Ended(usize),
    /// The same of one that failed and left nothing: it may want what others had not brought yet.
    Missed(usize),
    /// The deadline that was asked for has passed.
    Deadline,
    /// The background hooks are not needed any more.
    Release,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Start(usize),
    /// Ask it to end.
    Stop(usize),
    /// End it by force.
    Kill(usize),
    /// All hooks had their turn; background hooks may run on until [`Input::Release`].
    Forwarded,
    /// Nothing runs any more.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Running { since: Duration, ready: bool },
    Stopping { until: Duration, killed: bool },
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Starting the hook with this place, or waiting for it.
    Forward(usize),
    /// Waiting to be released.
    Held,
    /// Waiting for finite background hooks.
    Draining,
    /// Starting once more what missed something, or waiting for it.
    Again,
    /// Waiting for daemons that were asked to end.
    Ending,
    Done,
}

/// Shortest grace between being asked to end and being ended by force.
const LEAST_GRACE: Duration = Duration::from_secs(2);

/// See the module's description. Times are since the worker began.
#[derive(Debug)]
pub struct Sequence {
    hooks: Vec<HookTask>,
    states: Vec<State>,
    phase: Phase,
    /// Foreground hooks that are to be started once more.
    again: VecDeque<usize>,
    /// When the last of the finite background hooks that ended did so.
    finite_end: Option<Duration>,
    /// Hold the background hooks until they are released.
    hold: bool,
    ready_limit: Duration,
    stop_limit: Duration,
}

impl Sequence {
    /// `done` says of each hook whether its result is final from an earlier attempt.
    pub fn new(
        hooks: Vec<HookTask>,
        done: &[bool],
        hold: bool,
        ready_limit: Duration,
        stop_limit: Duration,
    ) -> Sequence {
        let state = |place: usize| match done.get(place) {
            Some(true) => State::Ended,
            _ => State::Waiting,
        };
        let states = (0..hooks.len()).map(state).collect();
        Sequence {
            hooks,
            states,
            phase: Phase::Forward(0),
            again: VecDeque::new(),
            finite_end: None,
            hold,
            ready_limit,
            stop_limit,
        }
    }

    /// Appends a hook that another one asked for; too late when all had their turn already.
    pub fn add(&mut self, hook: HookTask) -> bool {
        let known = self.hooks.iter().any(|other| other.key == hook.key);
        let added = matches!(self.phase, Phase::Forward(_)) && !known;
        if added {
            self.hooks.push(hook);
            self.states.push(State::Waiting);
        }
        added
    }

    /// Takes note of `input` at `now` and says what to do.
    pub fn handle(&mut self, input: Input, now: Duration) -> Vec<Action> {
        let mut actions = Vec::new();
        match input {
            Input::Begin => {}
            Input::Ready(place) => {
                if let Some(State::Running { ready, .. }) = self.states.get_mut(place) {
                    *ready = true;
                }
            }
            Input::Ended(place) => self.ended(place, now),
            Input::Missed(place) => {
                if self.may_find_more(place) {
                    self.again.push_back(place);
                }
                self.ended(place, now);
            }
            Input::Deadline => self.enforce(now, &mut actions),
            Input::Release => self.hold = false,
        }
        self.advance(now, &mut actions);
        actions
    }

    /// When [`Input::Deadline`] is wanted next.
    pub fn deadline(&self) -> Option<Duration> {
        let waiting = match self.phase {
            Phase::Forward(place) => match self.states.get(place) {
                Some(State::Running {
                    since,
                    ready: false,
                }) if self.is_background(place) => Some(*since + self.ready_limit),
                _ => None,
            },
            _ => None,
        };
        let stopping = self.states.iter().filter_map(|state| match state {
            State::Stopping {
                until,
                killed: false,
            } => Some(*until),
            _ => None,
        });
        stopping.chain(waiting).min()
    }

    fn ended(&mut self, place: usize, now: Duration) {
        let Some(state) = self.states.get_mut(place) else {
            return;
        };
        *state = State::Ended;
        if self.hooks[place].mode == HookMode::Finite {
            self.finite_end = Some(now);
        }
    }

    /// Whether another try of a foreground hook could end otherwise than this one, its first: a
    /// finite hook was at work beside it. What was there before it started it has seen.
    fn may_find_more(&self, place: usize) -> bool {
        let Some(State::Running { since, .. }) = self.states.get(place) else {
            return false;
        };
        let beside = self.runs(HookMode::Finite) || self.finite_end.is_some_and(|end| end > *since);
        matches!(self.phase, Phase::Forward(_)) && !self.is_background(place) && beside
    }

    fn is_background(&self, place: usize) -> bool {
        self.hooks[place].mode != HookMode::Foreground
    }

    /// Passes what the deadlines say.
    fn enforce(&mut self, now: Duration, actions: &mut Vec<Action>) {
        for (place, state) in self.states.iter_mut().enumerate() {
            match state {
                State::Running { since, ready } if !*ready && *since + self.ready_limit <= now => {
                    *ready = true;
                }
                State::Stopping { until, killed } if !*killed && *until <= now => {
                    *killed = true;
                    actions.push(Action::Kill(place));
                }
                _ => {}
            }
        }
    }

    fn advance(&mut self, now: Duration, actions: &mut Vec<Action>) {
        loop {
            match self.phase {
                Phase::Forward(place) if place == self.hooks.len() => {
                    actions.push(Action::Forwarded);
                    self.phase = Phase::Held;
                }
                Phase::Forward(place) => match self.states[place] {
                    State::Waiting => {
                        if self.hooks[place].after_background && self.stop_background(now, actions)
                        {
                            return;
                        }
                        self.start(place, now, actions);
                        return;
                    }
                    State::Running { ready, .. } if !(ready && self.is_background(place)) => return,
                    State::Stopping { .. } => return,
                    _ => self.phase = Phase::Forward(place + 1),
                },
                Phase::Held if self.hold => return,
                Phase::Held => self.phase = Phase::Draining,
                Phase::Draining if self.runs(HookMode::Finite) => return,
                Phase::Draining => self.phase = Phase::Again,
                Phase::Again if self.runs(HookMode::Foreground) => return,
                Phase::Again => match self.again.pop_front() {
                    Some(place) => {
                        self.start(place, now, actions);
                        return;
                    }
                    None => {
                        self.phase = Phase::Ending;
                        self.stop_background(now, actions);
                    }
                },
                Phase::Ending if self.states.iter().any(|state| *state != State::Ended) => return,
                Phase::Ending => {
                    self.phase = Phase::Done;
                    actions.push(Action::Done);
                }
                Phase::Done => return,
            }
        }
    }

    fn start(&mut self, place: usize, now: Duration, actions: &mut Vec<Action>) {
        self.states[place] = State::Running {
            since: now,
            ready: false,
        };
        actions.push(Action::Start(place));
    }

    fn runs(&self, mode: HookMode) -> bool {
        let mut pairs = self.hooks.iter().zip(&self.states);
        pairs.any(|(hook, state)| {
            hook.mode == mode && !matches!(state, State::Ended | State::Waiting)
        })
    }

    /// Asks everything that runs in the background to end, the last started first. Finite hooks
    /// are left their own time, which their unit's limit bounds. Whether anything runs still.
    fn stop_background(&mut self, now: Duration, actions: &mut Vec<Action>) -> bool {
        for place in (0..self.hooks.len()).rev() {
            let State::Running { since, .. } = self.states[place] else {
                continue;
            };
            if self.hooks[place].mode != HookMode::Daemon {
                continue;
            }
            let left = (since + self.hooks[place].limit).saturating_sub(now);
            let grace = left.min(self.stop_limit).max(LEAST_GRACE);
            self.states[place] = State::Stopping {
                until: now + grace,
                killed: false,
            };
            actions.push(Action::Stop(place));
        }
        self.states
            .iter()
            .any(|state| matches!(state, State::Running { .. } | State::Stopping { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use HookMode::*;
    use proptest::prelude::*;

    fn sequence(modes: &[HookMode], hold: bool) -> Sequence {
        let hook = |(place, mode): (usize, &HookMode)| HookTask {
            key: format!("p/{place}"),
            plugin: "p".into(),
            hook: place.to_string(),
            mode: *mode,
            limit: Duration::from_secs(60),
            after_background: false,
        };
        let hooks = modes.iter().enumerate().map(hook).collect();
        Sequence::new(
            hooks,
            &[],
            hold,
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
        ) {
            let mut s = sequence(&modes, false);
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
}
