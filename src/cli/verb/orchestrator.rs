//! `archivist orchestrator`: replaces this process with the program that
//! archivist-orchestrator.service starts.

use crate::client::exit::{Exit, Failure};
use crate::verb::background::BackgroundArgs;
use archivist_config::Scope;
use archivist_config::programs::ORCHESTRATOR;
use clap::Args;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Run the orchestrator (what archivist-orchestrator.service starts)
///
/// See archivist-orchestrator.service(8).
#[derive(Args)]
pub struct OrchestratorArgs {
    /// Exit when nothing has been queued or running for IdleTimeoutSec=
    ///
    /// See archivist.conf(5). The bus starts the orchestrator again on demand.
    #[arg(long)]
    exit_on_idle: bool,
    #[command(flatten)]
    background: BackgroundArgs,
    /// Do nothing but print the command that shows the state: archivist status --watch
    ///
    /// The exit status is 2.
    #[arg(long, hide = true)]
    watch: bool,
}

pub fn run(args: OrchestratorArgs, scope: &Scope) -> Result<Exit, Failure> {
    args.background.refuse(scope)?;
    if args.watch {
        let what =
            "the orchestrator logs to the journal; to see its state: archivist status --watch";
        return Err(Failure::usage(what));
    }
    let mut arguments = vec!["orchestrator"];
    arguments.extend(args.exit_on_idle.then_some("--exit-on-idle"));
    exec_orchestrator(scope, &arguments)
}

/// Replaces this process with the orchestrator program (execve(2)); returns only on failure.
fn exec_orchestrator(scope: &Scope, arguments: &[&str]) -> Result<Exit, Failure> {
    let mut command = command(scope)?;
    let error = command.args(arguments).exec();
    Err(Failure::failed(format!("failed to run '{}': {error}", command.get_program().display())))
}

/// Returns the command of the orchestrator program for a scope.
pub(super) fn command(scope: &Scope) -> Result<Command, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        Failure::failed(format!("failed to find the path of this program: {error}"))
    })?;
    let mut command = Command::new(ORCHESTRATOR.path_from(&own));
    if scope.user {
        command.arg("--user");
    }
    if let Some(instance) = &scope.instance {
        command.args(["--instance", instance]);
    }
    Ok(command)
}
