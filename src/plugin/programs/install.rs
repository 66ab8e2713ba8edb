//! Installation of required programs: which provider hooks run, and in which order. Programs are
//! only installed on request.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::catalogue::name::{HookFamily, Mode};
use crate::catalogue::{Catalogue, Hook, Plugin};
use crate::contract::arguments::BinaryRequest;
use crate::contract::environment::MACHINE;
use crate::programs::binary;
use crate::programs::binary::{Programs, Source};
use crate::programs::requirement::{Requirement, split_providers};
use crate::settings::values::{Layers, resolve};
use archivist_core::model::{Need, TAB};
use archivist_core::text::{did_you_mean, similar};

/// Start of the URL of a crawl that installs programs.
pub const URL: &str = "archivist:install/";

/// Providers that cannot install a program without root, and the search path.
const PROVIDERS_WITHOUT_INSTALL: [&str; 4] = ["env", "*", "apt", "brew"];

/// Name of the directory with the plugins of `archivist plugins add abx`.
pub const ABX_DIRECTORY: &str = "abx-plugins";

/// Provider of browser extensions, a plugin in releases of abx-plugins before 1.12.
const EXTENSION_PROVIDER: &str = "chromewebstore";

/// Longest name of a program that a hook may request, in bytes.
const PROGRAM_NAME_MAX_BYTES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum InstallStep<'a> {
    Run(&'a Plugin, &'a Hook),
    /// Requires root, which hooks do not have: the user must run this.
    Manual(&'a Plugin, &'a Hook),
}

/// Provider hooks of a plugin, of both generations, in order.
pub fn provider_hooks(plugin: &Plugin) -> impl Iterator<Item = &Hook> {
    let families = [HookFamily::BinaryRequest, HookFamily::Binary];
    plugin.hooks.iter().filter(move |hook| families.contains(&hook.name.family))
}

/// How to get a program that `plugin` requires: from the installed providers, in the order in which an
/// installation tries them.
pub fn advice(catalogue: &Catalogue, plugin: &Plugin, requirement: &Requirement) -> Source {
    let helps = |name: &String| {
        let provider = catalogue.plugin(name);
        !PROVIDERS_WITHOUT_INSTALL.contains(&name.as_str())
            && provider.is_some_and(|provider| provider_hooks(provider).next().is_some())
    };
    match Source::of(requirement, catalogue.distribution) {
        _ if precedes_apt(catalogue, requirement) => Source::Archivist(plugin.name.clone()),
        source @ (Source::Debian(_) | Source::Browser) => source,
        _ if requirement.name.starts_with('/') => Source::Unknown,
        _ if requirement.providers.iter().any(helps) => Source::Archivist(plugin.name.clone()),
        Source::Pip(_) | Source::Npm(_) if is_of_abx(plugin) => Source::PluginSet,
        Source::Provider(name) if name == EXTENSION_PROVIDER && is_of_abx(plugin) => {
            Source::PluginSet
        }
        other => other,
    }
}

/// Whether `archivist plugins add abx` installed the plugin. Its command installs modules, programs
/// and extensions for these plugins, where their hooks look for them.
fn is_of_abx(plugin: &Plugin) -> bool {
    let set = plugin.dir.parent().and_then(Path::file_name);
    set.is_some_and(|name| name == ABX_DIRECTORY)
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
        let mut requests = requests_of(catalogue, plugin, layers);
        if let Some(request) = requests.find(|request| request.requirement.name == name) {
            return Some(advice(catalogue, plugin, &request.requirement));
        }
    }
    let requirement = Requirement {
        name: name.to_owned(),
        providers: split_providers(asked),
        ..Requirement::default()
    };
    Some(match Source::of(&requirement, catalogue.distribution) {
        source @ (Source::Debian(_) | Source::Browser) => source,
        _ => Source::Unknown,
    })
}

