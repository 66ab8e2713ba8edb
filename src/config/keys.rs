//! All keys, in one table for the reader, `archivist config` and the test against
//! archivist.conf(5).

use super::{NetworkMode, Settings, fleet};
use crate::alert::Alert;
use archivist_core::model::web::filter::{UrlFilter, split_commas};
use archivist_core::model::{HttpErrors, Reach};
use archivist_core::store::{KEEP_ALLOWED, KeepLocal, LOCATION_ALLOWED, Location};
use archivist_core::text::{
    SIZE_ALLOWED, SPAN_ALLOWED, did_you_mean, exact_size, exact_span, is_value_name, parse_size,
    parse_span, similar,
};
use std::path::PathBuf;
use std::time::Duration;

/// Section with values for plugins, whose keys belong to the plugins.
pub const VALUES: &str = "Config";

/// One key of the configuration.
pub struct Key {
    /// Section of archivist.conf(5).
    pub section: &'static str,
    /// Name of the key.
    pub name: &'static str,
    /// Sets a non-empty value; the error says what is allowed.
    pub set: fn(&mut Settings, &str) -> Result<(), &'static str>,
    /// Restores the built-in value, as an empty assignment does.
    pub reset: fn(&mut Settings, Settings),
    /// Returns the value in the syntax of the file; lists have one line per element.
    pub show: fn(&Settings) -> String,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}] {}=", self.section, self.name)
    }
}

macro_rules! key {
    ($section:literal, $name:literal, $field:ident, $read:expr, $show:expr) => {
        Key {
            section: $section,
            name: $name,
            set: |settings, text| {
                $read(&mut settings.$field, text)?;
                Ok(())
            },
            reset: |settings, built_in| settings.$field = built_in.$field,
            show: |settings| $show(&settings.$field),
        }
    };
}

/// Every key of archivist.conf(5) except those of `[Config]`.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key!("Orchestrator", "WorkersPerKind", workers_per_kind, count, u32::to_string),
    key!("Orchestrator", "WorkersMax", workers_max, count, u32::to_string),
    key!("Orchestrator", "SnapshotsPerCrawl", snapshots_per_crawl, count, u32::to_string),
    key!("Orchestrator", "HostWorkers", host_workers, count, u32::to_string),
    key!("Orchestrator", "HostDelaySec", host_delay, span, shown_span),
    key!("Orchestrator", "FastChecks", fast_checks, count, u32::to_string),
    key!("Orchestrator", "SlowChecks", slow_checks, count, u32::to_string),
    key!("Orchestrator", "MemoryPressureMax", memory_pressure_max, percent, shown_percent),
    key!("Orchestrator", "StartsInFlight", starts_in_flight, count, u32::to_string),
    key!("Orchestrator", "IdleTimeoutSec", idle_timeout, span, shown_span),
    key!("Orchestrator", "AttemptsMax", attempts_max, count, u32::to_string),
    key!("Orchestrator", "RetrySec", retry_first, positive_span, shown_span),
    key!("Orchestrator", "RetryMaxSec", retry_longest, positive_span, shown_span),
    key!("Orchestrator", "HttpErrors", http_errors, http_errors, HttpErrors::to_string),
    key!("Orchestrator", "HttpAttempts", http_attempts, count, u32::to_string),
    key!("Orchestrator", "HttpWaitMaxSec", http_wait_max, positive_span, shown_span),
    key!("Orchestrator", "SnapshotMaxSec", snapshot_limit, positive_span, shown_span),
    key!("Orchestrator", "OnSealed", on_sealed, alert, shown_alert),
    key!("Orchestrator", "OnFailed", on_failed, alert, shown_alert),
    key!("Orchestrator", "OnIdle", on_idle, alert, shown_alert),
    key!("Orchestrator", "MembersInstall", members_install, yes_or_no, shown_yes_or_no),
    key!("Archive", "MinFreeSpace", min_free_space, size_or_none, shown_size),
    key!("Archive", "PluginPath", plugin_path, directory, shown_paths),
    key!("Archive", "Plugins", plugins, words, shown_words),
    key!("Archive", "SharedIndex", shared_index, yes_or_no, shown_yes_or_no),
    key!("Archive", "UrlAllowList", url_allow, patterns, String::clone),
    key!("Archive", "UrlDenyList", url_deny, patterns, String::clone),
    key!("Hooks", "TimeoutSec", hook_timeout, positive_span, shown_span),
    key!("Hooks", "ReadyTimeoutSec", ready_limit, positive_span, shown_span),
    key!("Hooks", "StopTimeoutSec", stop_limit, positive_span, shown_span),
    key!("Hooks", "DaemonMaxSec", daemon_limit, positive_span, shown_span),
    key!("Hooks", "StdoutMax", output_limit, size, shown_size),
    key!("Hooks", "Network", network, network, shown_network),
    key!("Hooks", "Reach", reach, reach, Reach::to_string),
    key!("Fleet", "Database", fleet_database, fleet::database, String::clone),
    key!("Fleet", "Name", fleet_name, fleet::name, String::clone),
    key!("Fleet", "LeaseSec", lease, fleet::lease, shown_lease),
    key!("Fleet", "Store", store, location, shown_location),
    key!("Fleet", "KeepLocal", keep_local, keep_local, KeepLocal::to_string),
];

/// Returns the key of this name, or `None` if it is unknown.
pub fn find(section: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter()
        .find(|key| key.section == section && key.name == name)
}

