//! Limits of the texts in calls and answers, and refusals as errors of the bus.

use super::call::Refusal;
use archivist_core::model::cut;
use zbus::fdo;

/// Longest document in a call, in bytes.
const DOCUMENT_MAX: usize = 256 << 10;
const NAMES_MAX: usize = 1000;
/// Longest text in an answer, in bytes: the bus disconnects a sender of 32 MiB, dbus-daemon(1).
const ANSWER_MAX: usize = 30 << 20;

impl From<Refusal> for fdo::Error {
    fn from(refusal: Refusal) -> Self {
        // The error may quote the caller's input, up to the size of a message.
        match refusal {
            Refusal::Invalid(text) => fdo::Error::InvalidArgs(cut(text)),
            Refusal::NoSuch(text) => fdo::Error::UnknownObject(cut(text)),
            Refusal::Denied(text) => fdo::Error::AccessDenied(cut(text)),
            Refusal::Failed(text) => fdo::Error::Failed(cut(text)),
            Refusal::Leaving => fdo::Error::NoReply(refusal.to_string()),
        }
    }
}

pub fn invalid(error: impl std::fmt::Display) -> fdo::Error {
    fdo::Error::InvalidArgs(cut(error.to_string()))
}

pub fn document<T: serde::de::DeserializeOwned>(text: &str) -> fdo::Result<T> {
    if text.len() > DOCUMENT_MAX {
        let length = text.len();
        return Err(fdo::Error::LimitsExceeded(format!(
            "the options have {length} bytes, the limit is {DOCUMENT_MAX}"
        )));
    }
    serde_json::from_str(text).map_err(invalid)
}

/// Refuses names that are too many, or longer in total than a document may be.
pub fn few(names: &[String]) -> fdo::Result<()> {
    let length: usize = names.iter().map(String::len).sum();
    if names.len() <= NAMES_MAX && length <= DOCUMENT_MAX {
        Ok(())
    } else {
        Err(fdo::Error::LimitsExceeded(format!(
            "{} names of {length} bytes in one call, the limit is {NAMES_MAX} of {DOCUMENT_MAX}",
            names.len()
        )))
    }
}

/// Returns the text of an answer, or an error if the bus would not carry it.
pub fn small_enough(text: String) -> fdo::Result<String> {
    match text.len() {
        0..=ANSWER_MAX => Ok(text),
        length => Err(fdo::Error::LimitsExceeded(format!(
            "the answer has {} MiB, more than the bus carries: request less, with --limit or for one crawl or page",
            length >> 20
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_larger_than_the_bus_carries_is_refused() {
        assert!(small_enough("x".repeat(ANSWER_MAX)).is_ok());
        let refused = small_enough("x".repeat(ANSWER_MAX + 1)).unwrap_err();
        assert!(refused.to_string().contains("30 MiB, more than"), "{refused}");
    }
}
