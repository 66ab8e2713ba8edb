//! Builds the complete environment of a hook. Nothing is inherited.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::catalogue::Plugin;
use crate::contract::arguments::BinaryRequest;
use crate::settings::parse::plain;

/// Directories and search path of a hook. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookDirectories {
    /// Data directory.
    pub data_dir: PathBuf,
    /// Directory of the installed programs.
    pub lib_dir: PathBuf,
    /// Directory of the personas.
    pub personas_dir: PathBuf,
    /// Directory of the crawl.
    pub crawl_dir: PathBuf,
    /// `None` for hooks of a crawl.
    pub snap_dir: Option<PathBuf>,
    /// Shared by all hooks of a crawl, which keep semaphores in it.
    pub tmp_dir: PathBuf,
    /// Home directory.
    pub home: PathBuf,
    /// Search path. Directories of programs are put before it.
    pub path: String,
}

/// The context of a run, which hooks copy into their records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookContext<'a> {
    /// Id of the first snapshot for set-up and clean-up hooks of a crawl, of the crawl for its
    /// other hooks.
    pub snapshot_id: String,
    /// Depth of the snapshot; 0 for hooks of a crawl.
    pub snapshot_depth: u32,
    /// Id of the crawl.
    pub crawl_id: String,
    /// Name of the plugin.
    pub plugin: &'a str,
    /// [`crate::Hook::id`].
    pub hook_name: &'a str,
}

/// Variables that differ between the runs of a hook: ids and directories of its crawl and snapshot.
const OF_RUN: [&str; 12] = [
    "ABXBUS_MULTIPROCESS_SEMAPHORE_DIR",
    "ABXPKG_LIB_DIR",
    "CRAWL_DIR",
    "CRAWL_ID",
    "CRAWL_OUTPUT_DIR",
    "EXTRA_CONTEXT",
    "PERSONAS_DIR",
    "RECORDING",
    "SNAPSHOT_ID",
    "SNAP_DIR",
    "TMPDIR",
    "TMP_DIR",
];

/// Whether the variable differs between the runs of a hook with the same settings.
pub fn is_of_run(name: &str) -> bool {
    OF_RUN.contains(&name)
}

/// Longest variable in bytes; longer ones are omitted. The kernel limits `NAME=value` to 128 KiB
/// (execve(2)).
const VARIABLE_MAX_BYTES: usize = 120 * 1024;

/// Machine id in the records of hooks. There is only one machine.
pub const MACHINE: &str = "archivist";

/// The file in the directory of a snapshot that describes the recording of its page, if the plugin wacz
/// makes one.
const RECORDING: &str = "wacz/recording.json";

/// Certificates that the machine trusts. node only trusts its built-in ones by default; other
/// programs read this file by themselves.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// All variables of a hook, sorted by name. All settings are included, because some helpers read
/// the environment without the schema. Booleans are `True` and `False`; lists and objects are JSON;
/// line breaks become blanks; values with a NUL are omitted.
pub fn environment(
    plugin: &Plugin,
    resolved: &BTreeMap<String, Value>,
    places: &HookDirectories,
    context: &HookContext,
) -> Vec<(String, String)> {
    let mut variables = Variables(BTreeMap::new());
    for (key, value) in resolved {
        if let Some(value) = text(value) {
            variables.set(key, &value);
        }
    }
    tools(&mut variables, places);
    paths(&mut variables, places);
    own_profile(&mut variables, places, context);
    if let Some(snap_dir) = &places.snap_dir {
        let recording = snap_dir.join(RECORDING);
        variables.set("RECORDING", &recording.to_string_lossy());
    }
    let search = search_path(&variables, resolved, places);
    variables.set("PATH", &search);
    variables.set("EXTRA_CONTEXT", &extra_context(context));
    variables.set("CRAWL_ID", &context.crawl_id);
    variables.set("SNAPSHOT_ID", &context.snapshot_id);
    variables.set("ABX_RUNTIME", "archivebox");
    if !variables.get("CHROME_KEEPALIVE").is_empty() {
        // The browser cannot outlive the unit of the hook that started it.
        variables.set("CHROME_KEEPALIVE", "False");
    }
    variables.set("LIBRARY_VERSION", env!("CARGO_PKG_VERSION"));
    variables.unless_set("MACHINE_ID", MACHINE);
    variables.unless_set("PLUGIN_DIR", &plugin.dir.to_string_lossy());
    variables.unless_set("LANG", "C.UTF-8");
    variables.0.into_iter().collect()
}

