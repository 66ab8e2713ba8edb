//! `archivist config --set`: settings in a drop-in of archivist.conf(5) that belongs to this
//! command.

use crate::client::exit::{Exit, Failure};
use crate::client::server::systemctl;
use crate::display::style;
use crate::machine::plugins::catalogue;
use archivist_config::fragments::Fragment;
use archivist_config::{Scope, Settings, fragments, ini, inputs, keys};
use archivist_core::model::HIDDEN;
use archivist_core::text::is_value_name;
use archivist_plugin::files::whole::{self, Survives};
use archivist_plugin::settings::check::check;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const NAME: &str = "60-set.conf";
/// Name of the drop-in for secrets, which only its owner can read.
const SECRETS_NAME: &str = "60-set-secrets.conf";
const FIRST_LINE: &str =
    "# Written by 'archivist config --set', which keeps nothing but assignments.";
/// Keys whose values accumulate over assignments: the drop-in clears them first.
const LISTS: [&str; 4] = ["PluginPath", "Plugins", "UrlAllowList", "UrlDenyList"];
/// Keys that the orchestrator reads only when it starts.
const AT_START: [&str; 1] = ["IdleTimeoutSec"];

/// Returns key and value of `KEY=VALUE`.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, such as WorkersMax=20")?;
    if value.chars().any(char::is_control) || value.ends_with('\\') {
        return Err("a value must be one line without control characters".to_owned());
    }
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Writes settings after the whole configuration was validated with them.
pub fn run(set: &[(String, String)], scope: &Scope) -> Result<Exit, Failure> {
    let mut files = fragments::read(scope)?;
    let built_in = Settings::built_in();
    let before = Settings::from_inputs(&inputs::collect(&files), &built_in)?;
    let catalogue = catalogue(scope, &before);
    let known: Vec<String> = catalogue.known_keys().into_iter().collect();
    let mut wanted = Vec::new();
    for (key, value) in set {
        let section = section(key, &known).map_err(Failure::usage)?;
        wanted.push((section, key.as_str(), value.as_str()));
    }
    let values = wanted.iter();
    let values = values.filter(|(section, ..)| *section == keys::VALUES);
    let values = values.map(|(_, key, value)| ((*key).to_owned(), (*value).to_owned()));
    if let Some(error) = check(&catalogue, &values.collect()).into_iter().next() {
        return Err(Failure::usage(error.to_string()));
    }
    let (secret, plain): (Vec<Wanted<'_>>, Vec<Wanted<'_>>) =
        wanted.iter().partition(|(_, key, _)| catalogue.is_secret(key));
    let keys: Vec<&str> = wanted.iter().map(|(_, key, _)| *key).collect();
    let mut texts = Vec::new();
    for (name, own) in [(NAME, &plain), (SECRETS_NAME, &secret)] {
        let path = path(scope, name)?;
        let old = files.iter().find(|file| file.path == path);
        if old.is_some() || !own.is_empty() {
            let text = content(old.map_or("", |file| file.text.as_str()), &keys, own);
            place(&mut files, &path, &text);
            texts.push((path, text));
        }
    }
    let inputs = inputs::collect(&files);
    Settings::from_inputs(&inputs, &built_in).map_err(|error| Failure::usage(error.to_string()))?;
    let is_ours = |path: &Path| texts.iter().any(|(ours, _)| ours == path);
    if let Some(warning) = inputs.warnings.iter().find(|warning| is_ours(&warning.path)) {
        return Err(Failure::usage(warning.text()));
    }
    for (path, text) in &texts {
        write(path, text)?;
    }
    let mut lines = String::new();
    for (section, key, value) in &wanted {
        let is_secret = catalogue.is_secret(key);
        let path = path(scope, if is_secret { SECRETS_NAME } else { NAME })?;
        let shown = if is_secret { HIDDEN } else { value };
        lines += &format!("set {key}={shown} in {}\n", path.display());
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

/// Section, key and value of an assignment.
type Wanted<'a> = (&'static str, &'a str, &'a str);

fn path(scope: &Scope, name: &str) -> Result<PathBuf, Failure> {
    let directory = scope.config_dirs().pop();
    let directory =
        directory.ok_or_else(|| Failure::failed("found no directory for configuration files"))?;
    Ok(directory.join(format!("{}.d", scope.config_name())).join(name))
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

/// Returns the text of a drop-in: the assignments of `old` except those of the keys `replaced`, and the
/// wanted ones.
fn content(old: &str, replaced: &[&str], wanted: &[Wanted<'_>]) -> String {
    let mut sections: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let kept = ini::parse(old, Path::new(NAME))
        .entries
        .into_iter()
        .filter(|entry| !replaced.contains(&entry.key.as_str()))
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
    let new = Fragment { path: path.to_owned(), text: text.to_owned() };
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

/// Replaces a drop-in. That of secrets is readable for its owner alone from the start.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |verb: &str, error: &io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "\nonly root can change the machine's configuration: use sudo, or --user"
            }
            _ => "",
        };
        Failure::failed(format!("failed to {verb} '{}': {error}{hint}", path.display()))
    };
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|error| failed("create the directory of", &error))?;
    }
    let is_secret = path.ends_with(SECRETS_NAME);
    let mode = if is_secret { 0o600 } else { 0o644 };
    whole::replace(path, text.as_bytes(), mode, Survives::PowerCut)
        .map_err(|error| failed("write", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_replace_those_of_the_same_key() {
        let first = content("", &[], &[("Orchestrator", "WorkersMax", "20")]);
        let wanted = [
            ("Archive", "Plugins", "wget title"),
            ("Orchestrator", "WorkersMax", "30"),
            ("Config", "WGET_TIMEOUT", "5"),
        ];
        let keys = wanted.map(|(_, key, _)| key);
        let second = content(&first, &keys, &wanted);
        assert_eq!(
            second,
            format!(
                "{FIRST_LINE}\n\n[Archive]\nPlugins=\nPlugins=wget title\n\
                 \n[Config]\nWGET_TIMEOUT=5\n\n[Orchestrator]\nWorkersMax=30\n"
            )
        );
        assert_eq!(content(&second, &keys, &wanted), second);
        let cleared = content(&second, &["Plugins"], &[("Archive", "Plugins", "")]);
        assert!(cleared.contains("[Archive]\nPlugins=\n"));
    }

    #[test]
    fn values_cannot_add_lines() {
        assert_eq!(assignment("WorkersMax = 20"), Ok(("WorkersMax".into(), "20".into())));
        for bad in ["WorkersMax", "A=b\n[Hooks]", "A=b\\"] {
            assert!(assignment(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_have_their_section() {
        let known = ["WGET_TIMEOUT".to_owned()];
        assert_eq!(section("WorkersMax", &known), Ok("Orchestrator"));
        assert_eq!(section("WGET_TIMEOUT", &known), Ok("Config"));
        assert!(section("WGET_TIMEOUTS", &known).unwrap_err().contains("WGET_TIMEOUT"));
        assert!(section("WorkerMax", &known).unwrap_err().contains("WorkersMax"));
    }

    #[test]
    fn a_setting_is_validated_before_it_is_written() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let set = |key: &str, value: &str| run(&[(key.to_owned(), value.to_owned())], &scope);
        let file = path(&scope, NAME).unwrap();
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

    /// A plugin of root in a directory of its own, with a secret that its schema declares.
    #[test]
    fn secrets_are_readable_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let plugin = root.path().join("etc/archivist/plugins/post");
        fs::create_dir_all(&plugin).unwrap();
        let schema = r#"{"properties": {"POST_PIN": {"type": "string", "x-sensitive": true},
            "POST_API_KEY": {"type": "string"}, "POST_COUNT": {"type": "integer"}}}"#;
        fs::write(plugin.join("config.json"), schema).unwrap();
        let set = |key: &str, value: &str| run(&[(key.to_owned(), value.to_owned())], &scope);
        let (plain, secrets) = (path(&scope, NAME).unwrap(), path(&scope, SECRETS_NAME).unwrap());
        fs::create_dir_all(plain.parent().unwrap()).unwrap();
        fs::write(&plain, "[Config]\nPOST_PIN=older\n").unwrap();
        for (key, value) in [("POST_PIN", "8315"), ("POST_API_KEY", "SK-1"), ("POST_COUNT", "3")] {
            set(key, value).unwrap();
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&plain), mode(&secrets)), (0o644, 0o600));
        let (plain, secrets) = (fs::read_to_string(plain), fs::read_to_string(secrets));
        assert!(plain.unwrap().ends_with("[Config]\nPOST_COUNT=3\n"));
        let secrets = secrets.unwrap();
        assert!(secrets.contains("POST_PIN=8315") && secrets.contains("POST_API_KEY=SK-1"));
        set("POST_COUNT", "").unwrap();
        let error = set("POST_COUNT", "many").unwrap_err();
        assert!(error.message().contains("POST_COUNT: 'many' is not a whole number"));
    }
}
