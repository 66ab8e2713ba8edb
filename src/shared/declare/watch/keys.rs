//! The keys of `[Watch]`.

use super::{Alert, Missed, Schedule, Watch};
use crate::config::ini::Entry;
use archivist_core::model::{CheckKind, PageUrl};
use archivist_core::text::{SPAN_ALLOWED, parse_span};
use std::path::PathBuf;

pub const SECTION: &str = "Watch";

/// All of them, without '='.
pub const KEYS: [&str; 16] = [
    "URL",
    "URLFile",
    "Status",
    "Lighthouse",
    "Crawl",
    "Archive",
    "Missed",
    "Spread",
    "Retention",
    "DownAfter",
    "OnDown",
    "OnRecovery",
    "ArchiveDepth",
    "ArchiveTags",
    "ArchivePlugins",
    "ArchivePages",
];

/// Takes one assignment. An empty one puts the default back, as in systemd.
pub fn set(watch: &mut Watch, entry: &Entry) -> Result<(), String> {
    let value = entry.value.trim();
    let built_in = Watch::new("");
    let schedule = |kind: CheckKind, watch: &mut Watch| {
        if value.is_empty() {
            watch.schedules.remove(&kind)
        } else {
            watch.schedules.insert(kind, Schedule::parse(value)?)
        };
        Ok(())
    };
    match entry.key.as_str() {
        "URL" if value.is_empty() => watch.urls.clear(),
        "URL" => {
            for word in value.split_whitespace() {
                let url = PageUrl::parse(word).map_err(|error| format!("'{word}': {error}"))?;
                let url = url.as_str().to_owned();
                if !watch.urls.contains(&url) {
                    watch.urls.push(url);
                }
            }
        }
        "URLFile" if value.is_empty() => watch.url_file = None,
        "URLFile" => watch.url_file = Some(absolute(value)?),
        "Status" => return schedule(CheckKind::Status, watch),
        "Lighthouse" => return schedule(CheckKind::Lighthouse, watch),
        "Crawl" => return schedule(CheckKind::Crawl, watch),
        "Archive" => return schedule(CheckKind::Archive, watch),
        "Missed" => {
            watch.missed = match value {
                "" | "one" => Missed::One,
                "skip" => Missed::Skip,
                _ => return Err(format!("'{value}' is neither 'one' nor 'skip'")),
            }
        }
        "Spread" if value.is_empty() => watch.spread = built_in.spread,
        "Spread" => watch.spread = span(value)?,
        "Retention" if value.is_empty() => watch.retention = built_in.retention,
        "Retention" => watch.retention = span(value)?,
        "DownAfter" if value.is_empty() => watch.down_after = built_in.down_after,
        "DownAfter" => watch.down_after = number(value, 1, 100)?,
        "OnDown" if value.is_empty() => watch.on_down = None,
        "OnDown" => watch.on_down = Some(Alert::parse(value)?),
        "OnRecovery" if value.is_empty() => watch.on_recovery = None,
        "OnRecovery" => watch.on_recovery = Some(Alert::parse(value)?),
        "ArchiveDepth" if value.is_empty() => watch.archiving.depth = 0,
        "ArchiveDepth" => watch.archiving.depth = number(value, 0, 4)?,
        "ArchiveTags" => words(&mut watch.archiving.tags, value),
        "ArchivePlugins" => words(&mut watch.archiving.plugins, value),
        "ArchivePages" => {
            watch.archiving.only_new = match value {
                "" | "always" => false,
                "only-new" => true,
                _ => return Err(format!("'{value}' is neither 'always' nor 'only-new'")),
            }
        }
        // The generator says so.
        _ => {}
    }
    Ok(())
}

fn absolute(value: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(value);
    let climbs = path.components().any(|part| part.as_os_str() == "..");
    if path.is_absolute() && !climbs {
        Ok(path)
    } else {
        Err(format!("'{value}' is not an absolute path without '..'"))
    }
}

fn span(value: &str) -> Result<std::time::Duration, String> {
    parse_span(value).ok_or_else(|| format!("'{value}' is not {SPAN_ALLOWED}"))
}

fn number(value: &str, least: u32, most: u32) -> Result<u32, String> {
    let number = value.parse().ok().filter(|n| (least..=most).contains(n));
    number.ok_or_else(|| format!("'{value}' is not a whole number from {least} to {most}"))
}

/// More words for a list; none empties it.
fn words(list: &mut Vec<String>, value: &str) {
    let new = value
        .split([' ', '\t', ','])
        .filter(|word| !word.is_empty());
    if value.is_empty() {
        list.clear()
    } else {
        list.extend(new.map(str::to_owned))
    }
}
