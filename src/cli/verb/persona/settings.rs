//! Settings of a persona: the file next to it, and the verbs that change and show it.

use super::{failed, read_next_to, write_next_to};
use crate::client::exit::Failure;
use crate::display::style;
use crate::machine::plugins::plugins;
use crate::queue::setting;
use archivist_config::Scope;
use archivist_core::model::{PersonaName, PersonaSettings};
use archivist_core::text::is_value_name;
use archivist_plugin::settings::check::check;
use archivist_plugin::{Catalogue, Values};
use clap::Args;
use std::path::Path;

/// Most bytes of all settings of a persona, as for a crawl.
const SIZE_MAX_BYTES: usize = 256 << 10;

/// Give a persona settings, after validation; a crawl reads them when it starts
#[derive(Args)]
pub(super) struct SetArgs {
    #[arg(value_name = "NAME")]
    name: PersonaName,
    /// Settings, as for archivist add --set
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = assignment)]
    settings: Vec<(String, String)>,
}

/// Remove settings of a persona
#[derive(Args)]
pub(super) struct UnsetArgs {
    #[arg(value_name = "NAME")]
    name: PersonaName,
    /// Names of settings
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
}

/// Returns key and value of `KEY=VALUE`, which is one line.
pub(super) fn assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) = setting(text)?;
    if value.chars().any(char::is_control) {
        return Err(format!("the value of {key} must be one line without control characters"));
    }
    Ok((key, value))
}

/// Adds settings, or replaces those of the same names.
pub(super) fn set(args: &SetArgs, all: &Path, scope: &Scope) -> Result<(), Failure> {
    let name = &args.name;
    let mut settings = of_existing(all, name)?;
    settings.0.extend(args.settings.iter().cloned());
    validate(&args.settings, scope)?;
    write(all, name, &settings)?;
    let keys: Vec<&str> = args.settings.iter().map(|(key, _)| key.as_str()).collect();
    style::print(&format!("set {} of {name}\n", keys.join(", ")))
}

pub(super) fn unset(args: &UnsetArgs, all: &Path) -> Result<(), Failure> {
    let name = &args.name;
    let mut settings = of_existing(all, name)?;
    for key in &args.keys {
        if settings.0.remove(key).is_none() {
            let keys: Vec<&str> = settings.0.keys().map(String::as_str).collect();
            return Err(Failure::usage(unknown(name, key, &keys)));
        }
    }
    write(all, name, &settings)?;
    style::print(&format!("unset {} of {name}\n", args.keys.join(", ")))
}

fn unknown(name: &PersonaName, key: &str, keys: &[&str]) -> String {
    if !is_value_name(key) {
        return format!("'{key}' is not the name of a plugin's setting (such as WGET_TIMEOUT)");
    }
    match keys {
        [] => format!("persona '{name}' has no settings"),
        keys => format!("persona '{name}' has no setting {key}, but {}", keys.join(", ")),
    }
}

/// Refuses settings that no plugin has, and values of the wrong type.
pub(super) fn validate(settings: &[(String, String)], scope: &Scope) -> Result<(), Failure> {
    let catalogue = plugins(scope)?;
    match problem(&catalogue, settings) {
        None => Ok(()),
        Some(what) => Err(Failure::usage(what)),
    }
}

fn problem(catalogue: &Catalogue, settings: &[(String, String)]) -> Option<String> {
    let values: Values = settings.iter().cloned().collect();
    if values.contains_key("ACTIVE_PERSONA") {
        return Some("ACTIVE_PERSONA selects a persona: a persona cannot set it".to_owned());
    }
    let limits = archivist_plugin::CrawlLimits::read(&[&values]);
    let error = check(catalogue, &values).into_iter().next();
    error.map(|error| error.to_string()).or(limits.err())
}

fn of_existing(all: &Path, name: &PersonaName) -> Result<PersonaSettings, Failure> {
    let directory = all.join(name.as_str());
    match directory.symlink_metadata() {
        Err(error) => Err(failed("read", &directory, &error)),
        Ok(_) => read(all, name),
    }
}

/// Reads the settings of a persona; there are none if there is no file.
pub(super) fn read(all: &Path, name: &PersonaName) -> Result<PersonaSettings, Failure> {
    read_next_to(all, &name.settings())
}

pub(super) fn write(
    all: &Path,
    name: &PersonaName,
    settings: &PersonaSettings,
) -> Result<(), Failure> {
    let text = settings.to_string();
    if text.len() > SIZE_MAX_BYTES {
        return Err(Failure::usage(format!(
            "the settings of '{name}' have {} bytes, the limit is {SIZE_MAX_BYTES}",
            text.len()
        )));
    }
    write_next_to(all, &name.settings(), &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::exit::Exit;
    use archivist_plugin::sample::{catalogue, plugin};
    use serde_json::json;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn pairs(texts: &[&str]) -> Vec<(String, String)> {
        texts.iter().map(|text| assignment(text).unwrap()).collect()
    }

    #[test]
    fn settings_are_validated_like_those_of_a_crawl() {
        let config = json!({"properties": {
            "WGET_TIMEOUT": {"type": "integer"},
            "WGET_PIN": {"type": "integer", "x-sensitive": true},
        }});
        let catalogue = catalogue([plugin("wget", config, &[])]);
        let problem = |text: &str| problem(&catalogue, &pairs(&[text]));
        for good in ["WGET_TIMEOUT=3", "USER_AGENT=me", "CRAWL_MAX_URLS=3", "WGET_ENABLED=no"] {
            assert_eq!(problem(good), None, "{good}");
        }
        for (bad, word) in [
            ("WGET_TIMEOUTS=3", "did you mean WGET_TIMEOUT"),
            ("WGET_TIMEOUT=soon", "'soon' is not a whole number"),
            ("CRAWL_MAX_URLS=many", "expected a number of pages"),
            ("ACTIVE_PERSONA=other", "cannot set it"),
            ("LD_PRELOAD=/x", "no plugin has this setting"),
        ] {
            let what = problem(bad).unwrap_or_default();
            assert!(what.contains(word), "{bad}: {what}");
        }
        assert!(!problem("WGET_PIN=hunter2").unwrap().contains("hunter2"));
        for bad in ["USER_AGENT", "user=x", "USER_AGENT=a\nCHROME_ARGS=b"] {
            assert!(assignment(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn settings_are_kept_next_to_the_persona() {
        let top = tempfile::tempdir().unwrap();
        let name: PersonaName = "work".parse().unwrap();
        let keys = |keys: &[&str]| UnsetArgs {
            name: name.clone(),
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        };
        let why = unset(&keys(&["A"]), top.path()).unwrap_err();
        assert!(why.message().contains("archivist persona list"));
        fs::create_dir(top.path().join("work")).unwrap();
        let settings = PersonaSettings(pairs(&["A=1", "B=2"]).into_iter().collect());
        write(top.path(), &name, &settings).unwrap();
        assert_eq!(read(top.path(), &name).unwrap(), settings);
        let mode = fs::metadata(top.path().join(".work.settings")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);

        let why = unset(&keys(&["A", "C"]), top.path()).unwrap_err();
        assert_eq!(why.exit(), Exit::Usage);
        assert_eq!(read(top.path(), &name).unwrap(), settings, "unchanged");
        unset(&keys(&["A"]), top.path()).unwrap();
        assert_eq!(read(top.path(), &name).unwrap().to_string(), "B=2\n");
    }
}
