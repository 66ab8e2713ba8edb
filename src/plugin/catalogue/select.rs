//! Selects the plugins of a crawl, with the reason for each plugin that is skipped.

use std::collections::BTreeSet;

use crate::catalogue::name::HookFamily;
use crate::catalogue::selection::expand;
pub use crate::catalogue::selection::{Selection, UnknownPlugin};
pub use crate::catalogue::usability::Skip;
use crate::catalogue::usability::UsabilityChecker;
use crate::catalogue::{Catalogue, Hook, Plugin};
use crate::programs::binary::Programs;
use crate::settings::values::Layers;

/// The result of a selection. Both lists are sorted by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Selected<'a> {
    /// Plugins whose hooks run.
    pub plugins: Vec<&'a Plugin>,
    /// Plugins whose hooks do not run, and why.
    pub skipped: Vec<(&'a Plugin, Skip)>,
}

impl Selected<'_> {
    fn has_any_of(&self, names: &[String]) -> bool {
        self.plugins.iter().any(|plugin| names.contains(&plugin.name))
    }
}

/// Divides all plugins into selected and skipped ones.
pub fn select<'a>(
    catalogue: &'a Catalogue,
    selection: &Selection,
    layers: &Layers,
    known: Programs<'_>,
) -> Result<Selected<'a>, UnknownPlugin> {
    let names = expand(catalogue, selection)?;
    let mut checker = UsabilityChecker::new(catalogue, layers, known);
    let mut selected = Selected { plugins: Vec::new(), skipped: Vec::new() };
    let (companions, plugins): (Vec<&Plugin>, Vec<&Plugin>) =
        catalogue.plugins.iter().partition(|plugin| !plugin.schema.accompanies.is_empty());
    // Plugins that accompany others come last, because they depend on the selected ones.
    for plugin in plugins.into_iter().chain(companions) {
        let skip = match &names {
            _ if plugin.loose => None,
            _ if !plugin.schema.accompanies.is_empty() => {
                let plugins = &plugin.schema.accompanies;
                if selection.companions || selected.has_any_of(plugins) {
                    checker.skip_reason(plugin)
                } else {
                    Some(Skip::OnlyWith { plugins: plugins.clone() })
                }
            }
            Some(names) if !names.contains(plugin.name.as_str()) => Some(Skip::NotSelected),
            _ => checker.skip_reason(plugin),
        };
        match skip {
            None => selected.plugins.push(plugin),
            Some(skip) => selected.skipped.push((plugin, skip)),
        }
    }
    skip_unneeded(&mut selected, selection);
    selected.plugins.sort_by(|a, b| a.name.cmp(&b.name));
    selected.skipped.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    Ok(selected)
}

/// Removes plugins that run on demand, unless the user named them or a remaining plugin requires
/// them.
fn skip_unneeded(selected: &mut Selected, selection: &Selection) {
    let asked = |plugin: &Plugin| {
        let mut names = selection.plugins.iter();
        names.any(|name| plugin.name.eq_ignore_ascii_case(name.trim()))
    };
    let mut needed = BTreeSet::new();
    let mut open: Vec<&Plugin> = selected.plugins.clone();
    open.retain(|plugin| !plugin.schema.on_demand || asked(plugin));
    while let Some(plugin) = open.pop() {
        if !needed.insert(plugin.name.as_str()) {
            continue;
        }
        let required = |other: &&Plugin| plugin.schema.required_plugins.contains(&other.name);
        open.extend(selected.plugins.iter().copied().filter(required));
    }
    let (kept, unneeded) = std::mem::take(&mut selected.plugins)
        .into_iter()
        .partition(|plugin| needed.contains(plugin.name.as_str()));
    let unneeded: Vec<&Plugin> = unneeded;
    selected.plugins = kept;
    if !unneeded.is_empty() {
        let skipped = unneeded.into_iter().map(|plugin| (plugin, Skip::NotNeeded));
        selected.skipped.extend(skipped);
    }
}

