//! Parses the text of a setting as the type in its schema.

use serde_json::{Number, Value};

use crate::catalogue::schema::{Property, SettingKind};

/// Parses the text as this type, or returns `None`. Numbers are decimal; lists are JSON or
/// separated by commas; objects are JSON.
pub fn typed(kind: SettingKind, text: &str) -> Option<Value> {
    let trimmed = text.trim();
    match kind {
        SettingKind::String => Some(Value::String(text.to_owned())),
        SettingKind::Boolean => boolean(trimmed).map(Value::Bool),
        SettingKind::Integer => integer(trimmed),
        SettingKind::Number => integer(trimmed)
            .or_else(|| Some(Value::Number(Number::from_f64(trimmed.parse().ok()?)?))),
        SettingKind::Array => Some(list(trimmed)),
        SettingKind::Object => serde_json::from_str(trimmed).ok().filter(Value::is_object),
    }
}

/// Parses the words for booleans of both generations. Empty is false.
pub fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" | "" => Some(false),
        _ => None,
    }
}

/// Parses a whole number; `60.0` is valid.
fn integer(text: &str) -> Option<Value> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(Value::from(number));
    }
    let number: f64 = text.parse().ok()?;
    let whole = number.fract() == 0.0 && number.abs() < 9e15;
    whole.then(|| Value::from(number as i64))
}

fn list(text: &str) -> Value {
    if let Ok(list @ Value::Array(_)) = serde_json::from_str(text) {
        return list;
    }
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    Value::Array(words.map(Value::from).collect())
}

/// Why a value violates the limits of its schema, or `None`.
pub fn objection(property: &Property, value: &Value) -> Option<String> {
    if !property.allowed.is_empty() && !property.allowed.contains(value) {
        let allowed: Vec<String> = property.allowed.iter().map(plain).collect();
        return Some(format!("is not one of {}", allowed.join(", ")));
    }
    if let Some(number) = value.as_f64() {
        if let Some(low) = property.minimum.filter(|low| number < *low) {
            return Some(format!("is below {low}"));
        }
        if let Some(high) = property.maximum.filter(|high| number > *high) {
            return Some(format!("is above {high}"));
        }
    }
    // Ignore patterns of other dialects, which the regex crate cannot compile: the plugin checks
    // them.
    let pattern = regex::Regex::new(property.pattern.as_ref()?).ok()?;
    match value.as_str() {
        Some(text) if !pattern.is_match(text) => Some(format!("does not match {pattern}")),
        _ => None,
    }
}

/// Clamps a number to the limits of its schema. Only used for values of fallback settings: values
/// for the setting itself are passed unchanged.
pub fn clamp(property: &Property, value: Value) -> Value {
    let Some(number) = value.as_f64() else {
        return value;
    };
    let low = property.minimum.filter(|low| number < *low);
    let high = property.maximum.filter(|high| number > *high);
    match low.or(high) {
        None => value,
        Some(bound) if property.kind == SettingKind::Integer => Value::from(bound as i64),
        Some(bound) => Number::from_f64(bound).map_or(value, Value::Number),
    }
}

/// A value as text, with strings unquoted.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn booleans_are_parsed() {
        for text in ["true", "True", "1", "YES", " on "] {
            assert_eq!(boolean(text), Some(true), "{text}");
        }
        for text in ["false", "FALSE", "0", "no", "off", ""] {
            assert_eq!(boolean(text), Some(false), "{text}");
        }
        assert_eq!(boolean("maybe"), None);
    }

    #[test]
    fn other_types_are_parsed() {
        assert_eq!(typed(SettingKind::Integer, " 60 "), Some(json!(60)));
        assert_eq!(typed(SettingKind::Integer, "60.0"), Some(json!(60)));
        assert_eq!(typed(SettingKind::Integer, "1e300"), None);
        assert_eq!(typed(SettingKind::Integer, "sixty"), None);
        assert_eq!(typed(SettingKind::Number, "0.5"), Some(json!(0.5)));
        assert_eq!(typed(SettingKind::Number, "inf"), None);
        assert_eq!(typed(SettingKind::Array, r#"["--a", "b,c"]"#), Some(json!(["--a", "b,c"])));
        assert_eq!(typed(SettingKind::Array, "--a, --b,"), Some(json!(["--a", "--b"])));
        assert_eq!(typed(SettingKind::Array, ""), Some(json!([])));
        assert_eq!(typed(SettingKind::Object, r#"{"a": 1}"#), Some(json!({"a": 1})));
        assert_eq!(typed(SettingKind::Object, "[1]"), None);
        assert_eq!(typed(SettingKind::String, " as is\n"), Some(json!(" as is\n")));
    }

    fn property(extra: Value) -> Property {
        let text = json!({"properties": {"A": extra}}).to_string();
        let schema = crate::catalogue::schema::Schema::parse("f".as_ref(), &text).unwrap();
        schema.properties["A"].clone()
    }

    #[test]
    fn objections_name_the_violated_limit() {
        let choice = property(json!({"enum": ["crawl", "snapshot"]}));
        assert_eq!(objection(&choice, &json!("page")).unwrap(), "is not one of crawl, snapshot");
        let number = property(json!({"type": "integer", "minimum": 5, "maximum": 9}));
        assert_eq!(objection(&number, &json!(4)).unwrap(), "is below 5");
        assert_eq!(objection(&number, &json!(10)).unwrap(), "is above 9");
        assert_eq!(objection(&number, &json!(7)), None);
        let size = property(json!({"pattern": "^\\d+,\\d+$"}));
        assert_eq!(objection(&size, &json!("1440x900")).unwrap(), r"does not match ^\d+,\d+$");
        assert_eq!(objection(&size, &json!("1440,900")), None);
        assert_eq!(clamp(&number, json!(3)), json!(5));
        assert_eq!(clamp(&number, json!(60)), json!(9));
    }

    proptest! {
        #[test]
        fn typing_never_panics(text in "\\PC{0,40}") {
            for kind in [SettingKind::String, SettingKind::Integer, SettingKind::Number, SettingKind::Boolean, SettingKind::Array, SettingKind::Object] {
                let _ = typed(kind, &text);
            }
        }

        #[test]
        fn integers_round_trip(number in any::<i64>()) {
            prop_assert_eq!(typed(SettingKind::Integer, &number.to_string()), Some(json!(number)));
        }
    }
}
