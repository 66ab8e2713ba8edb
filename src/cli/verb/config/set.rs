//! `archivist config --set`: settings in a drop-in of archivist.conf(5) that belongs to this
//! command.

use super::to_failure;
use crate::client::exit::{Exit, Failure};
use crate::client::server::systemctl;
use crate::display::style;
use archivist_core::text::{Problem, is_value_name};
use archivist_plugin::{Catalogue, Trust};
use archivist_shared::config::fragments::Fragment;
use archivist_shared::config::{Scope, Settings, fragments, ini, inputs, keys};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the drop-in.
const NAME: &str = "60-set.conf";
const FIRST_LINE: &str =
    "# Written by 'archivist config --set', which keeps nothing but assignments.";
/// Keys whose values accumulate over assignments: the drop-in clears them first.
const LISTS: [&str; 4] = ["PluginPath", "Plugins", "UrlAllowList", "UrlDenyList"];
/// Keys that the orchestrator reads only when it starts.
const AT_START: [&str; 1] = ["IdleTimeoutSec"];

/// Returns key and value of `KEY=VALUE`.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("expected KEY=VALUE, such as WorkersMax=20")?;
    if value.chars().any(char::is_control) || value.ends_with('\\') {
        return Err("a value must be one line without control characters".to_owned());
    }
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Writes settings after the whole configuration was validated with them.
pub fn run(set: &[(String, String)], scope: &Scope) -> Result<Exit, Failure> {
    let path = path(scope)?;
    let mut files = fragments::read(scope).map_err(to_failure)?;
    let built_in = Settings::built_in();
    let before = Settings::from_inputs(&inputs::collect(&files), &built_in).map_err(to_failure)?;
    let known: Vec<String> = catalogue(scope, &before).known_keys().into_iter().collect();
    let mut wanted = Vec::new();
    for (key, value) in set {
        let section = section(key, &known).map_err(Failure::usage)?;
        wanted.push((section, key.as_str(), value.as_str()));
    }
    let old = files.iter().find(|file| file.path == path);
    let text = content(old.map_or("", |file| file.text.as_str()), &wanted);
    place(&mut files, &path, &text);
    let inputs = inputs::collect(&files);
    Settings::from_inputs(&inputs, &built_in).map_err(|error| Failure::usage(error.to_string()))?;
    let ours = |warning: &&Problem| warning.path == path;
    if let Some(warning) = inputs.warnings.iter().find(ours) {
        return Err(Failure::usage(warning.text()));
    }
    write(&path, &text)?;
    let mut lines = String::new();
    for (section, key, value) in &wanted {
        lines += &format!("set {key}={value} in {}\n", path.display());
        match inputs.location_of(section, key) {
            Some(location) if location.file != path => {
                lines += &format!("{key}= has no effect yet: {location} overrides it\n");
            }
            _ => {}
        }
    }
    let restart = wanted.iter().any(|(_, key, _)| AT_START.contains(key));
    let verb = if restart { "restart" } else { "reload" };
    let (systemctl, unit) = (systemctl(scope), scope.orchestrator_unit());
    style::print(&format!("{lines}to apply: {systemctl} {verb} {unit}\n"))?;
    Ok(Exit::Done)
}

fn path(scope: &Scope) -> Result<PathBuf, Failure> {
    let directory = scope.config_dirs().pop();
    let directory =
        directory.ok_or_else(|| Failure::failed("found no directory for configuration files"))?;
    Ok(directory
        .join(format!("{}.d", scope.config_name()))
        .join(NAME))
}

/// Returns the plugins of the configuration.
///
/// # Errors
/// If the configuration cannot be read.
pub(crate) fn plugins(scope: &Scope) -> Result<Catalogue, Failure> {
    let inputs = inputs::collect(&fragments::read(scope).map_err(to_failure)?);
    let settings = Settings::from_inputs(&inputs, &Settings::built_in()).map_err(to_failure)?;
    Ok(catalogue(scope, &settings))
}

fn catalogue(scope: &Scope, settings: &Settings) -> Catalogue {
    let trust = if scope.user {
        Trust::User(nix::unistd::geteuid().as_raw())
    } else {
        Trust::Root
    };
    Catalogue::load(&scope.plugin_roots(settings), trust)
}

/// Returns the section of a key; an error names similar keys. `known`: settings of plugins.
fn section(key: &str, known: &[String]) -> Result<&'static str, String> {
    if let Some(key) = keys::KEYS.iter().find(|known| known.name == key) {
        return Ok(key.section);
    }
    if !is_value_name(key) {
        return Err(keys::explain_unknown("Orchestrator", key));
    }
    if known.iter().any(|known| known == key) {
        return Ok(keys::VALUES);
    }
    let similar = archivist_core::text::similar(key, known.iter().map(String::as_str));
    let hint = archivist_core::text::did_you_mean(&similar);
    Err(format!("no plugin has a setting '{key}'{hint}"))
}

