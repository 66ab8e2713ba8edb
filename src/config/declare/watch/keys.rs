//! The keys of `[Watch]` (archivist.watch(5)).

use super::probe;
use super::{Missed, NAME_ALLOWED, Schedule, Watch, When, is_name};
use crate::alert::Alert;
use crate::declare::reader::Reader;
use archivist_core::model::{CheckKind, PageUrl, PersonaName, Task, parse_line, without_userinfo};
use archivist_core::text::is_value_name;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Section of all keys.
pub const SECTION: &str = "Watch";

/// All keys, without '='.
pub const KEYS: [&str; 36] = [
    "Label",
    "Notes",
    "URL",
    "URLFile",
    "Status",
    "Lighthouse",
    "Crawl",
    "Archive",
    "Missed",
    "Spread",
    "Retention",
    "StatusRetention",
    "LighthouseRetention",
    "CrawlRetention",
    "ArchiveRetention",
    "DownAfter",
    "OnDown",
    "OnRecovery",
    "Expect",
    "Keyword",
    "NotKeyword",
    "Method",
    "Header",
    "SecretHeader",
    "Accept",
    "Data",
    "Body",
    "CertificateWarnDays",
    "ClientCertificate",
    "ClientKey",
    "ArchiveDepth",
    "ArchiveTags",
    "ArchivePlugins",
    "ArchivePages",
    "ArchivePersona",
    "ArchiveSettings",
];

const SCHEDULES: [(&str, CheckKind); 4] = [
    ("Status", CheckKind::Status),
    ("Lighthouse", CheckKind::Lighthouse),
    ("Crawl", CheckKind::Crawl),
    ("Archive", CheckKind::Archive),
];

/// Reads a watch. A bad value is a problem of the reader, and the key keeps its default.
pub fn read(reader: &mut Reader<'_>) -> Watch {
    let mut watch = Watch::new(reader.name());
    if !is_name(reader.name()) {
        let name = reader.name();
        reader.refuse_all(&format!(
            "'{name}' cannot be the name of a watch: {NAME_ALLOWED}"
        ));
    }
    watch.label = reader.value("Label", text).unwrap_or_default();
    let notes = reader.all("Notes").into_iter();
    watch.notes = notes.map(|entry| entry.value.clone()).collect();
    watch.urls = urls(reader);
    watch.url_file = reader.value("URLFile", absolute);
    for (key, kind) in SCHEDULES {
        if let Some(schedule) = reader.value(key, Schedule::parse) {
            watch.schedules.insert(kind, schedule);
        }
    }
    if let Some(missed) = reader.value("Missed", missed) {
        watch.missed = missed;
    }
    if let Some(spread) = reader.span("Spread") {
        watch.spread = spread;
    }
    watch.retention = retention(reader);
    if let Some(failures) = reader.number("DownAfter", 1..=100) {
        watch.down_after = failures;
    }
    watch.on_down = reader.value("OnDown", Alert::parse);
    watch.on_recovery = reader.value("OnRecovery", Alert::parse);
    watch.probe = probe::read(reader);
    warn_of_idle_keys(reader, &watch);
    watch.archiving.depth = reader.number("ArchiveDepth", 0..=4).unwrap_or(0);
    watch.archiving.tags = words(reader, "ArchiveTags");
    watch.archiving.plugins = words(reader, "ArchivePlugins");
    watch.archiving.only_new = reader.value("ArchivePages", only_new).unwrap_or(false);
    watch.archiving.settings = settings(reader);
    if !reader.has_errors() && watch.urls.is_empty() && watch.url_file.is_none() {
        reader.refuse_all("nothing to watch: neither URL= nor URLFile= is set in [Watch]");
    }
    if watch.updates() {
        refuse_sites(reader, &watch);
    }
    watch
}

