//! Step two: what was assigned, known keys apart from unknown ones. A typo is a warning here, so
//! that it cannot stop the service; `archivist config` makes it an error.

use super::fragments::Fragment;
use super::ini::{Entry, Place};
use super::keys::Key;
use crate::config::ini;
use crate::config::keys;
use std::fmt;

/// Something in a file that is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub place: Place,
    pub what: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// What an assignment is for.
#[derive(Clone, Debug)]
pub enum Target {
    /// A setting of archivist.
    Setting(&'static Key),
    /// A value for plugins.
    Value(String),
}

/// One assignment to something known.
#[derive(Clone, Debug)]
pub struct Input {
    pub target: Target,
    pub value: String,
    pub place: Place,
}

/// Everything assigned, the weakest first.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub inputs: Vec<Input>,
    pub warnings: Vec<Warning>,
}

impl Inputs {
    /// Where the value of `key` in effect was assigned; `None` means the built-in default.
    pub fn place_of(&self, section: &str, key: &str) -> Option<&Place> {
        let matches = |input: &&Input| match &input.target {
            Target::Setting(known) => known.section == section && known.name == key,
            Target::Value(name) => section == keys::VALUES && name == key,
        };
        let last = self.inputs.iter().rev().find(matches)?;
        (!last.value.is_empty()).then_some(&last.place)
    }
}

/// Sorts what `fragments` assign.
pub fn collect(fragments: &[Fragment]) -> Inputs {
    let mut all = Inputs::default();
    for fragment in fragments {
        let first_warning = all.warnings.len();
        let parsed = ini::parse(&fragment.text, &fragment.path);
        all.warnings
            .extend(parsed.malformed.into_iter().map(|m| Warning {
                place: m.place,
                what: m.what,
            }));
        for entry in parsed.entries {
            match target(&entry) {
                Ok(Some(target)) => all.inputs.push(Input {
                    target,
                    value: entry.value,
                    place: entry.place,
                }),
                Ok(None) => {}
                Err(what) => all.warnings.push(Warning {
                    place: entry.place,
                    what,
                }),
            }
        }
        all.warnings[first_warning..].sort_by_key(|warning| warning.place.line);
    }
    all
}

/// `Ok(None)` for what is meant for other readers (`X-`, as in unit files).
fn target(entry: &Entry) -> Result<Option<Target>, String> {
    let Entry { section, key, .. } = entry;
    if section.starts_with("X-") || key.starts_with("X-") {
        return Ok(None);
    }
    if section == keys::VALUES {
        return if keys::is_value_name(key) {
            Ok(Some(Target::Value(key.clone())))
        } else {
            Err(format!(
                "'{key}' cannot be the name of a plugin's setting: upper-case letters, digits and '_' are allowed"
            ))
        };
    }
    if let Some(key) = keys::find(section, key) {
        return Ok(Some(Target::Setting(key)));
    }
    Err(keys::explain_unknown(section, key))
}
