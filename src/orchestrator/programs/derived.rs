//! What hooks report for later hooks: settings, programs, a server. Archived pages may have
//! influenced it, so that it reaches only hooks of the same crawl.

use crate::database::{BinaryRow, CrawlWork};
use crate::engine::crawl_plan::PlannedHook;
use crate::engine::state::Engine;
use crate::machine::library::{HERE, installed_names};
use crate::main_loop;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::programs::inspected;
use archivist_core::model::Owner;
use archivist_plugin::contract::record::SonicDaemonStart;
use archivist_plugin::programs::binary;
use archivist_plugin::programs::install;
use archivist_plugin::settings::derived;
use archivist_plugin::{
    Hook, HookFamily, HookName, Layers, Mode, Plugin, Selected, Values, resolve,
};
use archivist_shared::bus::documents::report::Reason;
use archivist_shared::bus::documents::work::{Derived, Found, HookTask, SonicWish};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Component, Path};

/// Longest version of a program, in characters.
const VERSION_MAX: usize = 100;
/// Where servers listen without a host in their request.
const LOOPBACK: &str = "127.0.0.1";

impl Engine {
    /// The servers that hooks of this crawl requested, and those that selected plugins expect: each
    /// is a daemon with its plugin.
    pub fn sonics(
        &self,
        config: &Values,
        selected: &Selected<'_>,
        layers: &Layers<'_>,
    ) -> Vec<PlannedHook> {
        let wanted = derived::requested_servers(config);
        let requested = wanted.filter_map(|(plugin, wanted)| {
            let plugin = self.catalogue.plugin(plugin)?;
            let host = wanted.host.as_deref().unwrap_or(LOOPBACK);
            let config = format!("--config={}", wanted.config_path);
            let values = self.located(plugin, layers);
            Some(self.sonic(plugin, values, host, wanted.port?, Some(config)))
        });
        let expecting = selected.plugins.iter().copied();
        let expected = expecting.filter_map(|plugin| {
            let values = self.located(plugin, layers);
            let (host, port) = expected_server(plugin, &values)?;
            Some(self.sonic(plugin, values, &host, port, None))
        });
        requested.chain(expected).collect()
    }

    fn located(&self, plugin: &Plugin, layers: &Layers<'_>) -> BTreeMap<String, Value> {
        let mut values = resolve(&self.catalogue, plugin, layers);
        binary::locate(&mut values, &|name| self.find(name));
        values
    }

    /// Without `config`, the program writes the configuration itself.
    fn sonic(
        &self,
        plugin: &Plugin,
        values: BTreeMap<String, Value>,
        host: &str,
        port: u16,
        config: Option<String>,
    ) -> PlannedHook {
        let task = HookTask::sonic(&plugin.name, self.settings.daemon_limit);
        let program = &self.programs.archivist;
        let mut command = vec![program.clone(), "hook".to_owned(), "sonic".to_owned()];
        command.extend(config);
        command.push(format!("--host={host}"));
        command.push(format!("--port={port}"));
        let name = HookName {
            family: HookFamily::CrawlSetup,
            order: u32::MAX,
            name: task.hook.clone(),
            mode: Mode::Daemon,
        };
        let hook = Hook {
            plugin: plugin.name.clone(),
            id: task.hook.clone(),
            file: program.clone().into(),
            name,
            unit_part: task.hook.clone(),
            interpreter: None,
        };
        PlannedHook {
            task,
            hook,
            plugin: plugin.clone(),
            values,
            request: None,
            command: Some(command),
        }
    }
}

/// Returns host and port at which the hooks of a plugin expect a server on this machine.
fn expected_server(plugin: &Plugin, values: &BTreeMap<String, Value>) -> Option<(String, u16)> {
    let host = values.get("SEARCH_BACKEND_SONIC_HOST_NAME");
    let host = match host.and_then(Value::as_str) {
        None | Some("") => LOOPBACK,
        Some(host) => host,
    };
    let is_loopback = |address: IpAddr| address.is_loopback();
    let is_here = host == "localhost" || host.parse().is_ok_and(is_loopback);
    let port = values.get("SEARCH_BACKEND_SONIC_PORT")?.as_u64()?;
    let port = u16::try_from(port).ok()?;
    (plugin.expects_server() && is_here).then(|| (host.to_owned(), port))
}

