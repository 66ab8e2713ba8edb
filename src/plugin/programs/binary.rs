//! The programs that a plugin requires: their names, where they are, and how to get them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use archivist_core::model::{SNAP_HEAD_BYTES, is_of_snap};
use serde_json::Value;

use crate::catalogue::Plugin;
use crate::programs::requirement::Requirement;
pub use crate::programs::source::Source;
use crate::settings::parse::plain;

#[derive(Clone, Copy)]
pub struct Programs<'l> {
    pub find: &'l dyn Fn(&str) -> Option<PathBuf>,
    /// Version of the program at a path, if known.
    pub version: &'l dyn Fn(&Path) -> Option<String>,
}

/// PATH of hooks, and where their programs are searched before the library.
pub const HOOK_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Directories with programs below the library, which hooks search last: providers write the library,
/// so no program there may take the name of one of the system.
const LIBRARY_PATHS: [&str; 3] = ["bin", "pip/venv/bin", "npm/node_modules/.bin"];

/// Other names of programs, which are tried if a program is not found under its own name.
const OTHER_NAMES: [(&str, &[&str]); 3] = [
    ("chromium", &["chromium-browser", "google-chrome-stable", "google-chrome", "chrome"]),
    ("node", &["nodejs"]),
    ("python", &["python3"]),
];

/// The requirements of a plugin with their templates filled in, in the order of its `config.json`.
pub fn requirements(plugin: &Plugin, resolved: &BTreeMap<String, Value>) -> Vec<Requirement> {
    let entries = plugin.schema.required_binaries.iter();
    entries.filter_map(|entry| requirement(plugin, entry, resolved)).collect()
}

/// Fills in the templates of one requirement. `None` if its name is empty then.
pub fn requirement(
    plugin: &Plugin,
    entry: &Requirement,
    resolved: &BTreeMap<String, Value>,
) -> Option<Requirement> {
    let mut name = hydrate(&entry.name, resolved).trim().to_owned();
    if name.is_empty() {
        name = hydrate(&entry.name, &defaults(plugin)).trim().to_owned();
    }
    let overrides =
        entry.overrides.iter().map(|(key, value)| (key.clone(), hydrate_value(value, resolved)));
    (!name.is_empty()).then(|| Requirement {
        name,
        overrides: overrides.collect(),
        ..entry.clone()
    })
}

fn defaults(plugin: &Plugin) -> BTreeMap<String, Value> {
    let properties = plugin.schema.properties.iter();
    properties
        .filter_map(|(key, property)| Some((key.clone(), property.default.clone()?)))
        .collect()
}

/// Replaces each `{KEY}` that has a value. Other braces stay unchanged.
pub fn hydrate(template: &str, resolved: &BTreeMap<String, Value>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let key = rest[1..].split('}').next().filter(|key| rest.len() > key.len() + 1);
        match key.and_then(|key| Some((key, resolved.get(key)?))) {
            Some((key, value)) => {
                out.push_str(&plain(value));
                rest = &rest[key.len() + 2..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Applies [`hydrate`] to every text of a value, such as `overrides`.
pub fn hydrate_value(value: &Value, resolved: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) => Value::String(hydrate(text, resolved)),
        Value::Array(list) => list.iter().map(|entry| hydrate_value(entry, resolved)).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, entry)| (key.clone(), hydrate_value(entry, resolved))).collect()
        }
        other => other.clone(),
    }
}

/// Finds a program under its name or one of its other names.
pub fn find_any(name: &str, find: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    find(name).or_else(|| {
        let (_, others) = OTHER_NAMES.iter().find(|(own, _)| *own == name)?;
        others.iter().find_map(|other| find(other))
    })
}

/// Replaces program names in `*_BINARY` settings by paths, as hooks expect them.
pub fn locate(resolved: &mut BTreeMap<String, Value>, find: &dyn Fn(&str) -> Option<PathBuf>) {
    for (key, value) in resolved.iter_mut() {
        let Some(name) = value.as_str().filter(|name| !name.is_empty() && !name.contains('/'))
        else {
            continue;
        };
        if !key.ends_with("_BINARY") {
            continue;
        }
        if let Some(path) =
            find_any(name, find).and_then(|path| path.into_os_string().into_string().ok())
        {
            *value = Value::String(path);
        }
    }
}

/// Finds a program where hooks do: in the system, then in the library, if there is one. An absolute
/// name is only checked.
pub fn hook_lookup(library: Option<&Path>, name: &str) -> Option<PathBuf> {
    let own = LIBRARY_PATHS.iter().filter_map(|path| {
        let path = library?.join(path);
        Some(path.to_string_lossy().into_owned())
    });
    let search: Vec<_> = [HOOK_PATH.to_owned()].into_iter().chain(own).collect();
    path_lookup(&search.join(":"), name)
}

