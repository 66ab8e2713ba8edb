//! Cron expressions (crontab(5)) as calendar expressions of systemd.time(7).

use std::ops::RangeInclusive;

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// A field of a cron expression.
struct Field {
    /// Its name in messages.
    name: &'static str,
    range: RangeInclusive<u32>,
    /// Names of values, from the first value of the range on.
    names: &'static [&'static str],
}

const MINUTE: Field = Field { name: "a minute", range: 0..=59, names: &[] };
const HOUR: Field = Field { name: "an hour", range: 0..=23, names: &[] };
const DAY: Field = Field { name: "a day of the month", range: 1..=31, names: &[] };
const MONTH: Field = Field { name: "a month", range: 1..=12, names: &MONTHS };
const WEEKDAY: Field = Field {
    name: "a day of the week",
    range: 0..=7,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

/// One element of a field's list: first and last value, and the step between values.
struct Span {
    first: u32,
    last: u32,
    step: u32,
}

/// Returns whether a text has the five fields of a cron expression. A calendar expression has four
/// words at most.
pub fn is_cron(text: &str) -> bool {
    text.split_whitespace().count() == 5
}

/// Returns the calendar expression for a cron expression.
///
/// # Errors
/// If a field is invalid, or if the expression restricts both kinds of days, which cron combines
/// with "or" and systemd with "and".
pub fn calendar(text: &str) -> Result<String, String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else {
        return Err(format!("'{text}' does not have the five fields of cron"));
    };
    let located = |error: String| format!("'{text}' is not a cron expression: {error}");
    let minute = MINUTE.calendar(minute).map_err(located)?;
    let hour = HOUR.calendar(hour).map_err(located)?;
    let date = (MONTH.calendar(month).map_err(located)?, DAY.calendar(day).map_err(located)?);
    let weekdays = weekdays(weekday).map_err(located)?;
    if date.1 != "*" && !weekdays.is_empty() {
        return Err(format!(
            "'{text}' restricts days of the month and of the week, of which cron requires only one; \
             write two watches, or, to require both, a calendar expression of systemd.time(7) such \
             as 'Mon *-*-01..07 04:00'"
        ));
    }
    let date = format!("*-{}-{} {hour}:{minute}:00", date.0, date.1);
    if weekdays.is_empty() { Ok(date) } else { Ok(format!("{weekdays} {date}")) }
}

/// Returns the names of days of the week, separated by commas; empty for all days.
fn weekdays(text: &str) -> Result<String, String> {
    let mut chosen = [false; 7];
    for part in text.split(',') {
        let span = WEEKDAY.span(part)?;
        for value in (span.first..=span.last).step_by(span.step as usize) {
            // 0 and 7 are Sunday, the last day of systemd's week.
            chosen[(value as usize + 6) % 7] = true;
        }
    }
    if chosen.iter().all(|day| *day) {
        return Ok(String::new());
    }
    let names: Vec<_> = DAYS
        .into_iter()
        .zip(chosen)
        .filter(|(_, is_chosen)| *is_chosen)
        .map(|(name, _)| name)
        .collect();
    Ok(names.join(","))
}

impl Field {
    /// Returns the field as a component of a calendar expression.
    fn calendar(&self, text: &str) -> Result<String, String> {
        let parts = text
            .split(',')
            .map(|part| Ok(self.component(&self.span(part)?)))
            .collect::<Result<Vec<String>, String>>()?;
        if parts.iter().any(|part| part == "*") {
            return Ok("*".to_owned());
        }
        Ok(parts.join(","))
    }

    fn component(&self, span: &Span) -> String {
        let is_all = span.first == *self.range.start() && span.last == *self.range.end();
        match (is_all, span.step) {
            (true, 1) => "*".to_owned(),
            (true, step) => format!("{}/{step}", span.first),
            _ if span.first == span.last => span.first.to_string(),
            (_, 1) => format!("{}..{}", span.first, span.last),
            (_, step) => format!("{}..{}/{step}", span.first, span.last),
        }
    }

    /// Reads `*`, `4`, `1-5` or `mon-fri`, each with a step such as `/2`.
    fn span(&self, text: &str) -> Result<Span, String> {
        let (values, step) = match text.split_once('/') {
            Some((values, step)) => (values, Some(step)),
            None => (text, None),
        };
        let (first, last) = match values.split_once('-') {
            _ if values == "*" => (*self.range.start(), *self.range.end()),
            Some((first, last)) => (self.value(first)?, self.value(last)?),
            None if step.is_some() => (self.value(values)?, *self.range.end()),
            None => (self.value(values)?, self.value(values)?),
        };
        let step = step.map_or(Some(1), |step| step.parse().ok());
        match step {
            Some(step) if step > 0 && first <= last => Ok(Span { first, last, step }),
            _ => Err(self.refusal(text)),
        }
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let is_named = |name: &&str| name.eq_ignore_ascii_case(text);
        let named = (*self.range.start()..).zip(self.names).find(|(_, name)| is_named(name));
        named
            .map(|(value, _)| value)
            .or_else(|| text.parse().ok())
            .filter(|value| self.range.contains(value))
            .ok_or_else(|| self.refusal(text))
    }

    fn refusal(&self, text: &str) -> String {
        let (first, last) = (self.range.start(), self.range.end());
        format!("'{text}' is not {} ({first}-{last})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cron_expressions_become_calendar_expressions() {
        for (cron, want) in [
            ("* * * * *", "*-*-* *:*:00"),
            ("*/15 * * * *", "*-*-* *:0/15:00"),
            ("5 4 * * *", "*-*-* 4:5:00"),
            ("0 0 1,15 * *", "*-*-1,15 0:0:00"),
            ("30 8-18/2 * * mon-fri", "Mon,Tue,Wed,Thu,Fri *-*-* 8..18/2:30:00"),
            ("0 3 * JAN,7-9 *", "*-1,7..9-* 3:0:00"),
            ("0 3 * * 0", "Sun *-*-* 3:0:00"),
            ("0 3 * * 5-7", "Fri,Sat,Sun *-*-* 3:0:00"),
            ("0 3 */2 * *", "*-*-1/2 3:0:00"),
            ("10/20 3 * * 0-7", "*-*-* 3:10..59/20:00"),
        ] {
            assert!(is_cron(cron), "{cron}");
            assert_eq!(calendar(cron).as_deref(), Ok(want), "{cron}");
        }
    }

    #[test]
    fn invalid_fields_are_named() {
        for (cron, want) in [
            ("60 * * * *", "'60' is not a minute (0-59)"),
            ("* 24 * * *", "'24' is not an hour (0-23)"),
            ("* * 0 * *", "'0' is not a day of the month (1-31)"),
            ("* * * foo *", "'foo' is not a month (1-12)"),
            ("* * * * 5-1", "'5-1' is not a day of the week (0-7)"),
            ("*/0 * * * *", "'*/0' is not a minute (0-59)"),
            ("0 0 1 * mon", "write two watches"),
        ] {
            let error = calendar(cron).unwrap_err();
            assert!(error.contains(want), "{error}");
        }
    }

    proptest! {
        /// What systemd reads never has a character of another syntax.
        #[test]
        fn any_text_is_refused_or_a_calendar(text in "([0-9*,/a-z-]{1,5} ){4}[0-9*,/a-z-]{1,5}") {
            if let Ok(calendar) = calendar(&text) {
                let plain = |c: char| c.is_ascii_alphanumeric() || " *-/:.,".contains(c);
                prop_assert!(calendar.chars().all(plain), "{calendar}");
            }
        }
    }
}
