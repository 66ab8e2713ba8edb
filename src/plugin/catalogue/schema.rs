//! Parses a plugin's `config.json`: its settings, its requirements, its output.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::catalogue::reader::Reader;
pub use crate::catalogue::reader::SchemaError;
use crate::programs::requirement::{Requirement, split_providers};
use archivist_core::model::Need;

/// The used parts of a plugin's `config.json`. Other keys are ignored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    pub title: String,
    pub description: String,
    /// Plugins without which it does not run.
    pub required_plugins: Vec<String>,
    /// Programs without which it does not run.
    pub required_binaries: Vec<Requirement>,
    /// MIME types, or prefixes that end in `/`.
    pub output_mimetypes: Vec<String>,
    /// Whether the snapshot's background hooks must end before this plugin's hooks start.
    pub wait_for_background_cleanup: bool,
    /// `x-alongside`: plugins during whose foreground hooks those of this plugin may start.
    pub alongside: Vec<String>,
    /// `x-needs`: without which its hooks are not started, if the tab of a browser finds it absent.
    pub needs: Option<Need>,
    /// `x-accompanies`: the plugin runs only if one of these plugins runs.
    pub accompanies: Vec<String>,
    /// `x-on-demand`, or `x-auto-run` is false: the plugin runs only if a selected plugin requires it
    /// or the user names it.
    pub on_demand: bool,
    /// `x-page-files`: the only files and directories of the plugin that are of the page; the others are
    /// about it, such as digests. `None`: all.
    pub page_files: Option<Vec<String>>,
    /// `x-shared-data`: the plugin's data belong to the archive, not to one crawl.
    pub shared_data: bool,
    pub properties: BTreeMap<String, Property>,
}

/// Type of a setting, as in JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    String,
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    Array,
    Object,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    pub kind: SettingKind,
    /// Value without any other source.
    pub default: Option<Value>,
    /// Permitted values; empty: any.
    pub allowed: Vec<Value>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    /// Regular expression that a text must match.
    pub pattern: Option<String>,
    pub description: String,
    pub aliases: Vec<String>,
    /// Setting whose value applies if this one is not set.
    pub fallback: Option<String>,
    /// Whether the value is a secret, which must not be shown or logged.
    pub sensitive: bool,
}

impl Property {
    /// Whether the value is in milliseconds. Only the description says so (for example
    /// `MODALCLOSER_TIMEOUT`); taking it for seconds would make a limit of twenty minutes.
    pub fn is_milliseconds(&self) -> bool {
        let text = self.description.to_lowercase();
        text.contains("(ms)") || text.contains("millisecond")
    }

    /// All names of the setting, its key first.
    pub fn names<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        std::iter::once(key).chain(self.aliases.iter().map(String::as_str))
    }
}

impl Schema {
    /// Parses the text of a `config.json`. `file` is only used in errors.
    pub fn parse(file: &Path, text: &str) -> Result<Schema, SchemaError> {
        let top = Reader::new(file, text)?;
        let mut schema = Schema {
            title: top.text("title")?.unwrap_or_default(),
            description: top.text("description")?.unwrap_or_default(),
            required_plugins: top.texts("required_plugins")?,
            output_mimetypes: top.texts("output_mimetypes")?,
            wait_for_background_cleanup: top.flag("wait_for_background_cleanup")?,
            alongside: top.texts("x-alongside")?,
            needs: needs(&top)?,
            accompanies: top.texts("x-accompanies")?,
            on_demand: top.flag("x-on-demand")?
                || top.get("x-auto-run") == Some(&Value::Bool(false)),
            page_files: match top.get("x-page-files") {
                Some(_) => Some(top.texts("x-page-files")?),
                None => None,
            },
            shared_data: top.flag("x-shared-data")?,
            ..Schema::default()
        };
        for entry in top.list("required_binaries")? {
            schema.required_binaries.push(requirement(&entry)?);
        }
        for (key, entry) in top.map("properties")? {
            let valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if key.is_empty()
                || key.starts_with(|c: char| c.is_ascii_digit())
                || !key.chars().all(valid)
            {
                return Err(entry.error("not the name of an environment variable"));
            }
            schema.properties.insert(key, property(&entry)?);
        }
        Ok(schema)
    }
}

