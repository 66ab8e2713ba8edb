//! Options of programs that put themselves into the background, which is systemd's work here.

use crate::client::exit::Failure;
use crate::client::server::systemctl;
use archivist_config::Scope;
use clap::Args;

#[derive(Args)]
pub struct BackgroundArgs {
    /// Do nothing but print the systemctl(1) command that starts the orchestrator in the background
    ///
    /// The command is 'systemctl enable --now archivist-orchestrator.service', and the exit status
    /// is 2.
    #[arg(long, hide = true)]
    daemon: bool,
}

impl BackgroundArgs {
    /// # Errors
    /// With `--daemon`, that systemd starts the orchestrator, and how.
    pub fn refuse(&self, scope: &Scope) -> Result<(), Failure> {
        if !self.daemon {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "no --daemon: systemd runs the orchestrator in the background, the bus starts it when a command needs it\n\
             to start it now and at every boot: {} enable --now {}\n\
             to queue pages without waiting: archivist add URL",
            systemctl(scope),
            scope.orchestrator_unit()
        )))
    }
}
