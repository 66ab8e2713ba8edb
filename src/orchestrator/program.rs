//! `archivist-orchestrator [--user] [--instance NAME] [orchestrator [--exit-on-idle] | worker |
//! delete | entries | backup DIR [--keep N] | restore DIR [--config | --database] [--yes | --keep-deleted] |
//! archivebox]`: the program of the orchestrator and the workers, and of what needs the database without the
//! orchestrator or reads one of another program. Users do not call it. Its command line is parsed by hand, as
//! a parser would be resident all the time.

use crate::archivebox;
use crate::backup::{self, Deleted, Task, What};
use crate::house::House;
use crate::process::run as orchestrator;
use archivist_config::{INSTANCE_ALLOWED, Scope, is_instance_name};
use archivist_worker as worker;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit status for wrong usage, as of `archivist`.
const USAGE: u8 = 2;

#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    user: bool,
    instance: Option<String>,
    worker: bool,
    delete: bool,
    entries: bool,
    exit_on_idle: bool,
    task: Option<Task>,
    archivebox: bool,
}

/// Runs the orchestrator or a worker, as `arguments` say.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let asked = match read(arguments) {
        Ok(asked) => asked,
        Err(error) => {
            eprintln!("archivist-orchestrator: {error}");
            return ExitCode::from(USAGE);
        }
    };
    if asked.worker {
        return worker::main();
    }
    if asked.delete {
        return worker::delete::main();
    }
    if asked.entries {
        return worker::entries::main();
    }
    if asked.archivebox {
        return archivebox::main();
    }
    let scope = Scope::from_env(asked.user, asked.instance, |name| std::env::var_os(name));
    if let Some(task) = &asked.task {
        return backup::main(&scope, task);
    }
    let options = orchestrator::Options { scope, exit_on_idle: asked.exit_on_idle };
    orchestrator::main(options, &House)
}

fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<Asked, String> {
    let mut asked = Asked::default();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("orchestrator") => {}
            Some("worker") => asked.worker = true,
            Some("delete") => asked.delete = true,
            Some("entries") => asked.entries = true,
            Some("--user") => asked.user = true,
            Some("--exit-on-idle") => asked.exit_on_idle = true,
            Some("--instance") => asked.instance = Some(instance(arguments.next())?),
            Some("backup") => asked.task = Some(backup_task(&mut arguments)?),
            Some("restore") => asked.task = Some(restore_task(&mut arguments)?),
            Some("archivebox") => asked.archivebox = true,
            _ => {
                return Err(format!(
                    "unexpected argument '{}'; use archivist(1)",
                    argument.to_string_lossy().escape_debug()
                ));
            }
        }
    }
    Ok(asked)
}

/// The rest of the arguments after `backup`.
fn backup_task(arguments: &mut impl Iterator<Item = OsString>) -> Result<Task, String> {
    let missing = || "backup: expected DIR [--keep N]".to_owned();
    let to = arguments.next().map(PathBuf::from).ok_or_else(missing)?;
    let keep = match (arguments.next(), arguments.next()) {
        (None, _) => None,
        (Some(flag), Some(number)) if flag == "--keep" => {
            let number = number.to_str().and_then(|number| number.parse().ok());
            Some(number.ok_or_else(missing)?)
        }
        _ => return Err(missing()),
    };
    Ok(Task::Backup { to, keep })
}

/// The rest of the arguments after `restore`.
fn restore_task(arguments: &mut impl Iterator<Item = OsString>) -> Result<Task, String> {
    let missing =
        || "restore: expected DIR [--config | --database] [--yes | --keep-deleted]".to_owned();
    let from = arguments.next().map(PathBuf::from).ok_or_else(missing)?;
    let (mut what, mut deleted) = (What::Data, Deleted::Ask);
    for flag in arguments {
        match flag.to_str() {
            Some("--config") => what = What::DataAndConfig,
            Some("--database") => what = What::Database,
            Some("--yes") => deleted = Deleted::Again,
            Some("--keep-deleted") => deleted = Deleted::Keep,
            _ => return Err(missing()),
        }
    }
    Ok(Task::Restore { from, what, deleted })
}

fn instance(name: Option<OsString>) -> Result<String, String> {
    name.and_then(|name| name.into_string().ok())
        .filter(|name| is_instance_name(name))
        .ok_or_else(|| format!("invalid name of an instance: allowed are {INSTANCE_ALLOWED}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Asked, String> {
        read(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn known_arguments_are_parsed() {
        assert_eq!(asked(""), Ok(Asked::default()));
        let worker = asked("--user worker").unwrap();
        assert!(worker.user && worker.worker);
        let second = asked("--instance second orchestrator --exit-on-idle").unwrap();
        assert_eq!(second.instance.as_deref(), Some("second"));
        assert!(second.exit_on_idle && !second.user && !second.worker);
    }

    #[test]
    fn tasks_have_a_directory() {
        let task = |line: &str| asked(line).unwrap().task;
        let backup = |keep| {
            let to = PathBuf::from("/srv/backup");
            Some(Task::Backup { to, keep })
        };
        assert_eq!(task("--user backup /srv/backup"), backup(None));
        assert_eq!(task("backup /srv/backup --keep 7"), backup(Some(7)));
        for (line, what, deleted) in [
            ("restore /srv/backup", What::Data, Deleted::Ask),
            ("restore /srv/backup --config", What::DataAndConfig, Deleted::Ask),
            ("restore /srv/backup --database --yes", What::Database, Deleted::Again),
            ("restore /srv/backup --keep-deleted", What::Data, Deleted::Keep),
        ] {
            let from = PathBuf::from("/srv/backup");
            let expected = Task::Restore { from, what, deleted };
            assert_eq!(task(line), Some(expected));
        }
        for bad in ["backup", "backup /a --keep", "backup /a --keep x", "restore /a --force"] {
            assert!(asked(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn unknown_arguments_are_refused() {
        for line in ["add", "--help", "--instance", "--instance a-b", "--instance=a"] {
            assert!(asked(line).is_err(), "{line}");
        }
    }
}
