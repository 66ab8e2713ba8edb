//! Which plugins a crawl uses, and why the others are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::binary;
use super::catalogue::{Catalogue, Hook, Plugin};
use super::close::close;
use super::name::Event;
use super::parse::{boolean, plain};
use super::values::{Layers, resolve};

/// What the user asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Names in any case; what these plugins need is added. Empty stands for all plugins.
    pub plugins: Vec<String>,
}

/// Why a plugin is not used. The text is for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    NotSelected,
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
    },
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skip::NotSelected => f.write_str("not selected"),
            Skip::Disabled { key } => write!(f, "disabled by {key}"),
            Skip::RequiredDisabled { plugin } => {
                write!(f, "needs plugin '{plugin}', which is disabled")
            }
            Skip::RequiredMissing { plugin } => {
                write!(f, "needs plugin '{plugin}', which is not installed")
            }
            Skip::MissingBinary { binary, hint } => {
                write!(f, "program '{binary}' not found; {hint}")
            }
        }
    }
}

/// A name on the whitelist that no plugin has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct UnknownPlugin {
    pub name: String,
    /// Plugins that may have been meant.
    pub close: Vec<String>,
}

impl fmt::Display for UnknownPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no plugin is named '{}'", self.name)?;
        match self.close.join(", ") {
            near if near.is_empty() => Ok(()),
            near => write!(f, "; close names: {near}"),
        }
    }
}

/// Both lists are sorted by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected<'a> {
    pub plugins: Vec<&'a Plugin>,
    pub skipped: Vec<(&'a Plugin, Skip)>,
}

/// Sorts all plugins into used and left out. `find` looks a program up on the hooks' search path.
pub fn select<'a>(
    catalogue: &'a Catalogue,
    selection: &Selection,
    layers: &Layers,
    find: &dyn Fn(&str) -> Option<PathBuf>,
) -> Result<Selected<'a>, UnknownPlugin> {
    let wanted = wanted(catalogue, selection)?;
    let mut judge = Judge {
        catalogue,
        layers,
        find,
        verdicts: BTreeMap::new(),
    };
    let mut selected = Selected {
        plugins: Vec::new(),
        skipped: Vec::new(),
    };
    for plugin in &catalogue.plugins {
        let skip = match &wanted {
            _ if plugin.loose => None,
            Some(names) if !names.contains(plugin.name.as_str()) => Some(Skip::NotSelected),
            _ => judge.verdict(plugin),
        };
        match skip {
            None => selected.plugins.push(plugin),
            Some(skip) => selected.skipped.push((plugin, skip)),
        }
    }
    Ok(selected)
}

/// The whitelist with all that its plugins require, and the plugins that can install their
/// programs; `None` stands for all plugins.
fn wanted<'a>(
    catalogue: &'a Catalogue,
    selection: &Selection,
) -> Result<Option<BTreeSet<&'a str>>, UnknownPlugin> {
    let mut names = BTreeSet::new();
    let mut open = Vec::new();
    let asked = selection
        .plugins
        .iter()
        .map(|name| name.trim())
        .filter(|name| !name.is_empty());
    for name in asked {
        let found = catalogue
            .plugins
            .iter()
            .find(|p| p.name.eq_ignore_ascii_case(name));
        open.push(found.ok_or_else(|| UnknownPlugin {
            name: name.to_owned(),
            close: close(name, catalogue.plugins.iter().map(|p| p.name.as_str())),
        })?);
    }
    if open.is_empty() {
        return Ok(None);
    }
    let installs = |plugin: &&Plugin| {
        plugin
            .hooks
            .iter()
            .any(|hook| hook.name.event == Event::BinaryRequest)
    };
    while let Some(plugin) = open.pop() {
        if !names.insert(plugin.name.as_str()) {
            continue;
        }
        let required = plugin.schema.required_plugins.iter();
        open.extend(required.filter_map(|name| catalogue.plugin(name)));
        let providers = plugin
            .schema
            .required_binaries
            .iter()
            .flat_map(|entry| &entry.providers);
        open.extend(
            providers
                .filter_map(|name| catalogue.plugin(name))
                .filter(installs),
        );
    }
    Ok(Some(names))
}

struct Judge<'a, 'l> {
    catalogue: &'a Catalogue,
    layers: &'l Layers<'l>,
    find: &'l dyn Fn(&str) -> Option<PathBuf>,
    verdicts: BTreeMap<&'a str, Option<Skip>>,
}

