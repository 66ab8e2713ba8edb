//! `archivist orchestrator`: replaces this process with the program that
//! archivist-orchestrator.service starts.

use crate::client::background::BackgroundArgs;
use crate::client::exit::{Exit, Failure};
use crate::machine::orchestrator::{command, exec};
use archivist_config::Scope;
use clap::Args;

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
    let mut command = command(scope)?;
    command.arg("orchestrator").args(args.exit_on_idle.then_some("--exit-on-idle"));
    exec(command)
}