/// Returns why `[section] name=` is unknown, with a correction if possible.
pub fn explain_unknown(section: &str, name: &str) -> String {
    let sections = ["Orchestrator", "Archive", "Hooks", "Fleet", VALUES];
    if !sections.contains(&section) {
        return format!(
            "unknown section [{section}]; there are [Orchestrator], [Archive], [Hooks], [Fleet] and [Config]"
        );
    }
    if let Some(elsewhere) = KEYS.iter().find(|key| key.name == name) {
        return format!("{name}= belongs in section [{}]", elsewhere.section);
    }
    let similar = similar(name, KEYS.iter().map(|key| key.name));
    let nearest = KEYS.iter().find(|key| similar.first() == Some(&key.name));
    match nearest {
        Some(key) => format!(
            "unknown key {name}= in section [{section}]{}",
            did_you_mean(&[format!("{}= in [{}]", key.name, key.section)])
        ),
        None if is_value_name(name) => {
            format!(
                "unknown key {name}= in section [{section}]; settings of plugins belong in [Config]"
            )
        }
        None => format!("unknown key {name}= in section [{section}]; see archivist.conf(5)"),
    }
}

type Read = Result<(), &'static str>;

fn count(field: &mut u32, text: &str) -> Read {
    *field = text
        .parse()
        .ok()
        .filter(|n| (1..=10_000).contains(n))
        .ok_or("a whole number from 1 to 10000")?;
    Ok(())
}

fn span(field: &mut Duration, text: &str) -> Read {
    *field = parse_span(text).ok_or(SPAN_ALLOWED)?;
    Ok(())
}

fn positive_span(field: &mut Duration, text: &str) -> Read {
    span(field, text)?;
    if field.is_zero() {
        Err("a time span longer than 0, like 30s or 5min")
    } else {
        Ok(())
    }
}

fn percent(field: &mut u32, text: &str) -> Read {
    *field = text
        .strip_suffix('%')
        .and_then(|number| number.parse().ok())
        .filter(|n| (1..=100).contains(n))
        .ok_or("a share from 1% to 100%")?;
    Ok(())
}

fn shown_percent(percent: &u32) -> String {
    format!("{percent}%")
}

fn size(field: &mut u64, text: &str) -> Read {
    *field = parse_size(text).filter(|n| *n > 0).ok_or(SIZE_ALLOWED)?;
    Ok(())
}

/// Also accepts 0.
fn size_or_none(field: &mut u64, text: &str) -> Read {
    *field = parse_size(text).ok_or(SIZE_ALLOWED)?;
    Ok(())
}

fn directory(field: &mut Vec<PathBuf>, text: &str) -> Read {
    let path = PathBuf::from(text);
    if !path.is_absolute() || path.components().any(|c| c.as_os_str() == "..") {
        return Err("the absolute path of a directory, without '..'");
    }
    field.push(path);
    Ok(())
}

fn words(field: &mut Vec<String>, text: &str) -> Read {
    let new = text.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    for word in new {
        let fine = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if !word.bytes().all(fine) {
            return Err(
                "names of plugins, separated by blanks or commas, like: wget title screenshot",
            );
        }
        field.push(word.to_owned());
    }
    Ok(())
}

fn yes_or_no(field: &mut bool, text: &str) -> Read {
    *field = match text {
        "yes" | "true" | "on" | "1" => true,
        "no" | "false" | "off" | "0" => false,
        _ => return Err("yes or no"),
    };
    Ok(())
}

fn shown_yes_or_no(value: &bool) -> String {
    if *value { "yes" } else { "no" }.to_owned()
}

/// Patterns are stored as one string with a line for each.
fn patterns(field: &mut String, text: &str) -> Read {
    let entries = split_commas(text).into_iter().map(str::trim);
    for entry in entries.filter(|entry| !entry.is_empty()) {
        if UrlFilter::new(entry, "").is_err() {
            return Err(
                "domains (example.com, *.example.com) and regular expressions, separated by commas",
            );
        }
        if !field.is_empty() {
            field.push('\n');
        }
        field.push_str(entry);
    }
    Ok(())
}

fn network(field: &mut NetworkMode, text: &str) -> Read {
    *field = NetworkMode::parse(text).ok_or("auto, host or private")?;
    Ok(())
}

fn reach(field: &mut Reach, text: &str) -> Read {
    *field = Reach::parse(text).ok_or(
        "public, any, or words of loopback, private and networks like 10.2.0.0/16; link-local and metadata addresses cannot be allowed",
    )?;
    Ok(())
}

fn http_errors(field: &mut HttpErrors, text: &str) -> Read {
    *field = HttpErrors::parse(text).ok_or("keep, fail or retry")?;
    Ok(())
}

fn location(field: &mut Option<Location>, text: &str) -> Read {
    *field = Some(Location::parse(text).ok_or(LOCATION_ALLOWED)?);
    Ok(())
}

fn shown_location(location: &Option<Location>) -> String {
    location
        .as_ref()
        .map(Location::to_string)
        .unwrap_or_default()
}

fn keep_local(field: &mut KeepLocal, text: &str) -> Read {
    *field = KeepLocal::parse(text).ok_or(KEEP_ALLOWED)?;
    Ok(())
}

fn alert(field: &mut Option<Alert>, text: &str) -> Read {
    let allowed = "a unit, like notify@.service, or a command that begins with an absolute path";
    *field = Some(Alert::parse(text).map_err(|_| allowed)?);
    Ok(())
}

fn shown_alert(alert: &Option<Alert>) -> String {
    alert.as_ref().map(Alert::to_string).unwrap_or_default()
}

fn shown_network(network: &NetworkMode) -> String {
    network.as_str().to_owned()
}

fn shown_span(span: &Duration) -> String {
    exact_span(*span)
}

fn shown_lease(lease: &Option<Duration>) -> String {
    lease.map(exact_span).unwrap_or_default()
}

fn shown_size(size: &u64) -> String {
    exact_size(*size)
}

fn shown_words(words: &[String]) -> String {
    words.join(" ")
}

fn shown_paths(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    paths.join("\n")
}
