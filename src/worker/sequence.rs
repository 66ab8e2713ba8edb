//! The order of the hooks of one crawl or snapshot as a state machine: events in, actions out.
//!
//! Hooks start in order. The sequence waits for the end of a foreground hook, unless the next hook may
//! run alongside it; for a daemon only until it is ready, or for a few seconds; and for a finite
//! background hook not at all: what later hooks miss of it, they get from their retry. A hook that works
//! with a daemon, such as the tab of a browser, waits until that daemon is ready or has failed, within
//! the time limit of the daemon, and its own time begins then. When all hooks have started and the last
//! foreground hook has ended, finite background hooks get the rest of their time. Then foreground hooks
//! that found nothing before a finite hook wrote its last file are retried, with the daemons still
//! running. Finally all daemons are stopped at once, the last started first. Each gets the rest of its
//! plugin's time limit as grace, and is then killed.
//!
//! If no hook runs in the foreground, the daemons are the work: each gets its own time to end by
//! itself.
//!
//! The pages of a crawl depend on its daemons: a daemon that fails is restarted for the following
//! pages, up to a limit.

use archivist_shared::bus::documents::work::{HookMode, HookTask};
use std::collections::VecDeque;
use std::time::Duration;

/// What happened. Numbers are positions of hooks in the assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    /// The worker has attached.
    Begin,
    /// A background hook printed its first line. Other hooks wait for that of a daemon.
    Ready(usize),
    /// A hook ended and its result is recorded.
    Ended(usize),
    /// A hook ended without success and without files, and its result is recorded: a retry may find
    /// what other hooks add.
    FoundNothing(usize),
    /// A hook that left files ended, and its result is recorded.
    LeftFiles {
        position: usize,
        /// Time since the last change of a file.
        age: Duration,
    },
    /// A daemon failed and its result is recorded.
    DaemonFailed(usize),
    /// The server refused the visit: all hooks will run again later.
    EndVisit,
    Deadline,
    /// The background hooks are no longer needed.
    Release,
}

/// What to do next. Numbers are positions of hooks in the assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookAction {
    Start(usize),
    Stop(usize),
    /// The hook did not end within this time after it was stopped.
    Kill(usize, Duration),
    /// All hooks have started; background hooks may continue until [`HookEvent::Release`].
    AllStarted,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HookState {
    Waiting,
    Running {
        since: Duration,
        /// Has printed a line, or had its time to do so.
        ready: bool,
        /// Has printed a line.
        spoke: bool,
    },
    Stopping {
        until: Duration,
        grace: Duration,
        killed: bool,
    },
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Starting the hook at this position, or waiting until it may start.
    Starting(usize),
    /// Waiting for [`HookEvent::Release`].
    WaitingForRelease,
    WaitingForFinite,
    /// Waiting for daemons that are the work themselves.
    WaitingForDaemons,
    /// Retrying hooks, one after another.
    Retrying,
    Stopping,
    Done,
}

/// What the daemons are for once all hooks have started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The pages of a crawl: daemons run until [`HookEvent::Release`].
    CrawlPages,
    /// Themselves: each daemon has its own time to end by itself.
    OwnWork,
    /// The other hooks: daemons end after these.
    OtherHooks,
}

/// Number of times that a failed daemon of a crawl is restarted.
const DAEMON_RESTARTS_MAX: u32 = 3;
/// Grace between SIGTERM and SIGKILL of a daemon whose plugin has less time left, if the
/// administrator allows as much. Browsers write their profiles at their end.
const GRACE_MIN: Duration = Duration::from_secs(15);

/// Runs of an earlier worker that a retry may follow.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EarlierRuns {
    /// Positions of the foreground hooks that found nothing and were not retried.
    pub found_nothing: Vec<usize>,
    /// A finite hook has ended with files after the start of one of them.
    pub left_files: bool,
}

/// The state of the sequence. Times are relative to the start of the worker.
#[derive(Debug)]
pub struct Sequence {
    hooks: Vec<HookTask>,
    states: Vec<HookState>,
    restarts: Vec<u32>,
    phase: Phase,
    /// Foreground hooks that found nothing, with the start of their run; `None` if an earlier worker
    /// ran them.
    retries: VecDeque<(usize, Option<Duration>)>,
    /// Last change of a file of a finite background hook.
    finite_change: Option<Duration>,
    daemons_are_work: bool,
    /// Whether background hooks continue until [`HookEvent::Release`].
    hold: bool,
    ready_limit: Duration,
    /// Longest grace between SIGTERM and SIGKILL.
    grace_max: Duration,
}

