//! Installation of required programs: which provider hooks run, and in which order. Programs are
//! only installed on request.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use crate::catalogue::name::HookFamily;
use crate::catalogue::schema::RequiredBinary;
use crate::catalogue::usability::Programs;
use crate::catalogue::{Catalogue, Hook, Plugin};
use crate::contract::arguments::BinaryRequest;
use crate::contract::environment::MACHINE;
use crate::programs::binaries::providers;
use crate::programs::binary;
use crate::programs::binary::{Need, Source};
use crate::settings::values::{Layers, resolve};
use archivist_core::close::close;

/// Start of the URL of a crawl that installs programs.
pub const URL: &str = "archivist:install/";

/// Providers that cannot install a program without root, and the search path.
const PROVIDERS_WITHOUT_INSTALL: [&str; 4] = ["env", "*", "apt", "brew"];

/// Longest name of a program that a hook may request, in bytes.
const PROGRAM_NAME_MAX_BYTES: usize = 64;

/// A program that somebody wants to have.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    pub need: Need,
    pub request: BinaryRequest,
}

/// One way to get a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step<'a> {
    Run(&'a Plugin, &'a Hook),
    /// Requires root, which hooks do not have: the user must run this.
    ByHand(&'a Plugin, &'a Hook),
}

/// Provider hooks of a plugin, of both generations, in order.
pub fn provider_hooks(plugin: &Plugin) -> impl Iterator<Item = &Hook> {
    let families = [HookFamily::BinaryRequest, HookFamily::Binary];
    plugin
        .hooks
        .iter()
        .filter(move |hook| families.contains(&hook.name.family))
}

/// How to get a program that `plugin` requires, considering the installed providers.
pub fn advice(catalogue: &Catalogue, plugin: &Plugin, need: &Need) -> Source {
    let helps = |name: &String| {
        let provider = catalogue.plugin(name);
        !PROVIDERS_WITHOUT_INSTALL.contains(&name.as_str())
            && provider.is_some_and(|provider| provider_hooks(provider).next().is_some())
    };
    match &need.source {
        Source::Debian(_) => need.source.clone(),
        _ if need.name.starts_with('/') => Source::Unknown,
        _ if need.providers.iter().any(helps) => Source::Archivist(plugin.name.clone()),
        other => other.clone(),
    }
}

/// How to get a program that a hook requested. For a program that no plugin requires, only a Debian
/// package is suggested: otherwise hooks could put commands for untrusted software before users.
///
/// `None` if this is not a valid name of a program.
pub fn advice_for(
    catalogue: &Catalogue,
    name: &str,
    asked: &str,
    layers: &Layers,
) -> Option<Source> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+._-".contains(c);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain);
    if !is_name || name.len() > PROGRAM_NAME_MAX_BYTES {
        return None;
    }
    for plugin in &catalogue.plugins {
        if let Some(wish) = wishes_of(catalogue, plugin, layers).find(|w| w.need.name == name) {
            return Some(advice(catalogue, plugin, &wish.need));
        }
    }
    let entry = RequiredBinary {
        name: name.to_owned(),
        providers: providers(asked),
        min_version: None,
        overrides: serde_json::Map::new(),
    };
    Some(match Source::of(&entry, name) {
        debian @ Source::Debian(_) => debian,
        _ => Source::Unknown,
    })
}

/// Appends the plugins that a plugin requires, then the plugin itself.
fn closure<'a>(
    catalogue: &'a Catalogue,
    plugin: &'a Plugin,
    seen: &mut BTreeSet<&'a str>,
    found: &mut Vec<&'a Plugin>,
) {
    // Marked before the recursion, which ends circles.
    if !seen.insert(&plugin.name) {
        return;
    }
    for name in &plugin.schema.required_plugins {
        if let Some(required) = catalogue.plugin(name) {
            closure(catalogue, required, seen, found);
        }
    }
    found.push(plugin);
}

/// A plugin and all plugins that it requires, itself last.
pub fn with_required<'a>(catalogue: &'a Catalogue, plugin: &'a Plugin) -> Vec<&'a Plugin> {
    let mut found = Vec::new();
    closure(catalogue, plugin, &mut BTreeSet::new(), &mut found);
    found
}

