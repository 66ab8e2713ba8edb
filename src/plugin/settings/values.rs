//! Determines the value of every setting of a plugin from the layers of configuration and the
//! defaults.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::catalogue::schema::{Property, SettingKind};
use crate::catalogue::{Catalogue, Plugin};
use crate::settings::effective::effective;
use crate::settings::general;
use crate::settings::limit::{ANSWER_TIMEOUT, limit_for};
pub use crate::settings::limit::{HOOK_TIME_MAX, timeout};
use crate::settings::parse::{clamp, typed};

/// Settings by name, as text in the user's notation.
pub type Values = BTreeMap<String, String>;

/// Layers of settings, the strongest first.
#[derive(Debug, Clone, Copy)]
pub struct Layers<'a> {
    /// Settings of the crawl (`--set`).
    pub crawl: &'a Values,
    pub persona: &'a Values,
    /// `[Config]` of archivist.conf.
    pub config: &'a Values,
    /// Computed settings, such as `LIB_DIR`. A `TIMEOUT` in this layer replaces the defaults of all
    /// settings that fall back to it, including ytdlp's 3600.
    pub base: &'a Values,
}

impl<'a> Layers<'a> {
    /// The layers that users write, the strongest first.
    fn of_users(&self) -> [&'a Values; 3] {
        [self.crawl, self.persona, self.config]
    }

    /// All layers, the strongest first.
    pub fn all(&self) -> [&'a Values; 4] {
        [self.crawl, self.persona, self.config, self.base]
    }
}

/// All settings of a plugin with their values, and the general and base settings that are set.
/// Values of the wrong type are ignored; [`crate::settings::check`] reports them.
///
/// The value of a setting is the first of: its name or an alias in the crawl's layer, then in the
/// persona's, then in the configuration; its fallback in these layers; all of this in the base
/// layer; its default; the default of its fallback. If ANSWER_TIMEOUT is set, time limits of hooks are
/// not shorter than [`limit_for`] it.
pub fn resolve(catalogue: &Catalogue, plugin: &Plugin, layers: &Layers) -> BTreeMap<String, Value> {
    let schema = effective(catalogue, plugin);
    let mut values = BTreeMap::new();
    for (key, text) in layers.base {
        values.insert(key.clone(), general::value(key, text));
    }
    for (key, _) in general::HOOK_KEYS {
        let user = layers.of_users();
        let set = user.iter().find_map(|layer| layer.get(key));
        values.extend(set.map(|text| (key.to_owned(), general::value(key, text))));
    }
    let resolver = Resolver { schema: &schema, layers };
    for (key, property) in &schema {
        if let Some(value) = resolver.value(key, property) {
            values.insert((*key).to_owned(), value);
        }
    }
    let answer = schema
        .get(ANSWER_TIMEOUT)
        .and_then(|property| resolver.set(ANSWER_TIMEOUT, property, &layers.of_users())?.as_u64());
    if let Some(answer) = answer {
        let least = limit_for(answer);
        let has_limit = |key: &str, property: &Property| {
            key == "TIMEOUT" || property.fallback.as_deref() == Some("TIMEOUT")
        };
        for (key, property) in schema.iter().filter(|(key, property)| has_limit(key, property)) {
            let is_less = |value: &Value| value.as_f64().is_some_and(|own| own < least as f64);
            if !property.is_milliseconds() && values.get(*key).is_none_or(is_less) {
                values.insert((*key).to_owned(), least.into());
            }
        }
    }
    values
}

struct Resolver<'a> {
    schema: &'a BTreeMap<&'a str, &'a Property>,
    layers: &'a Layers<'a>,
}