impl Sequence {
    /// Creates a sequence. `done` says for each hook whether an earlier attempt has its final
    /// result.
    pub fn new(
        hooks: Vec<HookTask>,
        done: &[bool],
        purpose: Purpose,
        ready_limit: Duration,
        grace_max: Duration,
    ) -> Sequence {
        let state = |position: usize| match done.get(position) {
            Some(true) => HookState::Ended,
            _ => HookState::Waiting,
        };
        let states = (0..hooks.len()).map(state).collect();
        Sequence {
            daemons_are_work: purpose == Purpose::OwnWork,
            restarts: vec![0; hooks.len()],
            hooks,
            states,
            phase: Phase::Starting(0),
            retries: VecDeque::new(),
            finite_change: None,
            hold: purpose == Purpose::CrawlPages,
            ready_limit,
            grace_max,
        }
    }

    /// Adds what an earlier worker did: its foreground hooks that found nothing and were not retried,
    /// and whether a finite hook left files after the start of one of them.
    pub fn continue_retries(&mut self, earlier: &EarlierRuns) {
        let looks = |position: &&usize| self.looks_for_files(**position);
        let found_nothing = earlier.found_nothing.iter().filter(looks);
        let retries: Vec<_> = found_nothing.map(|position| (*position, None)).collect();
        self.retries.extend(retries);
        if earlier.left_files {
            self.finite_change = Some(Duration::ZERO);
        }
    }

    /// Appends a hook that another hook requested. Returns false for a known hook, and when all
    /// hooks have started already.
    pub fn add(&mut self, hook: HookTask) -> bool {
        let known = self.hooks.iter().any(|other| other.key == hook.key);
        let added = matches!(self.phase, Phase::Starting(_)) && !known;
        if added {
            self.hooks.push(hook);
            self.states.push(HookState::Waiting);
            self.restarts.push(0);
        }
        added
    }

    /// Applies an event at the time `now`. Returns the actions that follow.
    pub fn handle(&mut self, input: HookEvent, now: Duration) -> Vec<HookAction> {
        let mut actions = Vec::new();
        match input {
            HookEvent::Begin => {}
            HookEvent::Ready(position) => {
                if let Some(HookState::Running { ready, spoke, .. }) = self.states.get_mut(position)
                {
                    (*ready, *spoke) = (true, true);
                }
            }
            HookEvent::Ended(position) => self.ended(position),
            HookEvent::FoundNothing(position) => {
                self.retries.extend(self.retry_of(position));
                self.ended(position);
            }
            HookEvent::LeftFiles { position, age } => {
                if self.is_finite(position) {
                    let change = Some(now.saturating_sub(age));
                    self.finite_change = self.finite_change.max(change);
                }
                self.ended(position);
            }
            HookEvent::DaemonFailed(position) => {
                let restart = self.needs_restart(position);
                self.ended(position);
                if restart {
                    self.restarts[position] += 1;
                    self.start(position, now, &mut actions);
                }
            }
            HookEvent::EndVisit => self.end_visit(now, &mut actions),
            HookEvent::Deadline => self.enforce(now, &mut actions),
            HookEvent::Release => self.hold = false,
        }
        self.advance(now, &mut actions);
        actions
    }

    /// Time of the next [`HookEvent::Deadline`], if one is needed.
    pub fn deadline(&self) -> Option<Duration> {
        let waiting = match self.phase {
            Phase::Starting(position) => match self.states.get(position) {
                Some(HookState::Running { since, ready: false, .. })
                    if self.is_daemon(position) =>
                {
                    Some(*since + self.ready_limit)
                }
                Some(HookState::Waiting) => self.daemons_deadline(position),
                _ => None,
            },
            Phase::WaitingForDaemons => {
                let all = 0..self.hooks.len();
                all.filter_map(|position| self.daemon_deadline(position)).min()
            }
            _ => None,
        };
        let stopping = self.states.iter().filter_map(|state| match state {
            HookState::Stopping { until, killed: false, .. } => Some(*until),
            _ => None,
        });
        stopping.chain(waiting).min()
    }

