//! Validates settings before they are used, so that users see typing errors.

use std::collections::BTreeSet;

use crate::catalogue::Catalogue;
use crate::catalogue::schema::{Property, SettingKind};
use crate::settings::general;
use crate::settings::parse::{objection, typed};
use crate::settings::values::Values;
use archivist_core::text::{did_you_mean, similar};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct SettingError {
    pub key: String,
    pub what: String,
}

/// Returns all errors: unknown names, values of the wrong type, and values outside the limits of
/// their schema. An empty value stands for that of the next layer, and is none of these. Values of secrets
/// are not included.
pub fn check(catalogue: &Catalogue, values: &Values) -> Vec<SettingError> {
    let known = catalogue.known_keys();
    let mut errors = Vec::new();
    for (key, text) in values {
        let what = if !known.contains(key) {
            Some(unknown(key, &known))
        } else if text.is_empty() {
            None
        } else {
            wrong(catalogue, key, text)
        };
        errors.extend(what.map(|what| SettingError { key: key.clone(), what }));
    }
    errors
}

fn unknown(key: &str, known: &BTreeSet<String>) -> String {
    let similar = similar(key, known.iter().map(String::as_str));
    format!("no plugin has this setting{}", did_you_mean(&similar))
}

fn wrong(catalogue: &Catalogue, key: &str, text: &str) -> Option<String> {
    let Some((_, property)) = catalogue.property(key) else {
        let kind = match general::kind(key) {
            None if key.ends_with("_ENABLED") => SettingKind::Boolean,
            None => SettingKind::String,
            Some(kind) => kind,
        };
        return typed(kind, text).is_none().then(|| not(kind, text, false));
    };
    match typed(property.kind, text) {
        None => Some(not(property.kind, text, property.sensitive)),
        Some(value) => objection(property, &value).map(|what| quote(text, property, &what)),
    }
}

fn quote(text: &str, property: &Property, what: &str) -> String {
    if property.sensitive {
        return format!("the value {what}");
    }
    format!("'{text}' {what}")
}

fn not(kind: SettingKind, text: &str, secret: bool) -> String {
    let kind = match kind {
        SettingKind::String => "text",
        SettingKind::Integer => "a whole number",
        SettingKind::Number => "a number",
        SettingKind::Boolean => "true or false",
        SettingKind::Array => "a list",
        SettingKind::Object => "a JSON object",
    };
    if secret { format!("the value is not {kind}") } else { format!("'{text}' is not {kind}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::sample::plugin;
    use serde_json::json;

    #[test]
    fn invalid_settings_are_reported() {
        let config = json!({"properties": {
            "CHROME_ISOLATION": {"enum": ["crawl", "snapshot"], "default": "crawl"},
            "CHROME_TIMEOUT": {"type": "integer", "minimum": 5, "x-fallback": "TIMEOUT"},
            "CHROME_PIN": {"type": "integer", "x-sensitive": true},
        }});
        let catalogue = sample::catalogue([plugin("chrome", config, &[])]);
        let say = |key: &str, text: &str| {
            let values = Values::from([(key.to_owned(), text.to_owned())]);
            check(&catalogue, &values).first().map(ToString::to_string)
        };
        assert_eq!(say("CHROME_TIMEOUT", "30"), None);
        assert_eq!(say("CHROME_ENABLED", "no"), None);
        assert_eq!(
            say("CHROME_ENABLED", "nope").unwrap(),
            "CHROME_ENABLED: 'nope' is not true or false"
        );
        assert_eq!(say("TIMEOUT", "1m").unwrap(), "TIMEOUT: '1m' is not a whole number");
        assert_eq!(say("CHROME_TIMEOUT", "3").unwrap(), "CHROME_TIMEOUT: '3' is below 5");
        assert_eq!(
            say("CHROME_PIN", "hunter2").unwrap(),
            "CHROME_PIN: the value is not a whole number"
        );
        assert_eq!(
            say("CHROME_ISOLATION", "page").unwrap(),
            "CHROME_ISOLATION: 'page' is not one of crawl, snapshot"
        );
        let unknown = say("CHROM_TIMEOUT", "3").unwrap();
        assert!(unknown.contains("did you mean CHROME_TIMEOUT"), "{unknown}");
        assert_eq!(say("LD_PRELOAD", "x").unwrap(), "LD_PRELOAD: no plugin has this setting");
    }
}
