//! Exit statuses of the command line, and errors that carry one.

use super::hint::in_scope;
use archivist_config::{ConfigError, Scope};
use archivist_core::model::ParseIdError;
use archivist_core::text::clean_lines;
use archivist_shared::bus::client::ClientError;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    /// Wrong usage, or bad input.
    Usage = 2,
    /// Some of the archiving failed, or a check of the archive found problems.
    Partly = 3,
    /// The orchestrator cannot be reached.
    Unreachable = 4,
    /// Ended by Ctrl-C.
    Interrupted = 130,
}

/// For `--help`; archivist(1) has the same list.
pub const HELP: &str = "\
Exit status:
    0  done
    1  failed
    2  wrong usage, or no URL that can be archived
    3  some of the archiving failed, some URLs were refused, or fsck found problems
    4  the orchestrator cannot be reached
  130  add --wait was interrupted (the crawl continues), or run was aborted

See archivist(1), archivist.conf(5), archivist-hooks(7).";

impl Exit {
    /// Every status.
    pub const ALL: [Exit; 6] =
        [Exit::Done, Exit::Failed, Exit::Usage, Exit::Partly, Exit::Unreachable, Exit::Interrupted];

    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Error of a verb: its message names the operation, the object, the reason and, if known, the next
/// command.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    /// Empty if nothing should be printed.
    message: String,
}

impl Failure {
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Failed, message: message.into() }
    }

    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Usage, message: message.into() }
    }

    pub fn unreachable(message: impl Into<String>) -> Failure {
        Failure { exit: Exit::Unreachable, message: message.into() }
    }

    pub fn denied(why: &str) -> Failure {
        Failure::failed(format!("access denied: {why}\n{WHO_MAY}"))
    }

    /// Returns this error with its commands for the orchestrator of a scope.
    pub fn in_scope(mut self, scope: &Scope) -> Failure {
        self.message = in_scope(&self.message, scope);
        self
    }

    /// Returns this error as one of a call that must not be repeated: the orchestrator may have
    /// carried it out although no answer arrived.
    pub fn of_one_call(mut self) -> Failure {
        if self.is_unreachable() {
            self.message +=
                "\nit is unknown whether the call took effect: check before you repeat it";
        }
        self
    }

    /// Returns whether the request is at fault, not the connection.
    pub fn is_about_input(&self) -> bool {
        matches!(self.exit, Exit::Usage | Exit::Failed)
    }

    /// Returns whether the orchestrator did not answer.
    pub fn is_unreachable(&self) -> bool {
        self.exit == Exit::Unreachable
    }

    /// The reader of standard output closed it: `archivist list … | head`.
    pub fn broken_pipe() -> Failure {
        Failure { exit: Exit::Done, message: String::new() }
    }

    #[cfg(test)]
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Returns the message without the hints in further lines.
    pub fn first_line(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Prints the message to standard error and returns the exit status.
    pub fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            eprintln!("archivist: {}", clean_lines(&self.message));
        }
        self.exit.into()
    }
}

const WHO_MAY: &str = "only root and members of group 'archivist' may use the orchestrator: sudo adduser NAME archivist\nor use an archive of your own, which requires neither: archivist --user";

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let exit = match error {
            ClientError::Unreachable { .. } => Exit::Unreachable,
            ClientError::Denied(_) | ClientError::NotAdmitted | ClientError::Refused(_) => {
                Exit::Failed
            }
        };
        let message = match &error {
            ClientError::NotAdmitted => format!("{error}\n{WHO_MAY}"),
            _ => error.to_string(),
        };
        Failure { exit, message }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::failed(error.to_string())
    }
}

impl From<ParseIdError> for Failure {
    fn from(error: ParseIdError) -> Failure {
        Failure::usage(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_status() {
        for exit in Exit::ALL {
            let line = format!("{:>5}  ", exit.code());
            assert!(HELP.lines().any(|l| l.starts_with(&line)), "{exit:?}");
        }
    }
}