/// Converts the environment to that of a provider hook: the context describes the request instead
/// of a snapshot, and the directory of programs is the library, which provider hooks can write to.
pub fn for_request(variables: &mut [(String, String)], request: &BinaryRequest) {
    let context = json!({
        "binary_id": request.binary_id,
        "binproviders": request.requirement.providers.join(","),
        "hook_name": request.hook_name,
        "machine_id": request.machine_id,
        "plugin_name": request.plugin_name,
    });
    let known = variables.iter().find(|(key, _)| key == "LIB_DIR");
    let library = known.map(|(_, value)| value.clone());
    for (key, value) in variables {
        match (key.as_str(), &library) {
            ("EXTRA_CONTEXT", _) => *value = context.to_string(),
            ("ABXPKG_LIB_DIR", Some(library)) => value.clone_from(library),
            _ => {}
        }
    }
}

/// Merges the `env` map of a Binary record: `:v` appends to a list of paths, `v:` prepends, and
/// other values replace the variable, except for PATH, to which they are appended.
pub fn layer(variables: &mut Vec<(String, String)>, map: &BTreeMap<String, String>) {
    let mut result = Variables(std::mem::take(variables).into_iter().collect());
    for (key, value) in map {
        let old = result.get(key).to_owned();
        let joined = match (value.strip_prefix(':'), value.strip_suffix(':')) {
            _ if old.is_empty() => value.trim_matches(':').to_owned(),
            (Some(behind), _) => format!("{old}:{behind}"),
            (None, Some(before)) => format!("{before}:{old}"),
            // Providers give only their own directory, which precedes none of the system.
            (None, None) if key == "PATH" => format!("{old}:{value}"),
            (None, None) => value.clone(),
        };
        result.set(key, &joined);
    }
    *variables = result.0.into_iter().collect();
}

struct Variables(BTreeMap<String, String>);

impl Variables {
    fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    fn set(&mut self, key: &str, value: &str) {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = !key.is_empty()
            && key.chars().all(plain)
            && !key.starts_with(|c: char| c.is_ascii_digit());
        if name && !value.contains('\0') && key.len() + value.len() < VARIABLE_MAX_BYTES {
            self.0.insert(key.to_owned(), value.replace(['\n', '\r'], " "));
        }
    }

    /// Sets a default for a variable that the user may set.
    fn unless_set(&mut self, key: &str, value: &str) {
        if self.get(key).is_empty() {
            self.set(key, value);
        }
    }
}

/// Formats a value as hooks in Python and JavaScript expect it.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(true) => Some("True".to_owned()),
        Value::Bool(false) => Some("False".to_owned()),
        other => Some(plain(other)),
    }
}

fn paths(variables: &mut Variables, places: &HookDirectories) {
    let snap_dir = places.snap_dir.as_ref().unwrap_or(&places.crawl_dir);
    let semaphores = places.tmp_dir.join("semaphores");
    for (key, path) in [
        ("DATA_DIR", &places.data_dir),
        ("ARCHIVE_DIR", &places.data_dir),
        ("LIB_DIR", &places.lib_dir),
        // Hooks keep what they learn of the browser in it.
        ("ABXPKG_LIB_DIR", &places.tmp_dir),
        ("PERSONAS_DIR", &places.personas_dir),
        ("CRAWL_DIR", &places.crawl_dir),
        ("CRAWL_OUTPUT_DIR", &places.crawl_dir),
        ("SNAP_DIR", snap_dir),
        ("TMPDIR", &places.tmp_dir),
        ("TMP_DIR", &places.tmp_dir),
        ("HOME", &places.home),
        ("ABXBUS_MULTIPROCESS_SEMAPHORE_DIR", &semaphores),
    ] {
        variables.set(key, &path.to_string_lossy());
    }
}

