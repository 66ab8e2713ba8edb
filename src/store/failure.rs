//! Why a transfer failed.

use std::fmt;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferFailure {
    /// `failed to VERB OBJECT: reason`.
    pub text: String,
    /// The store has no intact copy of the local files.
    pub differs: bool,
}

pub type Result<T> = std::result::Result<T, TransferFailure>;

impl TransferFailure {
    /// Returns an error with this text.
    pub fn new(text: impl Into<String>) -> TransferFailure {
        TransferFailure { text: text.into(), differs: false }
    }

    /// Returns an error of a copy that is missing or damaged.
    pub fn differs(text: impl Into<String>) -> TransferFailure {
        TransferFailure { differs: true, ..TransferFailure::new(text) }
    }
}

/// Returns a function that makes the error of an operation on a file.
pub fn at<'a, E: fmt::Display>(
    verb: &'a str,
    path: &'a Path,
) -> impl Fn(E) -> TransferFailure + 'a {
    move |error| TransferFailure::new(format!("failed to {verb} '{}': {error}", path.display()))
}

impl fmt::Display for TransferFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
