//! Parses `binaries.jsonl` of an older plugin: the required programs as Binary records, one a line.

use serde_json::{Map, Value};

use crate::programs::requirement::{Requirement, split_providers};

/// Largest number of programs in one file.
const ENTRIES_MAX: usize = 1000;

/// Parses the records. Skips empty lines, comments (`#`) and records of other types. Also returns
/// the number of other lines that are not Binary records with a name.
pub fn parse(text: &str) -> (Vec<Requirement>, usize) {
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (mut found, mut bad) = (Vec::new(), 0);
    for line in lines.take(ENTRIES_MAX) {
        match serde_json::from_str(line) {
            Ok(Value::Object(record)) if !is_other(&record) => match entry(&record) {
                Some(entry) => found.push(entry),
                None => bad += 1,
            },
            Ok(Value::Object(_)) => {}
            _ => bad += 1,
        }
    }
    (found, bad)
}

fn is_other(record: &Map<String, Value>) -> bool {
    let kind = record.get("type").and_then(Value::as_str);
    kind.is_some_and(|kind| kind != "Binary" && kind != "BinaryRequest")
}

fn entry(record: &Map<String, Value>) -> Option<Requirement> {
    let text = |key: &str| Some(record.get(key)?.as_str()?.trim().to_owned());
    let overrides = record.get("overrides").and_then(Value::as_object);
    Some(Requirement {
        name: text("name").filter(|name| !name.is_empty())?,
        providers: split_providers(&text("binproviders").unwrap_or_default()),
        min_version: text("min_version"),
        overrides: overrides.cloned().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_are_parsed_and_bad_lines_counted() {
        let text = concat!(
            "# what it needs\n\n",
            r#"{"type": "Binary", "name": "wget", "binproviders": "env, apt", "overrides": {"apt": {"install_args": ["wget"]}}}"#,
            "\n",
            r#"{"name": "yt-dlp", "binproviders": "pip", "min_version": "2024.1"}"#,
            "\n",
            r#"{"type": "Machine", "config": {}}"#,
            "\n{\"type\": \"Binary\"}\n{broken\n[]\n",
        );
        let (found, bad) = parse(text);
        let names: Vec<_> = found.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!((names.as_slice(), bad), (&["wget", "yt-dlp"][..], 3));
        assert_eq!(found[0].providers, ["env", "apt"]);
        assert!(found[0].overrides.contains_key("apt"));
        assert_eq!(found[1].min_version.as_deref(), Some("2024.1"));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(text in "\\PC{0,80}|[{}\":,a-z\\[\\]\n]{0,80}") {
            prop_assert!(parse(&text).0.len() <= ENTRIES_MAX);
        }
    }
}
