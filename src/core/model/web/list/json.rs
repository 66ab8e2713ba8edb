//! JSON documents with pages: exports of services, bookmarks of Chromium and Firefox. A list with a
//! JSON object in each line is a list of lines.

use super::{ForeignFormat, Place, Structured};
use super::{foreign, object};
use crate::text::trim_blanks;
use serde_json::Value;

/// Reads a list that begins with a brace or bracket. `None` if it is a list of lines.
pub fn read(text: &[u8]) -> Result<Option<Structured>, ForeignFormat> {
    let Ok(text) = std::str::from_utf8(text) else {
        return Ok(None);
    };
    let text = trim_blanks(text);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let is_one_line = lines.take(2).count() == 1;
    let first = text.lines().next().unwrap_or_default();
    match serde_json::from_str::<Value>(first) {
        // Records, one in each line.
        Ok(Value::Object(object))
            if !is_one_line
                || object::address(&object).is_some()
                || object.contains_key("type") =>
        {
            return Ok(None);
        }
        _ => {}
    }
    let document = match serde_json::from_str::<Value>(text) {
        Ok(document) => document,
        Err(_) if ["{", "[", "[{"].contains(&first.trim()) => return Err(foreign::BROKEN_JSON),
        // Lines such as `[title](address)`.
        Err(_) => return Ok(None),
    };
    if document.pointer("/log/entries").is_some() {
        return Err(foreign::HAR);
    }
    let mut entries = Vec::new();
    collect(document, &mut entries);
    Ok(Some(Structured {
        format: "JSON file",
        entries,
    }))
}

/// Collects the pages of a document in their order; serde_json limits its depth.
fn collect(value: Value, entries: &mut Vec<(Place, String)>) {
    match value {
        Value::Array(values) => {
            for value in values {
                match value {
                    Value::String(line) => push(line.replace('\n', " "), entries),
                    value => collect(value, entries),
                }
            }
        }
        Value::Object(object) if object::address(&object).is_some() => {
            push(Value::Object(object).to_string(), entries);
        }
        Value::Object(object) => object
            .into_iter()
            .filter(|(_, value)| value.is_array() || value.is_object())
            .for_each(|(_, value)| collect(value, entries)),
        _ => {}
    }
}

fn push(line: String, entries: &mut Vec<(Place, String)>) {
    let number = entries.len() as u64 + 1;
    entries.push((Place::Element(number), line));
}