/// Applies what a hook of a crawl's setup derived. After the first page may start it is too
/// late: one crawl has one plan for all of its pages.
pub(crate) fn take_derived(
    turn: &mut Turn<'_>,
    crawl: CrawlWork,
    key: &str,
    said: &Derived,
) -> TurnResult<()> {
    if crawl.ready || (said.settings.is_empty() && said.sonic.is_none()) {
        return Ok(());
    }
    let directory = main_loop::crawl_directory(turn, &crawl);
    let mut config = crawl.config.clone();
    for (name, value) in &said.settings {
        let taken = derived::set_machine(&mut config, &turn.engine.catalogue, name, value);
        if let Err(why) = taken {
            let name: String = name.escape_debug().take(VERSION_MAX).collect();
            let key = key.to_owned();
            let why = why.to_string();
            let crawl = crawl.id;
            turn.log(move || {
                tracing::info!(
                    archivist_crawl_id = crawl.0,
                    "crawl {crawl} {key}: setting '{name}' is ignored: {why}"
                )
            });
        }
    }
    if let (Some(wish), Some((plugin, _))) = (&said.sonic, key.split_once('/')) {
        let index =
            turn.engine.catalogue.plugin(plugin).and_then(|plugin| turn.engine.index_of(plugin));
        match refusal(wish, index.as_ref().unwrap_or(&directory)) {
            None => derived::set_requested_server(&mut config, plugin, &start(wish)),
            Some(why) => {
                let key = key.to_owned();
                let crawl = crawl.id;
                turn.log(move || {
                    tracing::warn!(
                        archivist_crawl_id = crawl.0,
                        "crawl {crawl} {key}: failed to start its server: {why}, ignoring"
                    )
                });
            }
        }
    }
    if config != crawl.config {
        turn.tx.set_crawl_config(crawl.id, &config)?;
        turn.engine.forget(crawl.id);
    }
    Ok(())
}

/// Records missing programs that a hook requested. They are not installed; `archivist why`
/// shows how to install them.
pub(crate) fn take_requests(
    turn: &mut Turn<'_>,
    crawl: &mut CrawlWork,
    key: &str,
    wanted: &BTreeMap<String, String>,
) -> TurnResult<()> {
    if wanted.is_empty() || installed_names(crawl).is_some() {
        return Ok(());
    }
    let (catalogue, none) = (&turn.engine.catalogue, Values::new());
    let layers = turn.engine.layers(&none, &none);
    let mut config = crawl.config.clone();
    for (name, providers) in wanted {
        let there = binary::find_any(name, &|name| turn.engine.find(name)).is_some();
        let advice = install::advice_for(catalogue, name, providers, &layers);
        if let (false, Some(advice)) = (there, advice) {
            derived::set_requested_program(&mut config, name, &advice.to_string());
        }
    }
    if config != crawl.config {
        let id = crawl.id;
        let key = key.to_owned();
        turn.log(move || {
            tracing::info!(
                archivist_crawl_id = id.0,
                "crawl {id} {key}: requested programs are missing; see: archivist why {id}"
            )
        });
        turn.tx.set_crawl_config(id, &config)?;
        crawl.config = config;
    }
    Ok(())
}

/// The reasons about programs that hooks requested and that are still missing.
pub(crate) fn why_wanted(turn: &Turn<'_>, id: Owner, to: &mut Vec<Reason>) -> TurnResult<()> {
    let crawl = main_loop::crawl_of_owner(turn, id)?;
    for (name, advice) in derived::requested_programs(&crawl.config) {
        if binary::find_any(name, &|name| turn.engine.find(name)).is_none() {
            let text =
                format!("hooks requested the program '{name}', which is not installed: {advice}");
            let code = "program".to_owned();
            to.push(Reason { code, text, until: None });
        }
    }
    Ok(())
}

