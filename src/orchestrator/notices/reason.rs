//! Reasons, as `archivist why` prints them.

use archivist_core::model::Time;
use archivist_shared::bus::documents::report::Reason;

pub(crate) fn reason(code: &str, text: impl Into<String>) -> Reason {
    Reason { code: code.to_owned(), text: text.into(), until: None }
}

pub(crate) fn until(code: &str, text: impl Into<String>, until: Time) -> Reason {
    Reason { until: Some(until), ..reason(code, text) }
}
