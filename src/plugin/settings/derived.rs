//! Values that hooks of a crawl derive for later hooks. They are stored with the crawl's settings,
//! under names with a slash, which users cannot set.

use crate::catalogue::Catalogue;
use crate::contract::record::SonicDaemonStart;
use crate::settings::general::RUNNER_KEYS;
use crate::settings::parse::typed;
use crate::settings::values::Values;

const MACHINE_PREFIX: &str = "machine/";
const SERVER_PREFIX: &str = "sonic/";
const REQUESTED_PREFIX: &str = "wanted/";

/// Longest value of a setting in bytes.
const VALUE_MAX_BYTES: usize = 4096;
/// Largest number of settings that a crawl accepts from its hooks.
const SETTINGS_MAX: usize = 100;

/// Variables that would change how later programs run instead of what they do. Some plugins have
/// settings with these names.
const FORBIDDEN_FOR_HOOKS: [&str; 14] = [
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
const FORBIDDEN_PREFIXES: [&str; 4] = ["LD_", "PYTHON", "UV_", "GIT_CONFIG"];

/// Whether the key is derived and not a setting of a user.
pub fn is_derived(key: &str) -> bool {
    key.contains('/')
}

/// The settings of a crawl that come from Machine records.
pub fn machine(config: &Values) -> impl Iterator<Item = (&str, &str)> {
    let pairs = config.iter();
    pairs.filter_map(|(key, value)| Some((key.strip_prefix(MACHINE_PREFIX)?, value.as_str())))
}

/// The settings of a crawl, with derived settings as defaults.
pub fn with_machine(config: &Values) -> Values {
    let mut values: Values =
        machine(config).map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    values.extend(config.clone());
    values
}

/// Adds a setting of a Machine record to a crawl. Returns the reason if it is refused.
pub fn set_machine(
    config: &mut Values,
    catalogue: &Catalogue,
    key: &str,
    value: &str,
) -> Result<(), &'static str> {
    let Some((own, property)) = catalogue.property(key) else {
        return Err("no plugin has this setting");
    };
    if property.names(own).any(|name| config.contains_key(name)) {
        return Ok(()); // the user set it for this crawl
    }
    if key.ends_with("_ENABLED") || own.ends_with("_ENABLED") {
        return Err("hooks cannot select plugins");
    }
    let refused = |prefix: &&str| key.starts_with(prefix);
    if RUNNER_KEYS.contains(&key)
        || FORBIDDEN_FOR_HOOKS.contains(&key)
        || FORBIDDEN_PREFIXES.iter().any(refused)
    {
        return Err("hooks cannot set this setting");
    }
    if value.len() > VALUE_MAX_BYTES || value.contains(char::is_control) {
        return Err("the value is too long or contains control characters");
    }
    if typed(property.kind, value).is_none() {
        return Err("the value has the wrong type");
    }
    let name = format!("{MACHINE_PREFIX}{key}");
    if !config.contains_key(&name) && machine(config).count() >= SETTINGS_MAX {
        return Err("too many settings from hooks");
    }
    config.insert(name, value.to_owned());
    Ok(())
}

/// The programs that hooks requested, each with advice for the user.
pub fn requested_programs(config: &Values) -> impl Iterator<Item = (&str, &str)> {
    let pairs = config.iter();
    pairs.filter_map(|(key, value)| Some((key.strip_prefix(REQUESTED_PREFIX)?, value.as_str())))
}

/// Stores the request for a program with advice for the user.
pub fn set_requested_program(config: &mut Values, name: &str, advice: &str) {
    if requested_programs(config).count() < SETTINGS_MAX {
        config.insert(format!("{REQUESTED_PREFIX}{name}"), advice.to_owned());
    }
}

/// The servers that hooks requested, with the names of their plugins.
pub fn requested_servers(config: &Values) -> impl Iterator<Item = (&str, SonicDaemonStart)> {
    let pairs = config.iter();
    pairs.filter_map(|(key, value)| {
        let plugin = key.strip_prefix(SERVER_PREFIX)?;
        Some((plugin, serde_json::from_str(value).ok()?))
    })
}

/// Stores the request of a plugin's hook for a server.
pub fn set_requested_server(config: &mut Values, plugin: &str, wanted: &SonicDaemonStart) {
    if let Ok(text) = serde_json::to_string(wanted) {
        config.insert(format!("{SERVER_PREFIX}{plugin}"), text);
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
    fn hooks_may_set_only_safe_settings() {
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
    fn user_settings_override_derived_settings() {
        let catalogue = catalogue();
        let mut config = Values::from([("CHROME_TIMEOUT".to_owned(), "5".to_owned())]);
        set_machine(&mut config, &catalogue, "CHROME_TIMEOUT", "30").unwrap();
        set_machine(&mut config, &catalogue, "CHROME_BINARY", "/a").unwrap();
        set_machine(&mut config, &catalogue, "CHROME_BINARY", "/b").unwrap();
        let all = with_machine(&config);
        assert_eq!((&*all["CHROME_TIMEOUT"], &*all["CHROME_BINARY"]), ("5", "/b"));
        let keys: Vec<&String> = config.keys().collect();
        assert_eq!(keys, ["CHROME_TIMEOUT", "machine/CHROME_BINARY"]);
        assert!(!is_derived(keys[0]) && is_derived(keys[1]));
    }

    #[test]
    fn number_of_derived_settings_is_bounded() {
        let many: serde_json::Map<_, _> =
            (0..200).map(|n| (format!("X_{n}"), json!({"type": "string"}))).collect();
        let catalogue = sample::catalogue([plugin("x", json!({"properties": many}), &[])]);
        let mut config = Values::new();
        let taken = (0..200)
            .filter(|n| set_machine(&mut config, &catalogue, &format!("X_{n}"), "v").is_ok())
            .count();
        assert_eq!((taken, config.len()), (SETTINGS_MAX, SETTINGS_MAX));
    }

    #[test]
    fn requests_for_servers_are_stored() {
        let wanted = SonicDaemonStart {
            url: "tcp://127.0.0.1:1491".into(),
            host: Some("127.0.0.1".into()),
            port: Some(1491),
            config_path: "/c/sonic.cfg".into(),
            output_dir: None,
        };
        let mut config = Values::from([("sonic/broken".to_owned(), "{".to_owned())]);
        set_requested_server(&mut config, "search_backend_sonic", &wanted);
        let found: Vec<_> = requested_servers(&config).collect();
        assert_eq!(found, [("search_backend_sonic", wanted)]);
    }
}
