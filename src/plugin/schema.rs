//! A plugin's `config.json`: its settings, what it needs, what it makes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// What is wrong with a `config.json`, and at which key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {key}: {what}", file.display())]
pub struct SchemaError {
    pub file: PathBuf,
    /// Dotted path of the key, such as `properties.WGET_TIMEOUT.type`; `.` for the file itself.
    pub key: String,
    pub what: String,
}

/// The parts of a plugin's `config.json` that a runner acts on. Unknown keys are left alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    pub title: String,
    pub description: String,
    pub required_plugins: Vec<String>,
    pub required_binaries: Vec<RequiredBinary>,
    /// Mimetypes, or prefixes that end in `/`.
    pub output_mimetypes: Vec<String>,
    /// The snapshot's background hooks are to be ended before this plugin's hooks start.
    pub wait_for_background_cleanup: bool,
    pub properties: BTreeMap<String, Property>,
}

/// A program (or an installable thing that one of the providers calls a binary).
#[derive(Debug, Clone, PartialEq)]
pub struct RequiredBinary {
    /// A plain name or a template such as `{WGET_BINARY}`.
    pub name: String,
    /// Where it may come from, in order of preference; `env` is the search path, `*` anything.
    pub providers: Vec<String>,
    pub min_version: Option<String>,
    /// Provider → how to install it there.
    pub overrides: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
}

/// One setting of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    pub kind: Kind,
    pub default: Option<Value>,
    pub allowed: Vec<Value>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub pattern: Option<String>,
    pub description: String,
    /// Other names of the same setting.
    pub aliases: Vec<String>,
    /// The setting whose value is taken when this one is not set.
    pub fallback: Option<String>,
    /// A secret: not to be shown or logged.
    pub sensitive: bool,
}

impl Property {
    /// Whether the value is in milliseconds. Only the description says so (modalcloser's
    /// `MODALCLOSER_TIMEOUT`), and a runner that takes it for seconds waits twenty minutes.
    pub fn is_milliseconds(&self) -> bool {
        let text = self.description.to_lowercase();
        text.contains("(ms)") || text.contains("millisecond")
    }

    /// Every name of the setting, its own first.
    pub fn names<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        std::iter::once(key).chain(self.aliases.iter().map(String::as_str))
    }
}