/// The hooks of one family in the order of their start: by number, then by file name.
pub fn hooks_of<'a>(selected: &Selected<'a>, family: HookFamily) -> Vec<&'a Hook> {
    let plugins = selected.plugins.iter().copied();
    let mut hooks: Vec<&Hook> = plugins
        .flat_map(|plugin| &plugin.hooks)
        .filter(|hook| hook.name.family == family)
        .collect();
    hooks.sort_by(|a, b| {
        (a.name.order, a.file_name(), &a.plugin).cmp(&(b.name.order, b.file_name(), &b.plugin))
    });
    hooks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::sample::plugin;
    use crate::settings::values::Values;
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    fn catalogue() -> Catalogue {
        let flag = |default: bool, alias: &str| json!({"type": "boolean", "default": default, "x-aliases": [alias]});
        let needs_chrome = json!({"required_plugins": ["chrome"]});
        let plugins = vec![
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
            plugin("chrome_mhtml", needs_chrome.clone(), &["on_Snapshot__54_chrome_mhtml.js"]),
            plugin("lonely", json!({"required_plugins": ["nowhere"]}), &[]),
            plugin(
                "puppeteer",
                json!({"required_binaries": [{"name": "puppeteer", "binproviders": "npm"}]}),
                &["on_BinaryRequest__12_puppeteer.py"],
            ),
            plugin(
                "housekeeping",
                json!({"x-accompanies": ["chrome"]}),
                &["on_CrawlSetup__00_housekeeping.daemon.bg.sh"],
            ),
            plugin("title", needs_chrome, &["on_Snapshot__54_title.js"]),
            plugin(
                "wget",
                json!({"required_binaries": [{"name": "wget", "binproviders": "env,apt", "min_version": "1.21"}],
                "properties": {"WGET_ENABLED": flag(true, "SAVE_WGET")}}),
                &["on_Snapshot__06_wget.finite.bg.py"],
            ),
        ];
        sample::catalogue(plugins)
    }

    /// Finds programs by path, without versions.
    fn known(find: &dyn Fn(&str) -> Option<PathBuf>) -> Programs<'_> {
        Programs { find, version: &|_| None }
    }

    struct Outcome {
        used: Vec<String>,
        reasons: BTreeMap<String, String>,
        snapshot: Vec<String>,
    }

    fn run(names: &[&str], crawl: &[(&str, &str)], programs: &[&str]) -> Outcome {
        let catalogue = catalogue();
        let crawl: Values = crawl.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let none = Values::new();
        let layers = Layers { crawl: &crawl, persona: &none, config: &none, base: &none };
        let selection = Selection {
            plugins: names.iter().map(|n| (*n).to_owned()).collect(),
            companions: false,
        };
        let find = |name: &str| programs.contains(&name).then(|| Path::new("/usr/bin").join(name));
        let selected = select(&catalogue, &selection, &layers, known(&find)).unwrap();
        Outcome {
            used: selected.plugins.iter().map(|p| p.name.clone()).collect(),
            reasons: selected
                .skipped
                .iter()
                .map(|(p, why)| (p.name.clone(), why.to_string()))
                .collect(),
            snapshot: hooks_of(&selected, HookFamily::Snapshot)
                .iter()
                .map(|h| h.id.clone())
                .collect(),
        }
    }

    #[test]
    fn all_usable_plugins_are_selected() {
        let outcome = run(&[], &[], &["chromium", "wget"]);
        assert_eq!(
            outcome.used,
            ["apt", "chrome", "chrome_mhtml", "housekeeping", "puppeteer", "title", "wget"]
        );
        assert_eq!(outcome.reasons["claudecode"], "disabled by CLAUDECODE_ENABLED");
        assert_eq!(outcome.reasons["lonely"], "needs plugin 'nowhere', which is not installed");
        let order = ["06_wget.finite.bg", "30_chrome_navigate", "54_chrome_mhtml", "54_title"];
        assert_eq!(outcome.snapshot, order.map(|id| format!("on_Snapshot__{id}")));
    }

    #[test]
    fn selection_includes_required_plugins() {
        let outcome = run(&[" Title ", "wget"], &[], &["chromium", "wget"]);
        assert_eq!(outcome.used, ["apt", "chrome", "housekeeping", "puppeteer", "title", "wget"]);
        let without = run(&["wget", "housekeeping"], &[], &["chromium", "wget"]);
        assert_eq!(without.used, ["apt", "wget"], "the plugin that it accompanies is missing");
        assert_eq!(outcome.reasons["chrome_mhtml"], "not selected");
    }

    #[test]
    fn disabled_plugin_also_skips_plugins_that_require_it() {
        let outcome =
            run(&[], &[("USE_CHROME", "off"), ("SAVE_WGET", "0"), ("APT_ENABLED", "no")], &[]);
        assert_eq!(outcome.reasons["chrome"], "disabled by USE_CHROME");
        assert_eq!(outcome.reasons["title"], "needs plugin 'chrome', which is disabled");
        assert_eq!(outcome.reasons["wget"], "disabled by SAVE_WGET");
        assert_eq!(outcome.reasons["apt"], "disabled by APT_ENABLED", "a flag needs no schema");
    }

    #[test]
    fn on_demand_plugin_is_selected_only_if_required() {
        let needs = |name: &str| json!({"required_plugins": [name]});
        let base = json!({"x-on-demand": true, "required_plugins": ["deep"]});
        let catalogue = sample::catalogue([
            plugin("browser", base, &["on_CrawlSetup__90_browser.daemon.bg.sh"]),
            plugin("deep", json!({"x-on-demand": true}), &[]),
            plugin("pdf", needs("browser"), &["on_Snapshot__52_pdf.sh"]),
            plugin("title", json!({}), &["on_Snapshot__54_title.sh"]),
        ]);
        let used = |names: &[&str], off: &[&str]| {
            let crawl = off.iter().map(|key| ((*key).into(), "false".into()));
            let (crawl, none) = (crawl.collect(), Values::new());
            let layers = Layers { crawl: &crawl, persona: &none, config: &none, base: &none };
            let selection = Selection {
                plugins: names.iter().map(|n| (*n).to_owned()).collect(),
                companions: false,
            };
            let selected = select(&catalogue, &selection, &layers, known(&|_| None)).unwrap();
            let names = |plugins: &mut dyn Iterator<Item = &Plugin>| {
                plugins.map(|p| p.name.clone()).collect::<Vec<_>>().join(" ")
            };
            let unneeded = selected.skipped.iter().filter(|(_, why)| *why == Skip::NotNeeded);
            let unneeded = names(&mut unneeded.map(|(plugin, _)| *plugin));
            (names(&mut selected.plugins.iter().copied()), unneeded)
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(used(&[], &[]), pair("browser deep pdf title", ""));
        assert_eq!(used(&["title"], &[]), pair("title", ""));
        assert_eq!(used(&["pdf"], &[]), pair("browser deep pdf", ""));
        assert_eq!(used(&["Browser"], &[]), pair("browser deep", ""));
        assert_eq!(used(&[], &["PDF_ENABLED"]), pair("title", "browser deep"));
    }

    #[test]
    fn missing_program_is_reported_with_its_package() {
        let outcome = run(&[], &[], &["wget"]);
        let why = "program 'chromium' not found: archivist plugins install chrome";
        assert_eq!(outcome.reasons["chrome"], why);
        assert_eq!(outcome.reasons["title"], why);
        assert_eq!(
            outcome.used,
            ["apt", "puppeteer", "wget"],
            "npm's puppeteer is not searched for on the path"
        );
        let outcome = run(&[], &[("CHROME_BINARY", "/opt/c")], &["chromium"]);
        assert_eq!(outcome.reasons["title"].split(':').next(), Some("program '/opt/c' not found"));
        assert!(run(&["title"], &[], &["google-chrome"]).used.contains(&"title".to_owned()));
    }

    #[test]
    fn program_may_be_too_old() {
        let (catalogue, none) = (catalogue(), Values::new());
        let layers = Layers { crawl: &none, persona: &none, config: &none, base: &none };
        let find = |name: &str| (name == "wget").then(|| PathBuf::from("/usr/bin/wget"));
        for (version, skip) in [
            (None, None),
            (Some("1.21.4-1+b1"), None),
            (
                Some("1.20.1-1.1"),
                Some(
                    "program 'wget' is version 1.20.1-1.1, 1.21 or newer is needed: apt install wget",
                ),
            ),
        ] {
            let known = Programs { find: &find, version: &|_| version.map(str::to_owned) };
            let selected = select(&catalogue, &Selection::default(), &layers, known).unwrap();
            let mut skipped = selected.skipped.iter();
            let wget = skipped.find(|(plugin, _)| plugin.name == "wget");
            let shown = wget.map(|(_, skip)| skip.to_string());
            assert_eq!(shown.as_deref(), skip, "{version:?}");
        }
    }

    #[test]
    fn unknown_names_are_errors() {
        let catalogue = catalogue();
        let none = Values::new();
        let layers = Layers { crawl: &none, persona: &none, config: &none, base: &none };
        let selection = Selection { plugins: vec!["wgett".into()], companions: false };
        let error = select(&catalogue, &selection, &layers, known(&|_| None)).unwrap_err();
        assert_eq!(error.to_string(), "no plugin is named 'wgett'; did you mean wget?");
    }
}