/// Returns the text of the drop-in: the assignments of `old` and the wanted ones, which replace
/// those of the same key.
fn content(old: &str, wanted: &[(&'static str, &str, &str)]) -> String {
    let mut sections: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let kept = ini::parse(old, Path::new(NAME))
        .entries
        .into_iter()
        .filter(|entry| !wanted.iter().any(|(_, key, _)| *key == entry.key))
        .map(|entry| (entry.section, entry.key, entry.value));
    let cleared = wanted.iter().flat_map(|(section, key, value)| {
        let clear = LISTS.contains(key) && !value.is_empty();
        let values = clear.then_some("").into_iter().chain([*value]);
        values.map(move |value| ((*section).to_owned(), (*key).to_owned(), value.to_owned()))
    });
    for (section, key, value) in kept.chain(cleared) {
        sections.entry(section).or_default().push((key, value));
    }
    let mut text = format!("{FIRST_LINE}\n");
    for (section, entries) in sections {
        text += &format!("\n[{section}]\n");
        for (key, value) in entries {
            text += &format!("{key}={value}\n");
        }
    }
    text
}

/// Puts the new text of the drop-in among the files in effect, where it will be read.
fn place(files: &mut Vec<Fragment>, path: &Path, text: &str) {
    let new = Fragment {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    match files.iter_mut().find(|file| file.path == path) {
        Some(file) => *file = new,
        None => {
            let is_later = |file: &Fragment| {
                let parent = file.path.parent();
                let is_drop_in =
                    parent.is_some_and(|parent| parent.extension().is_some_and(|e| e == "d"));
                is_drop_in && file.path.file_name() > path.file_name()
            };
            let at = files.iter().position(is_later).unwrap_or(files.len());
            files.insert(at, new);
        }
    }
}

/// Replaces the drop-in.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |verb: &str, error: &io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "\nonly root can change the machine's configuration: use sudo, or --user"
            }
            _ => "",
        };
        Failure::failed(format!(
            "failed to {verb} '{}': {error}{hint}",
            path.display()
        ))
    };
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|error| failed("create the directory of", &error))?;
    }
    let new = path.with_extension("new");
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, path))
        .map_err(|error| failed("write", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_replace_those_of_the_same_key() {
        let first = content("", &[("Orchestrator", "WorkersMax", "20")]);
        let wanted = [
            ("Archive", "Plugins", "wget title"),
            ("Orchestrator", "WorkersMax", "30"),
            ("Config", "WGET_TIMEOUT", "5"),
        ];
        let second = content(&first, &wanted);
        assert_eq!(
            second,
            format!(
                "{FIRST_LINE}\n\n[Archive]\nPlugins=\nPlugins=wget title\n\
                 \n[Config]\nWGET_TIMEOUT=5\n\n[Orchestrator]\nWorkersMax=30\n"
            )
        );
        assert_eq!(content(&second, &wanted), second);
        assert!(content(&second, &[("Archive", "Plugins", "")]).contains("[Archive]\nPlugins=\n"));
    }

    #[test]
    fn values_cannot_add_lines() {
        assert_eq!(
            assignment("WorkersMax = 20"),
            Ok(("WorkersMax".into(), "20".into()))
        );
        for bad in ["WorkersMax", "A=b\n[Hooks]", "A=b\\"] {
            assert!(assignment(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_have_their_section() {
        let known = ["WGET_TIMEOUT".to_owned()];
        assert_eq!(section("WorkersMax", &known), Ok("Orchestrator"));
        assert_eq!(section("WGET_TIMEOUT", &known), Ok("Config"));
        assert!(
            section("WGET_TIMEOUTS", &known)
                .unwrap_err()
                .contains("WGET_TIMEOUT")
        );
        assert!(
            section("WorkerMax", &known)
                .unwrap_err()
                .contains("WorkersMax")
        );
    }

    #[test]
    fn a_setting_is_validated_before_it_is_written() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let set = |key: &str, value: &str| run(&[(key.to_owned(), value.to_owned())], &scope);
        let file = path(&scope).unwrap();
        assert_eq!(set("WorkersMax", "many").unwrap_err().exit(), Exit::Usage);
        assert!(!file.exists());
        set("WorkersMax", "20").unwrap();
        set("IdleTimeoutSec", "1min").unwrap();
        let files = fragments::read(&scope).unwrap();
        let settings =
            Settings::from_inputs(&inputs::collect(&files), &Settings::default()).unwrap();
        assert_eq!(settings.workers_max, 20);
        assert_eq!(settings.idle_timeout.as_secs(), 60);
    }
}
