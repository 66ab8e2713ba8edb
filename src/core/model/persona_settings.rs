//! Settings of a persona, which apply to every crawl that uses it.

use crate::text::is_value_name;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Settings of a persona by name.
///
/// As text it has one `KEY=VALUE` per line.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PersonaSettings(pub BTreeMap<String, String>);

/// A line that is not a setting. Its text may be a secret, so the error has its number only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {0} is not KEY=VALUE")]
pub struct BadPersonaSetting(usize);

impl FromStr for PersonaSettings {
    type Err = BadPersonaSetting;

    fn from_str(text: &str) -> Result<PersonaSettings, BadPersonaSetting> {
        let lines = (1..).zip(text.lines());
        let filled = lines.filter(|(_, line)| !line.is_empty());
        let settings = filled.map(|(number, line)| match line.split_once('=') {
            Some((key, value)) if is_value_name(key) => Ok((key.to_owned(), value.to_owned())),
            _ => Err(BadPersonaSetting(number)),
        });
        settings.collect::<Result<_, _>>().map(PersonaSettings)
    }
}

impl fmt::Display for PersonaSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut settings = self.0.iter();
        settings.try_for_each(|(key, value)| writeln!(f, "{key}={value}"))
    }
}

/// Shows the names alone: a value may be a secret.
impl fmt::Debug for PersonaSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn settings_read_back(pairs in prop::collection::btree_map("[A-Z_][A-Z0-9_]{0,9}", "[^\\pC]{0,20}", 0..9)) {
            let settings = PersonaSettings(pairs);
            prop_assert_eq!(settings.to_string().parse(), Ok(settings));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}(\n[A-Z]=\\PC{0,9})?") {
            let _ = text.parse::<PersonaSettings>();
        }
    }

    #[test]
    fn bad_lines_are_named_by_their_number() {
        for bad in ["A=1\nno secret", "A=1\n=x", "\nlower=1"] {
            let error = bad.parse::<PersonaSettings>().unwrap_err();
            assert_eq!(error.to_string(), "line 2 is not KEY=VALUE", "{bad}");
        }
        let settings: PersonaSettings = "KEY=a=b\n\nEMPTY=\n".parse().unwrap();
        assert_eq!(settings.0["KEY"], "a=b");
        assert_eq!(settings.0["EMPTY"], "");
        assert!(!format!("{settings:?}").contains("a=b"));
    }
}
