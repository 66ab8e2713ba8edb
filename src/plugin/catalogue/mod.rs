//! The catalogue: all plugins and hooks that were found, as values.

pub mod discover;
pub mod family;
pub mod name;
pub mod reader;
pub mod schema;
pub mod select;
pub mod selection;
pub mod trust;
pub mod usability;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::catalogue::name::{HookFamily, HookName, Owner};
use crate::catalogue::schema::{Property, Schema};
use crate::programs::distribution::Distribution;
use crate::settings::general;
use crate::settings::parse::plain;
use archivist_core::model::has_secret_name;
use serde_json::Value;

/// A plugin: one directory of hooks with its `config.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct Plugin {
    pub name: String,
    pub dir: PathBuf,
    /// Content of its `config.json`.
    pub schema: Schema,
    /// Hooks of all families in their order: by number, then by file name.
    pub hooks: Vec<Hook>,
    /// Whether this stands for hooks directly in a plugin directory, which cannot be selected or
    /// disabled.
    pub loose: bool,
}

/// Plugins of abx-plugins with an index of the whole archive.
const SHARED_DATA: [&str; 2] = ["search_backend_sonic", "search_backend_sqlite"];

/// Settings of the plugin of abx-plugins whose hooks index pages with a sonic server.
const SERVER_SETTINGS: [&str; 4] = [
    "SONIC_BINARY",
    "SEARCH_BACKEND_SONIC_HOST_NAME",
    "SEARCH_BACKEND_SONIC_PORT",
    "SEARCH_BACKEND_SONIC_PASSWORD",
];

impl Plugin {
    /// Whether the plugin's hooks expect a sonic server without requesting one: since release 1.12
    /// of abx-plugins, no hook of a crawl's setup does, and the caller of hooks runs the server.
    pub fn expects_server(&self) -> bool {
        let settings = &self.schema.properties;
        let of_page = |hook: &Hook| hook.name.family == HookFamily::Snapshot;
        SERVER_SETTINGS.iter().all(|key| settings.contains_key(*key))
            && !self.hooks.is_empty()
            && self.hooks.iter().all(of_page)
    }

    /// Whether the plugin's data belong to the archive, not to one crawl.
    pub fn shares_data(&self) -> bool {
        self.schema.shared_data || SHARED_DATA.contains(&self.name.as_str())
    }

    /// Name of a setting of this plugin: `chrome_mhtml` and `TIMEOUT` give `CHROME_MHTML_TIMEOUT`.
    pub fn key(&self, suffix: &str) -> String {
        format!("{}_{suffix}", self.name.to_uppercase().replace(['-', '.'], "_"))
    }
}

/// A program of a plugin. It is executed in place, because hooks find their helper files relative
/// to themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub plugin: String,
    /// File name without its last extension, as in records.
    pub id: String,
    pub file: PathBuf,
    pub name: HookName,
    /// Part of the unit's name: the short name, made unique among the plugin's hooks with the same
    /// owner (crawl, snapshot or binary).
    pub unit_part: String,
    /// Interpreter for an older hook without execute permission: `bash`, `python3` or `node`.
    pub interpreter: Option<&'static str>,
}

impl Hook {
    /// `PLUGIN/ID`, by which documents and lists name the hook.
    pub fn key(&self) -> String {
        format!("{}/{}", self.plugin, self.id)
    }

    /// The file name, which is the second sort key.
    pub fn file_name(&self) -> &str {
        self.file.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// A file that was found and not loaded, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct PathProblem {
    /// File or directory.
    pub path: PathBuf,
    pub what: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    /// Sorted by name.
    pub plugins: Vec<Plugin>,
    /// Plugins and hooks that were not loaded, and why.
    pub problems: Vec<PathProblem>,
    /// Where missing programs come from.
    pub distribution: Distribution,
}

impl Catalogue {
    /// Returns the plugin of this name, or `None`.
    pub fn plugin(&self, name: &str) -> Option<&Plugin> {
        let at = self.plugins.binary_search_by(|plugin| plugin.name.as_str().cmp(name));
        at.ok().map(|at| &self.plugins[at])
    }

    /// Appends the plugins that a plugin requires, then the plugin itself, except those in `seen`.
    pub(crate) fn append_required<'a>(
        &'a self,
        plugin: &'a Plugin,
        seen: &mut BTreeSet<&'a str>,
        found: &mut Vec<&'a Plugin>,
    ) {
        // Marked before the recursion, which ends circles.
        if !seen.insert(&plugin.name) {
            return;
        }
        for name in &plugin.schema.required_plugins {
            if let Some(required) = self.plugin(name) {
                self.append_required(required, seen, found);
            }
        }
        found.push(plugin);
    }

    /// Returns the settings of all plugins, with their names.
    fn properties(&self) -> impl Iterator<Item = (&String, &Property)> {
        let plugins = self.plugins.iter();
        plugins.flat_map(|plugin| &plugin.schema.properties)
    }