/// Gives each snapshot with its own browser its own profile, because two browsers cannot share one.
fn own_profile(variables: &mut Variables, places: &HookDirectories, context: &HookContext) {
    if places.snap_dir.is_some() && variables.get("CHROME_ISOLATION") == "snapshot" {
        let own = places.personas_dir.join(&context.snapshot_id);
        variables.set("PERSONAS_DIR", &own.to_string_lossy());
    }
}

/// Paths of Python and node modules, unbuffered output, and settings that prevent downloads by
/// hooks: `uv run` starts a hook offline from the existing environment in a fraction of a second.
fn tools(variables: &mut Variables, places: &HookDirectories) {
    let under = |path: &str| places.lib_dir.join(path).to_string_lossy().into_owned();
    variables.unless_set("LIB_BIN_DIR", &under("bin"));
    variables.unless_set("PIP_HOME", &under("pip"));
    variables.unless_set("PIP_BIN_DIR", &under("pip/venv/bin"));
    variables.unless_set("VIRTUAL_ENV", &under("pip/venv"));
    variables.unless_set("UV_OFFLINE", "1");
    variables.unless_set("UV_PYTHON_DOWNLOADS", "never");
    // The first line of a daemon's output means that it is ready, so no line may stay in a buffer.
    variables.unless_set("PYTHONUNBUFFERED", "1");
    variables.unless_set("NPM_HOME", &under("npm"));
    variables.unless_set("NODE_MODULES_DIR", &under("npm/node_modules"));
    let modules = variables.get("NODE_MODULES_DIR").to_owned();
    variables.unless_set("NODE_MODULE_DIR", &modules);
    variables.unless_set("NODE_PATH", &modules);
    variables.unless_set("NPM_BIN_DIR", &format!("{modules}/.bin"));
    variables.unless_set("PUPPETEER_SKIP_DOWNLOAD", "1");
    variables.unless_set("PUPPETEER_CACHE_DIR", &under("puppeteer"));
    variables.unless_set("NODE_EXTRA_CA_CERTS", CERTIFICATES);
    // Not in the directory of profiles, which is removed with the crawl.
    variables.unless_set("CHROME_EXTENSIONS_DIR", &under("chrome_extensions"));
    let extensions = under("chromewebstore/extensions");
    variables.unless_set("CHROMEWEBSTORE_EXTENSIONS_DIR", &extensions);
}

/// Search path: directories of programs with a configured path, then the base path, then the
/// directories of the library, also if a configured program is there: providers write the library, so
/// no program there may take the name of one of the system. A directory on the base path keeps its
/// position.
fn search_path(
    variables: &Variables,
    resolved: &BTreeMap<String, Value>,
    places: &HookDirectories,
) -> String {
    let base = match resolved.get("PATH").and_then(Value::as_str) {
        Some(own) if !own.is_empty() => own,
        _ => &places.path,
    };
    let known: Vec<&str> = base.split(':').collect();
    let program_directories = resolved
        .iter()
        .filter(|(key, _)| key.ends_with("_BINARY"))
        .filter_map(|(_, value)| Path::new(value.as_str()?).parent()?.to_str())
        .filter(|dir| dir.starts_with('/'));
    let library = ["LIB_BIN_DIR", "PIP_BIN_DIR", "NPM_BIN_DIR"].map(|key| variables.get(key));
    let mut search: Vec<&str> = Vec::new();
    let is_of_library = |dir: &str| Path::new(dir).starts_with(&places.lib_dir);
    for dir in program_directories
        .filter(|dir| !known.contains(dir) && !is_of_library(dir))
        .chain(known.clone())
        .chain(library)
    {
        if !dir.is_empty() && !search.contains(&dir) {
            search.push(dir);
        }
    }
    search.join(":")
}

