//! `archivist persona`: profiles and cookies that crawls take a copy of. They are files, and this
//! puts them where crawls look for them.

use super::exit::{Exit, Failure};
use super::look::{self, Look};
use super::table::Table;
use crate::config::Scope;
use crate::hook::persona::{BOUNDS, IN_USE, PROFILE, copy};
use crate::model::{COOKIES, PersonaName};
use clap::{Args, Subcommand};
use nix::sys::stat::{Mode, umask};
use serde_json::json;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct PersonaArgs {
    #[command(subcommand)]
    verb: PersonaVerb,
}

#[derive(Subcommand)]
enum PersonaVerb {
    /// Show what there is
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a persona of a browser's profile, a file of cookies, or both
    Import(ImportArgs),
    /// Forget a persona; crawls under way keep their copy
    Remove {
        #[arg(value_name = "NAME")]
        name: PersonaName,
    },
}

#[derive(Args)]
struct ImportArgs {
    /// The user data directory of a Chrome or Chromium that is not running
    #[arg(long, value_name = "DIR", required_unless_present = "cookies")]
    profile: Option<PathBuf>,
    /// Cookies in Netscape format
    #[arg(long, value_name = "FILE")]
    cookies: Option<PathBuf>,
    /// How --persona calls it; Default is used where nothing else is asked for
    #[arg(value_name = "NAME")]
    name: PersonaName,
}

/// Larger than any file of cookies.
const COOKIES_MAX: u64 = 64 << 20;

pub fn run(args: PersonaArgs, scope: &Scope) -> Result<Exit, Failure> {
    let all = scope.data_dir().join("personas");
    match args.verb {
        PersonaVerb::List { json } => list(&all, json)?,
        PersonaVerb::Import(args) => import(&args, &all, scope)?,
        PersonaVerb::Remove { name } => {
            let path = all.join(name.as_str());
            fs::remove_dir_all(&path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Failure::failed(format!(
                    "there is no persona '{name}'; see: archivist persona list"
                )),
                _ => failed("remove", &path, &error),
            })?;
            look::print(&format!("{name} is removed\n"))?;
        }
    }
    Ok(Exit::Done)
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> Failure {
    let next = match error.kind() {
        io::ErrorKind::PermissionDenied => "; the personas of the machine are root's",
        io::ErrorKind::NotFound => "; see: archivist persona list",
        _ => "",
    };
    Failure::failed(format!(
        "failed to {verb} '{}': {error}{next}",
        path.display()
    ))
}

fn list(all: &Path, json: bool) -> Result<(), Failure> {
    let entries = match fs::read_dir(all) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let entries = entries.map_err(|error| failed("read", all, &error))?;
    let mut personas: Vec<(PersonaName, [bool; 2])> = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().parse();
        if let (Ok(name), true) = (name, entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let has = [PROFILE, COOKIES].map(|part| entry.path().join(part).exists());
            personas.push((name, has));
        }
    }
    personas.sort();
    if json {
        let document = personas.iter().map(|(name, [profile, cookies])| {
            json!({"name": name.as_str(), "profile": profile, "cookies": cookies})
        });
        return look::print_json(&json!(document.collect::<Vec<_>>()).to_string());
    }
    if personas.is_empty() {
        return look::print("no personas\n");
    }
    let mut table = Table::new(&["PERSONA", "PROFILE", "COOKIES"]);
    let word = |there: bool| if there { "yes" } else { "no" };
    for (name, [profile, cookies]) in &personas {
        let cells = [name.as_str(), word(*profile), word(*cookies)];
        table.row(cells.map(Into::into));
    }
    look::print(&table.render(&Look::of_stdout()))
}

