//! The clock of a page: virtual time that skips what the page would only wait for.
//!
//! The clock starts with the first grant and never runs freely again (Chromium has no call for
//! that), so later phases are granted virtual time at the pace of real time.

use super::Step;
use std::time::Duration;

/// Real time between two grants at the pace of real time, also while hooks save the page: scrolling, pictures and
/// printing wait for tasks of a page whose clock stands still. With 50 ms, two frames after each of four steps
/// take 0.35 s, not 0.16 s.
pub const TICK: Duration = Duration::from_millis(20);
/// Real time after which a grant at the pace of real time that has not expired is repeated. Which of
/// two open grants has expired cannot be known, so that this is for grants that were lost.
const REPEAT: Duration = Duration::from_secs(3);
/// Most virtual time of a grant at the pace of real time: the machine may have been suspended.
const METERED_MAX: Duration = Duration::from_secs(10);
/// Virtual time of a grant that must not outrun the network.
const PIECE: Duration = Duration::from_millis(100);

/// Real time after which a piece that has not expired proves an endless script.
const STUCK_MIN: Duration = Duration::from_millis(500);

/// What virtual time does while requests are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    PauseForNetwork,
    Advance,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Grant {
    /// The page's clock is the real clock.
    #[default]
    None,
    All,
    Piece,
    /// Time at the pace of real time.
    Tick,
    /// The last grant has expired.
    Expired,
}

/// Grants at the pace of real time.
///
/// A grant replaces the one before, so that only one is open, and the next one is for all the real
/// time since then. A clock that falls behind real time, because scripts run or the machine is
/// busy, must catch up: Chromium draws each frame as much too late as the clock is behind.
#[derive(Debug)]
pub struct Meter {
    tick: Duration,
    granted_at: Duration,
    /// Virtual time of the grant that has not expired.
    open: Duration,
}

impl Meter {
    /// Starts now, with `tick` of real time between two grants.
    pub fn start(tick: Duration, now: Duration) -> Meter {
        Meter { tick, granted_at: now, open: Duration::ZERO }
    }

    /// When the next grant is due.
    pub fn due(&self) -> Duration {
        let pause = if self.open.is_zero() { self.tick } else { self.tick.max(REPEAT) };
        self.granted_at + pause
    }

    /// Virtual time of the next grant, if it is due.
    pub fn grant(&mut self, now: Duration) -> Option<Duration> {
        if now < self.due() {
            return None;
        }
        self.open += now - self.granted_at;
        self.granted_at = now;
        Some(self.open.min(METERED_MAX))
    }

    /// The last grant has expired.
    pub fn expired(&mut self) {
        self.open = Duration::ZERO;
    }
}

#[derive(Debug, Default)]
pub struct Clock {
    remaining: Duration,
    /// Nothing of the settling time was granted.
    is_untouched: bool,
    grant: Grant,
    granted_at: Duration,
    now: Duration,
    /// Set while the clock follows real time.
    meter: Option<Meter>,
}

impl Clock {
    /// Time of the last look at the real clock.
    pub fn now(&self) -> Duration {
        self.now
    }

    pub fn set_now(&mut self, now: Duration) {
        self.now = now;
    }

    /// Starts the settling time of a document.
    pub fn begin(&mut self, settle: Duration) {
        self.remaining = settle;
        self.is_untouched = true;
    }

    /// Grants all the remaining time, without that of the network.
    pub fn grant_all(&mut self) -> Step {
        self.grant = Grant::All;
        self.is_untouched = false;
        self.meter = None;
        self.granted_at = self.now;
        Step::Grant { policy: Policy::PauseForNetwork, budget: self.remaining }
    }

    /// Grants a piece of the remaining time, whatever the network does.
    pub fn grant_some(&mut self) -> Step {
        self.grant = Grant::Piece;
        self.is_untouched = false;
        self.meter = None;
        self.granted_at = self.now;
        Step::Grant {
            policy: Policy::Advance,
            budget: PIECE.min(self.remaining.max(Duration::from_millis(1))),
        }
    }

    /// From now on the clock follows real time, if it was started.
    pub fn meter(&mut self) {
        if self.grant != Grant::None {
            self.grant = Grant::Expired;
            self.meter = Some(Meter::start(TICK, self.now));
        }
    }

    /// When the next grant at the pace of real time is due.
    pub fn next_grant(&self) -> Option<Duration> {
        let due = self.meter.as_ref().map(Meter::due);
        (self.grant != Grant::None).then(|| due.unwrap_or(self.granted_at + TICK))
    }

    /// Grants time at the pace of real time, if it is due.
    pub fn grant_tick(&mut self, now: Duration) -> Option<Step> {
        if self.next_grant().is_none_or(|due| now < due) {
            return None;
        }
        let start = now.saturating_sub(TICK);
        let meter = self.meter.get_or_insert_with(|| Meter::start(TICK, start));
        let budget = meter.grant(now)?;
        self.grant = Grant::Tick;
        self.granted_at = now;
        self.remaining = self.remaining.saturating_sub(budget);
        Some(Step::Grant { policy: Policy::Advance, budget })
    }

    /// The last grant has expired.
    pub fn expired(&mut self, now: Duration) {
        match self.grant {
            Grant::All => self.remaining = Duration::ZERO,
            Grant::Piece => self.remaining = self.remaining.saturating_sub(PIECE),
            Grant::None | Grant::Tick | Grant::Expired => {}
        }
        if self.grant != Grant::None {
            self.grant = Grant::Expired;
            let meter = self.meter.get_or_insert_with(|| Meter::start(TICK, now));
            meter.expired();
        }
        self.now = now;
    }

    /// Whether a grant of the settling time has not expired.
    pub fn is_running(&self) -> bool {
        matches!(self.grant, Grant::All | Grant::Piece)
    }

    /// Whether a grant at the pace of real time has not expired. Its end would be taken for that of a grant of
    /// the settling time.
    pub fn has_tick(&self) -> bool {
        self.grant == Grant::Tick
    }

    pub fn is_untouched(&self) -> bool {
        self.is_untouched
    }

    /// Whether the running grant should have expired: a script does not end.
    pub fn is_stuck(&self) -> bool {
        self.is_running() && self.now >= self.granted_at + STUCK_MIN
    }

    /// Whether the running grant stops for open requests.
    pub fn waits_for_network(&self) -> bool {
        self.grant == Grant::All
    }

    /// Whether the settling time is over.
    pub fn is_over(&self) -> bool {
        self.remaining.is_zero()
    }
}