/// Records the versions of programs that hooks report. A hook must not choose the programs of
/// other hooks: only those at the path that the orchestrator finds count.
pub(crate) fn take_programs(turn: &mut Turn<'_>, said: &[Found]) -> TurnResult<()> {
    for found in said {
        let known = turn.tx.binary(&found.name)?;
        if known.is_some_and(|row| row.version.is_some()) {
            continue;
        }
        let path = binary::find_any(&found.name, &|name| turn.engine.find(name));
        let Some(path) = path.filter(|path| path == Path::new(&found.abspath)) else {
            continue;
        };
        let version = found.version.as_ref().map(|text| {
            let plain = text.chars().filter(|c| !c.is_control());
            plain.take(VERSION_MAX).collect()
        });
        turn.tx.record_binary(&BinaryRow {
            name: found.name.clone(),
            abspath: found.abspath.clone(),
            version,
            sha256: None,
            provider: HERE.to_owned(),
            env: Values::new(),
            stamp: None,
            found_at: turn.now,
        })?;
        inspected::inspect(turn, &[(found.name.clone(), path)], None)?;
    }
    Ok(())
}

fn start(wish: &SonicWish) -> SonicDaemonStart {
    SonicDaemonStart {
        url: String::new(),
        host: wish.host.clone(),
        port: wish.port,
        config_path: wish.config_path.clone(),
        output_dir: None,
    }
}

/// Why this wish is not one of a hook with this directory for its data: that of the crawl, or one
/// of the archive.
fn refusal(wish: &SonicWish, directory: &Path) -> Option<&'static str> {
    let path = Path::new(&wish.config_path);
    let climbs = path.components().any(|part| part == Component::ParentDir);
    if climbs || !path.starts_with(directory) {
        return Some("the configuration is not in DATA_DIR");
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || ".:-".contains(c);
    match &wish.host {
        Some(host) if host.len() > 253 || !host.chars().all(plain) => {
            Some("the host is not a name or address")
        }
        _ if wish.port.is_none_or(|port| port == 0) => Some("the port is missing"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_plugin::sample::{catalogue, plugin};
    use serde_json::json;

    #[test]
    fn server_is_expected_on_this_machine_unless_a_hook_requests_it() {
        let settings = |host: &str| {
            json!({"properties": {"SONIC_BINARY": {"default": "sonic"},
                "SEARCH_BACKEND_SONIC_HOST_NAME": {"default": host},
                "SEARCH_BACKEND_SONIC_PORT": {"type": "integer", "default": 1491},
                "SEARCH_BACKEND_SONIC_PASSWORD": {"default": "x"}}})
        };
        let page = "on_Snapshot__91_index.py";
        let of = |host: &str, hooks: &[&str]| {
            let plugin = plugin("search", settings(host), hooks);
            let catalogue = catalogue([plugin.clone()]);
            let none = Values::new();
            let layers = Layers { crawl: &none, persona: &none, config: &none, base: &none };
            expected_server(&plugin, &resolve(&catalogue, &plugin, &layers))
        };
        let found = |host: &str| Some((host.to_owned(), 1491));
        assert_eq!(of("127.0.0.1", &[page]), found("127.0.0.1"));
        assert_eq!(of("localhost", &[page]), found("localhost"));
        assert_eq!(of("", &[page]), found("127.0.0.1"));
        assert_eq!(of("search.example.org", &[page]), None, "elsewhere");
        let requested = ["on_CrawlSetup__55_start.py", page];
        assert_eq!(of("127.0.0.1", &requested), None, "by a hook");
        assert_eq!(of("127.0.0.1", &[]), None, "no hook needs it");
    }

    #[test]
    fn server_configuration_must_be_in_the_crawl_directory() {
        let wish = |path: &str, host: &str, port: u16| SonicWish {
            config_path: path.into(),
            host: Some(host.into()),
            port: Some(port),
        };
        let own = Path::new("/archive/c1");
        let of = |path, host, port| refusal(&wish(path, host, port), own);
        assert_eq!(of("/archive/c1/sonic/config.cfg", "127.0.0.1", 1491), None);
        assert_eq!(of("/archive/c1/sonic/config.cfg", "::1", 1), None);
        for (path, host, port) in [
            ("/archive/c10/sonic.cfg", "localhost", 1491),
            ("/archive/c1/../c2/sonic.cfg", "localhost", 1491),
            ("sonic.cfg", "localhost", 1491),
            ("/archive/c1/sonic.cfg", "a b", 1491),
            ("/archive/c1/sonic.cfg", "localhost", 0),
        ] {
            assert!(of(path, host, port).is_some(), "{path} {host} {port}");
        }
    }
}
