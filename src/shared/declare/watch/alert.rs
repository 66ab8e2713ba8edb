//! Alerts: the unit or command that starts when a site goes down or recovers.

/// Types of units that an alert can start.
const UNITS: [&str; 4] = [".service", ".target", ".path", ".timer"];

/// What runs when a site goes down or comes back (`OnDown=`, `OnRecovery=`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alert {
    /// Start this unit; for a template (`notify@.service`) the instance named after the watch.
    Unit(String),
    /// Run this command in its own unit.
    Command(Vec<String>),
}

impl Alert {
    /// Reads the value of `OnDown=` or `OnRecovery=`, split into words as a POSIX shell would,
    /// without expansions. A single word with the suffix of a unit is a unit; anything else is a
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

    /// Returns the unit to start for a watch.
    pub fn instance(unit: &str, watch: &str) -> String {
        match unit.split_once("@.") {
            Some((template, kind)) => format!("{template}@{}.{kind}", watch.replace('-', "\\x2d")),
            None => unit.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_commands() {
        assert_eq!(
            Alert::parse("notify@.service"),
            Ok(Alert::Unit("notify@.service".into()))
        );
        let words = [
            "/usr/bin/curl",
            "-d",
            "it is \"down\"",
            "",
            "http://x/$HOME",
        ];
        assert_eq!(
            Alert::parse(r#"/usr/bin/curl -d "it is \"down\"" '' http://x/$HOME"#),
            Ok(Alert::Command(words.map(str::to_owned).to_vec()))
        );
        for bad in [
            "",
            "curl x",
            "a.service b",
            "/bin/x 'y",
            "/bin/x \\",
            "no such.service",
        ] {
            assert!(Alert::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn templates_get_the_name_of_the_watch() {
        assert_eq!(
            Alert::instance("notify@.service", "my-site"),
            "notify@my\\x2dsite.service"
        );
        assert_eq!(Alert::instance("pager.service", "x"), "pager.service");
    }
}
