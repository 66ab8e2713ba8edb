//! `archivist orchestrator`: what archivist-orchestrator.service starts.

use crate::config::Scope;
use crate::daemon;
use clap::Args;
use std::process::ExitCode;

#[derive(Args)]
pub struct OrchestratorArgs {
    /// End when the queue has been empty for IdleTimeoutSec=
    #[arg(long)]
    exit_on_idle: bool,
}

pub fn run(args: OrchestratorArgs, scope: Scope) -> ExitCode {
    daemon::main(daemon::Options {
        scope,
        exit_on_idle: args.exit_on_idle,
    })
}