/// A plugin and all plugins that it requires, itself last.
pub fn with_required<'a>(catalogue: &'a Catalogue, plugin: &'a Plugin) -> Vec<&'a Plugin> {
    let mut found = Vec::new();
    catalogue.append_required(plugin, &mut BTreeSet::new(), &mut found);
    found
}

/// Whether a plugin requires another one with a daemon, such as a browser: its hooks work with that
/// daemon.
pub fn uses_daemon(catalogue: &Catalogue, plugin: &Plugin) -> bool {
    let is_daemon = |hook: &Hook| hook.name.mode == Mode::Daemon;
    let required = with_required(catalogue, plugin).into_iter();
    required
        .filter(|required| required.name != plugin.name)
        .any(|required| required.hooks.iter().any(is_daemon))
}

/// Keys of the daemons for which the hooks of a plugin wait: those of the plugin itself and of the
/// plugins that it requires. Only a daemon with `.daemon.bg` in its name counts: its first line says that
/// it is ready. A plugin that needs a site and no page waits for none, because it asks the site itself.
pub fn awaited(catalogue: &Catalogue, plugin: &Plugin, needs: Option<Need>) -> Vec<String> {
    if needs == Some(Need::Site) {
        return Vec::new();
    }
    let mut required = with_required(catalogue, plugin);
    if needs == Some(Need::Page) {
        required.extend(catalogue.plugin(TAB));
    }
    let announced = |hook: &&Hook| hook.id.ends_with(".daemon.bg");
    let hooks = required.into_iter().flat_map(|plugin| &plugin.hooks);
    let keys: BTreeSet<String> = hooks.filter(announced).map(Hook::key).collect();
    keys.into_iter().collect()
}

/// Raises the required version to `least` if the request accepts older versions.
fn raise_min_version(request: &mut BinaryRequest, least: Option<String>) {
    let own = &mut request.requirement;
    if let Some(least) = least.filter(|least| own.accepts_older_than(least)) {
        own.min_version = Some(least);
    }
}

/// Requests for every program that `names` require, each the name of a plugin or of a program, in
/// the order of installation. Each program is requested once: for the first plugin that requires
/// it, in the newest of the required versions. Includes installed programs.
pub fn requests(
    catalogue: &Catalogue,
    names: &[String],
    layers: &Layers,
) -> Result<Vec<BinaryRequest>, String> {
    let mut found: Vec<BinaryRequest> = Vec::new();
    let mut add = |request: BinaryRequest| {
        let own = &request.requirement;
        let same = |known: &&mut BinaryRequest| known.requirement.name == own.name;
        match found.iter_mut().find(same) {
            Some(known) => raise_min_version(known, own.min_version.clone()),
            None => found.push(request),
        }
    };
    for name in names {
        let mut plugins = catalogue.plugins.iter();
        if let Some(plugin) = plugins.find(|plugin| plugin.name.eq_ignore_ascii_case(name)) {
            for plugin in with_required(catalogue, plugin) {
                requests_of(catalogue, plugin, layers).for_each(&mut add);
            }
            continue;
        }
        let plugins = catalogue.plugins.iter();
        let mut matching = plugins
            .flat_map(|plugin| requests_of(catalogue, plugin, layers))
            .filter(|request| request.requirement.name == *name)
            .peekable();
        if matching.peek().is_none() {
            return Err(unknown(catalogue, name));
        }
        matching.for_each(&mut add);
    }
    Ok(found)
}

fn unknown(catalogue: &Catalogue, name: &str) -> String {
    let similar = similar(name, catalogue.plugins.iter().map(|p| p.name.as_str()));
    let hint = did_you_mean(&similar);
    format!("no plugin is named '{name}', and none needs a program of that name{hint}")
}

