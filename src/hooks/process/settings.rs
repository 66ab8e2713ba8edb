//! Values of a plugin's settings: the environment overrides the fallback setting, which overrides
//! the default in `config.json`.

use archivist_core::text::parse_size;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const BASE: &str = include_str!("../../../plugins/base/config.json");

/// Settings of one plugin, including those of the plugin `base`.
#[derive(Debug)]
pub struct PluginSettings {
    properties: Map<String, Value>,
    environment: BTreeMap<String, String>,
}

impl PluginSettings {
    /// Reads the `properties` of a plugin's `config.json`. An invalid file has no settings: a test
    /// checks the built-in files.
    pub fn new(schema: &str, environment: BTreeMap<String, String>) -> PluginSettings {
        let mut properties = Map::new();
        for text in [BASE, schema] {
            if let Ok(Value::Object(mut file)) = serde_json::from_str(text)
                && let Some(Value::Object(own)) = file.remove("properties")
            {
                properties.extend(own);
            }
        }
        PluginSettings { properties, environment }
    }

    /// Value of an environment variable that is not a setting, such as SNAP_DIR. Empty values count
    /// as unset.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The environment, which has the settings of other plugins, too.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Value as text. Lists and numbers are formatted as JSON.
    pub fn text(&self, key: &str) -> String {
        match self.resolve(key, 0) {
            Some(Value::String(text)) => text,
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        }
    }

    /// Value as whole number. An invalid value counts as the default in `config.json`.
    pub fn number(&self, key: &str) -> u64 {
        let whole = |value: &Value| match value {
            Value::String(text) => text.trim().parse::<f64>().ok(),
            other => other.as_f64(),
        };
        let found = self.resolve(key, 0).as_ref().and_then(whole);
        let number = found.filter(|number| number.is_finite() && *number >= 0.0);
        number.or_else(|| self.default(key).as_ref().and_then(whole)).unwrap_or(0.0) as u64
    }

    /// Whether the value is `true`, `1`, `yes` or `on`.
    pub fn flag(&self, key: &str) -> bool {
        match self.resolve(key, 0) {
            Some(Value::Bool(flag)) => flag,
            Some(Value::String(text)) => {
                matches!(text.trim().to_ascii_lowercase().as_str(), "true" | "1" | "yes" | "on")
            }
            _ => false,
        }
    }

    /// Value as list. In the environment, a list is a JSON array or words separated by commas.
    pub fn list(&self, key: &str) -> Vec<String> {
        let value = match self.resolve(key, 0) {
            Some(Value::String(text)) => match serde_json::from_str(&text) {
                Ok(Value::Array(list)) => Value::Array(list),
                _ => text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect(),
            },
            Some(other) => other,
            None => Value::Null,
        };
        let Value::Array(list) = value else {
            return Vec::new();
        };
        list.iter().filter_map(Value::as_str).map(String::from).collect()
    }

    /// Value as size in bytes, in the format of [`parse_size`]. 0 means no limit.
    pub fn size(&self, key: &str) -> u64 {
        let default = || self.default(key).as_ref().and_then(Value::as_str).and_then(parse_size);
        parse_size(&self.text(key)).or_else(default).unwrap_or(0)
    }

    fn default(&self, key: &str) -> Option<Value> {
        self.properties.get(key)?.get("default").cloned()
    }

    /// Resolves a key: its own variable, its aliases, its fallback setting, its default.
    fn resolve(&self, key: &str, depth: u8) -> Option<Value> {
        self.given(key, depth).or_else(|| self.default(key))
    }

    fn given(&self, key: &str, depth: u8) -> Option<Value> {
        let property = self.properties.get(key);
        let aliases = property
            .and_then(|property| property.get("x-aliases"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        for name in std::iter::once(key).chain(aliases) {
            if let Some(text) = self.environment.get(name) {
                return Some(Value::String(text.clone()));
            }
        }
        let fallback = property?.get("x-fallback")?.as_str()?;
        if depth < 8 { self.given(fallback, depth + 1) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wget(environment: &[(&str, &str)]) -> PluginSettings {
        let owned = environment.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        PluginSettings::new(include_str!("../../../plugins/wget/config.json"), owned)
    }

    #[test]
    fn own_name_precedes_alias_fallback_and_default() {
        assert_eq!(wget(&[]).number("WGET_TIMEOUT"), 60);
        assert_eq!(wget(&[("TIMEOUT", "7")]).number("WGET_TIMEOUT"), 7);
        assert_eq!(wget(&[("TIMEOUT", "7"), ("WGET_TIMEOUT", "9")]).number("WGET_TIMEOUT"), 9);
        assert_eq!(wget(&[("WGET_TIMEOUT", "soon")]).number("WGET_TIMEOUT"), 60);
        assert!(!wget(&[("SAVE_WARC", "False")]).flag("WGET_WARC_ENABLED"));
        assert!(
            wget(&[("SAVE_WARC", "no"), ("WGET_WARC_ENABLED", "True")]).flag("WGET_WARC_ENABLED")
        );
        assert!(!wget(&[("CHECK_SSL_VALIDITY", "0")]).flag("WGET_CHECK_SSL_VALIDITY"));
    }

    #[test]
    fn lists_are_json_or_separated_by_commas() {
        let list = |text| wget(&[("WGET_EXTRA_ARGS", text)]).list("WGET_ARGS_EXTRA");
        assert_eq!(list(r#"["-e", "a,b"]"#), ["-e", "a,b"]);
        assert_eq!(list("--a, --b"), ["--a", "--b"]);
        assert!(list("").is_empty());
        assert!(wget(&[]).list("WGET_ARGS").contains(&"--page-requisites".to_string()));
    }

    #[test]
    fn invalid_size_is_the_default() {
        assert_eq!(wget(&[("WGET_MAX_SIZE", "much")]).size("WGET_MAX_SIZE"), 1 << 30);
    }
}
