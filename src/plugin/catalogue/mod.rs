//! The plugins and hooks that were found, as values.

pub mod discover;
pub mod event;
pub mod name;
pub mod reader;
pub mod schema;
pub mod select;
pub mod trust;
pub mod verdict;
pub mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::catalogue::name::{HookName, Owner};
use crate::catalogue::schema::Schema;
use crate::settings::general;

/// One directory of hooks, with its `config.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct Plugin {
    pub name: String,
    pub dir: PathBuf,
    pub schema: Schema,
    /// In the order of [`crate::catalogue::select::hooks_of`], families mixed.
    pub hooks: Vec<Hook>,
    /// Stands for hooks that lie directly in a plugin root: nothing selects or disables them.
    pub loose: bool,
}

impl Plugin {
    /// The name of a setting of this plugin: `chrome_mhtml` and `TIMEOUT` give
    /// `CHROME_MHTML_TIMEOUT`.
    pub fn key(&self, suffix: &str) -> String {
        format!(
            "{}_{suffix}",
            self.name.to_uppercase().replace(['-', '.'], "_")
        )
    }
}

/// One program of a plugin. It is run in place: hooks find their helpers relative to themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub plugin: String,
    /// The file name without its last extension, as records carry it.
    pub id: String,
    pub file: PathBuf,
    pub name: HookName,
    /// What the unit name says of this hook: the short name, made unique among the plugin's hooks
    /// that belong to the same crawl, snapshot or binary.
    pub unit_part: String,
    /// What runs the file when it has no execute bit (older hooks only): `bash`, `python3`, `node`.
    pub interpreter: Option<&'static str>,
}

impl Hook {
    /// The file name, the second key of the order.
    pub fn file_name(&self) -> &str {
        self.file
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }
}

/// Something that was found and not loaded, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct Problem {
    pub path: PathBuf,
    pub what: String,
}

/// All plugins of all roots.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue {
    /// Sorted by name.
    pub plugins: Vec<Plugin>,
    pub problems: Vec<Problem>,
}

impl Catalogue {
    pub fn plugin(&self, name: &str) -> Option<&Plugin> {
        let at = self
            .plugins
            .binary_search_by(|plugin| plugin.name.as_str().cmp(name));
        at.ok().map(|at| &self.plugins[at])
    }

    /// Makes `limit`, in whole seconds, the `TIMEOUT` of hooks for which nobody set one; the schema
    /// of the `base` plugin has a default of its own.
    pub fn default_timeout(&mut self, limit: Duration) {
        let base = self.plugins.iter_mut().find(|plugin| plugin.name == "base");
        let properties = base.map(|base| &mut base.schema.properties);
        if let Some(timeout) = properties.and_then(|them| them.get_mut("TIMEOUT")) {
            let seconds = limit.as_secs_f64().ceil() as u64;
            timeout.default = Some(seconds.into());
        }
    }

    /// Every name a user may set: each setting and alias of each plugin, what they fall back to,
    /// `<PLUGIN>_ENABLED`, and the general settings.
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

/// Makes the unit parts unique per owner: name, then number and name, then the whole id.
pub(crate) fn name_units(hooks: &mut [Hook]) {
    let candidates: [fn(&Hook) -> String; 2] = [
        |hook| format!("{:02}_{}", hook.name.order, hook.name.name),
        |hook| hook.file_name().to_owned(),
    ];
    for candidate in candidates {
        let mut seen: BTreeMap<(Owner, String), usize> = BTreeMap::new();
        for hook in hooks.iter() {
            *seen
                .entry((hook.name.event.owner(), hook.unit_part.clone()))
                .or_default() += 1;
        }
        for hook in hooks.iter_mut() {
            if seen[&(hook.name.event.owner(), hook.unit_part.clone())] > 1 {
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
    fn one_name_for_crawl_and_snapshot_is_no_clash() {
        let files = [
            "on_CrawlSetup__91_chrome_wait.js",
            "on_Snapshot__11_chrome_wait.js",
        ];
        assert_eq!(parts(&files), ["chrome_wait", "chrome_wait"]);
    }

    #[test]
    fn clashes_get_their_number_and_then_the_whole_name() {
        assert_eq!(
            parts(&[
                "on_Snapshot__05_a.py",
                "on_Snapshot__50_a.py",
                "on_Snapshot__50_b.py"
            ]),
            ["05_a", "50_a", "b"]
        );
        assert_eq!(
            parts(&["on_Crawl__10_x.bg.py", "on_CrawlEnd__10_x.py"]),
            ["on_Crawl__10_x.bg.py", "on_CrawlEnd__10_x.py"]
        );
    }

    #[test]
    fn keys_of_a_plugin() {
        let plugin = sample::plugin("my-own.plugin", json!({}), &[]);
        assert_eq!(plugin.key("ENABLED"), "MY_OWN_PLUGIN_ENABLED");
        let catalogue = sample::catalogue([plugin]);
        let keys = catalogue.known_keys();
        assert!(keys.contains("MY_OWN_PLUGIN_ENABLED") && keys.contains("TIMEOUT"));
        assert!(catalogue.plugin("my-own.plugin").is_some() && catalogue.plugin("x").is_none());
    }
}