/// Finds a program in a search path such as `$PATH`. An absolute name is only checked. Passes over
/// programs of snaps, which hooks cannot run.
pub fn path_lookup(search: &str, name: &str) -> Option<PathBuf> {
    let runs = |path: &Path| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
            && !belongs_to_snap(path)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_absolute() && runs(path));
    }
    if name.is_empty() {
        return None;
    }
    let dirs = search.split(':').filter(|dir| dir.starts_with('/'));
    dirs.map(|dir| Path::new(dir).join(name)).find(|path| runs(path))
}

/// Whether a program belongs to a snap. Assumes not if it cannot be read.
fn belongs_to_snap(path: &Path) -> bool {
    let mut head = Vec::new();
    // A program without read permission has an empty start.
    let _ = File::open(path).and_then(|file| file.take(SNAP_HEAD_BYTES).read_to_end(&mut head));
    let target = path.canonicalize();
    is_of_snap(target.as_deref().unwrap_or(path), &head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::distribution::Distribution;
    use crate::sample;
    use proptest::prelude::*;
    use serde_json::json;

    fn plugin(name: &str, config: Value) -> Plugin {
        sample::plugin(name, config, &[])
    }

    #[test]
    fn requirements_of_real_plugins() {
        let plugin = plugin(
            "p",
            json!({
                "required_binaries": [
                    {"name": "{CHROME_BINARY}", "binproviders": "env,puppeteer",
                     "overrides": {"puppeteer": {"install_args": ["chrome@stable"]}}},
                    {"name": "{NODE_BINARY}", "binproviders": "env,apt,brew",
                     "overrides": {"apt": {"install_args": ["nodejs"]}}},
                    {"name": "{LITEPARSE_TESSERACT_BINARY}", "binproviders": "env,brew,apt",
                     "overrides": {"apt": {"install_args": ["tesseract-ocr", "tesseract-ocr-eng"]}}},
                    {"name": "{MERCURY_BINARY}", "binproviders": "npm,env",
                     "overrides": {"npm": {"install_args": ["@postlight/parser"]}}},
                    {"name": "feedparser", "binproviders": "pip"},
                    {"name": "singlefile", "binproviders": "chromewebstore"},
                    {"name": "own-tool"},
                    {"name": "sonic", "binproviders": "env,apt,brew,cargo",
                     "overrides": {"apt": {"install_args": ["sonic"]}, "cargo": {"install_args": ["sonic-server"]}}},
                    {"name": "forum-dl", "binproviders": "env,pip", "overrides": {"pip": {"install_args": ["forum-dl", "lxml>=5"]}}},
                    {"name": "gallery-dl", "binproviders": "env,uv",
                     "overrides": {"uv": {"install_args": ["gallery-dl==1.2", "--exclude-newer-package=x=2026"]}}},
                    {"name": "abxbus", "binproviders": "pnpm", "overrides": {"pnpm": {"install_args": ["abxbus@2.5"]}}},
                    {"name": "{CHROME_BINARY}", "binproviders": "puppeteer"},
                ],
                "properties": {"NODE_BINARY": {"default": "node"}}
            }),
        );
        let resolved = BTreeMap::from([
            ("CHROME_BINARY".to_owned(), json!("chromium")),
            ("NODE_BINARY".to_owned(), json!("")),
            ("LITEPARSE_TESSERACT_BINARY".to_owned(), json!("tesseract")),
            ("MERCURY_BINARY".to_owned(), json!("postlight-parser")),
        ]);
        let found: Vec<_> = requirements(&plugin, &resolved)
            .into_iter()
            .map(|found| {
                let source = Source::of(&found, Distribution::Debian).to_string();
                (found.name.clone(), found.on_path(), source)
            })
            .collect();
        let wanted = [
            ("chromium", true, "apt install chromium"),
            ("node", true, "apt install nodejs"),
            ("tesseract", true, "apt install tesseract-ocr tesseract-ocr-eng"),
            ("postlight-parser", true, "npm install -g @postlight/parser"),
            ("feedparser", false, "pip install feedparser"),
            ("singlefile", false, "the provider plugin chromewebstore can install it"),
            ("own-tool", true, "install it, or set the path of the program"),
            ("sonic", true, "cargo install --root /usr/local sonic-server"),
            ("forum-dl", true, "pip install forum-dl 'lxml>=5'"),
            ("gallery-dl", true, "pip install gallery-dl==1.2"),
            ("abxbus", false, "npm install -g abxbus@2.5"),
            ("chromium", true, "apt install chromium"),
        ];
        let wanted: Vec<_> = wanted.map(|(a, b, c)| (a.to_owned(), b, c.to_owned())).into();
        assert_eq!(found, wanted);
    }

    #[test]
    fn templates_are_filled_in() {
        let values =
            BTreeMap::from([("LIB_DIR".to_owned(), json!("/lib")), ("N".to_owned(), json!(3))]);
        let cases = [
            ("{LIB_DIR}/pip/{N}", "/lib/pip/3"),
            ("{NOPE}/{LIB_DIR}", "{NOPE}/{LIB_DIR}"),
            ("https://x/?domain={}&f=ico", "https://x/?domain={}&f=ico"),
            ("{{LIB_DIR}", "{/lib"),
            ("{LIB_DIR", "{LIB_DIR"),
            ("é{N}é", "é3é"),
        ];
        for (template, wanted) in cases {
            let wanted = wanted.replace("{LIB_DIR}", "/lib");
            assert_eq!(hydrate(template, &values), wanted, "{template}");
        }
        let overrides =
            json!({"pip": {"install_root": "{LIB_DIR}/x", "install_args": ["{N}"], "n": 1}});
        let wanted = json!({"pip": {"install_root": "/lib/x", "install_args": ["3"], "n": 1}});
        assert_eq!(hydrate_value(&overrides, &values), wanted);
    }

    #[test]
    fn programs_are_found_and_located() {
        let path = "relative:/nowhere:/usr/bin:/bin";
        let sh = path_lookup(path, "sh").unwrap();
        assert!(sh.is_absolute());
        assert_eq!(path_lookup("", sh.to_str().unwrap()), Some(sh));
        assert_eq!(path_lookup(path, "no-such-program"), None);
        assert_eq!(path_lookup(path, "../bin/sh"), None);
        assert_eq!(path_lookup(path, "/etc/passwd"), None);
        assert_eq!(path_lookup(path, ""), None);

        let find =
            |name: &str| (name == "google-chrome").then(|| PathBuf::from("/opt/google-chrome"));
        let mut values = BTreeMap::from([
            ("CHROME_BINARY".to_owned(), json!("chromium")),
            ("WGET_BINARY".to_owned(), json!("wget")),
            ("NODE_BINARY".to_owned(), json!("/opt/node")),
            ("NAME".to_owned(), json!("google-chrome")),
        ]);
        locate(&mut values, &find);
        assert_eq!(values["CHROME_BINARY"], json!("/opt/google-chrome"));
        assert_eq!(values["WGET_BINARY"], json!("wget"));
        assert_eq!(values["NODE_BINARY"], json!("/opt/node"));
        assert_eq!(values["NAME"], json!("google-chrome"));
    }

    #[test]
    fn system_precedes_the_library() {
        let library = tempfile::tempdir().unwrap();
        let own = library.path().join("pip/venv/bin/own-tool");
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::copy("/bin/sh", &own).unwrap();
        std::fs::copy("/bin/sh", own.with_file_name("sh")).unwrap();
        let found = hook_lookup(Some(library.path()), "own-tool");
        assert_eq!(found, Some(own.clone()));
        let system = hook_lookup(None, "sh").unwrap();
        assert_eq!(hook_lookup(Some(library.path()), "sh"), Some(system.clone()));
        assert!(HOOK_PATH.split(':').any(|path| system.parent() == Some(Path::new(path))));
        assert_eq!(hook_lookup(None, own.to_str().unwrap()), Some(own));
        assert_eq!(hook_lookup(Some(library.path()), "no-such-program"), None);
    }

    #[test]
    fn snap_is_passed_over_for_the_next_name() {
        let dir = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, mode).unwrap();
            path
        };
        let search = dir.path().to_str().unwrap();
        let find = |name: &str| path_lookup(search, name);
        let stub = program("chromium-browser", "#!/bin/sh\nexec /snap/bin/chromium \"$@\"\n");
        assert_eq!(find_any("chromium", &find), None);
        assert_eq!(path_lookup("", stub.to_str().unwrap()), None);
        let chrome = program("google-chrome-stable", "#!/bin/sh\nexec /opt/chrome \"$@\"\n");
        assert_eq!(find_any("chromium", &find), Some(chrome));
    }

    proptest! {
        #[test]
        fn hydrate_without_values_changes_nothing(text in "[{}A-Zé]{0,30}") {
            prop_assert_eq!(hydrate(&text, &BTreeMap::new()), text);
        }
    }
}
