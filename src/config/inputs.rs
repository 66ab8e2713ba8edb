//! Second step: sorts assignments to known keys from unknown ones. An unknown key is a warning, so
//! that a typo cannot stop the service; `archivist config` makes it an error.

use super::fragments::Fragment;
use super::ini::{self, IniEntry};
use super::keys::{self, Key};
use archivist_core::text::{Location, Problem, is_value_name};

#[derive(Clone, Debug)]
pub enum Target {
    Setting(&'static Key),
    Value(String),
}

#[derive(Clone, Debug)]
pub struct Input {
    pub target: Target,
    /// Value as written.
    pub value: String,
    pub location: Location,
}

/// All assignments, weakest first.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub inputs: Vec<Input>,
    /// Assignments that have no effect.
    pub warnings: Vec<Problem>,
}

impl Inputs {
    /// Returns where the effective value of `key` was assigned; `None` means the built-in default.
    pub fn location_of(&self, section: &str, key: &str) -> Option<&Location> {
        let matches = |input: &&Input| match &input.target {
            Target::Setting(known) => known.section == section && known.name == key,
            Target::Value(name) => section == keys::VALUES && name == key,
        };
        let last = self.inputs.iter().rev().find(matches)?;
        (!last.value.is_empty()).then_some(&last.location)
    }
}

/// Sorts the assignments of `fragments`.
pub fn collect(fragments: &[Fragment]) -> Inputs {
    let mut all = Inputs::default();
    for fragment in fragments {
        let first_warning = all.warnings.len();
        let parsed = ini::parse(&fragment.text, &fragment.path);
        let malformed = parsed.malformed.into_iter().map(Problem::ignored);
        all.warnings.extend(malformed);
        for entry in parsed.entries {
            match target(&entry) {
                Ok(Some(target)) => {
                    all.inputs.push(Input { target, value: entry.value, location: entry.location })
                }
                Ok(None) => {}
                Err(what) => {
                    let warning = Problem::at(&entry.location, what).ignored();
                    all.warnings.push(warning);
                }
            }
        }
        all.warnings[first_warning..].sort_by_key(|warning| warning.line);
    }
    all
}

/// Returns what an entry sets; `Ok(None)` for keys of other readers (`X-`, as in unit files).
fn target(entry: &IniEntry) -> Result<Option<Target>, String> {
    let IniEntry { section, key, .. } = entry;
    if section.starts_with("X-") || key.starts_with("X-") {
        return Ok(None);
    }
    if section == keys::VALUES {
        return if is_value_name(key) {
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
