//! `archivist orchestrator`: becomes the program that archivist-orchestrator.service starts.

use crate::client::exit::{Exit, Failure};
use archivist_shared::config::Scope;
use archivist_shared::config::programs::ORCHESTRATOR;
use clap::Args;
use std::os::unix::process::CommandExt;
use std::process::Command;

#[derive(Args)]
pub struct OrchestratorArgs {
    /// End when the queue has been empty for IdleTimeoutSec=
    #[arg(long)]
    exit_on_idle: bool,
}

pub fn run(args: OrchestratorArgs, scope: &Scope) -> Result<Exit, Failure> {
    let mut arguments = vec!["orchestrator"];
    arguments.extend(args.exit_on_idle.then_some("--exit-on-idle"));
    become_it(scope, &arguments)
}

/// Replaces this process with the orchestrator's program (execve(2)). Returns only on failure.
fn become_it(scope: &Scope, arguments: &[&str]) -> Result<Exit, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("cannot find our own program: {error}")))?;
    let program = ORCHESTRATOR.beside(&own);
    let mut command = Command::new(&program);
    if scope.user {
        command.arg("--user");
    }
    if let Some(instance) = &scope.instance {
        command.args(["--instance", instance]);
    }
    let error = command.args(arguments).exec();
    Err(Failure::failed(format!(
        "cannot run '{}': {error}",
        program.display()
    )))
}
