//! The clock of a page: virtual time that skips what the page would only wait for.
//!
//! The clock starts with the first grant and never runs freely again (Chromium has no call for
//! that), so later phases are granted virtual time at the pace of real time.

use super::Step;
use std::time::Duration;

/// Real and virtual time between two grants at the pace of real time.
pub const TICK: Duration = Duration::from_millis(20);
/// Virtual time of a grant that must not outrun the network.
const PIECE: Duration = Duration::from_millis(100);

/// Real time after which a piece that has not expired proves an endless script.
const STUCK_MIN: Duration = Duration::from_millis(500);

/// What virtual time does while requests are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// It stops.
    PauseForNetwork,
    /// It goes on.
    Advance,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Grant {
    /// The page's clock is the real clock.
    #[default]
    None,
    /// All the remaining time.
    All,
    /// A piece of the remaining time.
    Piece,
    /// Time at the pace of real time.
    Tick,
    /// The last grant has expired.
    Expired,
}

/// The clock of a page.
#[derive(Debug, Default)]
pub struct Clock {
    remaining: Duration,
    grant: Grant,
    granted_at: Duration,
    now: Duration,
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
    }

    /// Grants all the remaining time, without that of the network.
    pub fn grant_all(&mut self) -> Step {
        self.grant = Grant::All;
        self.granted_at = self.now;
        Step::Grant {
            policy: Policy::PauseForNetwork,
            budget: self.remaining,
        }
    }

    /// Grants a piece of the remaining time, whatever the network does.
    pub fn grant_some(&mut self) -> Step {
        self.grant = Grant::Piece;
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
        }
    }

    /// When the next grant at the pace of real time is due.
    pub fn next_grant(&self) -> Option<Duration> {
        (self.grant != Grant::None).then_some(self.granted_at + TICK)
    }

    /// Grants time at the pace of real time, if it is due.
    pub fn grant_tick(&mut self, now: Duration) -> Option<Step> {
        if self.next_grant().is_none_or(|due| now < due) {
            return None;
        }
        self.grant = Grant::Tick;
        self.granted_at = now;
        self.remaining = self.remaining.saturating_sub(TICK);
        Some(Step::Grant {
            policy: Policy::Advance,
            budget: TICK,
        })
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
        }
        self.now = now;
    }

    /// Whether a grant of the settling time has not expired.
    pub fn is_running(&self) -> bool {
        matches!(self.grant, Grant::All | Grant::Piece)
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
