//! `KeepLocal=`: how long the local files of a page stay after its copy was verified.

use crate::text::{exact_span, parse_span};
use std::fmt;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepLocal {
    #[default]
    Always,
    /// This long after the page was sealed, and at least until its copy was verified.
    For(Duration),
}

/// What [`KeepLocal::parse`] accepts.
pub const KEEP_ALLOWED: &str = "always, never, or a time span like 30d";

impl KeepLocal {
    /// Returns the policy of this name; `never` is a span of 0.
    pub fn parse(text: &str) -> Option<KeepLocal> {
        match text {
            "always" => Some(KeepLocal::Always),
            "never" => Some(KeepLocal::For(Duration::ZERO)),
            span => parse_span(span).map(KeepLocal::For),
        }
    }
}

/// As [`KeepLocal::parse`] reads it.
impl fmt::Display for KeepLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeepLocal::Always => f.write_str("always"),
            KeepLocal::For(Duration::ZERO) => f.write_str("never"),
            KeepLocal::For(span) => f.write_str(&exact_span(*span)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_round_trip() {
        for text in ["always", "never", "30d"] {
            let keep = KeepLocal::parse(text).unwrap();
            assert_eq!(KeepLocal::parse(&keep.to_string()), Some(keep), "{text}");
        }
        for bad in ["", "sometimes", "-1d"] {
            assert_eq!(KeepLocal::parse(bad), None, "{bad}");
        }
    }
}
