//! Whether one plugin can be used, and if not, why.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::catalogue::{Catalogue, Plugin};
use crate::programs::binary;
use crate::programs::binary::Need;
use crate::programs::install;
use crate::settings::parse::{boolean, plain};
use crate::settings::values::{Layers, resolve};

/// Why a plugin is not used. The text is for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    NotSelected,
    /// It runs on demand, and no plugin in use requires it.
    NotNeeded,
    /// It runs beside others, none of which is in use.
    OnlyBeside {
        plugins: Vec<String>,
    },
    /// Its own flag is off; `key` is the name it was set by, or would be.
    Disabled {
        key: String,
    },
    /// A plugin it requires is disabled.
    RequiredDisabled {
        plugin: String,
    },
    /// A plugin it requires is not installed, or could not be loaded.
    RequiredMissing {
        plugin: String,
    },
    /// A program that it, or a plugin it requires, needs is not there.
    MissingBinary {
        binary: String,
        hint: String,
        /// Whether the hint is a command.
        #[serde(default)]
        command: bool,
    },
    /// That program is there, in a version that does not do.
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
    /// Nothing is wrong: somebody wants it so, or it is not needed.
    pub fn is_by_choice(&self) -> bool {
        matches!(
            self,
            Skip::NotSelected | Skip::NotNeeded | Skip::OnlyBeside { .. } | Skip::Disabled { .. }
        )
    }

    /// The command that mends it.
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
            Skip::OnlyBeside { plugins } => write!(f, "only beside {}", plugins.join(", ")),
            Skip::Disabled { key } => write!(f, "disabled by {key}"),
            Skip::RequiredDisabled { plugin } => {
                write!(f, "needs plugin '{plugin}', which is disabled")
            }
            Skip::RequiredMissing { plugin } => {
                write!(f, "needs plugin '{plugin}', which is not installed")
            }
            Skip::MissingBinary { binary, hint, .. } => {
                write!(f, "program '{binary}' not found: {hint}")
            }
            Skip::OldBinary {
                binary,
                version,
                least,
                hint,
                ..
            } => {
                write!(
                    f,
                    "program '{binary}' is version {version}, {least} or newer is needed: {hint}"
                )
            }
        }
    }
}

/// What is known of the programs on the machine.
#[derive(Clone, Copy)]
pub struct Programs<'l> {
    /// Looks one up on the hooks' search path.
    pub find: &'l dyn Fn(&str) -> Option<PathBuf>,
    /// The version of what is at a path, where somebody told or looked.
    pub version: &'l dyn Fn(&Path) -> Option<String>,
}

/// Judges plugins, each once.
pub struct Judge<'a, 'l> {
    catalogue: &'a Catalogue,
    layers: &'l Layers<'l>,
    known: Programs<'l>,
    verdicts: BTreeMap<&'a str, Option<Skip>>,
}

impl<'a, 'l> Judge<'a, 'l> {
    pub fn new(catalogue: &'a Catalogue, layers: &'l Layers<'l>, known: Programs<'l>) -> Self {
        Judge {
            catalogue,
            layers,
            known,
            verdicts: BTreeMap::new(),
        }
    }

    /// Why the plugin cannot be used; `None` when it can.
    pub fn verdict(&mut self, plugin: &'a Plugin) -> Option<Skip> {
        if let Some(known) = self.verdicts.get(plugin.name.as_str()) {
            return known.clone();
        }
        // two plugins that require each other stand or fall by the rest
        self.verdicts.insert(&plugin.name, None);
        let resolved = resolve(self.catalogue, plugin, self.layers);
        let skip = self
            .flag(plugin, &resolved)
            .or_else(|| self.required(plugin))
            .or_else(|| self.programs(plugin, &resolved));
        self.verdicts.insert(&plugin.name, skip.clone());
        skip
    }

    fn flag(&self, plugin: &Plugin, resolved: &BTreeMap<String, Value>) -> Option<Skip> {
        let key = plugin.key("ENABLED");
        let layers = [self.layers.crawl, self.layers.config, self.layers.base];
        let property = plugin.schema.properties.get(&key);
        let enabled = match resolved.get(&key) {
            Some(value) => boolean(&plain(value)),
            None => layers.iter().find_map(|layer| boolean(layer.get(&key)?)),
        };
        if enabled.unwrap_or(true) {
            return None;
        }
        let names = property.map_or_else(
            || vec![key.as_str()],
            |property| property.names(&key).collect(),
        );
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
                return Some(Skip::RequiredMissing {
                    plugin: name.clone(),
                });
            };
            self.verdict(required).map(|skip| {
                if skip.is_by_choice() {
                    Skip::RequiredDisabled {
                        plugin: name.clone(),
                    }
                } else {
                    skip
                }
            })
        })
    }

    fn programs(&self, plugin: &Plugin, resolved: &BTreeMap<String, Value>) -> Option<Skip> {
        let needs = binary::needs(plugin, resolved).into_iter();
        needs
            .filter(|need| need.on_path)
            .find_map(|need| self.lack(plugin, need))
    }

    fn lack(&self, plugin: &Plugin, need: Need) -> Option<Skip> {
        let found = binary::find_any(&need.name, self.known.find);
        let version = match &found {
            Some(path) => Some((self.known.version)(path).filter(|text| need.is_too_old(text))?),
            None => None,
        };
        let source = install::advice(self.catalogue, plugin, &need);
        let (hint, command) = (source.to_string(), source.is_command());
        let binary = need.name;
        Some(match version {
            Some(version) => Skip::OldBinary {
                binary,
                version,
                least: need.min_version.unwrap_or_default(),
                hint,
                command,
            },
            None => Skip::MissingBinary {
                binary,
                hint,
                command,
            },
        })
    }
}
