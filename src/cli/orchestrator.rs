//! `archivist orchestrator`: what archivist-orchestrator.service starts.

use crate::config::Scope;
use clap::Args;
use std::process::ExitCode;

#[derive(Args)]
pub struct OrchestratorArgs {
    /// End when the queue has been empty for IdleTimeoutSec=
    #[arg(long)]
    exit_on_idle: bool,
}

/// What the command line tells the orchestrator.
#[derive(Clone, Debug)]
pub struct OrchestratorOptions {
    pub scope: Scope,
    pub exit_on_idle: bool,
}

pub fn run(args: OrchestratorArgs, scope: Scope) -> ExitCode {
    daemon_main(OrchestratorOptions {
        scope,
        exit_on_idle: args.exit_on_idle,
    })
}

// STUB: becomes `crate::daemon::main(options)`.
fn daemon_main(options: OrchestratorOptions) -> ExitCode {
    eprintln!("archivist: this build has no orchestrator ({options:?})");
    ExitCode::FAILURE
}
