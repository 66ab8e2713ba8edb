//! Exit statuses, and errors that carry one.

use archivist_core::model::ParseIdError;
use archivist_core::text::clean_lines;
use archivist_shared::bus::client::ClientError;
use std::process::ExitCode;

/// What the exit status of the command says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Partly = 3,
    Unreachable = 4,
    Interrupted = 130,
}

/// For `--help`; archivist(1) has the same list.
pub const HELP: &str = "\
Exit status:
    0  done
    1  failed
    2  wrong usage, or not a single URL that can be archived
    3  some of the archiving failed, or some URLs were refused
    4  the orchestrator cannot be reached
  130  add --wait was interrupted and the crawl goes on, or run was aborted

See archivist(1), archivist.conf(5), archivist-hooks(7).";

impl Exit {
    pub const ALL: [Exit; 6] = [
        Exit::Done,
        Exit::Failed,
        Exit::Usage,
        Exit::Partly,
        Exit::Unreachable,
        Exit::Interrupted,
    ];

    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Why a verb came to nothing; what, where and what next.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    /// Empty when there is nobody to tell.
    message: String,
}

impl Failure {
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Failed,
            message: message.into(),
        }
    }

    pub fn usage(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Usage,
            message: message.into(),
        }
    }

    /// Of a call that is not made twice: what was asked for may have been done all the same.
    pub fn of_one_call(mut self) -> Failure {
        if self.is_unreachable() {
            self.message +=
                "\nwhether it did what it was asked is not known: look before you ask again";
        }
        self
    }

    /// Whether what was asked for is at fault, and not those who were asked.
    pub fn is_about_input(&self) -> bool {
        matches!(self.exit, Exit::Usage | Exit::Failed)
    }

    /// Whether nobody answered.
    pub fn is_unreachable(&self) -> bool {
        self.exit == Exit::Unreachable
    }

    /// Whoever read our output went away: `archivist list … | head`.
    pub fn broken_pipe() -> Failure {
        Failure {
            exit: Exit::Done,
            message: String::new(),
        }
    }

    #[cfg(test)]
    pub fn exit(&self) -> Exit {
        self.exit
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// Tells the person and gives the exit status.
    pub fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            eprintln!("archivist: {}", clean_lines(&self.message));
        }
        self.exit.into()
    }
}

const WHO_MAY: &str = "only root and members of group 'archivist' may talk to the orchestrator: sudo adduser NAME archivist";

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let exit = match error {
            ClientError::Unreachable { .. } => Exit::Unreachable,
            ClientError::Denied(_) | ClientError::Refused(_) => Exit::Failed,
        };
        let message = match &error {
            ClientError::Denied(_) => format!("{error}\n{WHO_MAY}"),
            _ => error.to_string(),
        };
        Failure { exit, message }
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
