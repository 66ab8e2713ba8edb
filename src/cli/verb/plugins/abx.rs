//! `archivist plugins add abx`: the plugins of the package abx-plugins, and the programs that their
//! hooks need.
//!
//! The third-party programs are fetched, built and run by a unit with the sandbox of hooks: without
//! a terminal, with its own environment, and with access to the library only. The plugins are made
//! by a unit without even the library, in a directory that no hook can reach; root copies their
//! regular files from there.

use super::drop_in::{drop_in_path, failed, reload};
use super::unit::Sandbox;
use crate::client::exit::{Exit, Failure};
use crate::display::style;
use crate::verb::plugins::unit;
use archivist_config::Scope;
use archivist_hooks::persona::{CopyBounds, copy_opened, open_below};
use archivist_plugin::Values;
use archivist_plugin::files::remove::remove_tree;
use archivist_plugin::files::whole::{self, Survives};
use archivist_plugin::programs::install::ABX_DIRECTORY;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Uid, User, chown};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Newest release of the package that was tested with this version.
const VERSION: &str = "1.13.572";
const SETUP: &str = "/usr/lib/archivist/setup-abx";
/// Limits for the copy, far above what the package contains.
const COPY_BOUNDS: CopyBounds =
    CopyBounds { entries: 20_000, bytes: 256 << 20, depth: 16, programs: true };
/// Where the unit leaves the plugins, below its /tmp.
const MADE: &str = "abx/abx_plugins/plugins";

pub async fn add(version: Option<&str>, scope: &Scope) -> Result<Exit, Failure> {
    let version = version.unwrap_or(VERSION);
    check_version(version)?;
    check_caller(scope)?;
    umask(Mode::from_bits_truncate(0o022));
    let stage = Stage::make(scope)?;
    let library = scope.data_dir().join("lib");
    if scope.user {
        fs::create_dir_all(&library).map_err(|error| failed("make", &library, &error))?;
    }
    let library_text = library.display().to_string();
    let steps: [(&str, Option<&Path>, Vec<&str>); 2] = [
        ("plugins", None, vec!["plugins", version]),
        ("library", Some(&library), vec!["library", version, &library_text]),
    ];
    for (name, library, words) in steps {
        let sandbox = Sandbox {
            name: "abx",
            tmp: stage.room(name)?,
            library,
            argv: std::iter::once(SETUP).chain(words).collect(),
        };
        let exit = unit::run(&sandbox, scope).await?;
        if exit != Exit::Done {
            return Ok(exit);
        }
    }
    let plugins = plugins(scope);
    take(&stage, &plugins)?;
    drop(stage);
    let path = drop_in_path("abx", scope)?;
    let (settings, _) = archivist_config::load(scope)?;
    let programs = programs(&plugins, &library, &settings.values);
    write_drop_in(&path, version, &plugins, &programs)
        .map_err(|error| failed("write", &path, &error))?;
    reload(scope).await?;
    style::say(&format!(
        "abx-plugins {version} is ready in {}; see: archivist plugins\n",
        plugins.display()
    ))?;
    Ok(Exit::Done)
}

pub async fn remove(scope: &Scope) -> Result<Exit, Failure> {
    check_caller(scope)?;
    let path = drop_in_path("abx", scope)?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("remove", &path, &error));
        }
        _ => {}
    }
    let plugins = plugins(scope);
    for name in [&plugins, &sibling(&plugins, "new"), &sibling(&plugins, "old")] {
        clear(name)?;
    }
    style::say(&format!(
        "removed the plugin set abx; its Python and node modules stay in {}\n",
        scope.data_dir().join("lib").display()
    ))?;
    reload(scope).await
}

fn check_version(version: &str) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
    if !version.is_empty() && version.chars().all(plain) {
        Ok(())
    } else {
        Err(Failure::usage(format!("'{version}' is not a version such as {VERSION}")))
    }
}

fn check_caller(scope: &Scope) -> Result<(), Failure> {
    if scope.user || Uid::effective().is_root() {
        Ok(())
    } else {
        Err(Failure::failed(
            "only root can change the machine's plugins: use sudo, or --user for your own archive",
        ))
    }
}

/// Not in the library: a plugin that hooks can write to would not run.
fn plugins(scope: &Scope) -> PathBuf {
    scope.data_dir().join(ABX_DIRECTORY)
}

fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn clear(path: &Path) -> Result<(), Failure> {
    remove_tree(path).map_err(|error| failed("remove", path, &error))
}

fn take(stage: &Stage, plugins: &Path) -> Result<(), Failure> {
    let [new, old] = ["new", "old"].map(|ending| sibling(plugins, ending));
    clear(&new)?;
    let made = Path::new("plugins").join(MADE);
    let shown = stage.path.join(&made);
    let top =
        open_below(&stage.directory, &made).map_err(|error| failed("read", &shown, &error))?;
    let copied = copy_opened(&top, &shown, &new, COPY_BOUNDS);
    copied.map_err(|error| {
        let _ = remove_tree(&new);
        Failure::failed(error.to_string())
    })?;
    clear(&old)?;
    match fs::rename(plugins, &old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("rename", plugins, &error));
        }
        _ => {}
    }
    fs::rename(&new, plugins).map_err(|error| failed("rename", &new, &error))?;
    clear(&old)
}

/// The settings with the programs that were installed for these plugins. Hooks search the library after
/// the system, which may have older versions of them. Values that the administrator has set stay.
fn programs(plugins: &Path, library: &Path, set: &Values) -> BTreeMap<String, PathBuf> {
    let configs = fs::read_dir(plugins).into_iter().flatten().flatten();
    let configs = configs.filter_map(|entry| {
        let text = fs::read_to_string(entry.path().join("config.json")).ok()?;
        serde_json::from_str::<Value>(&text).ok()
    });
    let mut found = BTreeMap::new();
    for config in configs {
        let properties = config["properties"].as_object().into_iter().flatten();
        for (key, property) in properties {
            let is_own = |value: &String| Path::new(value).starts_with(library);
            if key.ends_with("_BINARY")
                && key.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
                && set.get(key).is_none_or(is_own)
                && let Some(name) = property["default"].as_str()
                && let Some(path) = installed(library, name)
            {
                found.insert(key.clone(), path);
            }
        }
    }
    found
}

/// The path of a program that is in the library itself, not a link to one of the system.
fn installed(library: &Path, name: &str) -> Option<PathBuf> {
    let plain = |c: u8| c.is_ascii_alphanumeric() || b"._-+".contains(&c);
    if !name.bytes().all(plain) {
        return None;
    }
    let path = library.join("bin").join(name);
    let there = path.canonicalize().ok()?;
    (there.is_file() && there.starts_with(library.canonicalize().ok()?)).then_some(path)
}

fn write_drop_in(
    path: &Path,
    version: &str,
    plugins: &Path,
    programs: &BTreeMap<String, PathBuf>,
) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut text = format!(
        "# Written by archivist plugins add abx: abx-plugins {version}.\n[Archive]\nPluginPath={}\n",
        plugins.display()
    );
    if !programs.is_empty() {
        text.push_str("[Config]\n");
    }
    for (key, program) in programs {
        text.push_str(&format!("{key}={}\n", program.display()));
    }
    whole::replace(path, text.as_bytes(), 0o644, Survives::PowerCut)
}

/// A directory that only root can enter, with one directory for each unit. It is removed on drop.
struct Stage {
    path: PathBuf,
    directory: Flock<File>,
    /// Owner of the directories of units.
    owner: Option<User>,
}