impl<'a> Judge<'a, '_> {
    fn verdict(&mut self, plugin: &'a Plugin) -> Option<Skip> {
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
            self.verdict(required).map(|skip| match skip {
                Skip::Disabled { .. } | Skip::NotSelected => Skip::RequiredDisabled {
                    plugin: name.clone(),
                },
                deeper => deeper,
            })
        })
    }

    fn programs(&self, plugin: &Plugin, resolved: &BTreeMap<String, Value>) -> Option<Skip> {
        let needs = binary::needs(plugin, resolved).into_iter();
        needs
            .filter(|need| need.on_path)
            .find(|need| binary::find_any(&need.name, self.find).is_none())
            .map(|need| Skip::MissingBinary {
                binary: need.name,
                hint: need.source.to_string(),
            })
    }
}

/// The hooks of one family in the order they start: by number, then by file name.
pub fn hooks_of<'a>(selected: &Selected<'a>, event: Event) -> Vec<&'a Hook> {
    let plugins = selected.plugins.iter().copied();
    let mut hooks: Vec<&Hook> = plugins
        .flat_map(|plugin| &plugin.hooks)
        .filter(|hook| hook.name.event == event)
        .collect();
    hooks.sort_by(|a, b| {
        (a.name.order, a.file_name(), &a.plugin).cmp(&(b.name.order, b.file_name(), &b.plugin))
    });
    hooks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::name::HookName;
    use crate::plugin::schema::Schema;
    use crate::plugin::values::Values;
    use serde_json::json;
    use std::path::Path;

    fn plugin(name: &str, config: Value, files: &[&str]) -> Plugin {
        let hooks = files.iter().map(|file| {
            let parsed = HookName::parse(file).unwrap();
            Hook {
                plugin: name.to_owned(),
                id: file.rsplit_once('.').unwrap().0.to_owned(),
                file: Path::new("/p").join(name).join(file),
                unit_part: parsed.name.clone(),
                name: parsed,
                interpreter: None,
            }
        });
        Plugin {
            name: name.to_owned(),
            dir: Path::new("/p").join(name),
            schema: Schema::parse(Path::new("f"), &config.to_string()).unwrap(),
            hooks: hooks.collect(),
            loose: false,
        }
    }

    fn catalogue() -> Catalogue {
        let flag = |default: bool, alias: &str| json!({"type": "boolean", "default": default, "x-aliases": [alias]});
        let needs_chrome = json!({"required_plugins": ["chrome"]});
        let mut plugins = vec![
            plugin("apt", json!({}), &["on_BinaryRequest__13_apt.py"]),
            plugin(
                "chrome",
                json!({"required_plugins": ["puppeteer"],
                "required_binaries": [{"name": "{CHROME_BINARY}", "binproviders": "env,puppeteer"}],
                "properties": {"CHROME_BINARY": {"default": "chromium"}, "CHROME_ENABLED": flag(true, "USE_CHROME")}}),
                &[
                    "on_CrawlSetup__90_chrome_launch.daemon.bg.js",
                    "on_Snapshot__30_chrome_navigate.js",
                ],
            ),
            plugin(
                "claudecode",
                json!({"properties": {"CLAUDECODE_ENABLED": flag(false, "USE_CLAUDECODE")}}),
                &[],
            ),
            plugin(
                "chrome_mhtml",
                needs_chrome.clone(),
                &["on_Snapshot__54_chrome_mhtml.js"],
            ),
            plugin("lonely", json!({"required_plugins": ["nowhere"]}), &[]),
            plugin(
                "puppeteer",
                json!({"required_binaries": [{"name": "puppeteer", "binproviders": "npm"}]}),
                &["on_BinaryRequest__12_puppeteer.py"],
            ),
            plugin("title", needs_chrome, &["on_Snapshot__54_title.js"]),
            plugin(
                "wget",
                json!({"required_binaries": [{"name": "wget", "binproviders": "env,apt"}],
                "properties": {"WGET_ENABLED": flag(true, "SAVE_WGET")}}),
                &["on_Snapshot__06_wget.finite.bg.py"],
            ),
        ];
        plugins.sort_by(|a, b| a.name.cmp(&b.name));
        Catalogue {
            plugins,
            problems: Vec::new(),
        }
    }

    struct Outcome {
        used: Vec<String>,
        reasons: BTreeMap<String, String>,
        snapshot: Vec<String>,
    }

    fn run(names: &[&str], crawl: &[(&str, &str)], programs: &[&str]) -> Outcome {
        let catalogue = catalogue();
        let crawl: Values = crawl
            .iter()
            .map(|(k, v)| ((*k).into(), (*v).into()))
            .collect();
        let none = Values::new();
        let layers = Layers {
            crawl: &crawl,
            config: &none,
            base: &none,
        };
        let selection = Selection {
            plugins: names.iter().map(|n| (*n).to_owned()).collect(),
        };
        let find = |name: &str| {
            programs
                .contains(&name)
                .then(|| Path::new("/usr/bin").join(name))
        };
        let selected = select(&catalogue, &selection, &layers, &find).unwrap();
        Outcome {
            used: selected.plugins.iter().map(|p| p.name.clone()).collect(),
            reasons: selected
                .skipped
                .iter()
                .map(|(p, why)| (p.name.clone(), why.to_string()))
                .collect(),
            snapshot: hooks_of(&selected, Event::Snapshot)
                .iter()
                .map(|h| h.id.clone())
                .collect(),
        }
    }

    #[test]
    fn all_that_can_run() {
        let outcome = run(&[], &[], &["chromium", "wget"]);
        assert_eq!(
            outcome.used,
            [
                "apt",
                "chrome",
                "chrome_mhtml",
                "puppeteer",
                "title",
                "wget"
            ]
        );
        assert_eq!(
            outcome.reasons["claudecode"],
            "disabled by CLAUDECODE_ENABLED"
        );
        assert_eq!(
            outcome.reasons["lonely"],
            "needs plugin 'nowhere', which is not installed"
        );
        let order = [
            "06_wget.finite.bg",
            "30_chrome_navigate",
            "54_chrome_mhtml",
            "54_title",
        ];
        assert_eq!(
            outcome.snapshot,
            order.map(|id| format!("on_Snapshot__{id}"))
        );
    }

    #[test]
    fn a_whitelist_brings_what_it_needs() {
        let outcome = run(&[" Title ", "wget"], &[], &["chromium", "wget"]);
        assert_eq!(
            outcome.used,
            ["apt", "chrome", "puppeteer", "title", "wget"]
        );
        assert_eq!(outcome.reasons["chrome_mhtml"], "not selected");
    }

    #[test]
    fn flags_reach_the_plugins_that_require_it() {
        let outcome = run(
            &[],
            &[
                ("USE_CHROME", "off"),
                ("SAVE_WGET", "0"),
                ("APT_ENABLED", "no"),
            ],
            &[],
        );
        assert_eq!(outcome.reasons["chrome"], "disabled by USE_CHROME");
        assert_eq!(
            outcome.reasons["title"],
            "needs plugin 'chrome', which is disabled"
        );
        assert_eq!(outcome.reasons["wget"], "disabled by SAVE_WGET");
        assert_eq!(
            outcome.reasons["apt"], "disabled by APT_ENABLED",
            "a flag needs no schema"
        );
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let outcome = run(&[], &[], &["wget"]);
        let why = "program 'chromium' not found; install the Debian package chromium";
        assert_eq!(outcome.reasons["chrome"], why);
        assert_eq!(outcome.reasons["title"], why);
        assert_eq!(
            outcome.used,
            ["apt", "puppeteer", "wget"],
            "npm's puppeteer is not looked for"
        );
        let outcome = run(&[], &[("CHROME_BINARY", "/opt/c")], &["chromium"]);
        assert_eq!(
            outcome.reasons["title"].split(';').next(),
            Some("program '/opt/c' not found")
        );
        assert!(
            run(&["title"], &[], &["google-chrome"])
                .used
                .contains(&"title".to_owned())
        );
    }

    #[test]
    fn unknown_names_are_an_error() {
        let catalogue = catalogue();
        let none = Values::new();
        let layers = Layers {
            crawl: &none,
            config: &none,
            base: &none,
        };
        let selection = Selection {
            plugins: vec!["wgett".into()],
        };
        let error = select(&catalogue, &selection, &layers, &|_| None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no plugin is named 'wgett'; close names: wget"
        );
    }
}
