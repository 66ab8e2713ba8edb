//! What the process does after the orchestrator has ended.

use crate::machine::notify;
use crate::process::error::OrchestratorError;
use crate::process::gate;
use crate::process::setup;
use crate::process::startup_wait;
use crate::process::startup_wait::Wait;
use crate::runner::identity::Identity;
use archivist_config::Scope;
use std::process::ExitCode;

/// Exit status when database or configuration cannot be used: systemd does not try again
/// (RestartPreventExitStatus=, EX_CONFIG of sysexits.h).
pub const EXIT_CONFIG: u8 = 78;
/// Exit status of a service when a newer runner took over: systemd starts it again, and it stands
/// by (TEMPFAIL, EX_TEMPFAIL of sysexits.h).
const EXIT_DISPLACED: u8 = 75;

pub enum AfterRun {
    /// Start again in the same process.
    Again,
    Exit(ExitCode),
    /// Exit with [`EXIT_CONFIG`], as the database is damaged; the message for users.
    Damaged(String),
}

/// Logs the error, and waits if that helps.
pub async fn after(
    result: Result<(), OrchestratorError>,
    scope: &Scope,
    me: Option<&Identity>,
) -> AfterRun {
    let Err(error) = result.map_err(|error| setup::explain(scope, error)) else {
        return AfterRun::Exit(ExitCode::SUCCESS);
    };
    match (error, me) {
        // Commands that wait for the start print the line of STATUS=.
        (OrchestratorError::Unusable(why), _) => {
            notify::status(&one_line(&why));
            tracing::error!("{why}");
            AfterRun::Exit(EXIT_CONFIG.into())
        }
        // These are logged.
        (OrchestratorError::DatabaseRefused(why), _) => {
            notify::status(&one_line(&why));
            AfterRun::Exit(EXIT_CONFIG.into())
        }
        (OrchestratorError::DatabaseDamaged(why), _) => {
            notify::status(&one_line(&why));
            AfterRun::Damaged(why)
        }
        (OrchestratorError::Displaced(newer), Some(me)) if me.row.restarts => {
            gate::announce(&newer);
            AfterRun::Exit(EXIT_DISPLACED.into())
        }
        (OrchestratorError::Displaced(_), Some(_)) => AfterRun::Again,
        (error, _) => match startup_wait::wait(scope, &error.to_string()).await {
            Wait::Over => AfterRun::Again,
            Wait::Told => AfterRun::Exit(ExitCode::SUCCESS),
            Wait::Elsewhere => AfterRun::Exit(ExitCode::FAILURE),
            Wait::Nothing => {
                tracing::error!("{error}");
                AfterRun::Exit(ExitCode::FAILURE)
            }
        },
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', "; ")
}
