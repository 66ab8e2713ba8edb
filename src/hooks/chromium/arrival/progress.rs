//! What the time brings: the phases of an arrival and their limits.

use super::clock::TICK;
use super::{Arrival, Ending, Phase, ReadyPage, Revealing, Step};
use crate::process::invocation::ALLOWS_MORE;
use std::time::Duration;

/// Time without any event after which a page that waits for no request is taken to be in an endless
/// script.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Time that a page has to start a navigation that it requested.
const DEPARTURE_MAX: Duration = Duration::from_secs(1);
/// Time in which chromium reports the head of a response that ended a navigation.
const EXPLANATION_MAX: Duration = Duration::from_secs(2);
/// Time for revealing a page. The limits of its parts (8 s for the rules of walls, 15 s for scrolling,
/// 10 s for media) add up to more, but a page needs all of one only on a machine that draws late.
const REVEAL_MAX: Duration = Duration::from_secs(20);
/// Time without any event after which a page whose clock stopped for the network, but which waits
/// for no request that is known, gets more time.
const UNEXPLAINED_MAX: Duration = Duration::from_millis(300);
/// Time without an event after which a page that runs no short script is taken to have one that does
/// not end. The events of a busy page may be late, because bodies that are recorded take the same way.
const SCRIPT_MAX: Duration = Duration::from_secs(2);
/// Time in which one of both must be known.
const PROBE_MAX: Duration = Duration::from_secs(10);
/// Real time that a page may need for the settling time of its own clock, in addition to that time.
const SETTLE_GRACE: Duration = Duration::from_millis(700);

impl Arrival {
    /// When [`Arrival::tick`] must be called next.
    pub fn next_tick(&self) -> Duration {
        let own = match self.phase {
            Phase::Loading { since } => self.loading_alarm(since),
            Phase::Settling { since } => {
                let patience = since + self.limits.settle;
                let end = patience + SETTLE_GRACE;
                if self.requests.waits_for(patience) {
                    patience
                } else if self.clock.waits_for_network() {
                    patience.min(self.last_event + UNEXPLAINED_MAX)
                } else {
                    end
                }
            }
            Phase::Refused { since, .. } => since + EXPLANATION_MAX,
            Phase::Probing { since, .. } => since.max(self.last_event) + SCRIPT_MAX,
            Phase::Departing { since } => since + DEPARTURE_MAX,
            Phase::Revealing => self.reveal_limit(),
            Phase::Finishing { since } => since + self.limits.settle,
            Phase::Over => return Duration::MAX,
        };
        let own = match self.clock.next_grant() {
            Some(grant) if self.is_metered() => own.min(grant),
            _ => own,
        };
        // A time that has passed without a consequence must not be asked for again.
        let next = if own > self.last_tick() { own } else { self.last_tick() + TICK };
        next.min(self.limits.total)
    }

    fn loading_alarm(&self, since: Duration) -> Duration {
        let limit = since + self.limits.load;
        let Some(document) = self.document.as_ref().filter(|_| self.incoming.is_none()) else {
            return limit;
        };
        let is_idle = !self.requests.waits_for(Duration::MAX);
        if document.was_cut_off() || document.is_parsed && !is_idle {
            limit.min(self.last_event + self.quiet_time())
        } else if is_idle && !self.has_stopped_scripts {
            limit.min(self.last_event + SILENCE_MAX)
        } else {
            limit
        }
    }

    fn last_tick(&self) -> Duration {
        self.clock.now()
    }

    /// Time without progress after which a parsed document is taken to be loaded.
    fn quiet_time(&self) -> Duration {
        self.limits.settle.clamp(Duration::from_secs(1), Duration::from_secs(5))
    }

    pub(super) fn advance(&mut self, now: Duration) {
        self.clock.set_now(now);
        if self.ending.is_none() {
            self.advance_phase(now);
        }
        if self.ending.is_some() {
            self.phase = Phase::Over;
            return;
        }
        if self.is_metered()
            && let Some(grant) = self.clock.grant_tick(now)
        {
            self.steps.push(grant);
        }
    }

    fn advance_phase(&mut self, now: Duration) {
        if now >= self.limits.total {
            self.give_up();
            return;
        }
        if let Some(document) = &self.document
            && let Some((reason, is_failure)) = document.refusal()
        {
            let response = document.response.clone();
            self.no_page(reason, is_failure, response);
            return;
        }
        match self.phase {
            Phase::Loading { since } => self.advance_loading(since, now),
            Phase::Refused { since, error } => {
                if self.first_response().is_some() || now >= since + EXPLANATION_MAX {
                    self.judge_answer(error, false);
                }
            }
            Phase::Settling { since } => self.advance_settling(since, now),
            Phase::Probing { since, is_reached } => {
                if !self.clock.is_running() || now >= since + PROBE_MAX {
                    self.reveal(now);
                } else if is_reached && now >= self.last_event + SCRIPT_MAX {
                    self.note("a script that did not end was stopped".to_owned());
                    self.stop_scripts();
                    self.reveal(now);
                }
            }
            Phase::Departing { since } => {
                if now >= since + DEPARTURE_MAX {
                    self.stay(now);
                }
            }
            Phase::Revealing => {
                if now >= self.reveal_limit() {
                    self.note("it could not be scrolled to its end".to_owned());
                    self.phase = Phase::Finishing { since: now };
                }
            }
            Phase::Finishing { since } => {
                let patience = since + self.limits.settle;
                if now >= patience || !self.requests.waits_for(patience) {
                    self.ready();
                }
            }
            Phase::Over => {}
        }
    }

