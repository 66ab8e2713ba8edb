//! Usability of a plugin: whether it can be used, and if not, why.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::{Catalogue, Plugin};
use crate::programs::binary;
use crate::programs::binary::Programs;
use crate::programs::install;
use crate::programs::requirement::Requirement;
use crate::settings::parse::{boolean, plain};
use crate::settings::values::{Layers, resolve};

/// Why a plugin is not used. The text is shown to users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// The selection does not name the plugin.
    NotSelected,
    /// The plugin runs on demand, and no selected plugin requires it.
    NotNeeded,
    /// The plugin accompanies others, none of which is selected.
    #[serde(rename = "only_beside")]
    OnlyWith {
        plugins: Vec<String>,
    },
    /// The plugin is disabled. `key` is the name under which the setting was set, or its main name.
    Disabled {
        key: String,
    },
    RequiredDisabled {
        plugin: String,
    },
    /// A required plugin is not installed or could not be loaded.
    RequiredMissing {
        plugin: String,
    },
    /// A program that the plugin or a required plugin needs was not found.
    MissingBinary {
        binary: String,
        hint: String,
        #[serde(default)]
        command: bool,
    },
    /// A required program has an older version than required.
    OldBinary {
        binary: String,
        version: String,
        least: String,
        hint: String,
        #[serde(default)]
        command: bool,
    },
}

impl Skip {
    /// Whether the user chose this, or the plugin is not needed, so that nothing is wrong.
    pub fn is_by_choice(&self) -> bool {
        matches!(
            self,
            Skip::NotSelected | Skip::NotNeeded | Skip::OnlyWith { .. } | Skip::Disabled { .. }
        )
    }

    /// Returns the beginning of the text of skips because of this program.
    pub fn begin_for(program: &str) -> String {
        format!("program '{program}' ")
    }

    /// Whether the reason of a result is the text of a skip because of a program.
    pub fn is_for_program(why: Option<&str>) -> bool {
        why.is_some_and(|why| why.starts_with("program '"))
    }

    /// The program that is missing or too old, if that is the reason.
    pub fn program(&self) -> Option<&str> {
        match self {
            Skip::MissingBinary { binary, .. } | Skip::OldBinary { binary, .. } => Some(binary),
            _ => None,
        }
    }

    /// Command that fixes the problem, if any.
    pub fn fix(&self) -> Option<&str> {
        match self {
            Skip::MissingBinary { hint, command, .. } | Skip::OldBinary { hint, command, .. } => {
                Some(hint.as_str()).filter(|_| *command)
            }
            _ => None,
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skip::NotSelected => f.write_str("not selected"),
            Skip::NotNeeded => f.write_str("no plugin in use requires it"),
            Skip::OnlyWith { plugins } => write!(f, "runs only with {}", plugins.join(", ")),
            Skip::Disabled { key } => write!(f, "disabled by {key}"),
            Skip::RequiredDisabled { plugin } => {
                write!(f, "needs plugin '{plugin}', which is disabled")
            }
            Skip::RequiredMissing { plugin } => {
                write!(f, "needs plugin '{plugin}', which is not installed")
            }
            Skip::MissingBinary { binary, hint, .. } => {
                write!(f, "{}not found: {hint}", Skip::begin_for(binary))
            }
            Skip::OldBinary { binary, version, least, hint, .. } => {
                write!(
                    f,
                    "{}is version {version}, {least} or newer is needed: {hint}",
                    Skip::begin_for(binary)
                )
            }
        }
    }
}

/// Determines the usability of plugins and remembers the results.
pub struct UsabilityChecker<'a, 'l> {
    catalogue: &'a Catalogue,
    layers: &'l Layers<'l>,
    known: Programs<'l>,
    known_results: BTreeMap<&'a str, Option<Skip>>,
}

impl<'a, 'l> UsabilityChecker<'a, 'l> {
    /// Takes all plugins, the settings in effect and the known programs.
    pub fn new(catalogue: &'a Catalogue, layers: &'l Layers<'l>, known: Programs<'l>) -> Self {
        UsabilityChecker { catalogue, layers, known, known_results: BTreeMap::new() }
    }

    /// Why the plugin cannot be used, or `None` if it can be used.
    pub fn skip_reason(&mut self, plugin: &'a Plugin) -> Option<Skip> {
        if let Some(known) = self.known_results.get(plugin.name.as_str()) {
            return known.clone();
        }
        // Assume that the plugin is usable, which ends circles of required plugins.
        self.known_results.insert(&plugin.name, None);
        let resolved = resolve(self.catalogue, plugin, self.layers);
        let skip = self
            .flag(plugin, &resolved)
            .or_else(|| self.required(plugin))
            .or_else(|| self.programs(plugin, &resolved));
        self.known_results.insert(&plugin.name, skip.clone());
        skip
    }

    fn flag(&self, plugin: &Plugin, resolved: &BTreeMap<String, Value>) -> Option<Skip> {
        let key = plugin.key("ENABLED");
        let layers = self.layers.all();
        let property = plugin.schema.properties.get(&key);
        let enabled = match resolved.get(&key) {
            Some(value) => boolean(&plain(value)),
            None => layers.iter().find_map(|layer| boolean(layer.get(&key)?)),
        };
        if enabled.unwrap_or(true) {
            return None;
        }
        let names =
            property.map_or_else(|| vec![key.as_str()], |property| property.names(&key).collect());
        let mut set = layers.iter().flat_map(|layer| {
            names
                .iter()
                .filter(|name| layer.get(**name).and_then(|text| boolean(text)) == Some(false))
        });
        let key = set.next().map_or(key.as_str(), |name| *name).to_owned();
        Some(Skip::Disabled { key })
    }

    fn required(&mut self, plugin: &'a Plugin) -> Option<Skip> {
        plugin.schema.required_plugins.iter().find_map(|name| {
            let Some(required) = self.catalogue.plugin(name) else {
                return Some(Skip::RequiredMissing { plugin: name.clone() });
            };
            self.skip_reason(required).map(|skip| {
                if skip.is_by_choice() {
                    Skip::RequiredDisabled { plugin: name.clone() }
                } else {
                    skip
                }
            })
        })
    }

    fn programs(&self, plugin: &Plugin, resolved: &BTreeMap<String, Value>) -> Option<Skip> {
        let requirements = binary::requirements(plugin, resolved).into_iter();
        requirements
            .filter(Requirement::on_path)
            .find_map(|requirement| self.unmet(plugin, requirement))
    }

    fn unmet(&self, plugin: &Plugin, requirement: Requirement) -> Option<Skip> {
        let found = binary::find_any(&requirement.name, self.known.find);
        let version = match &found {
            Some(path) => {
                Some((self.known.version)(path).filter(|text| requirement.is_too_old(text))?)
            }
            None => None,
        };
        let source = install::advice(self.catalogue, plugin, &requirement);
        let (hint, command) = (source.to_string(), source.is_command());
        let binary = requirement.name;
        Some(match version {
            Some(version) => Skip::OldBinary {
                binary,
                version,
                least: requirement.min_version.unwrap_or_default(),
                hint,
                command,
            },
            None => Skip::MissingBinary { binary, hint, command },
        })
    }
}