impl Stage {
    fn make(scope: &Scope) -> Result<Stage, Failure> {
        let path = scope.data_dir().join(".setup");
        let unusable = |error: &io::Error| failed("make", &path, error);
        let owner = match scope.hook_user(0) {
            None => None,
            Some(name) => Some(User::from_name(&name).ok().flatten().ok_or_else(|| {
                Failure::failed(format!("user {name} does not exist: systemd-sysusers creates it"))
            })?),
        };
        let mut builder = DirBuilder::new();
        let made = builder.recursive(scope.user).mode(0o700).create(&path);
        match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(unusable(&error));
            }
            _ => {}
        }
        let opened = File::open(&path).map_err(|error| unusable(&error))?;
        let directory = Flock::lock(opened, FlockArg::LockExclusiveNonblock).map_err(|_| {
            Failure::failed(
                "another 'archivist plugins add abx' is running; wait until it has ended",
            )
        })?;
        Ok(Stage { path, directory, owner })
    }

    /// Returns an empty directory for the unit of this step.
    fn room(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.path.join(name);
        clear(&path)?;
        let to_failure = |error: &io::Error| failed("make", &path, error);
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| to_failure(&error))?;
        if let Some(owner) = &self.owner {
            chown(&path, Some(owner.uid), Some(owner.gid))
                .map_err(|error| to_failure(&error.into()))?;
        }
        Ok(path)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = remove_tree(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    fn scope(top: &Path) -> Scope {
        let mut scope = Scope::system(top);
        scope.user = true;
        scope.dirs.data = "/data".into();
        scope
    }

    #[test]
    fn only_files_of_the_unit_become_plugins() {
        let top = tempfile::tempdir().unwrap();
        let scope = scope(top.path());
        let stage = Stage::make(&scope).unwrap();
        assert!(Stage::make(&scope).is_err(), "one at a time");
        let plugins = plugins(&scope);
        let made = stage.room("plugins").unwrap().join(MADE);
        fs::create_dir_all(made.join("title")).unwrap();
        fs::write(made.join("title/config.json"), "{}").unwrap();
        symlink("/etc/passwd", made.join("title/link")).unwrap();
        symlink("/etc", made.join("directory")).unwrap();
        nix::unistd::mkfifo(&made.join("pipe"), Mode::S_IRWXU).unwrap();
        take(&stage, &plugins).unwrap();
        let names = |path: &Path| fs::read_dir(path).unwrap().count();
        assert_eq!((names(&plugins), names(&plugins.join("title"))), (1, 1));

        // A link in place of a directory on the way leads nowhere, and what was there stays.
        let made = stage.room("plugins").unwrap();
        symlink("/etc", made.join("abx")).unwrap();
        let why = take(&stage, &plugins).unwrap_err();
        assert!(why.message().contains("symbolic link"), "{}", why.message());
        assert!(plugins.join("title/config.json").is_file());
        let path = stage.path.clone();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        drop(stage);
        assert!(!path.exists());
    }

    #[test]
    fn programs_of_the_plugins_become_settings() {
        let top = tempfile::tempdir().unwrap();
        let (plugins, library) = (top.path().join("plugins"), top.path().join("lib"));
        for (plugin, config) in [
            (
                "media",
                r#"{"properties": {"NODE_BINARY": {"default": "node"}, "YTDLP_BINARY": {"default": "yt-dlp"},
                    "CHROME_BINARY": {"default": "chrome"}, "GIT_BINARY": {"default": "git"}, "X_TIMEOUT": {"default": 3}}}"#,
            ),
            (
                "odd",
                r#"{"properties": {"A=B\n_BINARY": {"default": "node"}, "UP_BINARY": {"default": "../bin/node"},
                    "OWN_BINARY": {"default": "node"}}}"#,
            ),
            ("broken", "{"),
        ] {
            fs::create_dir_all(plugins.join(plugin)).unwrap();
            fs::write(plugins.join(plugin).join("config.json"), config).unwrap();
        }
        for directory in ["bin", "node/bin"] {
            fs::create_dir_all(library.join(directory)).unwrap();
        }
        fs::write(library.join("node/bin/node"), "").unwrap();
        fs::write(library.join("bin/yt-dlp"), "").unwrap();
        symlink("../node/bin/node", library.join("bin/node")).unwrap();
        symlink("/bin/sh", library.join("bin/chrome")).unwrap();
        let own = library.join("bin/older").display().to_string();
        let set = Values::from([
            ("OWN_BINARY".to_owned(), "/opt/node".to_owned()),
            ("NODE_BINARY".to_owned(), own),
        ]);
        let wanted = [("NODE_BINARY", "node"), ("YTDLP_BINARY", "yt-dlp")];
        let wanted = wanted.map(|(key, name)| (key.to_owned(), library.join("bin").join(name)));
        let found = programs(&plugins, &library, &set);
        assert_eq!(found, BTreeMap::from(wanted));
        let path = top.path().join("archivist.conf.d/50-abx.conf");
        write_drop_in(&path, "1.0", &plugins, &found).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let line = format!("\n[Config]\nNODE_BINARY={}/bin/node\n", library.display());
        assert!(text.contains(&line), "{text}");
    }

    #[test]
    fn versions_are_validated() {
        assert!(check_version(VERSION).is_ok());
        for bad in ["", "1.0 --pre", "1;id", "../x"] {
            assert!(check_version(bad).is_err(), "{bad}");
        }
    }
}