fn needs(top: &Reader) -> Result<Option<Need>, SchemaError> {
    let Some(name) = top.text("x-needs")? else {
        return Ok(None);
    };
    let unknown = || top.error("x-needs is neither 'page' nor 'site'");
    Need::parse(&name).map(Some).ok_or_else(unknown)
}

fn requirement(entry: &Reader) -> Result<Requirement, SchemaError> {
    let name = entry.text("name")?.unwrap_or_default();
    if name.trim().is_empty() {
        return Err(entry.error("the name is missing"));
    }
    let listed = entry.text("binproviders")?.unwrap_or_default();
    let (least, most) = (entry.text("min_version")?, entry.text("max_version")?);
    Ok(Requirement {
        name,
        providers: split_providers(&listed),
        // Equal bounds are the version that a provider installs, not the oldest that is sufficient.
        min_version: least.filter(|least| most.as_ref() != Some(least)),
        overrides: match entry.get("overrides") {
            None => Map::new(),
            Some(Value::Object(map)) => map.clone(),
            Some(_) => return Err(entry.at("overrides").error("is not an object")),
        },
    })
}

fn property(entry: &Reader) -> Result<Property, SchemaError> {
    let kind = match entry.get("type") {
        None => SettingKind::String,
        Some(Value::Array(words)) => words
            .iter()
            .filter_map(Value::as_str)
            .find(|word| *word != "null")
            .and_then(kind_of)
            .ok_or_else(|| entry.at("type").error("no known type"))?,
        Some(value) => value
            .as_str()
            .and_then(kind_of)
            .ok_or_else(|| entry.at("type").error(&format!("unknown type {value}")))?,
    };
    Ok(Property {
        kind,
        default: entry.get("default").cloned(),
        allowed: entry.list("enum")?.into_iter().map(|e| e.value).collect(),
        minimum: entry.number("minimum")?,
        maximum: entry.number("maximum")?,
        pattern: entry.text("pattern")?,
        description: entry.text("description")?.unwrap_or_default(),
        aliases: entry.texts("x-aliases")?,
        fallback: entry.text("x-fallback")?,
        sensitive: entry.flag("x-sensitive")?,
    })
}