    /// Returns the setting that has this name or alias, with its own name.
    pub(crate) fn property(&self, key: &str) -> Option<(&String, &Property)> {
        let mut properties = self.properties();
        properties.find(|(own, property)| property.names(own).any(|name| name == key))
    }

    /// Sets the default of `TIMEOUT`, rounded up to whole seconds, for hooks without a time limit
    /// of their own.
    pub fn default_timeout(&mut self, limit: Duration) {
        let base = self.plugins.iter_mut().find(|plugin| plugin.name == "base");
        let properties = base.map(|base| &mut base.schema.properties);
        if let Some(timeout) = properties.and_then(|them| them.get_mut("TIMEOUT")) {
            let seconds = limit.as_secs_f64().ceil() as u64;
            timeout.default = Some(seconds.into());
        }
    }

    /// Whether the value of this setting is a secret: its schema says so (`x-sensitive`), or a word of
    /// its name.
    pub fn is_secret(&self, key: &str) -> bool {
        has_secret_name(key) || self.sensitive_names().contains(key)
    }

    /// Names of the settings that are secrets by their schemas, with their other names.
    pub fn sensitive_names(&self) -> BTreeSet<&str> {
        self.properties()
            .filter(|(_, property)| property.sensitive)
            .flat_map(|(own, property)| property.names(own))
            .collect()
    }

    /// The default of a setting as text in the syntax of archivist.conf(5); empty if it has none.
    pub fn default_text(&self, key: &str) -> String {
        let owner = self.property(key);
        match owner.and_then(|(_, property)| property.default.as_ref()) {
            None | Some(Value::Null) => String::new(),
            Some(value) => plain(value),
        }
    }

    /// Names of all settings: those of each plugin with aliases and fallbacks, `<PLUGIN>_ENABLED`,
    /// and the general settings.
    pub fn known_keys(&self) -> BTreeSet<String> {
        let mut keys: BTreeSet<String> = general::keys().map(str::to_owned).collect();
        for plugin in &self.plugins {
            if !plugin.loose {
                keys.insert(plugin.key("ENABLED"));
            }
            for (key, property) in &plugin.schema.properties {
                keys.extend(property.names(key).map(str::to_owned));
                keys.extend(property.fallback.clone());
            }
        }
        keys
    }
}

/// Makes the unit parts unique per owner: first the name, then number and name, then the file name.
pub(crate) fn name_units(hooks: &mut [Hook]) {
    let candidates: [fn(&Hook) -> String; 2] = [
        |hook| format!("{:02}_{}", hook.name.order, hook.name.name),
        |hook| hook.file_name().to_owned(),
    ];
    for candidate in candidates {
        let mut seen: BTreeMap<(Owner, String), usize> = BTreeMap::new();
        for hook in hooks.iter() {
            *seen.entry((hook.name.family.owner(), hook.unit_part.clone())).or_default() += 1;
        }
        for hook in hooks.iter_mut() {
            if seen[&(hook.name.family.owner(), hook.unit_part.clone())] > 1 {
                hook.unit_part = candidate(hook);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use serde_json::json;

    fn parts(files: &[&str]) -> Vec<String> {
        let mut hooks: Vec<_> = files.iter().map(|file| sample::hook("p", file)).collect();
        name_units(&mut hooks);
        hooks.into_iter().map(|hook| hook.unit_part).collect()
    }

    #[test]
    fn equal_names_of_crawl_and_snapshot_hooks_do_not_clash() {
        let files = ["on_CrawlSetup__91_chrome_wait.js", "on_Snapshot__11_chrome_wait.js"];
        assert_eq!(parts(&files), ["chrome_wait", "chrome_wait"]);
    }

    #[test]
    fn clashing_names_get_their_number_or_the_file_name() {
        assert_eq!(
            parts(&["on_Snapshot__05_a.py", "on_Snapshot__50_a.py", "on_Snapshot__50_b.py"]),
            ["05_a", "50_a", "b"]
        );
        assert_eq!(
            parts(&["on_Crawl__10_x.bg.py", "on_CrawlEnd__10_x.py"]),
            ["on_Crawl__10_x.bg.py", "on_CrawlEnd__10_x.py"]
        );
    }

    #[test]
    fn keys_of_a_plugin_are_environment_variables() {
        let plugin = sample::plugin("my-own.plugin", json!({}), &[]);
        assert_eq!(plugin.key("ENABLED"), "MY_OWN_PLUGIN_ENABLED");
        let catalogue = sample::catalogue([plugin]);
        let keys = catalogue.known_keys();
        assert!(keys.contains("MY_OWN_PLUGIN_ENABLED") && keys.contains("TIMEOUT"));
        assert!(catalogue.plugin("my-own.plugin").is_some() && catalogue.plugin("x").is_none());
    }
}
