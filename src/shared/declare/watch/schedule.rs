//! Schedules: `every 5min`, calendar expressions of systemd.time(7), `no`.

use archivist_core::text::{exact_span, parse_span};
use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;
const DAY: u64 = 86_400;

/// How the timer is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// `OnCalendar=`; only systemd validates the expression.
    Calendar(String),
    /// `OnActiveSec=` and `OnUnitActiveSec=`: the span does not divide the day, so runs have no
    /// fixed times.
    Apart(Duration),
    /// No timer.
    Never,
}

/// A schedule, with its text for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// When the timer elapses.
    pub when: When,
    /// Text for users, such as `every 3min`.
    pub words: String,
}

impl Schedule {
    /// Returns the schedule of a disabled kind.
    pub fn off() -> Schedule {
        Schedule {
            when: When::Never,
            words: "no".to_owned(),
        }
    }

    /// Returns a schedule from an expression of systemd.time(7).
    pub fn calendar(expression: &str) -> Schedule {
        Schedule {
            when: When::Calendar(expression.to_owned()),
            words: expression.to_owned(),
        }
    }

    /// Returns a regular schedule; at fixed times if the span divides the day.
    pub fn every(span: Duration) -> Schedule {
        Schedule {
            when: aligned(span).map_or(When::Apart(span), When::Calendar),
            words: format!("every {}", exact_span(span)),
        }
    }

    /// Reads the value of `Status=` and similar keys.
    pub fn parse(text: &str) -> Result<Schedule, String> {
        let text = text.trim();
        if ["no", "off", "false", "never"].contains(&text) {
            return Ok(Schedule::off());
        }
        if let Some(span) = text.strip_prefix("every ") {
            let span = parse_span(span).filter(|span| *span >= Duration::from_secs(1));
            return span.map(Schedule::every).ok_or_else(|| {
                format!("'{text}' is not 'every' and a time span of 1s or more, like: every 5min")
            });
        }
        let fine = |c: char| c.is_ascii_alphanumeric() || " *-/:.,~+_".contains(c);
        if text.is_empty() || !text.chars().all(fine) {
            Err(format!(
                "'{text}' is neither 'every SPAN', nor a calendar expression of systemd.time(7), nor 'no'"
            ))
        } else {
            Ok(Schedule::calendar(text))
        }
    }
}

/// Returns the calendar expression for a span that divides the minute, hour or day: such runs have
/// fixed times, whenever the machine started.
fn aligned(span: Duration) -> Option<String> {
    let seconds = span.as_secs();
    if span.subsec_nanos() != 0 || seconds == 0 {
        return None;
    }
    if seconds < MINUTE && MINUTE.is_multiple_of(seconds) {
        return Some(format!("*:*:0/{seconds}"));
    }
    if seconds < HOUR && seconds.is_multiple_of(MINUTE) && HOUR.is_multiple_of(seconds) {
        return Some(match seconds / MINUTE {
            1 => "*:*".to_owned(),
            minutes => format!("*:0/{minutes}"),
        });
    }
    if seconds < DAY && seconds.is_multiple_of(HOUR) && DAY.is_multiple_of(seconds) {
        return Some(match seconds / HOUR {
            1 => "hourly".to_owned(),
            hours => format!("0/{hours}:00"),
        });
    }
    match seconds {
        DAY => Some("daily".to_owned()),
        seconds if seconds == 7 * DAY => Some("weekly".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_divide_the_day_are_calendar_expressions() {
        let calendar = |text: &str| match Schedule::parse(text).unwrap().when {
            When::Calendar(expression) => expression,
            other => panic!("{text}: {other:?}"),
        };
        for (text, want) in [
            ("every 10s", "*:*:0/10"),
            ("every 1min", "*:*"),
            ("every 3min", "*:0/3"),
            ("every 300", "*:0/5"),
            ("every 1h", "hourly"),
            ("every 6h", "0/6:00"),
            ("every 1d", "daily"),
            ("every 1w", "weekly"),
        ] {
            assert_eq!(calendar(text), want, "{text}");
        }
        assert_eq!(calendar("*:0/7"), "*:0/7");
    }

    #[test]
    fn other_spans_are_monotonic() {
        for (text, seconds) in [("every 7min", 420), ("every 90s", 90), ("every 5h", 18_000)] {
            let want = When::Apart(Duration::from_secs(seconds));
            assert_eq!(Schedule::parse(text).unwrap().when, want, "{text}");
        }
        assert_eq!(Schedule::parse("no").unwrap(), Schedule::off());
    }

    #[test]
    fn invalid_schedules_are_refused() {
        for bad in [
            "",
            "every x",
            "every 0",
            "daily\n[Service]",
            "%n",
            "every 1ms",
        ] {
            assert!(Schedule::parse(bad).is_err(), "{bad:?}");
        }
    }
}
