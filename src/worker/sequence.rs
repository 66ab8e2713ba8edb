//! The order of the hooks of one crawl or snapshot, as a pure machine: events in, actions out.
//!
//! Hooks start in order. A foreground hook is waited for; a background hook only until it is
//! ready. At the end the finite background hooks first get the rest of their own time. Then those
//! foreground hooks that missed something while these were at work have another try, the daemons
//! still beside them. Then all daemons are asked to end at once, the last started first, each with
//! its remaining time as grace, and what is left after that is ended by force.
//!
//! Where nothing runs in the foreground the daemons are the work: each then has its own time to end by
//! itself.
//!
//! The daemons of a crawl are what its pages live on: one that dies is started again for the pages
//! to come, a few times.

use archivist_shared::bus::documents::work::{HookMode, HookTask};
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
    /// The same of a daemon that failed.
    Died(usize),
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
    /// Waiting for daemons that run for their own sake.
    Attending,
    /// Starting once more what missed something, or waiting for it.
    Again,
    /// Waiting for daemons that were asked to end.
    Ending,
    Done,
}

/// What the daemons are there for once all hooks had their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The pages of a crawl: they live until [`Input::Release`].
    Pages,
    /// Themselves: each has its own time to end by itself.
    Own,
    /// The hooks that had their turn: they end with these.
    Beside,
}

/// How often a daemon is started again that dies while pages live on it.
const REVIVALS_MAX: u32 = 3;
/// Shortest grace between being asked to end and being ended by force.
const LEAST_GRACE: Duration = Duration::from_secs(2);

/// See the module's description. Times are since the worker began.
#[derive(Debug)]
pub struct Sequence {
    hooks: Vec<HookTask>,
    states: Vec<State>,
    /// How often each was started again after it died.
    revivals: Vec<u32>,
    phase: Phase,
    /// Foreground hooks that are to be started once more.
    again: VecDeque<usize>,
    /// When the last of the finite background hooks that ended did so.
    finite_end: Option<Duration>,
    /// The daemons are what the work is about.
    attend: bool,
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
        purpose: Purpose,
        ready_limit: Duration,
        stop_limit: Duration,
    ) -> Sequence {
        let state = |place: usize| match done.get(place) {
            Some(true) => State::Ended,
            _ => State::Waiting,
        };
        let states = (0..hooks.len()).map(state).collect();
        Sequence {
            attend: purpose == Purpose::Own,
            revivals: vec![0; hooks.len()],
            hooks,
            states,
            phase: Phase::Forward(0),
            again: VecDeque::new(),
            finite_end: None,
            hold: purpose == Purpose::Pages,
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
            self.revivals.push(0);
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
            Input::Died(place) => {
                let revive = self.is_missed_by_pages(place);
                self.ended(place, now);
                if revive {
                    self.revivals[place] += 1;
                    self.start(place, now, &mut actions);
                }
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
            Phase::Attending => {
                let all = 0..self.hooks.len();
                all.filter_map(|place| self.attended_until(place)).min()
            }
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

    /// Whether a daemon that died is what the pages of a crawl live on: it was up, nobody asked it
    /// to end, and it has not died too often.
    fn is_missed_by_pages(&self, place: usize) -> bool {
        let was_up = matches!(
            self.states.get(place),
            Some(State::Running { ready: true, .. })
        );
        let is_daemon = |hook: &HookTask| hook.mode == HookMode::Daemon;
        self.hold
            && was_up
            && self.hooks.get(place).is_some_and(is_daemon)
            && self.revivals[place] < REVIVALS_MAX
    }

    fn is_background(&self, place: usize) -> bool {
        self.hooks[place].mode != HookMode::Foreground
    }

    /// How long a daemon that runs for its own sake is left to end by itself.
    fn attended_until(&self, place: usize) -> Option<Duration> {
        let hook = &self.hooks[place];
        match self.states[place] {
            State::Running { since, .. } if hook.mode == HookMode::Daemon => {
                Some(since + hook.patience)
            }
            _ => None,
        }
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
                Phase::Draining if self.attend => self.phase = Phase::Attending,
                Phase::Draining => self.phase = Phase::Again,
                Phase::Attending => {
                    let due = |s: &Self, place| s.attended_until(place).is_some_and(|at| at <= now);
                    self.stop(due, now, actions);
                    if self.runs(HookMode::Daemon) {
                        return;
                    }
                    self.phase = Phase::Again;
                }
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
        self.stop(|_, _| true, now, actions);
        self.states
            .iter()
            .any(|state| matches!(state, State::Running { .. } | State::Stopping { .. }))
    }

    /// Asks those of the daemons that run to end that are `meant`, the last started first.
    fn stop(
        &mut self,
        meant: impl Fn(&Self, usize) -> bool,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        for place in (0..self.hooks.len()).rev() {
            let State::Running { since, .. } = self.states[place] else {
                continue;
            };
            if self.hooks[place].mode != HookMode::Daemon || !meant(self, place) {
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
    }
}

#[cfg(test)]
mod tests;