impl Wish {
    /// Has the program do for somebody else too, who wants `least` of it.
    fn also(&mut self, least: Option<&str>) {
        let Some(least) = least.filter(|least| self.need.may_be_before(least)) else {
            return;
        };
        self.need.min_version = Some(least.to_owned());
        self.request.min_version = Some(least.to_owned());
    }
}

/// Every program that is needed for `names`, each the name of a plugin or of a program, in the
/// order in which they are to be had, each once: as the first says who needs it, in the newest of
/// the versions that they need. What is there already is among them.
pub fn wishes(
    catalogue: &Catalogue,
    names: &[String],
    layers: &Layers,
) -> Result<Vec<Wish>, String> {
    let mut found: Vec<Wish> = Vec::new();
    let mut add = |wish: Wish| {
        let same = |known: &&mut Wish| known.need.name == wish.need.name;
        match found.iter_mut().find(same) {
            Some(known) => known.also(wish.need.min_version.as_deref()),
            None => found.push(wish),
        }
    };
    for name in names {
        let mut plugins = catalogue.plugins.iter();
        if let Some(plugin) = plugins.find(|plugin| plugin.name.eq_ignore_ascii_case(name)) {
            for plugin in with_required(catalogue, plugin) {
                wishes_of(catalogue, plugin, layers).for_each(&mut add);
            }
            continue;
        }
        let all = catalogue.plugins.iter();
        let all = all.flat_map(|plugin| wishes_of(catalogue, plugin, layers));
        let mut all = all.filter(|wish| wish.need.name == *name).peekable();
        if all.peek().is_none() {
            return Err(unknown(catalogue, name));
        }
        all.for_each(&mut add);
    }
    Ok(found)
}

fn unknown(catalogue: &Catalogue, name: &str) -> String {
    let near = close(name, catalogue.plugins.iter().map(|p| p.name.as_str())).join(", ");
    let near = if near.is_empty() {
        near
    } else {
        format!("; close names: {near}")
    };
    format!("no plugin is named '{name}', and none needs a program of that name{near}")
}

/// The programs that one plugin requires.
pub fn wishes_of<'a>(
    catalogue: &Catalogue,
    plugin: &'a Plugin,
    layers: &Layers,
) -> impl Iterator<Item = Wish> + use<'a> {
    let resolved = resolve(catalogue, plugin, layers);
    let entries = plugin.schema.required_binaries.iter();
    entries.filter_map(move |entry| {
        let need = binary::need(plugin, entry, &resolved)?;
        let request = request(plugin, entry, &need, &resolved);
        Some(Wish { need, request })
    })
}

fn request(
    plugin: &Plugin,
    entry: &RequiredBinary,
    need: &Need,
    resolved: &BTreeMap<String, Value>,
) -> BinaryRequest {
    let overrides = entry.overrides.iter();
    BinaryRequest {
        name: need.name.clone(),
        binproviders: entry.providers.join(","),
        min_version: entry.min_version.clone(),
        overrides: overrides
            .map(|(key, value)| (key.clone(), binary::hydrate_value(value, resolved)))
            .collect(),
        binary_id: need.name.clone(),
        machine_id: MACHINE.to_owned(),
        plugin_name: plugin.name.clone(),
        ..BinaryRequest::default()
    }
}

/// Whether a program is there, and new enough. What only a provider can tell is there when one told
/// so and it still is: `shelved` says where.
pub fn is_there(
    need: &Need,
    known: Programs<'_>,
    shelved: &dyn Fn(&str) -> Option<PathBuf>,
) -> bool {
    let found = if need.on_path {
        binary::find_any(&need.name, known.find)
    } else {
        shelved(&need.name)
    };
    let version = |path: &PathBuf| (known.version)(path);
    found.is_some_and(|path| !version(&path).is_some_and(|text| need.is_too_old(&text)))
}