    fn ended(&mut self, position: usize) {
        if let Some(state) = self.states.get_mut(position) {
            *state = HookState::Ended;
        }
    }

    /// The retry of a foreground hook, if this was its first run. Hooks that work with a daemon do
    /// not look for files of finite hooks.
    fn retry_of(&self, position: usize) -> Option<(usize, Option<Duration>)> {
        let HookState::Running { since, .. } = *self.states.get(position)? else {
            return None;
        };
        let is_first = matches!(self.phase, Phase::Starting(_));
        (is_first && self.looks_for_files(position)).then_some((position, Some(since)))
    }

    fn looks_for_files(&self, position: usize) -> bool {
        !self.is_background(position) && !self.hooks[position].uses_daemon
    }

    /// Returns the next hook whose retry could have another result: a finite hook changed a file
    /// after the start of its first run.
    fn next_retry(&mut self) -> Option<usize> {
        let change = self.finite_change?;
        let may_find =
            |(_, since): &(usize, Option<Duration>)| since.is_none_or(|since| change > since);
        let next = self.retries.iter().position(may_find)?;
        self.retries.drain(..=next).next_back().map(|(position, _)| position)
    }

    /// Whether to restart a daemon that failed: pages of a crawl need it, it was ready before, it
    /// was not stopped, and it has restarts left.
    fn needs_restart(&self, position: usize) -> bool {
        let was_up =
            matches!(self.states.get(position), Some(HookState::Running { ready: true, .. }));
        let is_daemon = |hook: &HookTask| hook.mode == HookMode::Daemon;
        self.hold
            && was_up
            && self.hooks.get(position).is_some_and(is_daemon)
            && self.restarts[position] < DAEMON_RESTARTS_MAX
    }

    fn is_background(&self, position: usize) -> bool {
        self.hooks[position].mode != HookMode::Foreground
    }

    fn is_finite(&self, position: usize) -> bool {
        self.hooks.get(position).is_some_and(|hook| hook.mode == HookMode::Finite)
    }

    fn is_daemon(&self, position: usize) -> bool {
        self.hooks[position].mode == HookMode::Daemon
    }

    /// Whether an earlier foreground hook runs that the hook at position `next` may not run alongside.
    /// After the last hook, that is any of them.
    fn is_delayed(&self, next: usize) -> bool {
        let alongside = self.hooks.get(next).map(|hook| &hook.alongside);
        let mut earlier = self.hooks.iter().zip(&self.states).take(next);
        earlier.any(|(hook, state)| {
            hook.mode == HookMode::Foreground
                && !matches!(state, HookState::Waiting | HookState::Ended)
                && !alongside.is_some_and(|plugins| plugins.contains(&hook.plugin))
        })
    }

    /// Time until which a hook waits for the daemons with which it works and which are not ready.
    fn daemons_deadline(&self, position: usize) -> Option<Duration> {
        let awaits = &self.hooks[position].awaits;
        let earlier = self.hooks.iter().zip(&self.states).take(position);
        let daemons = earlier.filter(|(hook, _)| awaits.contains(&hook.key));
        let deadlines = daemons.filter_map(|(hook, state)| match state {
            HookState::Running { since, spoke: false, .. } => Some(*since + hook.patience),
            _ => None,
        });
        deadlines.max()
    }

    /// Time at which a daemon that is the work itself is stopped.
    fn daemon_deadline(&self, position: usize) -> Option<Duration> {
        let hook = &self.hooks[position];
        match self.states[position] {
            HookState::Running { since, .. } if hook.mode == HookMode::Daemon => {
                Some(since + hook.patience)
            }
            _ => None,
        }
    }

    /// Starts no further hook, and stops those that run.
    fn end_visit(&mut self, now: Duration, actions: &mut Vec<HookAction>) {
        if self.phase == Phase::Done {
            return;
        }
        for state in &mut self.states {
            if *state == HookState::Waiting {
                *state = HookState::Ended;
            }
        }
        self.retries.clear();
        self.phase = Phase::Stopping;
        self.stop(|_, _| true, now, actions);
    }

