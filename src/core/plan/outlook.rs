//! What is left to do after a turn has started all that may start.

use crate::model::Time;

/// What one kind of unit, or all kinds, have to do next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// There is work, now or later: without it, an orchestrator that stands by may leave.
    pub is_busy: bool,
    /// Why nothing is started although something is due, or why nothing could be.
    pub blocked: Option<String>,
    /// The earliest time at which something that is not due yet becomes due.
    pub next: Option<Time>,
}

impl Outlook {
    /// Returns the outlook of this and another kind together.
    #[must_use]
    pub fn and(self, other: Outlook) -> Outlook {
        Outlook {
            is_busy: self.is_busy || other.is_busy,
            blocked: self.blocked.or(other.blocked),
            next: [self.next, other.next].into_iter().flatten().min(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlook_of_two_kinds_has_the_work_of_both() {
        let idle = Outlook::default();
        let later = Outlook { next: Some(Time(9)), ..Outlook::default() };
        let short =
            Outlook { is_busy: true, blocked: Some("no space".into()), next: Some(Time(5)) };
        assert_eq!(idle.clone().and(later.clone()), later);
        assert_eq!(later.and(short.clone()), short);
        assert_eq!(short.clone().and(idle), short);
    }
}
