//! Record of a crawl: its URLs and its options, under the names of this archive and of ArchiveBox.

use archivist_core::model::HIDDEN;
use archivist_shared::bus::documents::report::AddOptions;
use serde_json::{Map, Value};

/// Options in a record of a crawl, in addition to its URLs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    depth: Option<u32>,
    tags: Vec<String>,
    plugins: Vec<String>,
    config: Vec<(String, String)>,
    only_new: Option<bool>,
}

const PLUGINS: [&str; 3] = ["PLUGINS", "ENABLED_PLUGINS", "ENABLED_EXTRACTORS"];

/// Settings of ArchiveBox under other names, with the names that they have here.
const TRANSLATED: [(&str, &str); 2] =
    [("MAX_URLS", "CRAWL_MAX_URLS"), ("MAX_SIZE", "CRAWL_MAX_SIZE")];
const DEPTH: [&str; 2] = ["MAX_DEPTH", "DEPTH"];
/// Name of the setting that leaves out pages that the archive has.
const ONLY_NEW: &str = "ONLY_NEW";

/// The name that a setting has here.
fn translated(key: &str) -> &str {
    let mut pairs = TRANSLATED.iter();
    pairs.find(|(theirs, _)| *theirs == key).map_or(key, |(_, ours)| ours)
}

impl Options {
    /// Names of its settings.
    pub fn settings(&self) -> Vec<String> {
        self.config.iter().map(|(key, _)| key.clone()).collect()
    }

    /// The same without these settings.
    pub fn without(&self, settings: &[String]) -> Options {
        let mut options = self.clone();
        options.config.retain(|(key, _)| !settings.contains(key));
        options
    }

    /// Settings that replace those of the command line.
    pub fn over(&self, base: &AddOptions) -> AddOptions {
        let mut options = base.clone();
        options.depth = self.depth.unwrap_or(base.depth);
        options.tags.extend(self.tags.iter().cloned());
        if options.plugins.is_empty() {
            options.plugins.clone_from(&self.plugins);
        }
        options.config.extend(self.config.iter().cloned());
        options.only_new = self.only_new.unwrap_or(base.only_new);
        options
    }
}

/// Returns the URLs and options of a crawl; `None` without a URL.
pub fn read(record: &Map<String, Value>) -> Option<(Vec<String>, Options)> {
    let urls = urls(record);
    (!urls.is_empty()).then(|| (urls, options(record)))
}

