//! Reasons for missing answers.

use super::trust::in_words;
use archivist_hooks::page::html::one_line;
use std::fmt;
use std::io;

/// Reason for a missing answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// TLS failed: certificate or protocol.
    Tls(String),
    /// A time limit was reached.
    Late(String),
    /// Any other reason.
    Other(String),
}

impl Fault {
    /// Returns the reason for a failure of the network.
    pub fn of(error: &io::Error) -> Fault {
        let text = match error.kind() {
            io::ErrorKind::TimedOut => return Fault::Late("the network timed out".to_owned()),
            io::ErrorKind::ConnectionRefused => "the connection was refused".to_owned(),
            io::ErrorKind::ConnectionReset => "the connection was reset".to_owned(),
            _ => one_line(&error.to_string(), 300),
        };
        match error.get_ref().and_then(|it| it.downcast_ref()) {
            Some(error) => Fault::Tls(in_words(error)),
            None => Fault::Other(text),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Tls(reason) => write!(f, "TLS: {reason}"),
            Fault::Late(reason) | Fault::Other(reason) => f.write_str(reason),
        }
    }
}

/// Returns the reason why a body is incomplete.
pub fn unread(error: &io::Error, late: &str) -> Fault {
    match error.kind() {
        io::ErrorKind::TimedOut => Fault::Late(late.to_owned()),
        io::ErrorKind::UnexpectedEof => {
            Fault::Other("the server closed the connection before the end of the answer".to_owned())
        }
        _ => Fault::of(error),
    }
}