/// Requests for the programs that one plugin requires itself.
pub fn requests_of<'a>(
    catalogue: &Catalogue,
    plugin: &'a Plugin,
    layers: &Layers,
) -> impl Iterator<Item = BinaryRequest> + use<'a> {
    let resolved = resolve(catalogue, plugin, layers);
    let entries = plugin.schema.required_binaries.iter();
    entries.filter_map(move |entry| {
        let requirement = binary::requirement(plugin, entry, &resolved)?;
        Some(BinaryRequest {
            binary_id: requirement.name.clone(),
            requirement,
            machine_id: MACHINE.to_owned(),
            plugin_name: plugin.name.clone(),
            ..BinaryRequest::default()
        })
    })
}

/// Whether a program is installed in a sufficient version. `in_library` returns the path of a
/// program that a provider reported and that still exists, for programs off the search path.
pub fn is_installed(
    requirement: &Requirement,
    known: Programs<'_>,
    in_library: &dyn Fn(&str) -> Option<PathBuf>,
) -> bool {
    let found = if requirement.on_path() {
        binary::find_any(&requirement.name, known.find)
    } else {
        in_library(&requirement.name)
    };
    let version = |path: &PathBuf| (known.version)(path);
    found.is_some_and(|path| !version(&path).is_some_and(|text| requirement.is_too_old(&text)))
}

/// The ways to get a program: its providers in their order, each with its hooks in their order.
/// Excludes the search path (`env`), which was searched before.
pub fn steps<'a>(catalogue: &'a Catalogue, requirement: &Requirement) -> Vec<InstallStep<'a>> {
    let mut seen = BTreeSet::new();
    let mut steps = Vec::new();
    for name in &requirement.providers {
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
                "apt" => steps.push(InstallStep::Manual(plugin, hook)),
                _ => steps.push(InstallStep::Run(plugin, hook)),
            }
        }
    }
    steps
}