fn extra_context(context: &HookContext) -> String {
    json!({
        "snapshot_id": context.snapshot_id,
        "snapshot_depth": context.snapshot_depth,
        "plugin": context.plugin,
        "hook_name": context.hook_name,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use proptest::prelude::*;

    fn places(snapshot: bool) -> HookDirectories {
        HookDirectories {
            data_dir: "/data".into(),
            lib_dir: "/data/lib".into(),
            personas_dir: "/data/personas".into(),
            crawl_dir: "/data/crawl".into(),
            snap_dir: snapshot.then(|| "/data/snap".into()),
            tmp_dir: "/run/c12".into(),
            home: "/data/home".into(),
            path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
        }
    }

    fn run(values: &[(&str, Value)], snapshot: bool) -> BTreeMap<String, String> {
        let plugin = sample::plugin("wget", json!({}), &[]);
        let resolved =
            values.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let context = HookContext {
            snapshot_id: "345".to_owned(),
            snapshot_depth: 1,
            crawl_id: "12".to_owned(),
            plugin: "wget",
            hook_name: "on_Snapshot__06_wget.finite.bg",
        };
        let variables = environment(&plugin, &resolved, &places(snapshot), &context);
        assert!(variables.is_sorted());
        variables.into_iter().collect()
    }

    #[test]
    fn values_are_formatted_as_text() {
        let variables = run(
            &[
                ("WGET_ENABLED", json!(true)),
                ("CHROME_HEADLESS", json!(false)),
                ("WGET_ARGS", json!(["--a", "b \"c\"\n"])),
                ("WGET_TIMEOUT", json!(60)),
                ("NOTHING", Value::Null),
                ("LINES", json!("a\nb\r\nc")),
                ("NUL", json!("a\0b")),
                ("BAD-NAME", json!("x")),
                ("HUGE", json!("x".repeat(200_000))),
            ],
            true,
        );
        assert_eq!(variables["WGET_ENABLED"], "True");
        assert_eq!(variables["CHROME_HEADLESS"], "False");
        assert_eq!(variables["WGET_ARGS"], r#"["--a","b \"c\"\n"]"#);
        assert_eq!(variables["WGET_TIMEOUT"], "60");
        assert_eq!(variables["LINES"], "a b  c");
        for left_out in ["NOTHING", "NUL", "BAD-NAME", "HUGE"] {
            assert!(!variables.contains_key(left_out), "{left_out}");
        }
    }

    #[test]
    fn runner_variables_override_settings() {
        let variables = run(
            &[
                ("SNAP_DIR", json!("/etc")),
                ("ABX_RUNTIME", json!("abx-dl")),
                ("CHROME_KEEPALIVE", json!(true)),
                ("DATA_DIR", json!("")),
            ],
            true,
        );
        assert_eq!(variables["SNAP_DIR"], "/data/snap");
        assert_eq!(variables["RECORDING"], "/data/snap/wacz/recording.json");
        assert!(!run(&[], false).contains_key("RECORDING"));
        assert_eq!(variables["DATA_DIR"], "/data");
        assert_eq!(variables["ABX_RUNTIME"], "archivebox");
        assert_eq!(variables["CHROME_KEEPALIVE"], "False");
        assert!(!run(&[], true).contains_key("CHROME_KEEPALIVE"));
        assert_eq!(variables["ARCHIVE_DIR"], "/data");
        let context: Value = serde_json::from_str(&variables["EXTRA_CONTEXT"]).unwrap();
        assert_eq!(
            context,
            json!({"snapshot_id": "345", "snapshot_depth": 1, "plugin": "wget",
            "hook_name": "on_Snapshot__06_wget.finite.bg"})
        );
        assert_eq!(run(&[], false)["SNAP_DIR"], "/data/crawl");
    }

    #[test]
    fn snapshots_with_their_own_browser_have_their_own_profile() {
        let of = |isolation: &str, snapshot| {
            run(&[("CHROME_ISOLATION", json!(isolation))], snapshot)["PERSONAS_DIR"].clone()
        };
        assert_eq!(of("snapshot", true), "/data/personas/345");
        assert_eq!(of("snapshot", false), "/data/personas");
        assert_eq!(of("crawl", true), "/data/personas");
    }

    #[test]
    fn search_path_and_module_paths_are_built() {
        let variables = run(
            &[
                ("NODE_BINARY", json!("/opt/node/bin/node")),
                ("WGET_BINARY", json!("/usr/bin/wget")),
                ("GIT_BINARY", json!("git")),
                ("YTDLP_BINARY", json!("/data/lib/bin/yt-dlp")),
                ("NODE_MODULES_DIR", json!("/srv/modules")),
            ],
            true,
        );
        let wanted = "/opt/node/bin:/usr/local/bin:/usr/bin:/bin:/data/lib/bin:/data/lib/pip/venv/bin:/srv/modules/.bin";
        assert_eq!(variables["PATH"], wanted);
        assert_eq!(variables["NODE_PATH"], "/srv/modules");
        assert_eq!(variables["VIRTUAL_ENV"], "/data/lib/pip/venv");
        assert_eq!(variables["NODE_EXTRA_CA_CERTS"], CERTIFICATES);
        let extensions = "/data/lib/chrome_extensions";
        assert_eq!(variables["CHROME_EXTENSIONS_DIR"], extensions);
        let extensions = "/data/lib/chromewebstore/extensions";
        assert_eq!(variables["CHROMEWEBSTORE_EXTENSIONS_DIR"], extensions);
        let lib_dirs = (&*variables["LIB_DIR"], &*variables["ABXPKG_LIB_DIR"]);
        assert_eq!(lib_dirs, ("/data/lib", "/run/c12"), "writable for a hook");
        assert_eq!(variables["PYTHONUNBUFFERED"], "1");
        assert!(run(&[("PATH", json!("/only"))], true)["PATH"].starts_with("/only:"));
        assert_eq!(variables["YTDLP_BINARY"], "/data/lib/bin/yt-dlp");
    }

    #[test]
    fn env_of_binary_records_is_merged() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let mut variables = vec![pair("PATH", "/bin"), pair("X", "old")];
        let map = [pair("PATH", "/a:"), pair("X", "new"), pair("NODE_PATH", ":/m")].into();
        layer(&mut variables, &map);
        assert_eq!(variables, [pair("NODE_PATH", "/m"), pair("PATH", "/a:/bin"), pair("X", "new")]);
        layer(&mut variables, &[pair("PATH", ":/z")].into());
        assert_eq!(variables[1].1, "/a:/bin:/z");
        layer(&mut variables, &[pair("PATH", "/b")].into());
        assert_eq!(variables[1].1, "/a:/bin:/z:/b", "PATH is never replaced");
    }

    #[test]
    fn provider_hook_gets_the_context_of_the_request() {
        let request = BinaryRequest {
            binary_id: "b1".into(),
            plugin_name: "chrome".into(),
            ..BinaryRequest::default()
        };
        let variables =
            [("EXTRA_CONTEXT", "{}"), ("ABXPKG_LIB_DIR", "/run/c12"), ("LIB_DIR", "/data/lib")];
        let mut variables = variables.map(|(key, value)| (key.to_owned(), value.to_owned()));
        for_request(&mut variables, &request);
        assert_eq!(variables[1].1, "/data/lib");
        let context: Value = serde_json::from_str(&variables[0].1).unwrap();
        assert_eq!(
            (&context["binary_id"], &context["plugin_name"]),
            (&json!("b1"), &json!("chrome"))
        );
    }

    proptest! {
        #[test]
        fn names_and_values_are_always_valid(key in "\\PC{0,10}", value in ".{0,40}|[\\x00-\\x20]{0,8}") {
            for (key, value) in run(&[(&key, json!(value))], true) {
                prop_assert!(!value.contains(['\n', '\r', '\0']));
                prop_assert!(!key.is_empty() && !key.contains(['=', ' ', '\n']));
            }
        }
    }
}
