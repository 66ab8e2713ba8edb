//! Whether a page that has ended is complete. The exit status of commands that wait, the reason of a
//! crawl, retries, alerts, lists and the question whether the archive has a page all ask here; the
//! database has the same rule as SQL (`database/rows/complete.rs`).

use crate::model::Lifecycle;

/// Whether a page ended before its work was done: it was given up after too many attempts, exceeded a
/// limit, was refused by its server, or had no hook that could run. Its row then has a reason. Failed
/// results of single hooks are counted separately.
pub fn is_incomplete(status: Lifecycle, reason: Option<&str>) -> bool {
    status == Lifecycle::Sealed && reason.is_some()
}

/// Returns `1 page is incomplete` or `n pages are incomplete`; `None` for 0.
pub fn incomplete_text(pages: u64) -> Option<String> {
    match pages {
        0 => None,
        1 => Some("1 page is incomplete".to_owned()),
        n => Some(format!("{n} pages are incomplete")),
    }
}

/// Returns how many pages show an error of their server; `None` for 0.
pub fn errors_text(pages: u64) -> Option<String> {
    match pages {
        0 => None,
        1 => Some("1 page shows an error of its server".to_owned()),
        n => Some(format!("{n} pages show an error of their server")),
    }
}

/// Returns `1 page lacks parts` or `n pages lack parts`; `None` for 0.
pub fn partial_text(pages: u64) -> Option<String> {
    match pages {
        0 => None,
        1 => Some("1 page lacks parts".to_owned()),
        n => Some(format!("{n} pages lack parts")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sealed_pages_with_a_reason_are_incomplete() {
        for status in Lifecycle::ALL {
            assert!(!is_incomplete(status, None));
            let has_ended = status == Lifecycle::Sealed;
            assert_eq!(is_incomplete(status, Some("given up")), has_ended, "{status}");
        }
        assert_eq!(incomplete_text(0), None);
        assert_eq!(incomplete_text(1).unwrap(), "1 page is incomplete");
        assert_eq!(incomplete_text(21).unwrap(), "21 pages are incomplete");
    }
}