/// Whether a provider that needs no root precedes apt in the list of a program, so that it is tried
/// before the user is asked to install a package.
fn precedes_apt(catalogue: &Catalogue, requirement: &Requirement) -> bool {
    let before = steps(catalogue, requirement).into_iter();
    let mut before = before.map_while(|step| match step {
        InstallStep::Run(plugin, _) => Some(plugin),
        InstallStep::Manual(..) => None,
    });
    !requirement.name.starts_with('/')
        && before.any(|plugin| !PROVIDERS_WITHOUT_INSTALL.contains(&plugin.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::sample::plugin;
    use crate::settings::values::Values;
    use serde_json::json;

    #[test]
    fn hooks_use_the_daemons_of_required_plugins() {
        let requires = |name: &str| json!({"required_plugins": [name]});
        let catalogue = sample::catalogue([
            plugin("browser", json!({}), &["on_CrawlSetup__90_browser.daemon.bg.sh"]),
            plugin("tab", requires("browser"), &["on_Snapshot__10_tab.sh"]),
            plugin("title", requires("tab"), &["on_Snapshot__54_title.sh"]),
            plugin("text", requires("base"), &["on_Snapshot__58_text.sh"]),
        ]);
        let uses = |name| uses_daemon(&catalogue, catalogue.plugin(name).unwrap());
        assert!(uses("tab") && uses("title"));
        assert!(!uses("browser") && !uses("text"));
    }

    #[test]
    fn hooks_await_the_daemons_that_say_when_they_are_ready() {
        let requires = |name: &str| json!({"required_plugins": [name]});
        let catalogue = sample::catalogue([
            plugin(TAB, json!({}), &["on_Snapshot__10_tab.daemon.bg.sh"]),
            plugin(
                "chrome",
                json!({}),
                &["on_Snapshot__10_tab.daemon.bg.js", "on_Snapshot__30_go.js"],
            ),
            plugin("title", requires("chrome"), &["on_Snapshot__54_title.js"]),
            plugin("old", json!({}), &["on_Snapshot__10_old.bg.sh"]),
            plugin("file", requires("old"), &["on_Snapshot__50_file.sh"]),
        ]);
        let of = |name, needs| awaited(&catalogue, catalogue.plugin(name).unwrap(), needs);
        let tab = "chrome/on_Snapshot__10_tab.daemon.bg";
        assert_eq!(of("title", None), [tab]);
        assert_eq!(of("chrome", None), [tab]);
        assert!(of("title", Some(Need::Site)).is_empty());
        assert_eq!(of("file", Some(Need::Page)), ["chromium/on_Snapshot__10_tab.daemon.bg"]);
        assert!(of("file", None).is_empty());
    }

    fn catalogue() -> Catalogue {
        let needs = |name: &str, providers: &str| json!({"name": name, "binproviders": providers});
        sample::catalogue([
            plugin("apt", json!({}), &["on_BinaryRequest__13_apt.py"]),
            plugin("env", json!({}), &["on_BinaryRequest__00_env.py"]),
            plugin("npm", json!({}), &["on_BinaryRequest__10_npm.py", "on_Binary__05_npm.py"]),
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
        let layers = Layers { crawl: &none, persona: &none, config: &none, base: &none };
        test(&catalogue(), &layers)
    }

    fn names(requests: &[BinaryRequest]) -> Vec<&str> {
        let requests = requests.iter();
        requests.map(|one| one.requirement.name.as_str()).collect()
    }

    #[test]
    fn programs_of_required_plugins_come_first_and_once() {
        run(|catalogue, layers| {
            let of = |name: &str| requests(catalogue, &[name.to_owned()], layers);
            let title = of("Title").unwrap();
            assert_eq!(names(&title), ["node", "reader", "own", "any"]);
            assert_eq!(title[1].requirement.min_version.as_deref(), Some("2"));
            assert_eq!(title[1].plugin_name, "title");
            let overrides = json!({"npm": {"install_args": ["node-reader"]}});
            assert_eq!(json!(title[1].requirement.overrides), overrides);
            for name in ["reader", "zines"] {
                let all = of(name).unwrap();
                let reader = all.iter().find(|one| one.requirement.name == "reader").unwrap();
                assert_eq!(reader.requirement.min_version.as_deref(), Some("10.1"), "{name}");
                assert_eq!(reader.plugin_name, "title");
            }
            assert_eq!(names(&of("reader").unwrap()), ["reader"]);
            let error = of("titel").unwrap_err();
            assert!(error.contains("did you mean title"), "{error}");
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
            let all = requests(catalogue, &["title".to_owned()], layers).unwrap();
            let shown = |at: usize| -> Vec<String> {
                let steps = steps(catalogue, &all[at].requirement);
                let text = steps.iter().map(|step| match step {
                    InstallStep::Run(_, hook) => hook.id.clone(),
                    InstallStep::Manual(_, hook) => format!("manual: {}", hook.id),
                });
                text.collect()
            };
            let reader = [
                "on_Binary__05_npm",
                "on_BinaryRequest__10_npm",
                "manual: on_BinaryRequest__13_apt",
            ];
            assert_eq!(shown(1), reader);
            assert!(shown(2).is_empty(), "only the search path is left");
            assert_eq!(shown(3), reader, "* means every provider");
        });
    }

    #[test]
    fn providers_before_apt_are_tried_first() {
        run(|catalogue, _| {
            let precedes = |name: &str, providers: &str| {
                let requirement = Requirement {
                    name: name.into(),
                    providers: split_providers(providers),
                    ..Requirement::default()
                };
                precedes_apt(catalogue, &requirement)
            };
            assert!(precedes("reader", "env,npm,brew,apt"));
            assert!(precedes("reader", "npm"));
            assert!(!precedes("reader", "env,apt,npm"));
            assert!(!precedes("reader", "env,pip,apt"), "pip is no plugin here");
            assert!(!precedes("reader", "env,brew,apt"));
            assert!(!precedes("/opt/reader", "npm,apt"), "the user chose a path");
        });
    }

    #[test]
    fn program_requested_by_a_hook_gets_no_command_from_the_hook() {
        let suggested = |name: &str, providers: &str| {
            let asked = run(|catalogue, layers| advice_for(catalogue, name, providers, layers));
            asked.map(|source| source.to_string())
        };
        assert_eq!(suggested("gizmo", "env,apt").unwrap(), "apt install gizmo");
        for providers in ["pip", "npm,env", ""] {
            let text = suggested("evil", providers).unwrap();
            assert!(!text.contains("evil"), "{text}");
        }
        for bad in ["", "-x", "a b", "x;reboot", "../x", &"x".repeat(65)] {
            assert_eq!(suggested(bad, "apt"), None, "{bad}");
        }
    }

    #[test]
    fn advice_is_a_command_where_possible() {
        run(|catalogue, layers| {
            let all = requests(catalogue, &["title".to_owned()], layers).unwrap();
            let title = catalogue.plugin("title").unwrap();
            let shown = |at: usize| advice(catalogue, title, &all[at].requirement);
            assert_eq!(shown(0).to_string(), "apt install nodejs");
            assert_eq!(shown(1).to_string(), "archivist plugins install title");
            let apt_first = Requirement {
                providers: vec!["env".into(), "apt".into(), "npm".into()],
                ..all[1].requirement.clone()
            };
            let advised = advice(catalogue, title, &apt_first);
            assert_eq!(advised.to_string(), "apt install reader");
            let only_npm = Requirement {
                providers: vec!["env".into(), "npm".into()],
                ..all[1].requirement.clone()
            };
            assert!(matches!(Source::of(&only_npm, catalogue.distribution), Source::Npm(_)));
            let advised = advice(catalogue, title, &only_npm);
            assert_eq!(advised.to_string(), "archivist plugins install title");
            assert!(advised.is_command() && !shown(2).is_command());
        });
    }

    #[test]
    fn what_the_plugin_set_brings_is_advised_as_the_plugin_set() {
        let advised = |directory: &str, provider: &str| {
            let mut plugin = plugin("ublock", json!({}), &["on_Snapshot__12_ublock.js"]);
            plugin.dir = Path::new(directory).join("ublock");
            let catalogue = sample::catalogue([plugin.clone()]);
            let requirement = Requirement {
                name: "gizmo".into(),
                providers: split_providers(provider),
                ..Requirement::default()
            };
            advice(&catalogue, &plugin, &requirement).to_string()
        };
        let set = "/var/lib/archivist/abx-plugins";
        for provider in ["chromewebstore", "env,pnpm", "env,uv", "pip"] {
            assert_eq!(advised(set, provider), "archivist plugins add abx");
        }
        assert_eq!(advised(set, "env,apt"), "apt install gizmo");
        let cargo = "cargo install --root /usr/local gizmo";
        assert_eq!(advised(set, "env,bash,brew,cargo"), cargo);
        assert_eq!(advised("/etc/archivist/plugins", "uv"), "pip install gizmo");
    }

    #[test]
    fn installed_program_is_found_by_path_or_record() {
        let requirement = |provider: &str| Requirement {
            name: "python".into(),
            providers: split_providers(provider),
            ..Requirement::default()
        };
        let (on_path, elsewhere) = (requirement("env"), requirement("pip"));
        let find = |name: &str| (name == "python3").then(|| PathBuf::from("/usr/bin/python3"));
        let none = |_: &str| None;
        let shelved = |name: &str| Some(PathBuf::from(name));
        let version = |_: &std::path::Path| Some("2.4-1".to_owned());
        let known = |find| Programs { find, version: &version };
        assert!(is_installed(&on_path, known(&find), &none));
        assert!(!is_installed(&on_path, known(&none), &shelved));
        assert!(is_installed(&elsewhere, known(&none), &shelved));
        assert!(!is_installed(&elsewhere, known(&find), &none));
        for (least, want) in [("2.4", true), ("2.5", false)] {
            let min_version = Some(least.to_owned());
            let requirement = Requirement { min_version, ..on_path.clone() };
            assert_eq!(is_installed(&requirement, known(&find), &none), want, "{least}");
        }
    }
}
