//! What the hooks of a crawl derive for those after them. It is kept among the crawl's settings,
//! under names with a slash, which nobody can set.

use crate::catalogue::Catalogue;
use crate::contract::record::SonicDaemonStart;
use crate::settings::general::RUNNER_KEYS;
use crate::settings::parse::typed;
use crate::settings::values::Values;

const MACHINE: &str = "machine/";
const SONIC: &str = "sonic/";
const WANTED: &str = "wanted/";

/// Longest value of a setting, in bytes.
const VALUE_MAX: usize = 4096;
/// Settings that a crawl takes from its hooks.
const SETTINGS_MAX: usize = 100;

/// Variables that would change what the hooks after it are, not what they do. Some plugins have
/// settings of these names.
const NOT_FOR_HOOKS: [&str; 14] = [
    "ABX_RUNTIME",
    "ACTIVE_PERSONA",
    "BASH_ENV",
    "ENV",
    "EXTRA_CONTEXT",
    "HOME",
    "IFS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_V8_COVERAGE",
    "PATH",
    "PERSONAS_DIR",
    "TMPDIR",
    "VIRTUAL_ENV",
];
const NO_PREFIX_FOR_HOOKS: [&str; 4] = ["LD_", "PYTHON", "UV_", "GIT_CONFIG"];

/// Whether this is no setting of a user.
pub fn is_derived(key: &str) -> bool {
    key.contains('/')
}

/// What Machine records set, of the settings of a crawl.
pub fn machine(config: &Values) -> impl Iterator<Item = (&str, &str)> {
    let pairs = config.iter();
    pairs.filter_map(|(key, value)| Some((key.strip_prefix(MACHINE)?, value.as_str())))
}

/// The settings of a crawl with those behind them that were derived.
pub fn with_machine(config: &Values) -> Values {
    let mut values: Values = machine(config)
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    values.extend(config.clone());
    values
}

/// Lays a setting of a Machine record among those of a crawl; why not, where it is refused.
pub fn set_machine(
    config: &mut Values,
    catalogue: &Catalogue,
    key: &str,
    value: &str,
) -> Result<(), &'static str> {
    let mut properties = catalogue
        .plugins
        .iter()
        .flat_map(|plugin| &plugin.schema.properties);
    let known = properties.find(|(own, property)| property.names(own).any(|name| name == key));
    let Some((own, property)) = known else {
        return Err("no plugin has this setting");
    };
    if property.names(own).any(|name| config.contains_key(name)) {
        return Ok(()); // somebody chose it for this crawl
    }
    if key.ends_with("_ENABLED") || own.ends_with("_ENABLED") {
        return Err("which plugins run is not for hooks to say");
    }
    let refused = |prefix: &&str| key.starts_with(prefix);
    if RUNNER_KEYS.contains(&key)
        || NOT_FOR_HOOKS.contains(&key)
        || NO_PREFIX_FOR_HOOKS.iter().any(refused)
    {
        return Err("this is not for hooks to set");
    }
    if value.len() > VALUE_MAX || value.contains(char::is_control) {
        return Err("the value is too long, or no plain text");
    }
    if typed(property.kind, value).is_none() {
        return Err("the value is not of the setting's type");
    }
    let name = format!("{MACHINE}{key}");
    if !config.contains_key(&name) && machine(config).count() >= SETTINGS_MAX {
        return Err("there are too many of them");
    }
    config.insert(name, value.to_owned());
    Ok(())
}

/// The programs that hooks asked for, with what to do about it.
pub fn wanted(config: &Values) -> impl Iterator<Item = (&str, &str)> {
    let pairs = config.iter();
    pairs.filter_map(|(key, value)| Some((key.strip_prefix(WANTED)?, value.as_str())))
}

/// Keeps that a program is asked for; `advice` says what to do about it.
pub fn set_wanted(config: &mut Values, name: &str, advice: &str) {
    if wanted(config).count() < SETTINGS_MAX {
        config.insert(format!("{WANTED}{name}"), advice.to_owned());
    }
}

/// The servers that hooks asked for, with the plugins whose they are.
pub fn sonics(config: &Values) -> impl Iterator<Item = (&str, SonicDaemonStart)> {
    let pairs = config.iter();
    pairs.filter_map(|(key, value)| {
        let plugin = key.strip_prefix(SONIC)?;
        Some((plugin, serde_json::from_str(value).ok()?))
    })
}

