//! `archivist plugins add` and `remove`: plugin directories, each named by a drop-in of
//! archivist.conf(5).

use super::abx;
use super::drop_in::{drop_in_path, failed, reload};
use crate::client::exit::{Exit, Failure};
use crate::display::style;
use archivist_config::Scope;
use archivist_plugin::Trust;
use archivist_plugin::files::whole::{self, Survives};
use clap::Args;
use std::path::{Path, PathBuf};
use std::{fs, io};

const ABX: &str = "abx";

/// Add a directory of plugins, or the PyPI package abx-plugins ('abx')
///
/// A directory is added by a configuration drop-in with PluginPath=. The command refuses a
/// directory in which users other than root (with --user: other than root and the user) can change
/// anything, and refuses to overwrite a drop-in of the same name with different content; the
/// message says how to proceed.
#[derive(Args)]
pub struct PluginAddArgs {
    /// Version of abx-plugins, by default the newest release that this version was tested with
    #[arg(long, value_name = "V")]
    version: Option<String>,
    /// abx, or a directory of plugins
    #[arg(value_name = "abx|DIRECTORY")]
    what: PathBuf,
}

/// Remove a directory of plugins, or abx-plugins, which archivist plugins add added
#[derive(Args)]
pub struct RemoveArgs {
    /// abx, or the last part of the directory's path
    #[arg(value_name = "NAME")]
    name: String,
}

pub async fn add(args: PluginAddArgs, scope: &Scope) -> Result<Exit, Failure> {
    if args.what == Path::new(ABX) {
        return abx::add(args.version.as_deref(), scope).await;
    }
    if args.version.is_some() {
        return Err(Failure::usage("--version goes with abx only"));
    }
    let shown = args.what.display();
    let directory = fs::canonicalize(&args.what)
        .map_err(|error| Failure::failed(format!("failed to open '{shown}': {error}")))?;
    let name = drop_in_name(&directory)?;
    check(&directory, scope)?;
    let path = drop_in_path(&name, scope)?;
    write(&path, &content(&directory))?;
    style::print(&format!("added {} in {}\n", directory.display(), path.display()))?;
    reload(scope).await
}

pub async fn remove(args: RemoveArgs, scope: &Scope) -> Result<Exit, Failure> {
    if args.name == ABX {
        return abx::remove(scope).await;
    }
    let path = drop_in_path(&drop_in_name(Path::new(&args.name))?, scope)?;
    if fs::read_to_string(&path).is_ok_and(|there| !is_ours(&there)) {
        return Err(Failure::failed(format!(
            "'{}' contains more than 'plugins add' writes: remove it by hand",
            path.display()
        )));
    }
    fs::remove_file(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "'{}' does not exist: '{}' was not added, see: archivist config",
            path.display(),
            args.name
        )),
        _ => failed("remove", &path, &error),
    })?;
    style::print(&format!("removed {}\n", path.display()))?;
    reload(scope).await
}

/// Returns the last part of the directory's path, if it can be part of a file name.
fn drop_in_name(directory: &Path) -> Result<String, Failure> {
    let name = directory.file_name().and_then(|name| name.to_str());
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    match name {
        Some(name) if name.chars().all(plain) && !name.starts_with('.') && name != ABX => {
            Ok(name.to_owned())
        }
        _ => Err(Failure::usage(format!(
            "'{}' must have a name of letters, digits, '_', '-' and '.', other than 'abx'",
            directory.display()
        ))),
    }
}

/// Checks that the orchestrator would load plugins from the directory, and that hooks can read
/// them.
fn check(directory: &Path, scope: &Scope) -> Result<(), Failure> {
    if !directory.is_dir() {
        return Err(Failure::usage(format!("'{}' is not a directory", directory.display())));
    }
    let trust = if scope.user { Trust::User(nix::unistd::geteuid().as_raw()) } else { Trust::Root };
    let owner = if scope.user { "you or root" } else { "root" };
    let entries = fs::read_dir(directory).map_err(|error| failed("read", directory, &error))?;
    let plugins: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    for path in plugins.iter().chain([&directory.to_owned()]) {
        trust.check_path(path).map_err(|(at, what)| {
            Failure::failed(format!(
                "'{}' {what}: plugins that other users can change do not run\n\
                 fix: chown -R root: '{1}' && chmod -R go-w '{1}' (every parent directory must belong to {owner})",
                at.display(),
                directory.display(),
            ))
        })?;
    }
    if plugins.iter().any(|path| path.join("config.json").is_file()) {
        Ok(())
    } else {
        Err(Failure::usage(format!(
            "'{}' contains no plugin: a plugin is a subdirectory with a config.json",
            directory.display()
        )))
    }
}

const FIRST_LINE: &str = "[Archive]\nPluginPath=";

fn content(directory: &Path) -> String {
    format!("{FIRST_LINE}{}\n", directory.display())
}

/// Returns whether a drop-in names one plugin directory and nothing else.
fn is_ours(text: &str) -> bool {
    text.strip_prefix(FIRST_LINE).is_some_and(|rest| rest.lines().count() == 1)
}

/// Writes the drop-in; an existing file with other content stays.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|error| failed("create", directory, &error))?;
    }
    match fs::read_to_string(path) {
        Ok(there) if there == text => Ok(()),
        Ok(there) => Err(Failure::failed(format!(
            "'{}' exists with other content:\n{}\n\
             name both directories in one PluginPath= of a file of your own, or rename the directory",
            path.display(),
            there.trim_end()
        ))),
        Err(_) => whole::replace(path, text.as_bytes(), 0o644, Survives::PowerCut)
            .map_err(|error| failed("write", path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(root: &Path) -> Scope {
        Scope { user: true, ..Scope::system(root) }
    }

    #[test]
    fn directories_writable_by_others_are_refused_with_a_fix() {
        use std::os::unix::fs::PermissionsExt;
        let top = tempfile::tempdir().unwrap();
        let plugins = top.path().join("plugins");
        fs::create_dir_all(plugins.join("mine")).unwrap();
        let scope = user(top.path());
        let said = |scope: &Scope| check(&plugins, scope).unwrap_err().message().to_owned();
        assert!(said(&scope).contains("contains no plugin"));
        fs::write(plugins.join("mine/config.json"), "{}").unwrap();
        assert!(check(&plugins, &scope).is_ok());
        fs::set_permissions(plugins.join("mine"), fs::Permissions::from_mode(0o777)).unwrap();
        let said = said(&scope);
        assert!(said.contains("mine' is writable by other users (mode 777)"), "{said}");
        assert!(said.contains("chmod -R go-w"), "{said}");
    }

    #[test]
    fn names_of_drop_ins() {
        let scope = Scope::system("/");
        let path =
            drop_in_path(&drop_in_name(Path::new("/srv/my-plugins")).unwrap(), &scope).unwrap();
        assert_eq!(path, Path::new("/etc/archivist/archivist.conf.d/50-my-plugins.conf"));
        for bad in ["/", "/srv/a b", "/srv/.x", "/srv/abx"] {
            assert!(drop_in_name(Path::new(bad)).is_err(), "{bad}");
        }
    }
}
