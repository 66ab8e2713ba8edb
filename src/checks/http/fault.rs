//! Reasons for missing answers.

use super::trust::in_words;
use archivist_hooks::page::html::one_line;
use rustls::{CertificateError, Error};
use std::fmt;
use std::io;
use std::time::Duration;
use x509_cert::der::DateTime;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// TLS failed: certificate or protocol.
    Tls(String),
    /// The certificate expired at this time, in seconds since 1970.
    Expired(i64),
    /// A time limit was reached.
    Late(String),
    /// Any other reason.
    Other(String),
}

impl Fault {
    pub fn of(error: &io::Error) -> Fault {
        let text = match error.kind() {
            io::ErrorKind::TimedOut => return Fault::Late("the network timed out".to_owned()),
            io::ErrorKind::ConnectionRefused => "the connection was refused".to_owned(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => return Fault::reset(),
            _ => one_line(&error.to_string(), 300),
        };
        match error.get_ref().and_then(|it| it.downcast_ref()) {
            Some(error) => Fault::of_tls(error),
            None => Fault::Other(text),
        }
    }
}

/// Returns the day of a time, as in `2026-11-25`.
fn day(seconds: i64) -> String {
    let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let date = DateTime::from_unix_duration(since).unwrap_or(DateTime::INFINITY);
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

impl Fault {
    pub fn of_tls(error: &Error) -> Fault {
        match error {
            Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. }) => {
                Fault::Expired(i64::try_from(not_after.as_secs()).unwrap_or(i64::MAX))
            }
            error => Fault::Tls(in_words(error)),
        }
    }

    /// Returns the fault of a connection that the server broke.
    pub fn reset() -> Fault {
        Fault::Other("the connection was reset".to_owned())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Tls(reason) => write!(f, "TLS: {reason}"),
            Fault::Expired(end) => write!(f, "TLS: the certificate has expired on {}", day(*end)),
            Fault::Late(reason) | Fault::Other(reason) => f.write_str(reason),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckFailure {
    /// The connection ended before the answer.
    Stale,
    /// The server did nothing with the request: it may be sent again.
    Refused,
    /// The server seems to want HTTP/2, which the client did not offer.
    Modern,
    /// Any other reason.
    Fault(Fault),
}

impl From<Fault> for CheckFailure {
    fn from(fault: Fault) -> CheckFailure {
        CheckFailure::Fault(fault)
    }
}

impl CheckFailure {
    /// Returns whether the server ended the connection instead of answering.
    pub fn is_end(&self) -> bool {
        matches!(self, CheckFailure::Stale) || *self == Fault::reset().into()
    }

    /// Returns the same as an error of a reader, for [`unread`].
    pub fn into_io(self) -> io::Error {
        match self {
            CheckFailure::Fault(Fault::Late(_)) => io::ErrorKind::TimedOut.into(),
            CheckFailure::Fault(fault) => io::Error::other(fault.to_string()),
            CheckFailure::Stale | CheckFailure::Refused | CheckFailure::Modern => {
                io::ErrorKind::UnexpectedEof.into()
            }
        }
    }
}

/// Reason of an answer that did not begin in time.
pub const NO_ANSWER: &str = "no answer within the time limit (ANSWER_TIMEOUT= allows more)";

/// Returns the reason why no answer arrived.
pub fn unsent(error: &io::Error, late: &str) -> CheckFailure {
    match error.kind() {
        io::ErrorKind::TimedOut => Fault::Late(late.to_owned()).into(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => CheckFailure::Stale,
        _ => Fault::of(error).into(),
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