/// Keeps the request of a plugin's hook for a server.
pub fn set_sonic(config: &mut Values, plugin: &str, wanted: &SonicDaemonStart) {
    if let Ok(text) = serde_json::to_string(wanted) {
        config.insert(format!("{SONIC}{plugin}"), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::sample::plugin;
    use serde_json::json;

    fn catalogue() -> Catalogue {
        let text = |alias: &str| json!({"type": "string", "x-aliases": [alias]});
        sample::catalogue([plugin(
            "chrome",
            json!({"properties": {
                "CHROME_BINARY": text("CHROMIUM"), "PATH": text("P"), "NODE_PATH": text("N"),
                "LD_PRELOAD": text("L"), "CHROME_TIMEOUT": {"type": "integer"},
                "CHROME_ENABLED": {"type": "boolean", "x-aliases": ["USE_CHROME"]}}}),
            &[],
        )])
    }

    #[test]
    fn what_hooks_may_set() {
        let (catalogue, mut config) = (catalogue(), Values::new());
        let mut set = |key: &str, value: &str| set_machine(&mut config, &catalogue, key, value);
        assert_eq!(set("CHROME_BINARY", "/opt/chrome"), Ok(()));
        assert_eq!(set("CHROMIUM", "/opt/chromium"), Ok(()));
        assert_eq!(set("CHROME_TIMEOUT", "30"), Ok(()));
        for (key, value) in [
            ("CHROME_TIMEOUT", "soon"),
            ("CHROME_BINARY", "a\nb"),
            ("CHROME_BINARY", &"x".repeat(5000)),
            ("CHROME_ENABLED", "false"),
            ("USE_CHROME", "false"),
            ("PATH", "/tmp/evil"),
            ("NODE_PATH", "/tmp/evil"),
            ("LD_PRELOAD", "/tmp/evil.so"),
            ("LD_LIBRARY_PATH", "/tmp"),
            ("CRAWL_MAX_URLS", "0"),
            ("URL_ALLOWLIST", "."),
            ("sonic/x", "{}"),
            ("", ""),
        ] {
            assert!(set(key, value).is_err(), "{key}={value}");
        }
    }

    #[test]
    fn the_user_has_the_last_word() {
        let catalogue = catalogue();
        let mut config = Values::from([("CHROME_TIMEOUT".to_owned(), "5".to_owned())]);
        set_machine(&mut config, &catalogue, "CHROME_TIMEOUT", "30").unwrap();
        set_machine(&mut config, &catalogue, "CHROME_BINARY", "/a").unwrap();
        set_machine(&mut config, &catalogue, "CHROME_BINARY", "/b").unwrap();
        let all = with_machine(&config);
        assert_eq!(
            (&*all["CHROME_TIMEOUT"], &*all["CHROME_BINARY"]),
            ("5", "/b")
        );
        let keys: Vec<&String> = config.keys().collect();
        assert_eq!(keys, ["CHROME_TIMEOUT", "machine/CHROME_BINARY"]);
        assert!(!is_derived(keys[0]) && is_derived(keys[1]));
    }

    #[test]
    fn there_is_an_end_to_it() {
        let many: serde_json::Map<_, _> = (0..200)
            .map(|n| (format!("X_{n}"), json!({"type": "string"})))
            .collect();
        let catalogue = sample::catalogue([plugin("x", json!({"properties": many}), &[])]);
        let mut config = Values::new();
        let taken = (0..200)
            .filter(|n| set_machine(&mut config, &catalogue, &format!("X_{n}"), "v").is_ok())
            .count();
        assert_eq!((taken, config.len()), (SETTINGS_MAX, SETTINGS_MAX));
    }

    #[test]
    fn servers() {
        let wanted = SonicDaemonStart {
            url: "tcp://127.0.0.1:1491".into(),
            host: Some("127.0.0.1".into()),
            port: Some(1491),
            config_path: "/c/sonic.cfg".into(),
            output_dir: None,
        };
        let mut config = Values::from([("sonic/broken".to_owned(), "{".to_owned())]);
        set_sonic(&mut config, "search_backend_sonic", &wanted);
        let found: Vec<_> = sonics(&config).collect();
        assert_eq!(found, [("search_backend_sonic", wanted)]);
    }
}
