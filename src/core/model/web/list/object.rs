//! A page as a JSON object: a line of ours, or an element of what services for bookmarks export.

use super::line::LineEntry;
use crate::model::web::url::{PageUrl, UrlError};
use crate::model::{TIME_MAX, Tags, cut};
use crate::text::trim_blanks;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Names of the address: ours, Pinboard's, Firefox's, Pocket's.
const ADDRESS: [&str; 6] = ["url", "href", "uri", "link", "resolved_url", "given_url"];
/// Names of the title: ours, Chromium's, Pocket's.
const TITLE: [&str; 4] = ["title", "name", "resolved_title", "given_title"];
const TIME: [&str; 6] =
    ["bookmarked_at", "timestamp", "time", "time_added", "created_at", "savedAt"];

/// Returns the address in an object; `None` if it has none.
pub fn address(object: &Map<String, Value>) -> Option<&str> {
    let mut values = ADDRESS.iter().filter_map(|key| object.get(*key));
    values.find_map(Value::as_str)
}

/// Parses a JSON object with `url`, `depth`, `title`, `tags`, `config` and `bookmarked_at` or `timestamp`, or
/// with the names that exports of other programs have.
pub fn parse(text: &str) -> Result<LineEntry, UrlError> {
    let object: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| UrlError::Object(error.to_string()))?;
    let missing = || UrlError::Object("no \"url\"".to_owned());
    let url = PageUrl::parse(trim_blanks(address(&object).ok_or_else(missing)?))?;
    let depth = object.get("depth").and_then(Value::as_u64).unwrap_or(0);
    let is_pinboard = object.contains_key("href");
    let titles = TITLE.iter().chain(is_pinboard.then_some(&"description"));
    let title = titles
        .filter_map(|key| object.get(*key)?.as_str())
        .map(str::trim)
        .find(|title| !title.is_empty());
    let time = TIME.iter().find_map(|key| match object.get(*key)? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    Ok(LineEntry {
        url,
        bookmarked_at: time.filter(|text| !text.is_empty() && text.len() <= TIME_MAX),
        depth: u32::try_from(depth)
            .map_err(|_| UrlError::Object("\"depth\" is too large".to_owned()))?,
        title: title.map(|title| cut(title.to_owned())),
        tags: tags(&object, is_pinboard),
        config: config(&object)?,
    })
}

/// Returns the settings of a page in an object.
fn config(object: &Map<String, Value>) -> Result<BTreeMap<String, String>, UrlError> {
    let of_page = match object.get("config") {
        None | Some(Value::Null) => None,
        Some(Value::Object(settings)) => Some(settings),
        Some(_) => return Err(UrlError::Object("\"config\" is no object".to_owned())),
    };
    let setting = |(key, value): (&String, &Value)| match value {
        Value::String(text) => Ok((key.clone(), text.clone())),
        Value::Number(_) | Value::Bool(_) => Ok((key.clone(), value.to_string())),
        _ => Err(UrlError::Object(format!("\"{key}\" in \"config\" is no text"))),
    };
    of_page.into_iter().flatten().map(setting).collect()
}

pub fn tags_of(object: &Map<String, Value>) -> Vec<String> {
    tags(object, object.contains_key("href"))
}

/// Returns the tags of an object without surrounding blanks, up to the limit.
fn tags(object: &Map<String, Value>, is_pinboard: bool) -> Vec<String> {
    let names: Vec<&str> = match object.get("tags").or_else(|| object.get("labels")) {
        Some(Value::String(tags)) if is_pinboard && !tags.contains(',') => {
            tags.split_whitespace().collect()
        }
        Some(Value::String(tags)) => tags.split(',').collect(),
        Some(Value::Array(tags)) => {
            let names = tags.iter().map(|tag| tag.get("name").unwrap_or(tag));
            names.filter_map(Value::as_str).collect()
        }
        _ => Vec::new(),
    };
    let mut tags = Tags::default();
    let names = names.into_iter().map(str::trim);
    tags.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
    tags.into_names()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_ours_and_of_services_are_read() {
        for (text, title, tags, time) in [
            (
                r#"{"url":"http://a.test/","depth":1,"tags":"a, b","timestamp":17}"#,
                None,
                &["a", "b"][..],
                Some("17"),
            ),
            (
                r#"{"href":"http://a.test/","description":"T","extended":"","tags":"a b","time":"2020-01-01T00:00:00Z"}"#,
                Some("T"),
                &["a", "b"],
                Some("2020-01-01T00:00:00Z"),
            ),
            (
                r#"{"type":"text/x-moz-place","uri":"http://a.test/","title":"T","tags":"a,b c"}"#,
                Some("T"),
                &["a", "b c"],
                None,
            ),
            (r#"{"type":"url","name":"T","url":"http://a.test/"}"#, Some("T"), &[], None),
            (
                r#"{"title":null,"url":"http://a.test/","labels":[{"name":"x"},"y",7]}"#,
                None,
                &["x", "y"],
                None,
            ),
        ] {
            let entry = parse(text).unwrap();
            assert_eq!(entry.url.as_str(), "http://a.test/");
            let found = (entry.title.as_deref(), entry.bookmarked_at.as_deref());
            assert_eq!(found, (title, time), "{text}");
            assert_eq!(entry.tags, tags, "{text}");
        }
    }

    #[test]
    fn settings_of_the_page_are_read_as_text() {
        let text = r#"{"url":"http://a/","config":{"TIMEOUT":9,"DOM_ENABLED":false,"X":"y"}}"#;
        let config = parse(text).unwrap().config;
        let config: Vec<_> = config.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(config, ["DOM_ENABLED=false", "TIMEOUT=9", "X=y"]);
        assert!(parse(r#"{"url":"http://a/","config":null}"#).unwrap().config.is_empty());
    }

    #[test]
    fn reasons_name_the_object() {
        for (text, why) in [
            (r#"{"url": 7}"#, "no \"url\""),
            (r#"{"url": "#, "JSON"),
            (r#"{"url":"mailto:a"}"#, "mailto:"),
            (r#"{"url":"http://a/","depth":5000000000}"#, "too large"),
            (r#"{"url":"http://a/","config":"TIMEOUT=9"}"#, "\"config\" is no object"),
            (r#"{"url":"http://a/","config":{"TIMEOUT":[9]}}"#, "\"TIMEOUT\" in \"config\""),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
