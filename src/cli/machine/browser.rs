//! The settings of the browser, as hooks get them: for verbs that run the browser themselves.

use super::plugins::catalogue;
use crate::client::exit::Failure;
use archivist_config::Scope;
use archivist_plugin::programs::binary;
use archivist_plugin::settings::parse::plain;
use archivist_plugin::{Catalogue, Layers, Values, resolve};
use std::ffi::OsString;
use std::path::PathBuf;

/// Setting with the name or path of the browser.
pub const BROWSER: &str = "CHROME_BINARY";
/// The plugin that replays recordings. Its hooks get the settings of the plugins that it requires,
/// which record.
const PLUGIN: &str = "verify";

/// Returns the settings of a hook that replays recordings, without those of crawls and personas. The
/// environment of the caller overrides the configuration. Programs of the library are found if
/// `in_library`: hooks own them, so that they must not run as another user.
///
/// # Errors
/// If the configuration cannot be read.
pub fn settings(scope: &Scope, in_library: bool) -> Result<Values, Failure> {
    let (settings, _) = archivist_config::load(scope)?;
    let library = in_library.then(|| scope.data_dir().join("lib"));
    let find = |name: &str| binary::hook_lookup(library.as_deref(), name);
    let catalogue = catalogue(scope, &settings);
    let caller = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        Some((name, value.into_string().ok()?))
    });
    Ok(resolved(&catalogue, &settings.values, caller, &find))
}

/// Path of the browser in these settings, if it was found.
pub fn path(settings: &Values) -> Option<PathBuf> {
    let path = PathBuf::from(settings.get(BROWSER)?);
    path.is_absolute().then_some(path)
}

/// Returns whether a browser has a display to open on.
pub fn has_desktop(env: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name| env(name).is_some_and(|value| !value.is_empty());
    is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

fn resolved(
    catalogue: &Catalogue,
    config: &Values,
    caller: impl Iterator<Item = (String, String)>,
    find: &dyn Fn(&str) -> Option<PathBuf>,
) -> Values {
    let known = catalogue.known_keys();
    let caller: Values = caller.filter(|(name, _)| known.contains(name)).collect();
    let none = Values::new();
    let layers = Layers { crawl: &caller, persona: &none, config, base: &none };
    let Some(plugin) = catalogue.plugin(PLUGIN) else {
        let mut values = config.clone();
        values.extend(caller);
        return values;
    };
    let mut values = resolve(catalogue, plugin, &layers);
    binary::locate(&mut values, find);
    let values = values.into_iter();
    values.map(|(key, value)| (key, plain(&value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_plugin::Trust;
    use std::path::Path;

    fn values(pairs: &[(&str, &str)]) -> Values {
        let pairs = pairs.iter();
        pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    fn built_in() -> Catalogue {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins");
        let owner = std::os::unix::fs::MetadataExt::uid(&root.metadata().unwrap());
        Catalogue::load(&[root], Trust::User(owner))
    }

    #[test]
    fn browser_is_that_of_hooks() {
        let catalogue = built_in();
        let find = |name: &str| (name == "google-chrome").then(|| "/opt/google-chrome".into());
        let browser = |config: &[(&str, &str)], caller: &[(&str, &str)]| {
            let caller = values(caller).into_iter();
            let all = resolved(&catalogue, &values(config), caller, &find);
            all[BROWSER].clone()
        };
        assert_eq!(browser(&[], &[]), "/opt/google-chrome");
        let named = [(BROWSER, "/opt/a")];
        assert_eq!(browser(&named, &[]), "/opt/a");
        assert_eq!(browser(&[("CHROMIUM_BINARY", "/opt/a")], &[]), "/opt/a");
        assert_eq!(browser(&named, &[(BROWSER, "/opt/b")]), "/opt/b");
        assert_eq!(browser(&[(BROWSER, "nowhere")], &[]), "nowhere");
    }

    #[test]
    fn settings_of_the_tab_are_those_of_the_configuration() {
        let config = [
            ("CHROMIUM_CONSENT", "no"),
            ("CHROME_ARGS_EXTRA", "[\"--a\"]"),
            ("RESOLUTION", "800,600"),
        ];
        let caller = [("RESOLUTION", "400,300"), ("EDITOR", "vi")];
        let caller = values(&caller).into_iter();
        let all = resolved(&built_in(), &values(&config), caller, &|_| None);
        let of = |key: &str| all.get(key).map(String::as_str);
        assert_eq!(of("CHROMIUM_CONSENT"), Some("no"));
        assert_eq!(of("CHROME_ARGS_EXTRA"), Some("[\"--a\"]"));
        assert_eq!(of("RESOLUTION"), Some("400,300"));
        assert_eq!(of("CHROMIUM_SCROLL"), Some("true"));
        assert_eq!(of("EDITOR"), None);
    }

    #[test]
    fn only_a_path_that_was_found_is_a_browser() {
        assert_eq!(path(&values(&[(BROWSER, "/opt/a")])), Some("/opt/a".into()));
        assert_eq!(path(&values(&[(BROWSER, "chromium")])), None);
        assert_eq!(path(&Values::new()), None);
    }

    #[test]
    fn a_desktop_is_a_display() {
        let env = |set: &'static str, value: &'static str| {
            move |name: &str| (name == set).then(|| OsString::from(value))
        };
        assert!(has_desktop(env("DISPLAY", ":0")));
        assert!(has_desktop(env("WAYLAND_DISPLAY", "wayland-0")));
        assert!(!has_desktop(env("DISPLAY", "")));
        assert!(!has_desktop(env("TERM", "xterm")));
    }
}
