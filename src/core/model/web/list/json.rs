//! JSON documents with pages: exports of services, bookmarks of Chromium and Firefox. A list with a
//! JSON object in each line is a list of lines.

use super::moment::moment;
use super::{Folders, ForeignFormat, Place, Structured};
use super::{foreign, object};
use crate::text::trim_blanks;
use serde_json::{Map, Value};

/// Reads a list that begins with a brace or bracket. `None` if it is a list of lines.
pub fn read(text: &[u8], folders: Folders) -> Result<Option<Structured>, ForeignFormat> {
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
                || object.contains_key("type") && !object.contains_key("children") =>
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
    let format = format(&document);
    let mut reader = DocumentReader { folders, above: Vec::new(), entries: Vec::new() };
    reader.collect(document);
    Ok(Some(Structured { format, entries: reader.entries }))
}

const TIME: [&str; 12] = [
    "bookmarked_at",
    "timestamp",
    "time",
    "time_added",
    "created_at",
    "createdAt",
    "savedAt",
    "dateAdded",
    "date_added",
    "created",
    "importDate",
    "date_published",
];
/// Names of the lists in a folder: of browsers, of linkwarden.
const LISTS: [&str; 2] = ["children", "links"];
/// Begin of the ids of the folders that every Firefox has.
const ROOTS: [&str; 5] = ["root____", "menu____", "toolbar_", "unfiled_", "mobile__"];
/// The object of Chromium whose values are the folders that every Chromium has.
const CHROMIUM_ROOTS: &str = "roots";
/// Folders above an entry that are read.
const DEPTH_MAX: usize = 16;

fn format(document: &Value) -> &'static str {
    let first = document.get(0).unwrap_or(document);
    let has = |names: &[&str]| names.iter().all(|name| first.get(name).is_some());
    if has(&[CHROMIUM_ROOTS]) {
        "Chromium bookmark file"
    } else if has(&["guid", "children"]) {
        "Firefox bookmark file"
    } else if has(&["collections"]) {
        "linkwarden file"
    } else if first.pointer("/bookmarks/0/content").is_some() {
        "karakeep file"
    } else if has(&["href", "extended"]) {
        "Pinboard file"
    } else if has(&["is_archived", "url"]) {
        "wallabag file"
    } else if has(&["slug", "savedAt"]) {
        "Omnivore file"
    } else {
        "JSON file"
    }
}

struct DocumentReader {
    folders: Folders,
    /// Names of the folders around the present value.
    above: Vec<String>,
    entries: Vec<(Place, String)>,
}

impl DocumentReader {
    /// Collects the pages of a document in their order; serde_json limits its depth.
    fn collect(&mut self, value: Value) {
        match value {
            Value::Array(values) => {
                for value in values {
                    match value {
                        Value::String(line) => push(line.replace('\n', " "), &mut self.entries),
                        value => self.collect(value),
                    }
                }
            }
            Value::Object(mut object) => {
                // karakeep has the address in the content.
                if object::address(&object).is_none()
                    && let Some(Value::Object(content)) = object.remove("content")
                {
                    for (name, value) in content {
                        if name == "url" || name == "title" && is_empty(object.get("title")) {
                            object.insert(name, value);
                        }
                    }
                }
                if object::address(&object).is_some() {
                    self.page(object);
                } else {
                    self.folder(object);
                }
            }
            _ => {}
        }
    }

    fn page(&mut self, mut object: Map<String, Value>) {
        let time = TIME.iter().find_map(|name| match object.get(*name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        if let Some(time) = time {
            let time = moment(&time).unwrap_or(time);
            object.insert(TIME[0].to_owned(), Value::String(time));
        }
        if self.folders == Folders::AsTags && !self.above.is_empty() {
            let mut tags = object::tags_of(&object);
            tags.extend(self.above.iter().take(DEPTH_MAX).cloned());
            object.insert("tags".to_owned(), tags.into());
        }
        push(Value::Object(object).to_string(), &mut self.entries);
    }

    fn folder(&mut self, object: Map<String, Value>) {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let is_root = text("guid").is_some_and(|id| ROOTS.iter().any(|root| id.starts_with(root)));
        let is_folder = LISTS.iter().any(|list| object.contains_key(*list)) && !is_root;
        let name = text("name").or_else(|| text("title"));
        let name = name.filter(|name| is_folder && !name.is_empty()).map(str::to_owned);
        let is_named = name.is_some();
        self.above.extend(name);
        for (key, value) in object {
            match value {
                Value::Object(roots) if key == CHROMIUM_ROOTS => {
                    for (_, mut root) in roots {
                        if let Some(root) = root.as_object_mut() {
                            root.remove("name");
                        }
                        self.collect(root);
                    }
                }
                Value::Array(_) | Value::Object(_) => self.collect(value),
                _ => {}
            }
        }
        if is_named {
            self.above.pop();
        }
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_none_or(str::is_empty)
}

fn push(line: String, entries: &mut Vec<(Place, String)>) {
    let number = entries.len() as u64 + 1;
    entries.push((Place::Element(number), line));
}
