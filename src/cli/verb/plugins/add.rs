//! `archivist plugins add` and `remove`: directories of plugins, each named by a drop-in.

use super::abx;
use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, systemctl};
use crate::display::look;
use archivist_plugin::Trust;
use archivist_shared::config::Scope;
use clap::Args;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The name of the plugins of abx-plugins.
const ABX: &str = "abx";

#[derive(Args)]
pub struct AddArgs {
    /// The version of abx-plugins
    #[arg(long, value_name = "V")]
    version: Option<String>,
    /// abx, or a directory with plugins
    #[arg(value_name = "abx|DIRECTORY")]
    what: PathBuf,
}

#[derive(Args)]
pub struct RemoveArgs {
    /// abx, or the last part of the directory's name
    #[arg(value_name = "NAME")]
    name: String,
}

pub async fn add(args: AddArgs, scope: &Scope) -> Result<Exit, Failure> {
    if args.what == Path::new(ABX) {
        return abx::add(args.version.as_deref(), scope).await;
    }
    if args.version.is_some() {
        return Err(Failure::usage("--version goes with abx only"));
    }
    let shown = args.what.display();
    let directory = fs::canonicalize(&args.what)
        .map_err(|error| Failure::failed(format!("cannot use '{shown}': {error}")))?;
    let name = drop_in_name(&directory)?;
    check(&directory, scope)?;
    let path = drop_in_of(&name, scope)?;
    write(&path, &content(&directory))?;
    look::print(&format!(
        "{} is used, by {}\n",
        directory.display(),
        path.display()
    ))?;
    reload(scope).await
}

pub async fn remove(args: RemoveArgs, scope: &Scope) -> Result<Exit, Failure> {
    if args.name == ABX {
        return abx::remove(scope).await;
    }
    let path = drop_in_of(&drop_in_name(Path::new(&args.name))?, scope)?;
    if fs::read_to_string(&path).is_ok_and(|there| !is_ours(&there)) {
        return Err(Failure::failed(format!(
            "'{}' has more in it than 'plugins add' writes: remove it yourself",
            path.display()
        )));
    }
    fs::remove_file(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "there is no '{}': '{}' was not added, see: archivist config",
            path.display(),
            args.name
        )),
        _ => failed("remove", &path, &error),
    })?;
    look::print(&format!("{} is removed\n", path.display()))?;
    reload(scope).await
}

/// The last part of the directory's name, as far as a file may be called so.
fn drop_in_name(directory: &Path) -> Result<String, Failure> {
    let name = directory.file_name().and_then(|name| name.to_str());
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    match name {
        Some(name) if name.chars().all(plain) && !name.starts_with('.') && name != ABX => {
            Ok(name.to_owned())
        }
        _ => Err(Failure::usage(format!(
            "'{}' needs a name of letters, digits, '_', '-' and '.', and not 'abx'",
            directory.display()
        ))),
    }
}

pub(super) fn drop_in_of(name: &str, scope: &Scope) -> Result<PathBuf, Failure> {
    let directory = scope.config_dirs().pop();
    let directory = directory.ok_or_else(|| Failure::failed("there is no configuration"))?;
    let directory = directory.join(format!("{}.d", scope.config_name()));
    Ok(directory.join(format!("50-{name}.conf")))
}

/// Whether the orchestrator would take plugins from there, and hooks may read them.
fn check(directory: &Path, scope: &Scope) -> Result<(), Failure> {
    if !directory.is_dir() {
        return Err(Failure::usage(format!(
            "'{}' is no directory",
            directory.display()
        )));
    }
    let trust = if scope.user {
        Trust::User(nix::unistd::geteuid().as_raw())
    } else {
        Trust::Root
    };
    let owner = if scope.user { "you or root" } else { "root" };
    let entries = fs::read_dir(directory).map_err(|error| failed("read", directory, &error))?;
    let plugins = entries.flatten().map(|entry| entry.path());
    let plugins: Vec<PathBuf> = plugins.filter(|path| path.is_dir()).collect();
    for path in plugins.iter().chain([&directory.to_owned()]) {
        trust.check_path(path).map_err(|(at, what)| {
            Failure::failed(format!(
                "'{}' {what}: what others can change is not run\n\
                 mend it with: chown -R root: '{1}' && chmod -R go-w '{1}' (all of its path must be {owner}'s)",
                at.display(),
                directory.display(),
            ))
        })?;
    }
    if plugins
        .iter()
        .any(|path| path.join("config.json").is_file())
    {
        Ok(())
    } else {
        Err(Failure::usage(format!(
            "'{}' holds no plugin: a plugin is a directory in it with a config.json",
            directory.display()
        )))
    }
}

const FIRST_LINE: &str = "[Archive]\nPluginPath=";

fn content(directory: &Path) -> String {
    format!("{FIRST_LINE}{}\n", directory.display())
}

/// Whether a drop-in has one directory of plugins in it and nothing else.
fn is_ours(text: &str) -> bool {
    text.strip_prefix(FIRST_LINE)
        .is_some_and(|rest| rest.lines().count() == 1)
}

/// What is there already and says something else stays as it is.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|error| failed("make", directory, &error))?;
    }
    match fs::read_to_string(path) {
        Ok(there) if there == text => Ok(()),
        Ok(there) => Err(Failure::failed(format!(
            "'{}' is there already, with something else in it:\n{}\n\
             name both directories in one PluginPath= of a file of your own, or rename the directory",
            path.display(),
            there.trim_end()
        ))),
        Err(_) => fs::write(path, text).map_err(|error| failed("write", path, &error)),
    }
}

pub(super) fn failed(verb: &str, path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "\nthe machine's plugins are root's to change: use sudo, or --user"
        }
        _ => "",
    };
    Failure::failed(format!(
        "failed to {verb} '{}': {error}{hint}",
        path.display()
    ))
}

pub(super) async fn reload(scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    server
        .call(|| server.proxy().reload())
        .await
        .inspect_err(|_| {
            eprintln!(
                "see: {} status {}",
                systemctl(scope),
                scope.orchestrator_unit()
            );
        })?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(root: &Path) -> Scope {
        Scope {
            user: true,
            ..Scope::system(root)
        }
    }

    #[test]
    fn what_others_can_change_is_refused_with_what_to_do() {
        use std::os::unix::fs::PermissionsExt;
        let top = tempfile::tempdir().unwrap();
        let plugins = top.path().join("plugins");
        fs::create_dir_all(plugins.join("mine")).unwrap();
        let scope = user(top.path());
        let said = |scope: &Scope| check(&plugins, scope).unwrap_err().message().to_owned();
        assert!(said(&scope).contains("holds no plugin"));
        fs::write(plugins.join("mine/config.json"), "{}").unwrap();
        assert!(check(&plugins, &scope).is_ok());
        fs::set_permissions(plugins.join("mine"), fs::Permissions::from_mode(0o777)).unwrap();
        let said = said(&scope);
        assert!(
            said.contains("mine' is writable by other users (mode 777)"),
            "{said}"
        );
        assert!(said.contains("chmod -R go-w"), "{said}");
    }

    #[test]
    fn names_of_drop_ins() {
        let scope = Scope::system("/");
        let path =
            drop_in_of(&drop_in_name(Path::new("/srv/my-plugins")).unwrap(), &scope).unwrap();
        assert_eq!(
            path,
            Path::new("/etc/archivist/archivist.conf.d/50-my-plugins.conf")
        );
        for bad in ["/", "/srv/a b", "/srv/.x", "/srv/abx"] {
            assert!(drop_in_name(Path::new(bad)).is_err(), "{bad}");
        }
    }
}