fn kind_of(word: &str) -> Option<SettingKind> {
    Some(match word {
        "string" => SettingKind::String,
        "integer" => SettingKind::Integer,
        "number" => SettingKind::Number,
        "boolean" => SettingKind::Boolean,
        "array" => SettingKind::Array,
        "object" => SettingKind::Object,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn parse(value: Value) -> Result<Schema, SchemaError> {
        Schema::parse(Path::new("p/config.json"), &value.to_string())
    }

    #[test]
    fn config_of_the_wget_plugin_is_parsed() {
        let schema = parse(json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "title": "wget", "additionalProperties": false, "something-new": [1, 2],
            "required_plugins": [],
            "required_binaries": [{"name": "{WGET_BINARY}", "binproviders": "env,apt, brew", "min_version": null}],
            "output_mimetypes": ["text/html", "image/"],
            "properties": {
                "WGET_ENABLED": {"type": "boolean", "default": true, "x-aliases": ["SAVE_WGET", "USE_WGET"]},
                "WGET_TIMEOUT": {"type": "integer", "default": 60, "minimum": 5, "x-fallback": "TIMEOUT",
                                 "description": "Timeout for wget in seconds"},
            }
        }))
        .unwrap();
        assert_eq!(schema.required_binaries[0].providers, ["env", "apt", "brew"]);
        assert_eq!(schema.required_binaries[0].min_version, None);
        let timeout = &schema.properties["WGET_TIMEOUT"];
        assert_eq!(timeout.fallback.as_deref(), Some("TIMEOUT"));
        assert_eq!((timeout.minimum, timeout.is_milliseconds()), (Some(5.0), false));
        let names: Vec<_> = schema.properties["WGET_ENABLED"].names("WGET_ENABLED").collect();
        assert_eq!(names, ["WGET_ENABLED", "SAVE_WGET", "USE_WGET"]);
        assert!(!schema.wait_for_background_cleanup);
    }

    #[test]
    fn plugins_name_those_that_they_run_alongside() {
        let schema = parse(json!({"x-alongside": ["headers", "title"]})).unwrap();
        assert_eq!(schema.alongside, ["headers", "title"]);
        assert!(parse(json!({})).unwrap().alongside.is_empty());
    }

    #[test]
    fn plugins_say_what_their_hooks_need() {
        let needs = |value: &str| parse(json!({"x-needs": value})).map(|schema| schema.needs);
        assert_eq!(needs("page"), Ok(Some(Need::Page)));
        assert_eq!(needs("site"), Ok(Some(Need::Site)));
        assert!(needs("luck").is_err());
        assert_eq!(parse(json!({})).unwrap().needs, None);
    }

    #[test]
    fn settings_in_milliseconds_are_detected() {
        let schema = parse(
            json!({"wait_for_background_cleanup": true, "properties": {"MODALCLOSER_TIMEOUT":
            {"type": "integer", "default": 1250, "description": "Delay before auto-closing dialogs (ms)"}}}),
        )
        .unwrap();
        assert!(schema.properties["MODALCLOSER_TIMEOUT"].is_milliseconds());
        assert!(schema.wait_for_background_cleanup);
    }

    #[test]
    fn pinned_version_is_no_minimum() {
        let schema = parse(json!({"x-auto-run": false, "required_binaries": [
            {"name": "node", "binproviders": "env", "min_version": "24.22.1", "max_version": "24.22.1"},
            {"name": "java", "binproviders": "env", "min_version": "11", "max_version": "21"},
        ]}))
        .unwrap();
        let least = |index: usize| schema.required_binaries[index].min_version.as_deref();
        assert_eq!((least(0), least(1)), (None, Some("11")));
        assert!(schema.on_demand && !parse(json!({"x-auto-run": true})).unwrap().on_demand);
    }

    #[test]
    fn errors_name_file_and_key() {
        let cases = [
            (json!([]), "p/config.json: .: is not a JSON object"),
            (
                json!({"required_plugins": "chrome"}),
                "p/config.json: required_plugins: is not a list of strings",
            ),
            (
                json!({"required_binaries": [{"name": "x"}, {"binproviders": "env"}]}),
                "p/config.json: required_binaries[1]: the name is missing",
            ),
            (
                json!({"properties": {"A": {"type": "integre"}}}),
                "p/config.json: properties.A.type: unknown type \"integre\"",
            ),
            (
                json!({"properties": {"A": {"x-aliases": [1]}}}),
                "p/config.json: properties.A.x-aliases: is not a list of strings",
            ),
            (
                json!({"properties": {"A=B": {}}}),
                "p/config.json: properties.A=B: not the name of an environment variable",
            ),
        ];
        for (value, message) in cases {
            assert_eq!(parse(value).unwrap_err().to_string(), message);
        }
        let broken = Schema::parse(Path::new("p/config.json"), "{\"a\":").unwrap_err();
        assert!(broken.to_string().starts_with("p/config.json: .: EOF"), "{broken}");
    }

    #[test]
    fn empty_object_is_an_empty_schema() {
        assert_eq!(parse(json!({})).unwrap(), Schema::default());
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,200}") {
            let _ = Schema::parse(Path::new("f"), &text);
        }
    }
}