/// Nobody sees a part of it: it is renamed when it is whole.
fn import(args: &ImportArgs, all: &Path, scope: &Scope) -> Result<(), Failure> {
    umask(match scope.user {
        true => Mode::from_bits_truncate(0o077),
        false => Mode::from_bits_truncate(0o027),
    });
    make(all, scope)?;
    let (name, path) = (&args.name, all.join(args.name.as_str()));
    if path.symlink_metadata().is_ok() {
        return Err(Failure::usage(format!(
            "there is a persona '{name}'; to replace it, first: archivist persona remove {name}"
        )));
    }
    let new = all.join(format!(".{name}.new"));
    if new.symlink_metadata().is_ok() {
        fs::remove_dir_all(&new).map_err(|error| failed("remove", &new, &error))?;
    }
    fs::create_dir(&new).map_err(|error| failed("make", &new, &error))?;
    let done = fill(args, &new)
        .and_then(|()| fs::rename(&new, &path).map_err(|error| failed("make", &path, &error)));
    if done.is_err() {
        let _ = fs::remove_dir_all(&new);
    }
    done?;
    look::print(&format!(
        "{name} is there, for: archivist add --persona {name}\n"
    ))
}

/// The directory of all of them: only root gets there. What is in it belongs to the group of hooks, for
/// the one hook that systemd binds a persona for.
fn make(all: &Path, scope: &Scope) -> Result<(), Failure> {
    if all.is_dir() {
        return Ok(());
    }
    let told = |error| failed("make", all, &error);
    let mut builder = DirBuilder::new();
    builder.recursive(scope.user).mode(0o700);
    builder.create(all).map_err(told)?;
    if !scope.user {
        let group = fs::metadata(all.with_file_name("archive")).map_err(told)?;
        std::os::unix::fs::chown(all, None, Some(group.gid())).map_err(told)?;
        fs::set_permissions(all, Permissions::from_mode(0o2700)).map_err(told)?;
    }
    Ok(())
}

fn fill(args: &ImportArgs, new: &Path) -> Result<(), Failure> {
    if let Some(profile) = &args.profile {
        if profile.join(IN_USE).symlink_metadata().is_ok() {
            return Err(Failure::failed(format!(
                "a browser is at work on '{}': it has a {IN_USE}; end it first",
                profile.display()
            )));
        }
        copy(profile, &new.join(PROFILE), BOUNDS)
            .map_err(|error| Failure::failed(error.to_string()))?;
    }
    if let Some(cookies) = &args.cookies {
        let kind = fs::metadata(cookies).map_err(|error| failed("read", cookies, &error))?;
        if !kind.is_file() || kind.len() > COOKIES_MAX {
            return Err(Failure::failed(format!(
                "'{}' is no file of cookies",
                cookies.display()
            )));
        }
        let text = fs::read(cookies).map_err(|error| failed("read", cookies, &error))?;
        let to = new.join(COOKIES);
        fs::write(&to, text).map_err(|error| failed("write", &to, &error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn scope(top: &Path) -> Scope {
        let mut scope = Scope::system(top);
        scope.user = true;
        scope.dirs.data = "/data".into();
        scope
    }

    #[test]
    fn a_profile_in_use_and_half_an_import_leave_nothing() {
        let top = tempfile::tempdir().unwrap();
        let (scope, profile) = (scope(top.path()), top.path().join("profile"));
        let all = scope.data_dir().join("personas");
        fs::create_dir_all(profile.join("Default")).unwrap();
        fs::write(profile.join("Default/Cookies"), "c").unwrap();
        let args = |cookies: Option<&str>| ImportArgs {
            profile: Some(profile.clone()),
            cookies: cookies.map(|name| top.path().join(name)),
            name: "work".parse().unwrap(),
        };
        symlink("host-1", profile.join(IN_USE)).unwrap();
        assert!(import(&args(None), &all, &scope).is_err());
        fs::remove_file(profile.join(IN_USE)).unwrap();
        assert!(import(&args(Some("missing")), &all, &scope).is_err());
        assert_eq!(fs::read_dir(&all).unwrap().count(), 0);

        fs::write(top.path().join("cookies"), "k").unwrap();
        import(&args(Some("cookies")), &all, &scope).unwrap();
        let read = |name: &str| fs::read_to_string(all.join("work").join(name)).unwrap();
        assert_eq!(read("chrome_profile/Default/Cookies"), "c");
        assert_eq!(read("cookies.txt"), "k");
        assert!(import(&args(None), &all, &scope).is_err(), "it is there");
    }
}
