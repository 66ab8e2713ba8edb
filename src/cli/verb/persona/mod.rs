//! `archivist persona`: profiles and cookies that crawls copy. They are files in the data
//! directory, and this verb writes them.

mod audience;
mod import;
mod settings;
mod show;

use crate::client::exit::{Exit, Failure};
use crate::display::style::{self, Style};
use crate::display::table::Table;
use archivist_config::Scope;
use archivist_core::model::{COOKIES, PersonaName};
use archivist_hooks::persona::PROFILE;
use archivist_plugin::files::remove::remove_tree;
use archivist_plugin::files::whole::{self, Survives};
use clap::{Args, Subcommand};
use serde_json::json;
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

/// Manage personas: browser profiles and cookies for crawls
#[derive(Args)]
pub struct PersonaArgs {
    #[command(subcommand)]
    verb: PersonaVerb,
}

#[derive(Subcommand)]
enum PersonaVerb {
    /// List the personas and the users who may use them
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    Import(import::ImportArgs),
    /// Add users to the list of a persona, whose crawls may use it
    Allow(audience::AudienceArgs),
    /// Remove users from the list of a persona; running crawls keep their copy
    Deny(audience::AudienceArgs),
    Set(settings::SetArgs),
    Unset(settings::UnsetArgs),
    Show(show::ShowArgs),
    /// Delete a persona; running crawls keep their copy
    Remove {
        #[arg(value_name = "NAME")]
        name: PersonaName,
    },
}

pub fn run(args: PersonaArgs, scope: &Scope) -> Result<Exit, Failure> {
    let all = scope.data_dir().join("personas");
    match args.verb {
        PersonaVerb::List { json } => list(&all, json, scope)?,
        PersonaVerb::Import(args) => return import::run(&args, &all, scope),
        PersonaVerb::Allow(args) => audience::change(&args, &all, scope, true)?,
        PersonaVerb::Deny(args) => audience::change(&args, &all, scope, false)?,
        PersonaVerb::Set(args) => settings::set(&args, &all, scope)?,
        PersonaVerb::Unset(args) => settings::unset(&args, &all)?,
        PersonaVerb::Show(args) => show::run(&args, &all, scope)?,
        PersonaVerb::Remove { name } => remove(&all, &name)?,
    }
    Ok(Exit::Done)
}

fn remove(all: &Path, name: &PersonaName) -> Result<(), Failure> {
    let path = all.join(name.as_str());
    let removed = path.symlink_metadata().and_then(|_| remove_tree(&path));
    removed.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::failed(format!("there is no persona '{name}'; see: archivist persona list"))
        }
        _ => failed("remove", &path, &error),
    })?;
    for file in [name.list(), name.settings()] {
        let file = all.join(file);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &file, &error));
            }
            _ => {}
        }
    }
    style::print(&format!("removed {name}\n"))
}

/// Reads a file next to the personas, which means the default if there is none.
fn read_next_to<T: FromStr<Err: Display> + Default>(all: &Path, file: &str) -> Result<T, Failure> {
    let path = all.join(file);
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(failed("read", &path, &error)),
        Ok(text) => {
            text.parse().map_err(|error| Failure::failed(format!("'{}': {error}", path.display())))
        }
    }
}

/// Replaces a file next to the personas, which only the owner can read.
fn write_next_to(all: &Path, file: &str, text: &str) -> Result<(), Failure> {
    let path = all.join(file);
    whole::replace(&path, text.as_bytes(), 0o600, Survives::PowerCut)
        .map_err(|error| failed("write", &path, &error))
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> Failure {
    let next = match error.kind() {
        io::ErrorKind::PermissionDenied => "; only root can change the machine's personas",
        io::ErrorKind::NotFound => "; see: archivist persona list",
        _ => "",
    };
    Failure::failed(format!("failed to {verb} '{}': {error}{next}", path.display()))
}

fn list(all: &Path, json: bool, scope: &Scope) -> Result<(), Failure> {
    let listed = match fs::read_dir(all) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let entries = listed.map_err(|error| failed("read", all, &error))?;
    let mut personas: Vec<(PersonaName, [bool; 2], Option<Vec<String>>)> = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().parse();
        if let (Ok(name), true) = (name, entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let has = [PROFILE, COOKIES].map(|part| entry.path().join(part).exists());
            let users =
                if scope.user { None } else { Some(audience::words(&audience::read(all, &name)?)) };
            personas.push((name, has, users));
        }
    }
    personas.sort();
    if json {
        let document = personas.iter().map(|(name, [profile, cookies], users)| {
            json!({"name": name.as_str(), "profile": profile, "cookies": cookies, "users": users})
        });
        return style::print_json(&json!(document.collect::<Vec<_>>()).to_string());
    }
    if personas.is_empty() {
        return style::print("no personas\n");
    }
    let mut table = Table::new("PERSONA  PROFILE  COOKIES  USERS…");
    let word = |there: bool| if there { "yes" } else { "no" };
    for (name, [profile, cookies], users) in &personas {
        let users = users.as_ref().map_or("yours".to_owned(), |users| users.join(" "));
        let cells = [name.as_str(), word(*profile), word(*cookies), &users];
        table.row(cells.map(Into::into));
    }
    style::print(&table.render(&Style::of_stdout()))
}