/// What is tried for a wish: its providers in their order, and the hooks of each in theirs. Not the
/// search path (`env`): there it was looked for already.
pub fn steps<'a>(catalogue: &'a Catalogue, wish: &Wish) -> Vec<Step<'a>> {
    let mut seen = BTreeSet::new();
    let mut steps = Vec::new();
    for name in &wish.need.providers {
        let mut hooks: Vec<(&Plugin, &Hook)> = match name.as_str() {
            "*" => {
                let every = catalogue.plugins.iter();
                every
                    .flat_map(|plugin| provider_hooks(plugin).map(move |hook| (plugin, hook)))
                    .collect()
            }
            _ => catalogue
                .plugin(name)
                .into_iter()
                .flat_map(|plugin| provider_hooks(plugin).map(move |hook| (plugin, hook)))
                .collect(),
        };
        hooks.sort_by_key(|(_, hook)| (hook.name.order, hook.file_name()));
        for (plugin, hook) in hooks {
            if !seen.insert((&plugin.name, &hook.id)) {
                continue;
            }
            match plugin.name.as_str() {
                "env" => {}
                "apt" => steps.push(Step::ByHand(plugin, hook)),
                _ => steps.push(Step::Run(plugin, hook)),
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::sample::plugin;
    use crate::settings::values::Values;
    use serde_json::json;

    fn catalogue() -> Catalogue {
        let needs = |name: &str, providers: &str| json!({"name": name, "binproviders": providers});
        sample::catalogue([
            plugin("apt", json!({}), &["on_BinaryRequest__13_apt.py"]),
            plugin("env", json!({}), &["on_BinaryRequest__00_env.py"]),
            plugin(
                "npm",
                json!({}),
                &["on_BinaryRequest__10_npm.py", "on_Binary__05_npm.py"],
            ),
            plugin(
                "chrome",
                json!({"required_plugins": ["title"], "properties": {"NODE_BINARY": {"default": "node"}},
                    "required_binaries": [needs("{NODE_BINARY}", "env,apt")]}),
                &[],
            ),
            plugin(
                "title",
                json!({"required_plugins": ["chrome"], "required_binaries": [
                    {"name": "reader", "binproviders": "env,npm,apt", "min_version": "2",
                     "overrides": {"npm": {"install_args": ["{NODE_BINARY}-reader"]}}},
                    needs("own", ""), needs("any", "*")]}),
                &[],
            ),
            plugin(
                "zines",
                json!({"required_plugins": ["title"], "required_binaries": [
                    {"name": "reader", "binproviders": "apt", "min_version": "10.1"},
                    {"name": "reader", "min_version": "3"}, needs("any", "npm")]}),
                &[],
            ),
        ])
    }

    fn run<T>(test: impl FnOnce(&Catalogue, &Layers) -> T) -> T {
        let none = Values::new();
        let layers = Layers {
            crawl: &none,
            config: &none,
            base: &none,
        };
        test(&catalogue(), &layers)
    }

    fn names(wishes: &[Wish]) -> Vec<&str> {
        wishes.iter().map(|wish| wish.need.name.as_str()).collect()
    }

    #[test]
    fn programs_of_required_plugins_come_first_and_once() {
        run(|catalogue, layers| {
            let of = |name: &str| wishes(catalogue, &[name.to_owned()], layers);
            let title = of("Title").unwrap();
            assert_eq!(names(&title), ["node", "reader", "own", "any"]);
            assert_eq!(title[1].request.min_version.as_deref(), Some("2"));
            assert_eq!(title[1].request.plugin_name, "title");
            let overrides = json!({"npm": {"install_args": ["node-reader"]}});
            assert_eq!(json!(title[1].request.overrides), overrides);
            for name in ["reader", "zines"] {
                let all = of(name).unwrap();
                let reader = all.iter().find(|wish| wish.need.name == "reader").unwrap();
                assert_eq!(reader.need.min_version.as_deref(), Some("10.1"), "{name}");
                assert_eq!(reader.request.min_version, reader.need.min_version);
                assert_eq!(reader.request.plugin_name, "title");
            }
            assert_eq!(names(&of("reader").unwrap()), ["reader"]);
            let error = of("titel").unwrap_err();
            assert!(error.contains("close names: title"), "{error}");
        });
    }

    #[test]
    fn plugins_follow_those_that_they_require() {
        let of = |name: &str, required: &[&str]| {
            plugin(name, json!({"required_plugins": required}), &[])
        };
        let all = sample::catalogue([of("a", &["b", "c"]), of("b", &[]), of("c", &["b"])]);
        let found = with_required(&all, all.plugin("a").unwrap());
        let names: Vec<&str> = found.iter().map(|plugin| plugin.name.as_str()).collect();
        assert_eq!(names, ["b", "c", "a"]);
    }

    #[test]
    fn providers_are_tried_in_order_and_apt_is_manual() {
        run(|catalogue, layers| {
            let all = wishes(catalogue, &["title".to_owned()], layers).unwrap();
            let said = |at: usize| -> Vec<String> {
                let steps = steps(catalogue, &all[at]);
                let text = steps.iter().map(|step| match step {
                    Step::Run(_, hook) => hook.id.clone(),
                    Step::ByHand(_, hook) => format!("by hand: {}", hook.id),
                });
                text.collect()
            };
            let reader = [
                "on_Binary__05_npm",
                "on_BinaryRequest__10_npm",
                "by hand: on_BinaryRequest__13_apt",
            ];
            assert_eq!(said(1), reader);
            assert!(said(2).is_empty(), "only the search path is left");
            assert_eq!(said(3), reader, "* means every provider");
        });
    }

    #[test]
    fn program_requested_by_a_hook_gets_no_command_from_the_hook() {
        let told = |name: &str, providers: &str| {
            let asked = run(|catalogue, layers| advice_for(catalogue, name, providers, layers));
            asked.map(|source| source.to_string())
        };
        assert_eq!(told("gizmo", "env,apt").unwrap(), "apt install gizmo");
        for providers in ["pip", "npm,env", ""] {
            let text = told("evil", providers).unwrap();
            assert!(!text.contains("evil"), "{text}");
        }
        for bad in ["", "-x", "a b", "x;reboot", "../x", &"x".repeat(65)] {
            assert_eq!(told(bad, "apt"), None, "{bad}");
        }
    }

    #[test]
    fn advice_is_a_command_where_possible() {
        run(|catalogue, layers| {
            let all = wishes(catalogue, &["title".to_owned()], layers).unwrap();
            let title = catalogue.plugin("title").unwrap();
            let said = |at: usize| advice(catalogue, title, &all[at].need);
            assert_eq!(said(0).to_string(), "apt install nodejs");
            assert_eq!(said(1).to_string(), "apt install reader");
            let only_npm = Need {
                source: Source::Npm(vec!["x".into()]),
                ..all[1].need.clone()
            };
            let advised = advice(catalogue, title, &only_npm);
            assert_eq!(advised.to_string(), "archivist plugins install title");
            assert!(advised.is_command() && !said(2).is_command());
        });
    }

    #[test]
    fn installed_program_is_found_by_path_or_record() {
        let need = |on_path| Need {
            name: "python".into(),
            on_path,
            providers: Vec::new(),
            min_version: None,
            source: Source::Unknown,
        };
        let find = |name: &str| (name == "python3").then(|| PathBuf::from("/usr/bin/python3"));
        let none = |_: &str| None;
        let shelved = |name: &str| Some(PathBuf::from(name));
        let version = |_: &std::path::Path| Some("2.4-1".to_owned());
        let known = |find| Programs {
            find,
            version: &version,
        };
        assert!(is_there(&need(true), known(&find), &none));
        assert!(!is_there(&need(true), known(&none), &shelved));
        assert!(is_there(&need(false), known(&none), &shelved));
        assert!(!is_there(&need(false), known(&find), &none));
        for (least, want) in [("2.4", true), ("2.5", false)] {
            let min_version = Some(least.to_owned());
            let need = Need {
                min_version,
                ..need(true)
            };
            assert_eq!(is_there(&need, known(&find), &none), want, "{least}");
        }
    }
}
