//! Schedules: `every 5min`, calendar expressions of systemd.time(7), cron expressions, `no`.

use super::cron;
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
        Schedule { when: When::Never, words: "no".to_owned() }
    }

    /// Returns a schedule from an expression of systemd.time(7).
    pub fn calendar(expression: &str) -> Schedule {
        Schedule { when: When::Calendar(expression.to_owned()), words: expression.to_owned() }
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
        let every = text.split_at_checked("every ".len());
        if let Some((_, span)) = every.filter(|(word, _)| word.eq_ignore_ascii_case("every ")) {
            return match (named(span), parse_span(span)) {
                (Some(name), _) => Ok(Schedule::calendar(name)),
                (None, Some(span)) if span >= Duration::from_secs(1) => Ok(Schedule::every(span)),
                _ => Err(format!(
                    "'{text}' is not 'every' and a time span of 1s or more, such as 'every 5min', \
                     'every 6 hours' or 'every day'"
                )),
            };
        }
        if let Some(name) = named(text.strip_prefix('@').unwrap_or(text)) {
            return Ok(Schedule::calendar(name));
        }
        if cron::is_cron(text) {
            return Ok(Schedule {
                when: When::Calendar(cron::calendar(text)?),
                words: text.to_owned(),
            });
        }
        if parse_span(text).is_some() {
            return Err(format!("'{text}' is a time span; write 'every {text}'"));
        }
        let fine = |c: char| c.is_ascii_alphanumeric() || " *-/:.,~+_".contains(c);
        if text.is_empty() || !text.chars().all(fine) {
            Err(format!(
                "'{text}' is neither 'every SPAN', nor a calendar expression of systemd.time(7), nor a \
                 cron expression, nor 'no'"
            ))
        } else {
            Ok(Schedule::calendar(text))
        }
    }
}

/// Returns systemd's name of a schedule that other programs, such as cron, call by similar names.
fn named(text: &str) -> Option<&'static str> {
    const NAMES: [(&str, &[&str]); 6] = [
        ("minutely", &["minute", "minutely"]),
        ("hourly", &["hour", "hourly"]),
        ("daily", &["day", "daily", "midnight"]),
        ("weekly", &["week", "weekly"]),
        ("monthly", &["month", "monthly"]),
        ("yearly", &["year", "yearly", "annually"]),
    ];
    let mut all = NAMES.into_iter();
    let is_name = |name: &&str| name.eq_ignore_ascii_case(text);
    all.find(|(_, names)| names.iter().any(is_name)).map(|(name, _)| name)
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
            ("every 6 hours", "0/6:00"),
            ("Every day", "daily"),
            ("every month", "monthly"),
            ("hourly", "hourly"),
            ("Day", "daily"),
            ("@weekly", "weekly"),
            ("year", "yearly"),
            ("*/5 * * * *", "*-*-* *:0/5:00"),
            ("Mon 04:00", "Mon 04:00"),
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
            "every now",
            "* * * * 9",
        ] {
            assert!(Schedule::parse(bad).is_err(), "{bad:?}");
        }
        let error = Schedule::parse("6 hours").unwrap_err();
        assert!(error.ends_with("write 'every 6 hours'"), "{error}");
    }
}
