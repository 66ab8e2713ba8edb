//! Reads plugins and their hooks from the plugin directories.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::catalogue::name::HookName;
use crate::catalogue::name_units;
use crate::catalogue::schema::Schema;
use crate::catalogue::trust::Trust;
pub use crate::catalogue::{Catalogue, Hook, PathProblem, Plugin};
use crate::programs::binaries;

/// Largest `config.json` or `binaries.jsonl` that is read.
const CONFIG_MAX_BYTES: u64 = 1 << 20;

impl Catalogue {
    /// Reads the plugin directories in order. A plugin replaces one of the same name in an earlier
    /// directory, even if it cannot be loaded; a symbolic link to /dev/null masks a plugin, as in
    /// systemd's directories. A missing directory counts as empty.
    pub fn load(roots: &[PathBuf], trust: Trust) -> Catalogue {
        let mut loader = Loader { trust, problems: Vec::new() };
        let mut plugins = BTreeMap::new();
        for root in roots {
            loader.root(root, &mut plugins);
        }
        Catalogue {
            plugins: plugins.into_values().collect(),
            problems: loader.problems,
            ..Catalogue::default()
        }
    }
}

struct Loader {
    trust: Trust,
    problems: Vec<PathProblem>,
}

impl Loader {
    fn problem(&mut self, path: &Path, what: impl Into<String>) {
        self.problems.push(PathProblem { path: path.to_owned(), what: what.into() });
    }

    fn root(&mut self, root: &Path, plugins: &mut BTreeMap<String, Plugin>) {
        if !root.exists() {
            return;
        }
        if let Err((path, what)) = self.trust.check_path(root) {
            self.problem(&path, format!("{what}; plugins in '{}' are not loaded", root.display()));
            return;
        }
        let Ok(root) = root.canonicalize() else {
            self.problem(root, "failed to resolve the path");
            return;
        };
        let mut loose = Vec::new();
        for (name, path) in self.entries(&root) {
            let Ok(found) = fs::metadata(&path) else {
                self.problem(&path, "is a dangling symbolic link");
                continue;
            };
            if found.is_dir() && !name.starts_with(['.', '_']) {
                plugins.remove(&name);
                plugins.extend(self.plugin(&name, &path).map(|plugin| (name, plugin)));
            } else if found.file_type().is_char_device() {
                plugins.remove(&name);
            } else if found.is_file() && name.starts_with("on_") {
                loose.push((name, path));
            }
        }
        let hooks = self.hooks("", loose);
        if !hooks.is_empty() {
            let plugin = loose_plugin(&root, hooks, plugins);
            plugins.insert(plugin.name.clone(), plugin);
        }
    }

    /// The entries of a directory in a fixed order. Skips names that are not UTF-8, because names
    /// become unit names, variables and log fields.
    fn entries(&mut self, dir: &Path) -> Vec<(String, PathBuf)> {
        let read = fs::read_dir(dir).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let found = match read {
            Ok(found) => found,
            Err(error) => {
                self.problem(dir, format!("failed to read the directory: {error}"));
                return Vec::new();
            }
        };
        let mut entries: Vec<_> = found
            .into_iter()
            .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
            .collect();
        entries.sort();
        entries
    }

