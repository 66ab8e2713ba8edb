//! `archivist-orchestrator [--user] [--instance NAME] [orchestrator [--exit-on-idle] | worker]`:
//! the program of the orchestrator and the workers, which users do not call. Its command line is
//! parsed by hand, as a parser would be resident all the time.

use crate::main_loop::run as orchestrator;
use archivist_shared::config::{INSTANCE_ALLOWED, Scope, is_instance_name};
use archivist_worker as worker;
use std::ffi::OsString;
use std::process::ExitCode;

/// Exit status for wrong usage, as of `archivist`.
const USAGE: u8 = 2;

#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    user: bool,
    instance: Option<String>,
    worker: bool,
    exit_on_idle: bool,
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
    let scope = Scope::from_env(asked.user, asked.instance, |name| std::env::var_os(name));
    orchestrator::main(orchestrator::Options {
        scope,
        exit_on_idle: asked.exit_on_idle,
    })
}

fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<Asked, String> {
    let mut asked = Asked::default();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("orchestrator") => {}
            Some("worker") => asked.worker = true,
            Some("--user") => asked.user = true,
            Some("--exit-on-idle") => asked.exit_on_idle = true,
            Some("--instance") => asked.instance = Some(instance(arguments.next())?),
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
    fn unknown_arguments_are_refused() {
        for line in [
            "add",
            "--help",
            "--instance",
            "--instance a-b",
            "--instance=a",
        ] {
            assert!(asked(line).is_err(), "{line}");
        }
    }
}