fn urls(record: &Map<String, Value>) -> Vec<String> {
    let urls: Vec<&str> = match record.get("urls").or_else(|| record.get("url")) {
        Some(Value::String(text)) => text.lines().collect(),
        Some(Value::Array(urls)) => urls.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    urls.into_iter().map(str::trim).filter(|url| !url.is_empty()).map(str::to_owned).collect()
}

/// Returns the text of a setting; `None` if it has none, or if the record does not show it.
fn plain(value: &Value) -> Option<String> {
    match value {
        // The list of this archive has no type.
        Value::String(text) if text == HIDDEN => None,
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        // Lists and objects in settings are JSON too.
        other => Some(other.to_string()),
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn boolean(value: &Value) -> Option<bool> {
    match plain(value)?.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn options(record: &Map<String, Value>) -> Options {
    let depth = record.get("max_depth").or_else(|| record.get("depth"));
    let limits = ["max_urls", "max_size"].into_iter().filter_map(|key| {
        let value = record.get(key).and_then(plain)?;
        Some((translated(&key.to_uppercase()).to_owned(), value))
    });
    let mut options = Options {
        depth: depth.and_then(Value::as_u64).map(saturated),
        tags: words(record.get("tags_str").or_else(|| record.get("tags"))),
        config: limits.collect(),
        ..Options::default()
    };
    let mut own = Vec::new();
    let config = record.get("config").and_then(Value::as_object);
    for (key, value) in config.into_iter().flatten() {
        match key.as_str() {
            key if PLUGINS.contains(&key) => options.plugins.extend(words(Some(value))),
            key if DEPTH.contains(&key) => {
                options.depth = options.depth.or_else(|| number(value).map(saturated));
            }
            ONLY_NEW => options.only_new = boolean(value),
            key => match plain(value) {
                Some(value) if translated(key) == key => own.push((key.to_owned(), value)),
                Some(value) => options.config.push((translated(key).to_owned(), value)),
                None => {}
            },
        }
    }
    // A setting under its name here wins over one that is translated.
    options.config.extend(own);
    options
}

fn saturated(depth: u64) -> u32 {
    u32::try_from(depth).unwrap_or(u32::MAX)
}

/// Returns the words of `"a, b"` or `["a", "b"]`.
pub fn words(value: Option<&Value>) -> Vec<String> {
    let words: Vec<&str> = match value {
        Some(Value::String(text)) => text.split(',').collect(),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let words = words.into_iter().map(str::trim).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crawl(text: &str) -> (Vec<String>, Options) {
        let record = serde_json::from_str(text).unwrap();
        read(&record).expect("a record with URLs")
    }

    #[test]
    fn a_crawl_has_options_of_its_own() {
        let text = r#"{"type":"Crawl","urls":"http://a/\n\nhttp://b/","max_depth":1,"tags_str":"x","config":{"TIMEOUT":5,"WGET_ARGS":["-4"],"N":null,"PLUGINS":"wget, title"}}"#;
        let (urls, options) = crawl(text);
        assert_eq!(urls, ["http://a/", "http://b/"]);
        let base = AddOptions { tags: vec!["mine".into()], ..AddOptions::default() };
        let options = options.over(&base);
        assert_eq!((options.depth, options.tags.len()), (1, 2));
        assert_eq!(options.config["TIMEOUT"], "5");
        assert_eq!(options.config["WGET_ARGS"], r#"["-4"]"#);
        assert!(!options.config.contains_key("N") && !options.config.contains_key("PLUGINS"));
        assert_eq!(options.plugins, ["wget", "title"]);
    }

    #[test]
    fn settings_of_archivebox_are_translated() {
        let of = |text: &str| crawl(text).1;
        let options = of(
            r#"{"type":"Crawl","urls":"http://a/","max_size":0,"config":{"MAX_URLS":7,"MAX_DEPTH":"2","ADMIN":"x"}}"#,
        );
        let base = options.over(&AddOptions::default());
        assert_eq!(base.depth, 2);
        assert_eq!(base.config["CRAWL_MAX_URLS"], "7");
        assert_eq!(base.config["CRAWL_MAX_SIZE"], "0");
        let known = options.without(&["ADMIN".to_owned()]);
        assert_eq!(known.settings(), ["CRAWL_MAX_SIZE", "CRAWL_MAX_URLS"]);
        let both = of(
            r#"{"type":"Crawl","urls":"http://a/","max_depth":1,"config":{"CRAWL_MAX_URLS":"3","DEPTH":4,"MAX_URLS":9}}"#,
        );
        let both = both.over(&AddOptions::default());
        assert_eq!((both.depth, both.config["CRAWL_MAX_URLS"].as_str()), (1, "3"));
    }
    #[test]
    fn pages_that_the_archive_has_are_left_out_if_the_record_says_so() {
        let only_new = |value: &str, base: bool| {
            let text =
                format!(r#"{{"type":"Crawl","urls":"http://a/","config":{{"ONLY_NEW":{value}}}}}"#);
            let options = crawl(&text).1;
            assert!(options.settings().is_empty(), "not a setting of a plugin");
            let base = AddOptions { only_new: base, ..AddOptions::default() };
            options.over(&base).only_new
        };
        for yes in ["true", r#""True""#, "1", r#""yes""#] {
            assert!(only_new(yes, false), "{yes}");
        }
        for no in ["false", r#""off""#, "0"] {
            assert!(!only_new(no, true), "{no}");
        }
        for base in [true, false] {
            assert_eq!(only_new("null", base), base, "not in the record");
        }
    }
}
