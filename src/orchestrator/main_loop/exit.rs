//! What becomes of the process when the orchestrator cannot go on, or need not.

use crate::main_loop::setup;
use crate::runner::gate;
use crate::runner::me::Me;
use crate::runner::obstacle;
use crate::runner::obstacle::Wait;
use archivist_core::model::Runner;
use archivist_shared::config::Scope;
use std::process::ExitCode;

/// Exit status when database or configuration cannot be used: systemd does not try again
/// (RestartPreventExitStatus=, EX_CONFIG of sysexits.h).
const EXIT_CONFIG: u8 = 78;
/// Exit status of a service when a newer runner took over: systemd starts it again, and it stands by
/// (TEMPFAIL, EX_TEMPFAIL of sysexits.h).
const EXIT_DISPLACED: u8 = 75;

/// Why the orchestrator could not start, or go on.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Trying again does not help.
    #[error("{0}")]
    Unusable(String),
    #[error("{0}")]
    Failed(String),
    /// This runner can write nothing any more.
    #[error("another runner took over ({})", .0.named())]
    Displaced(Box<Runner>),
}

pub enum After {
    /// The same process begins anew.
    Again,
    Exit(ExitCode),
}

/// Says what went wrong, and waits where that helps.
pub async fn after(result: Result<(), DaemonError>, scope: &Scope, me: Option<&Me>) -> After {
    let Err(error) = result.map_err(|error| setup::explain(scope, error)) else {
        return After::Exit(ExitCode::SUCCESS);
    };
    match (error, me) {
        (DaemonError::Unusable(error), _) => {
            tracing::error!("{error}");
            After::Exit(EXIT_CONFIG.into())
        }
        (DaemonError::Displaced(newer), Some(me)) if me.row.restarts => {
            gate::announce(&newer);
            After::Exit(EXIT_DISPLACED.into())
        }
        (DaemonError::Displaced(_), Some(_)) => After::Again,
        (error, _) => match obstacle::wait(scope, &error.to_string()).await {
            Wait::Over => After::Again,
            Wait::Told => After::Exit(ExitCode::SUCCESS),
            Wait::Elsewhere => After::Exit(ExitCode::FAILURE),
            Wait::Nothing => {
                tracing::error!("{error}");
                After::Exit(ExitCode::FAILURE)
            }
        },
    }
}
