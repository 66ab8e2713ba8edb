//! Alerts: the unit or command that starts when a site goes down or recovers, and when a crawl ends.

use std::fmt;

const UNITS: [&str; 4] = [".service", ".target", ".path", ".timer"];

/// What runs when something happens: `OnDown=` and `OnRecovery=` of watches, `OnSealed=`,
/// `OnFailed=` and `OnIdle=` of the orchestrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alert {
    /// Start this unit; for a template (`notify@.service`) the instance named after the watch or the
    /// crawl.
    Unit(String),
    Command(Vec<String>),
}

impl Alert {
    /// Reads the value of `OnDown=` and its siblings, split into words as a POSIX shell would, without
    /// expansions. A single word with the suffix of a unit is a unit; anything else is a
    /// command line that begins with an absolute path.
    pub fn parse(text: &str) -> Result<Alert, String> {
        let words = shlex::split(text)
            .ok_or_else(|| format!("'{text}' has an open quote or ends in a backslash"))?;
        let Some(first) = words.first() else {
            return Err("expected a unit or a command".to_owned());
        };
        if !first.contains('/') && UNITS.iter().any(|end| first.ends_with(end)) {
            let fine = |b: u8| b.is_ascii_alphanumeric() || b":-_.\\@".contains(&b);
            return if words.len() == 1 && first.len() < 200 && first.bytes().all(fine) {
                Ok(Alert::Unit(first.clone()))
            } else {
                Err(format!("'{text}' is not the name of one unit"))
            };
        }
        if first.starts_with('/') {
            Ok(Alert::Command(words))
        } else {
            Err(format!(
                "'{first}' is neither a unit (such as notify@.service) nor the absolute path of a program"
            ))
        }
    }

    /// Returns the unit to start for the watch or crawl of this name.
    pub fn instance(unit: &str, name: &str) -> String {
        match unit.split_once("@.") {
            Some((template, kind)) => format!("{template}@{}.{kind}", name.replace('-', "\\x2d")),
            None => unit.to_owned(),
        }
    }
}

/// As [`Alert::parse`] reads it.
impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alert::Unit(unit) => f.write_str(unit),
            Alert::Command(words) => {
                let text = shlex::try_join(words.iter().map(String::as_str));
                f.write_str(&text.map_err(|_| fmt::Error)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_commands() {
        assert_eq!(Alert::parse("notify@.service"), Ok(Alert::Unit("notify@.service".into())));
        let words = ["/usr/bin/curl", "-d", "it is \"down\"", "", "http://x/$HOME"];
        assert_eq!(
            Alert::parse(r#"/usr/bin/curl -d "it is \"down\"" '' http://x/$HOME"#),
            Ok(Alert::Command(words.map(str::to_owned).to_vec()))
        );
        for text in ["notify@.service", "/bin/x 'a b' \"it's\" '' c"] {
            let alert = Alert::parse(text).unwrap();
            assert_eq!(Alert::parse(&alert.to_string()), Ok(alert), "{text}");
        }
        for bad in ["", "curl x", "a.service b", "/bin/x 'y", "/bin/x \\", "no such.service"] {
            assert!(Alert::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn templates_get_the_name_of_the_watch_or_crawl() {
        assert_eq!(Alert::instance("notify@.service", "my-site"), "notify@my\\x2dsite.service");
        assert_eq!(Alert::instance("notify@.service", "c12"), "notify@c12.service");
        assert_eq!(Alert::instance("pager.service", "x"), "pager.service");
    }
}