    fn plugin(&mut self, name: &str, path: &Path) -> Option<Plugin> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if !name.chars().all(plain) {
            self.problem(path, "not a valid plugin name, not loaded");
            return None;
        }
        if let Err((at, what)) = self.trust.check_path(path) {
            self.problem(&at, format!("{what}; plugin {name} is not loaded"));
            return None;
        }
        let dir = path.canonicalize().ok()?;
        let mut hooks = Vec::new();
        for (entry, path) in self.entries(&dir) {
            if entry.starts_with("on_") {
                hooks.push((entry, path));
            } else if fs::metadata(&path).is_ok_and(|found| found.is_file()) {
                // Hooks execute and read these files.
                if let Err((at, what)) = self.trust.check_path(&path) {
                    self.problem(&at, format!("{what}; plugin {name} is not loaded"));
                    return None;
                }
            }
        }
        let mut schema = match read_schema(&dir.join("config.json")) {
            Ok(schema) => schema,
            Err(problem) => {
                self.problems.push(problem);
                return None;
            }
        };
        self.add_older_binaries(&dir.join("binaries.jsonl"), &mut schema);
        Some(Plugin {
            name: name.to_owned(),
            schema,
            hooks: self.hooks(name, hooks),
            dir,
            loose: false,
        })
    }

    /// Adds the programs that an older plugin lists in `binaries.jsonl`.
    fn add_older_binaries(&mut self, file: &Path, schema: &mut Schema) {
        let text = match read_bounded(file) {
            Ok(None) => return,
            Ok(Some(text)) => text,
            Err(what) => return self.problem(file, format!("{what}, ignoring")),
        };
        let (found, bad) = binaries::parse(&text);
        if bad > 0 {
            self.problem(file, format!("{bad} lines are not Binary records, ignoring"));
        }
        for entry in found {
            let mut known = schema.required_binaries.iter();
            if known.all(|known| known.name != entry.name) {
                schema.required_binaries.push(entry);
            }
        }
    }

    fn hooks(&mut self, plugin: &str, files: Vec<(String, PathBuf)>) -> Vec<Hook> {
        let mut hooks: Vec<Hook> =
            files.into_iter().filter_map(|(name, path)| self.hook(plugin, &name, &path)).collect();
        hooks.sort_by(|a, b| (a.name.order, a.file_name()).cmp(&(b.name.order, b.file_name())));
        let mut ids = BTreeSet::new();
        hooks.retain(|hook| {
            let first = ids.insert(hook.id.clone());
            if !first {
                self.problem(
                    &hook.file,
                    "differs from another hook only in its extension, not loaded",
                );
            }
            first
        });
        name_units(&mut hooks);
        hooks
    }

    fn hook(&mut self, plugin: &str, file_name: &str, path: &Path) -> Option<Hook> {
        let Some(name) = HookName::parse(file_name) else {
            self.problem(path, "not a valid hook name, not loaded");
            return None;
        };
        let found = match fs::metadata(path) {
            Ok(found) if found.is_file() => found,
            Ok(_) => return None,
            Err(error) => {
                self.problem(path, format!("failed to read the file: {error}"));
                return None;
            }
        };
        if let Err((at, what)) = self.trust.check_path(path) {
            self.problem(&at, format!("{what}; hook {file_name} is not loaded"));
            return None;
        }
        let (id, extension) = file_name.rsplit_once('.').unwrap_or((file_name, ""));
        let is_program = self.trust.can_execute(found.uid(), found.mode());
        let interpreter = match extension {
            _ if is_program && (name.family.is_modern() || is_executable_format(path)) => None,
            "sh" if !name.family.is_modern() => Some("bash"),
            "py" if !name.family.is_modern() => Some("python3"),
            "js" if !name.family.is_modern() => Some("node"),
            _ if is_program => None,
            _ => {
                self.problem(path, "is not executable for the user that hooks run as, not loaded");
                return None;
            }
        };
        Some(Hook {
            plugin: plugin.to_owned(),
            id: id.to_owned(),
            file: path.to_owned(),
            unit_part: name.name.clone(),
            name,
            interpreter,
        })
    }
}

/// Whether the kernel can execute a file: it begins with `#!` or is an ELF binary.
fn is_executable_format(file: &Path) -> bool {
    let mut begin = [0; 2];
    // The buffer stays zero if the file cannot be read.
    let _ = File::open(file).and_then(|mut file| file.read_exact(&mut begin));
    [*b"#!", *b"\x7fE"].contains(&begin)
}

fn read_schema(file: &Path) -> Result<Schema, PathProblem> {
    let problem = |what: String| PathProblem {
        path: file.to_owned(),
        what: format!("{what}; the plugin is not loaded"),
    };
    let Some(text) = read_bounded(file).map_err(problem)? else {
        return Ok(Schema::default());
    };
    Schema::parse(file, &text).map_err(|error| problem(format!("{}: {}", error.key, error.what)))
}

/// Content of a plugin's file, or `None` if the file does not exist.
fn read_bounded(file: &Path) -> Result<Option<String>, String> {
    let mut text = String::new();
    match fs::File::open(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("failed to open the file: {error}")),
        Ok(open) => open
            .take(CONFIG_MAX_BYTES + 1)
            .read_to_string(&mut text)
            .map_err(|error| format!("failed to read the file: {error}"))?,
    };
    if text.len() as u64 > CONFIG_MAX_BYTES {
        Err("is larger than 1 MiB".to_owned())
    } else {
        Ok(Some(text))
    }
}

/// Creates the plugin for hooks directly in a plugin directory. It has the name of the directory,
/// with a number if the name is taken.
fn loose_plugin(root: &Path, mut hooks: Vec<Hook>, taken: &BTreeMap<String, Plugin>) -> Plugin {
    let base = root.file_name().map_or("plugins".into(), |name| name.to_string_lossy());
    let name = std::iter::once(base.to_string())
        .chain((2..).map(|n| format!("{base}_{n}")))
        .find(|name| !taken.contains_key(name))
        .unwrap_or_default();
    for hook in &mut hooks {
        hook.plugin.clone_from(&name);
    }
    Plugin { name, dir: root.to_owned(), schema: Schema::default(), hooks, loose: true }
}

#[cfg(test)]
mod tests;