impl Resolver<'_> {
    fn value(&self, key: &str, property: &Property) -> Option<Value> {
        self.set(key, property, &self.layers.of_users())
            .or_else(|| self.set(key, property, &[self.layers.base]))
            .or_else(|| self.default(property, self.schema.len()))
    }

    /// Value that was set under a name of the setting or of its fallback.
    fn set(&self, key: &str, property: &Property, layers: &[&Values]) -> Option<Value> {
        let own = named(key, property, property.kind, layers);
        if own.is_some() {
            return own;
        }
        let mut next = property.fallback.as_deref();
        for _ in 0..=self.schema.len() {
            let name = next?;
            let known = self.schema.get(name);
            let found = match known {
                Some(behind) => named(name, behind, property.kind, layers),
                None => text(name, property.kind, layers),
            };
            if let Some(found) = found {
                return Some(clamp(property, found));
            }
            next = known.and_then(|behind| behind.fallback.as_deref());
        }
        None // the fallbacks form a circle
    }

    fn default(&self, property: &Property, depth: usize) -> Option<Value> {
        let own = property.default.clone();
        let empty = own.as_ref().is_none_or(is_empty);
        let behind = property.fallback.as_deref().and_then(|name| self.schema.get(name));
        match behind {
            Some(behind) if empty && depth > 0 => self.default(behind, depth - 1).or(own),
            _ => own,
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Value in the first layer that has the setting under any of its names.
fn named(key: &str, property: &Property, kind: SettingKind, layers: &[&Values]) -> Option<Value> {
    layers.iter().find_map(|layer| {
        let mut texts = property.names(key).filter_map(|name| layer.get(name));
        texts.find_map(|text| typed(kind, text))
    })
}

fn text(name: &str, kind: SettingKind, layers: &[&Values]) -> Option<Value> {
    layers.iter().find_map(|layer| typed(kind, layer.get(name)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use serde_json::json;
    use std::time::Duration;

    fn plugin(name: &str, config: Value) -> Plugin {
        sample::plugin(name, config, &[])
    }

    fn catalogue() -> Catalogue {
        let timeout = |default: u32, fallback: &str| json!({"type": "integer", "default": default, "minimum": 5, "x-fallback": fallback});
        Catalogue {
            plugins: vec![
                plugin(
                    "base",
                    json!({"properties": {
                        "TIMEOUT": {"type": "integer", "default": 60},
                        "USER_AGENT": {"default": "Mozilla/5.0"},
                        "CHROME_BINARY": {"default": ""},
                    }}),
                ),
                plugin(
                    "chrome",
                    json!({"properties": {
                        "CHROME_BINARY": {"default": "chromium"},
                        "CHROME_TIMEOUT": timeout(60, "TIMEOUT"),
                        "CHROME_PAGELOAD_TIMEOUT": timeout(60, "CHROME_TIMEOUT"),
                        "CHROME_USER_AGENT": {"default": "", "x-fallback": "USER_AGENT"},
                        "SHOT_ARGS": {"type": "array", "default": [], "x-fallback": "CHROME_ARGS"},
                    "CHROME_RESOLUTION": {"default": "1440,2000", "x-fallback": "RESOLUTION"},
                        "CHROME_ARGS": {"type": "array", "default": ["--a"], "x-aliases": ["CHROME_DEFAULT_ARGS"]},
                    }}),
                ),
                plugin(
                    "modalcloser",
                    json!({"required_plugins": ["chrome"], "properties": {
                        "MODALCLOSER_TIMEOUT": {"type": "integer", "default": 1250, "description": "Delay (ms)"},
                    }}),
                ),
                plugin(
                    "ytdlp",
                    json!({"properties": {
                        "YTDLP_TIMEOUT": timeout(3600, "TIMEOUT"),
                        "YTDLP_ENABLED": {"type": "boolean", "default": true, "x-aliases": ["SAVE_MEDIA", "FETCH_MEDIA"]},
                    }}),
                ),
            ],
            ..Catalogue::default()
        }
    }

    fn texts(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
    }

    fn resolved(
        name: &str,
        crawl: &[(&str, &str)],
        config: &[(&str, &str)],
        base: &[(&str, &str)],
    ) -> BTreeMap<String, Value> {
        let catalogue = catalogue();
        let (crawl, config, base) = (texts(crawl), texts(config), texts(base));
        let layers =
            Layers { crawl: &crawl, persona: &Values::new(), config: &config, base: &base };
        resolve(&catalogue, catalogue.plugin(name).unwrap(), &layers)
    }

    #[test]
    fn defaults_come_from_base_required_and_own_plugin() {
        let values = resolved("modalcloser", &[], &[], &[("LIB_DIR", "/lib")]);
        assert_eq!(values["CHROME_BINARY"], json!("chromium"));
        assert_eq!(values["TIMEOUT"], json!(60));
        assert_eq!(values["CHROME_USER_AGENT"], json!("Mozilla/5.0"));
        assert_eq!(values["CHROME_RESOLUTION"], json!("1440,2000"));
        assert_eq!(values["SHOT_ARGS"], json!(["--a"]));
        assert_eq!(values["LIB_DIR"], json!("/lib"));
        assert!(!values.contains_key("YTDLP_TIMEOUT"));
    }

    #[test]
    fn default_timeout_replaces_the_base_default() {
        let mut catalogue = catalogue();
        catalogue.default_timeout(Duration::from_millis(99_001));
        let none = Values::new();
        let of = |name: &str, crawl: &Values| {
            let layers = Layers { crawl, persona: &none, config: &none, base: &none };
            resolve(&catalogue, catalogue.plugin(name).unwrap(), &layers)
        };
        assert_eq!(of("chrome", &none)["TIMEOUT"], json!(100));
        assert_eq!(of("ytdlp", &none)["YTDLP_TIMEOUT"], json!(3600));
        let set = texts(&[("TIMEOUT", "9")]);
        assert_eq!(of("chrome", &set)["TIMEOUT"], json!(9));
    }

    #[test]
    fn hooks_have_time_for_slow_answers() {
        let slow = json!({"properties": {"ANSWER_TIMEOUT": {"type": "integer", "default": 30},
            "TIMEOUT": {"type": "integer", "default": 60}}});
        let wget = json!({"properties": {
            "WGET_TIMEOUT": {"type": "integer", "default": 60, "x-fallback": "TIMEOUT"},
            "WGET_OTHER": {"type": "integer", "default": 5}}});
        let catalogue = sample::catalogue([
            sample::plugin("base", slow, &[]),
            sample::plugin("wget", wget, &[]),
        ]);
        let of = |crawl: &[(&str, &str)]| {
            let (none, crawl) = (Values::new(), texts(crawl));
            let layers = Layers { crawl: &crawl, persona: &none, config: &none, base: &none };
            let values = resolve(&catalogue, catalogue.plugin("wget").unwrap(), &layers);
            ["TIMEOUT", "WGET_TIMEOUT", "WGET_OTHER"].map(|key| values[key].as_u64().unwrap())
        };
        assert_eq!(of(&[("TIMEOUT", "9")]), [9, 9, 5]);
        assert_eq!(of(&[("TIMEOUT", "9"), ("ANSWER_TIMEOUT", "45")]), [110, 110, 5]);
        assert_eq!(of(&[("WGET_TIMEOUT", "300"), ("ANSWER_TIMEOUT", "45")]), [110, 300, 5]);
    }

    #[test]
    fn fallbacks_use_values_that_were_set() {
        let set = |pairs: &[(&str, &str)]| {
            resolved("chrome", &[], pairs, &[])["CHROME_PAGELOAD_TIMEOUT"].clone()
        };
        assert_eq!(set(&[]), json!(60));
        assert_eq!(set(&[("TIMEOUT", "90")]), json!(90));
        assert_eq!(set(&[("TIMEOUT", "90"), ("CHROME_TIMEOUT", "70")]), json!(70));
        assert_eq!(set(&[("CHROME_PAGELOAD_TIMEOUT", "20"), ("CHROME_TIMEOUT", "70")]), json!(20));
        assert_eq!(set(&[("TIMEOUT", "2")]), json!(5), "limits apply to the value of a fallback");
        assert_eq!(
            set(&[("CHROME_PAGELOAD_TIMEOUT", "2")]),
            json!(2),
            "limits do not apply to the setting's own value"
        );
    }

    #[test]
    fn package_defaults_apply_until_a_timeout_is_set() {
        assert_eq!(resolved("ytdlp", &[], &[], &[])["YTDLP_TIMEOUT"], json!(3600));
        assert_eq!(resolved("ytdlp", &[], &[], &[("TIMEOUT", "60")])["YTDLP_TIMEOUT"], json!(60));
        let own = resolved("ytdlp", &[], &[("YTDLP_TIMEOUT", "900")], &[("TIMEOUT", "60")]);
        assert_eq!(own["YTDLP_TIMEOUT"], json!(900));
    }

    #[test]
    fn nearer_layer_wins_and_aliases_apply() {
        let own_in_config = [("YTDLP_ENABLED", "true")];
        let values = resolved("ytdlp", &[("SAVE_MEDIA", "off")], &own_in_config, &[]);
        assert_eq!(
            values["YTDLP_ENABLED"],
            json!(false),
            "the nearer layer wins, even under an alias"
        );
        let values = resolved("ytdlp", &[("SAVE_MEDIA", "no"), ("YTDLP_ENABLED", "yes")], &[], &[]);
        assert_eq!(values["YTDLP_ENABLED"], json!(true));
        let values = resolved("ytdlp", &[("YTDLP_ENABLED", "perhaps")], &own_in_config, &[]);
        assert_eq!(values["YTDLP_ENABLED"], json!(true), "invalid values are ignored");
        let values = resolved("chrome", &[("CHROME_DEFAULT_ARGS", "--x,--y")], &[], &[]);
        assert_eq!(values["CHROME_ARGS"], json!(["--x", "--y"]));
        let values =
            resolved("ytdlp", &[("CHECK_SSL_VALIDITY", "false"), ("LD_PRELOAD", "x")], &[], &[]);
        assert_eq!(values["CHECK_SSL_VALIDITY"], json!(false));
        assert!(!values.contains_key("LD_PRELOAD"));
    }

    #[test]
    fn persona_is_between_crawl_and_configuration() {
        let (catalogue, none) = (catalogue(), Values::new());
        let of = |crawl: &[(&str, &str)], persona: &[(&str, &str)], config: &[(&str, &str)]| {
            let layers = Layers {
                crawl: &texts(crawl),
                persona: &texts(persona),
                config: &texts(config),
                base: &none,
            };
            resolve(&catalogue, catalogue.plugin("ytdlp").unwrap(), &layers)
        };
        let (a, b, c) = ([("USER_AGENT", "a")], [("USER_AGENT", "b")], [("USER_AGENT", "c")]);
        assert_eq!(of(&a, &b, &c)["USER_AGENT"], json!("a"));
        assert_eq!(of(&[], &b, &c)["USER_AGENT"], json!("b"));
        assert_eq!(of(&[], &[], &c)["USER_AGENT"], json!("c"));
        let off = of(&[], &[("SAVE_MEDIA", "no")], &[("YTDLP_ENABLED", "yes")]);
        assert_eq!(off["YTDLP_ENABLED"], json!(false), "even under an alias");
        let limit = of(&[], &[("TIMEOUT", "90")], &[("YTDLP_TIMEOUT", "60")]);
        assert_eq!(limit["YTDLP_TIMEOUT"], json!(60), "a name precedes its fallback");
    }

    #[test]
    fn circles_of_fallbacks_end() {
        let ring = plugin(
            "ring",
            json!({"required_plugins": ["ring"], "properties": {
            "A": {"x-fallback": "B"}, "B": {"x-fallback": "A"}}}),
        );
        let catalogue = Catalogue { plugins: vec![ring], ..Catalogue::default() };
        let none = Values::new();
        let layers = Layers { crawl: &none, persona: &none, config: &none, base: &none };
        assert!(resolve(&catalogue, &catalogue.plugins[0], &layers).is_empty());
    }
}
