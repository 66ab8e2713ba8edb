//! The program of the orchestrator as a process of the caller: it has the rights of the caller, and the
//! orchestrator need not run.

use crate::client::exit::{Exit, Failure};
use crate::client::transfer::own_path;
use archivist_config::Scope;
use archivist_config::programs::ORCHESTRATOR;
use nix::unistd::geteuid;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf, absolute};
use std::process::Command;

/// Returns the command of the orchestrator program for a scope.
pub fn command(scope: &Scope) -> Result<Command, Failure> {
    let mut command = Command::new(ORCHESTRATOR.path_from(&own_path()?));
    if scope.user {
        command.arg("--user");
    }
    if let Some(instance) = &scope.instance {
        command.args(["--instance", instance]);
    }
    Ok(command)
}

/// Replaces this process with a command (execve(2)); returns only on failure.
pub fn exec(mut command: Command) -> Result<Exit, Failure> {
    let error = command.exec();
    Err(Failure::failed(format!("failed to run '{}': {error}", command.get_program().display())))
}

/// # Errors
/// If the files of the scope are those of root, and the caller is not root.
pub fn need_root(scope: &Scope, verb: &str) -> Result<(), Failure> {
    if scope.user || geteuid().is_root() {
        return Ok(());
    }
    Err(Failure::failed(format!("only root can {verb} the archivist of the machine: use sudo")))
}

/// Returns an absolute path, which no option of the program looks like.
pub fn real(path: &Path) -> Result<PathBuf, Failure> {
    absolute(path).map_err(|error| Failure::usage(format!("'{}': {error}", path.display())))
}