impl Schema {
    /// Reads the text of a `config.json`; `file` is only named in errors.
    pub fn parse(file: &Path, text: &str) -> Result<Schema, SchemaError> {
        let top = Reader::new(file, text)?;
        let mut schema = Schema {
            title: top.text("title")?.unwrap_or_default(),
            description: top.text("description")?.unwrap_or_default(),
            required_plugins: top.texts("required_plugins")?,
            output_mimetypes: top.texts("output_mimetypes")?,
            wait_for_background_cleanup: top.flag("wait_for_background_cleanup")?,
            ..Schema::default()
        };
        for entry in top.list("required_binaries")? {
            schema.required_binaries.push(required_binary(&entry)?);
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

fn required_binary(entry: &Reader) -> Result<RequiredBinary, SchemaError> {
    let name = entry.text("name")?.unwrap_or_default();
    if name.trim().is_empty() {
        return Err(entry.error("has no name"));
    }
    let providers = entry.text("binproviders")?.unwrap_or_default();
    Ok(RequiredBinary {
        name,
        providers: providers
            .split(',')
            .map(|word| word.trim().to_owned())
            .filter(|word| !word.is_empty())
            .collect(),
        min_version: entry.text("min_version")?,
        overrides: match entry.get("overrides") {
            None => Map::new(),
            Some(Value::Object(map)) => map.clone(),
            Some(_) => return Err(entry.at("overrides").error("is not an object")),
        },
    })
}

fn property(entry: &Reader) -> Result<Property, SchemaError> {
    let kind = match entry.get("type") {
        None => Kind::String,
        Some(Value::Array(words)) => words
            .iter()
            .filter_map(Value::as_str)
            .find(|word| *word != "null")
            .and_then(kind_of)
            .ok_or_else(|| entry.at("type").error("has no type that is known"))?,
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

fn kind_of(word: &str) -> Option<Kind> {
    Some(match word {
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        "array" => Kind::Array,
        "object" => Kind::Object,
        _ => return None,
    })
}

/// A JSON value that knows where it stands, so that errors can name the key.
struct Reader<'a> {
    file: &'a Path,
    key: String,
    value: Value,
}

impl<'a> Reader<'a> {
    fn new(file: &'a Path, text: &str) -> Result<Self, SchemaError> {
        let reader = |value| Reader {
            file,
            key: ".".to_owned(),
            value,
        };
        let value: Value = serde_json::from_str(text)
            .map_err(|error| reader(Value::Null).error(&error.to_string()))?;
        if !value.is_object() {
            return Err(reader(value).error("is not a JSON object"));
        }
        Ok(reader(value))
    }

    fn error(&self, what: &str) -> SchemaError {
        SchemaError {
            file: self.file.to_owned(),
            key: self.key.clone(),
            what: what.to_owned(),
        }
    }

    fn under(&self, key: &str, value: Value) -> Reader<'a> {
        let key = match self.key.as_str() {
            "." => key.to_owned(),
            parent => format!("{parent}.{key}"),
        };
        Reader {
            file: self.file,
            key,
            value,
        }
    }

    fn at(&self, key: &str) -> Reader<'a> {
        self.under(key, Value::Null)
    }

    /// A missing key and an explicit null are the same.
    fn get(&self, key: &str) -> Option<&Value> {
        self.value.get(key).filter(|value| !value.is_null())
    }

    fn typed<T>(
        &self,
        key: &str,
        wanted: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, SchemaError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match read(value) {
            Some(found) => Ok(Some(found)),
            None => Err(self.at(key).error(&format!("is not {wanted}"))),
        }
    }

    fn text(&self, key: &str) -> Result<Option<String>, SchemaError> {
        self.typed(key, "a string", |v| v.as_str().map(str::to_owned))
    }

    fn number(&self, key: &str) -> Result<Option<f64>, SchemaError> {
        self.typed(key, "a number", Value::as_f64)
    }

    fn flag(&self, key: &str) -> Result<bool, SchemaError> {
        Ok(self
            .typed(key, "true or false", Value::as_bool)?
            .unwrap_or(false))
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, SchemaError> {
        let read = |value: &Value| {
            let words = value.as_array()?.iter();
            words.map(|word| word.as_str().map(str::to_owned)).collect()
        };
        Ok(self
            .typed(key, "a list of strings", read)?
            .unwrap_or_default())
    }

    fn list(&self, key: &str) -> Result<Vec<Reader<'a>>, SchemaError> {
        let values = self.typed(key, "a list", |v| v.as_array().cloned())?;
        let values = values.unwrap_or_default().into_iter().enumerate();
        Ok(values
            .map(|(at, value)| self.under(&format!("{key}[{at}]"), value))
            .collect())
    }

    fn map(&self, key: &str) -> Result<Vec<(String, Reader<'a>)>, SchemaError> {
        let values = self.typed(key, "an object", |v| v.as_object().cloned())?;
        let parent = self.at(key);
        let entries = values.unwrap_or_default().into_iter();
        entries
            .map(|(name, value)| {
                let entry = parent.under(&name, value);
                match entry.value.is_object() {
                    true => Ok((name, entry)),
                    false => Err(entry.error("is not an object")),
                }
            })
            .collect()
    }
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
    fn the_wget_plugin() {
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
        assert_eq!(
            schema.required_binaries[0].providers,
            ["env", "apt", "brew"]
        );
        assert_eq!(schema.required_binaries[0].min_version, None);
        let timeout = &schema.properties["WGET_TIMEOUT"];
        assert_eq!(timeout.fallback.as_deref(), Some("TIMEOUT"));
        assert_eq!(
            (timeout.minimum, timeout.is_milliseconds()),
            (Some(5.0), false)
        );
        let names: Vec<_> = schema.properties["WGET_ENABLED"]
            .names("WGET_ENABLED")
            .collect();
        assert_eq!(names, ["WGET_ENABLED", "SAVE_WGET", "USE_WGET"]);
        assert!(!schema.wait_for_background_cleanup);
    }

    #[test]
    fn milliseconds_are_seen() {
        let schema = parse(
            json!({"wait_for_background_cleanup": true, "properties": {"MODALCLOSER_TIMEOUT":
            {"type": "integer", "default": 1250, "description": "Delay before auto-closing dialogs (ms)"}}}),
        );
        let schema = schema.unwrap();
        assert!(schema.properties["MODALCLOSER_TIMEOUT"].is_milliseconds());
        assert!(schema.wait_for_background_cleanup);
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
                "p/config.json: required_binaries[1]: has no name",
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
        assert!(
            broken.to_string().starts_with("p/config.json: .: EOF"),
            "{broken}"
        );
    }

    #[test]
    fn an_empty_object_is_an_empty_schema() {
        assert_eq!(parse(json!({})).unwrap(), Schema::default());
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,200}") {
            let _ = Schema::parse(Path::new("f"), &text);
        }
    }
}
