//! Why a recording cannot be written or read.

use std::fmt;
use std::io;

/// A failure with the part of the recording that it concerns.
#[derive(Debug)]
pub enum WarcError {
    /// The operating system refused to read or write, or the body that the caller passed failed.
    Io {
        /// What was read or written.
        part: String,
        error: io::Error,
    },
    /// The file is not what its format requires.
    Format {
        /// The member of the WACZ and the offset in it, such as `archive/data.warc.gz at byte 512`.
        part: String,
        reason: String,
    },
}

/// What is wrong with a part of a file whose other parts can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The member of the WACZ and the place in it.
    pub part: String,
    pub reason: String,
}

impl Flaw {
    pub(crate) fn new(part: impl Into<String>, reason: impl Into<String>) -> Flaw {
        Flaw { part: part.into(), reason: reason.into() }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.reason)
    }
}

impl WarcError {
    pub(crate) fn io(part: &str, error: io::Error) -> WarcError {
        let part = part.to_owned();
        WarcError::Io { part, error }
    }

    pub(crate) fn format(part: &str, reason: impl Into<String>) -> WarcError {
        WarcError::Format { part: part.to_owned(), reason: reason.into() }
    }
}

impl fmt::Display for WarcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WarcError::Io { part, error } => write!(f, "{part}: {error}"),
            WarcError::Format { part, reason } => write!(f, "{part}: {reason}"),
        }
    }
}

impl std::error::Error for WarcError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WarcError::Io { error, .. } => Some(error),
            WarcError::Format { .. } => None,
        }
    }
}
