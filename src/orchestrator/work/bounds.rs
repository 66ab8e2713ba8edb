//! Bounds of what a crawl may have, for every caller and for the rows of a fleet.

use archivist_core::model::{TAG_MAX, TAGS_MAX};
use std::collections::BTreeMap;

/// Largest settings of a crawl, in bytes: they are read for each of its hooks.
const SETTINGS_MAX: usize = 256 << 10;
const PLUGINS_MAX: usize = 1000;
const DEPTH_MAX: u32 = 4;

/// Returns why a crawl or page cannot have this depth and these tags, if so.
pub(crate) fn check_depth_and_tags(depth: u32, tags: &[String]) -> Result<(), String> {
    let longest = tags.iter().map(String::len).max();
    if tags.len() > TAGS_MAX || longest > Some(TAG_MAX) {
        return Err(format!("a crawl has at most {TAGS_MAX} tags of {TAG_MAX} bytes"));
    }
    if depth > DEPTH_MAX {
        return Err(format!("depth {depth} is not in 0..={DEPTH_MAX}"));
    }
    Ok(())
}

/// Returns why a user cannot give this tag, if so.
pub(crate) fn check_tag(name: &str) -> Result<(), String> {
    if name.trim().is_empty() || name.trim() != name || name.contains(char::is_control) {
        let name = name.escape_debug();
        return Err(format!(
            "'{name}' is not a tag: it is empty, has a control character, or a space at its begin or end"
        ));
    }
    if name.len() > TAG_MAX {
        return Err(format!("a tag has at most {TAG_MAX} bytes, this one has {}", name.len()));
    }
    Ok(())
}

/// Returns why a crawl cannot have so many plugins or settings, if so.
pub(crate) fn check_size(
    plugins: &[String],
    config: &BTreeMap<String, String>,
) -> Result<(), String> {
    let sizes = config.iter().map(|(key, value)| key.len() + value.len());
    let size: usize = sizes.sum();
    if size > SETTINGS_MAX || plugins.len() > PLUGINS_MAX {
        return Err(format!(
            "settings of {size} bytes and {} plugins: a crawl has at most {SETTINGS_MAX} bytes and {PLUGINS_MAX} plugins",
            plugins.len()
        ));
    }
    Ok(())
}