    fn advance_loading(&mut self, since: Duration, now: Duration) {
        let Some(document) = &self.document else {
            if now >= since + self.limits.load {
                self.no_page(no_answer(self.limits.load), true, None);
            }
            return;
        };
        let is_idle = !self.requests.waits_for(Duration::MAX);
        let silence = now.saturating_sub(self.last_event);
        if now >= since + self.limits.load {
            let seconds = self.limits.load.as_secs();
            self.note(match &self.incoming {
                Some(other) => format!("it goes to {}, which did not answer", other.url),
                None => format!("still loading after {seconds} s {ALLOWS_MORE}"),
            });
            self.incoming = None;
            self.steps.push(Step::StopLoading);
            if is_idle {
                self.stop_scripts();
            }
            self.settle(now);
        } else if self.incoming.is_some() {
        } else if document.was_cut_off() && (is_idle || silence >= self.quiet_time()) {
            let remark = document.cut_off_remark();
            self.note(remark);
            self.settle(now);
        } else if document.is_parsed && !is_idle && silence >= self.quiet_time() {
            self.requests.give_up();
            self.settle(now);
        } else if is_idle && silence >= SILENCE_MAX && !self.has_stopped_scripts {
            self.note("a script that did not end was stopped".to_owned());
            self.stop_scripts();
        }
    }

    /// Lets the scripts of the loaded page run.
    pub(super) fn settle(&mut self, now: Duration) {
        self.settle_for(self.limits.settle, now);
    }

    /// Lets the scripts of the page run for at most this time of its clock.
    pub(super) fn settle_for(&mut self, budget: Duration, now: Duration) {
        let budget = budget.min(self.limits.settle);
        if budget.is_zero() {
            self.reveal(now);
            return;
        }
        self.phase = Phase::Settling { since: now };
        self.clock.begin(budget);
        if !self.clock.has_tick() {
            self.grant();
        }
    }

    /// Grants settling time: all of it at first, but not if requests that never end would stop the page's clock.
    fn grant(&mut self) {
        let grants_all = self.clock.is_untouched() && !self.requests.has_endless();
        let grant = if grants_all { self.clock.grant_all() } else { self.clock.grant_some() };
        self.steps.push(grant);
    }

    fn advance_settling(&mut self, since: Duration, now: Duration) {
        let patience = since + self.limits.settle;
        if now >= patience {
            self.requests.give_up();
        }
        let waits = self.requests.waits_for(patience);
        if now >= patience + SETTLE_GRACE {
            if !waits && self.clock.is_stuck() {
                self.phase = Phase::Probing { since: now, is_reached: false };
                self.steps.push(Step::Probe);
            } else {
                self.reveal(now);
            }
        } else if self.clock.waits_for_network() {
            // A request that never ends would stop the page's clock for ever. Some, such as those of
            // media, are not reported.
            let is_unexplained = !waits && now >= self.last_event + UNEXPLAINED_MAX;
            if self.requests.has_endless() || is_unexplained || now >= patience {
                let grant = self.clock.grant_some();
                self.steps.push(grant);
            }
        } else if self.clock.is_running() {
        } else if self.clock.is_over() {
            if !waits {
                self.reveal(now);
            }
        } else if !waits && !self.clock.has_tick() {
            self.grant();
        }
    }

    /// Continues with the document after a navigation that leads nowhere.
    pub(super) fn stay(&mut self, now: Duration) {
        match self.revealing {
            Some((Revealing::Working, _)) => self.phase = Phase::Revealing,
            _ => self.settle(now),
        }
    }

    /// Reveals the settled page, or continues with that.
    pub(super) fn reveal(&mut self, now: Duration) {
        let (step, since) = match self.revealing {
            None => (Step::Reveal, now),
            Some((Revealing::Done, _)) => {
                self.phase = Phase::Finishing { since: now };
                return;
            }
            Some((_, since)) => (Step::Resume, since),
        };
        self.revealing = Some((Revealing::Working, since));
        self.phase = Phase::Revealing;
        self.clock.meter();
        self.steps.push(step);
    }

    fn reveal_limit(&self) -> Duration {
        self.revealing.map_or(Duration::ZERO, |(_, since)| since) + REVEAL_MAX
    }

    /// Whether the page's clock follows real time.
    fn is_metered(&self) -> bool {
        match self.phase {
            Phase::Settling { since } => {
                let patience = since + self.limits.settle;
                let waits = self.clock.has_tick() || self.requests.waits_for(patience);
                !self.clock.is_running() && waits
            }
            Phase::Probing { .. } | Phase::Over => false,
            _ => true,
        }
    }

    fn ready(&mut self) {
        if let Some(document) = &self.document {
            let page = ReadyPage {
                url: document.url.clone(),
                response: document.response.clone(),
                mime_type: document.mime_type.clone(),
                notes: self.remarks(),
            };
            self.hold();
            self.ending = Some(Ending::Page(page));
        }
    }

    /// Ends at the time limit with what there is.
    fn give_up(&mut self) {
        self.note("its scripts did not finish".to_owned());
        if self.document.is_none() {
            self.no_page(no_answer(self.limits.total), true, None);
        } else {
            self.stop_scripts();
            self.ready();
        }
    }
}

fn no_answer(within: Duration) -> String {
    format!("the page did not answer within {} s {ALLOWS_MORE}", within.as_secs())
}