    /// Applies deadlines that have passed.
    fn enforce(&mut self, now: Duration, actions: &mut Vec<HookAction>) {
        for (position, state) in self.states.iter_mut().enumerate() {
            match state {
                HookState::Running { since, ready, .. }
                    if !*ready && *since + self.ready_limit <= now =>
                {
                    *ready = true;
                }
                HookState::Stopping { until, grace, killed } if !*killed && *until <= now => {
                    *killed = true;
                    actions.push(HookAction::Kill(position, *grace));
                }
                _ => {}
            }
        }
    }

    fn advance(&mut self, now: Duration, actions: &mut Vec<HookAction>) {
        loop {
            match self.phase {
                Phase::Starting(next) if self.is_delayed(next) => return,
                Phase::Starting(position) if position == self.hooks.len() => {
                    actions.push(HookAction::AllStarted);
                    self.phase = Phase::WaitingForRelease;
                }
                Phase::Starting(position) => match self.states[position] {
                    HookState::Waiting
                        if self.daemons_deadline(position).is_some_and(|at| now < at) =>
                    {
                        return;
                    }
                    HookState::Waiting => {
                        if self.hooks[position].after_background
                            && self.stop_background(now, actions)
                        {
                            return;
                        }
                        self.start(position, now, actions);
                    }
                    HookState::Running { ready: false, .. } if self.is_daemon(position) => return,
                    HookState::Stopping { .. } => return,
                    _ => self.phase = Phase::Starting(position + 1),
                },
                Phase::WaitingForRelease if self.hold => return,
                Phase::WaitingForRelease => self.phase = Phase::WaitingForFinite,
                Phase::WaitingForFinite if self.runs(HookMode::Finite) => return,
                Phase::WaitingForFinite if self.daemons_are_work => {
                    self.phase = Phase::WaitingForDaemons
                }
                Phase::WaitingForFinite => self.phase = Phase::Retrying,
                Phase::WaitingForDaemons => {
                    let due = |s: &Self, position| {
                        s.daemon_deadline(position).is_some_and(|at| at <= now)
                    };
                    self.stop(due, now, actions);
                    if self.runs(HookMode::Daemon) {
                        return;
                    }
                    self.phase = Phase::Retrying;
                }
                Phase::Retrying if self.runs(HookMode::Foreground) => return,
                Phase::Retrying => match self.next_retry() {
                    Some(position) => {
                        self.start(position, now, actions);
                        return;
                    }
                    None => {
                        self.phase = Phase::Stopping;
                        self.stop_background(now, actions);
                    }
                },
                Phase::Stopping if self.states.iter().any(|state| *state != HookState::Ended) => {
                    return;
                }
                Phase::Stopping => {
                    self.phase = Phase::Done;
                    actions.push(HookAction::Done);
                }
                Phase::Done => return,
            }
        }
    }

    fn start(&mut self, position: usize, now: Duration, actions: &mut Vec<HookAction>) {
        self.states[position] = HookState::Running { since: now, ready: false, spoke: false };
        actions.push(HookAction::Start(position));
    }

    fn runs(&self, mode: HookMode) -> bool {
        let mut pairs = self.hooks.iter().zip(&self.states);
        pairs.any(|(hook, state)| {
            hook.mode == mode && !matches!(state, HookState::Ended | HookState::Waiting)
        })
    }

    /// Stops all daemons, the last started first. Finite hooks keep their own time, which the limit
    /// of their unit bounds. Returns whether any background hook still runs.
    fn stop_background(&mut self, now: Duration, actions: &mut Vec<HookAction>) -> bool {
        self.stop(Self::is_daemon, now, actions);
        self.states
            .iter()
            .any(|state| matches!(state, HookState::Running { .. } | HookState::Stopping { .. }))
    }

    /// Stops the running hooks for which `meant` is true, the last started first.
    fn stop(
        &mut self,
        meant: impl Fn(&Self, usize) -> bool,
        now: Duration,
        actions: &mut Vec<HookAction>,
    ) {
        for position in (0..self.hooks.len()).rev() {
            let HookState::Running { since, .. } = self.states[position] else {
                continue;
            };
            if !meant(self, position) {
                continue;
            }
            let left = (since + self.hooks[position].patience).saturating_sub(now);
            let grace = left.max(GRACE_MIN).min(self.grace_max);
            let until = now + grace;
            self.states[position] = HookState::Stopping { until, grace, killed: false };
            actions.push(HookAction::Stop(position));
        }
    }
}

#[cfg(test)]
mod tests;