/// Refuses what a watch that updates the archive cannot have.
fn refuse_sites(reader: &mut Reader<'_>, watch: &Watch) {
    let update = Task::Update.url();
    if watch.urls.len() > 1 || watch.url_file.is_some() {
        reader.refuse_all(&format!("{update} is the only URL of its watch"));
    }
    if watch.schedule(CheckKind::Archive).when == When::Never {
        let what = format!("{update} needs a schedule, such as Archive=weekly");
        reader.refuse_all(&what);
    }
    for (key, kind) in SCHEDULES {
        if kind != CheckKind::Archive
            && watch.schedule(kind).when != When::Never
            && let Some(entry) = reader.last(key)
        {
            reader.refuse(entry, &format!("{key}= needs a site, and {update} is none"));
        }
    }
}

/// Warns of keys that only status checks use if there are none.
fn warn_of_idle_keys(reader: &mut Reader<'_>, watch: &Watch) {
    if watch.schedule(CheckKind::Status).when != When::Never {
        return;
    }
    for key in watch.probe.keys_of_status() {
        if let Some(entry) = reader.last(key.trim_end_matches('=')) {
            let what = format!("only status checks use {key}, and Status=no turns them off");
            reader.warn(entry, &what);
        }
    }
}

/// Returns the retention of each kind, from its own key or from `Retention=`. Alerts are kept as
/// long as status checks.
fn retention(reader: &mut Reader<'_>) -> BTreeMap<CheckKind, Duration> {
    let of_all = reader.span("Retention");
    let mut retention = BTreeMap::new();
    for (key, kind) in SCHEDULES {
        let own = reader.span(&format!("{key}Retention"));
        retention.extend(own.or(of_all).map(|span| (kind, span)));
    }
    let of_status = retention.get(&CheckKind::Status).copied();
    retention.extend(of_status.map(|span| (CheckKind::Alert, span)));
    retention
}

fn urls(reader: &mut Reader<'_>) -> Vec<String> {
    let mut urls = Vec::new();
    for entry in reader.all("URL") {
        for word in entry.value.split_whitespace() {
            if Task::parse(word) == Some(Task::Update) {
                urls.push(Task::Update.url());
                continue;
            }
            let url = parse_line(word.as_bytes()).map(|page| page.map(|page| page.url));
            match url.unwrap_or_else(|| PageUrl::parse(word)) {
                Ok(url) if urls.iter().any(|known| known == url.as_str()) => {}
                Ok(url) => urls.push(url.as_str().to_owned()),
                Err(error) => {
                    reader.refuse(entry, &format!("'{}': {error}", without_userinfo(word)));
                    break;
                }
            }
        }
    }
    urls
}

/// Returns the settings of the crawls: those of `ArchiveSettings=`, one in each assignment, and the
/// persona.
fn settings(reader: &mut Reader<'_>) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let persona = reader.value("ArchivePersona", |name| {
        let name = name.parse::<PersonaName>();
        name.map_err(|error| error.to_string())
    });
    settings.extend(persona.map(|name| ("ACTIVE_PERSONA".to_owned(), name.to_string())));
    for entry in reader.all("ArchiveSettings") {
        match entry.value.split_once('=') {
            Some((key, value)) if is_value_name(key) => {
                settings.insert(key.to_owned(), value.to_owned());
            }
            _ => {
                let what = format!(
                    "'{}' is not KEY=VALUE of a plugin's setting, such as WGET_TIMEOUT=30; write \
                     each setting on a line of its own",
                    entry.value
                );
                reader.refuse(entry, &what);
            }
        }
    }
    settings
}

fn text(value: &str) -> Result<String, String> {
    Ok(value.to_owned())
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

fn missed(value: &str) -> Result<Missed, String> {
    match value {
        "one" => Ok(Missed::One),
        "skip" => Ok(Missed::Skip),
        _ => Err(format!("'{value}' is neither 'one' nor 'skip'")),
    }
}

fn only_new(value: &str) -> Result<bool, String> {
    match value {
        "always" => Ok(false),
        "only-new" => Ok(true),
        _ => Err(format!("'{value}' is neither 'always' nor 'only-new'")),
    }
}

/// Returns the words of all assignments of a list since the last empty one.
fn words(reader: &Reader<'_>, key: &str) -> Vec<String> {
    let entries = reader.all(key).into_iter();
    entries
        .flat_map(|entry| entry.value.split([' ', '\t', ',']))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}
