//! What the daemon of a tab writes when the page has loaded or failed: the answer of the server, and
//! why there is no page. The record of that daemon follows only when it has ended.

use archivist_core::model::{Absence, cut};
use archivist_plugin::Directory;
use serde::Deserialize;
use std::io::Read;

/// Name of the file in the directory of the browser's plugin.
const FILE: &str = "navigation.json";
/// Bytes of the file that are read. Hooks can write to it.
const READ_MAX_BYTES: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Navigation {
    pub status: u16,
    /// Seconds that the server asks to wait.
    pub retry_after: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    status: Option<u64>,
    retry_after: Option<u64>,
    error: Option<String>,
    #[serde(default)]
    is_no_page: bool,
    #[serde(default)]
    is_unreachable: bool,
}

/// Returns the number as an HTTP status, which has three digits (RFC 9110, section 15).
pub fn as_status(number: u64) -> Option<u16> {
    let status = u16::try_from(number).ok()?;
    (100..1000).contains(&status).then_some(status)
}

/// Reads the answer from the directory of a browser's plugin. `None` while the page loads, if the
/// browser got no answer, and if the file is something else.
pub fn read(directory: &Directory) -> Option<Navigation> {
    let content = content(directory)?;
    Some(Navigation { status: as_status(content.status?)?, retry_after: content.retry_after })
}

/// Reads why the tab has no page. `None` while the page loads, if it has loaded, and if the file is
/// something else.
pub fn absence(directory: &Directory) -> Option<Absence> {
    let content = content(directory)?;
    Some(Absence {
        reason: cut(content.error?),
        is_no_page: content.is_no_page,
        is_unreachable: content.is_unreachable,
    })
}

fn content(directory: &Directory) -> Option<Content> {
    let mut text = Vec::new();
    let file = directory.read(FILE).ok()?;
    file.take(READ_MAX_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(text: &[u8], look: fn(&Directory) -> Option<T>) -> Option<T> {
        let top = tempfile::tempdir().unwrap();
        std::fs::write(top.path().join(FILE), text).unwrap();
        look(&Directory::open(top.path()).unwrap())
    }

    fn of(text: &[u8]) -> Option<Navigation> {
        with(text, read)
    }

    #[test]
    fn answer_is_read_once_the_page_has_loaded() {
        let loaded = br#"{"url": "http://a/", "status": 429, "retryAfter": 8}"#;
        let answer = Navigation { status: 429, retry_after: Some(8) };
        assert_eq!(of(loaded), Some(answer));
        assert_eq!(of(br#"{"url": "http://a/", "error": "refused"}"#), None);
        let top = tempfile::tempdir().unwrap();
        assert_eq!(read(&Directory::open(top.path()).unwrap()), None);
    }

    #[test]
    fn page_that_failed_to_load_is_absent() {
        let failed = |text: &str| with(text.as_bytes(), absence);
        assert_eq!(failed(r#"{"url": "http://a/", "status": 200}"#), None);
        let refused = failed(r#"{"error": "refused", "isUnreachable": true}"#).unwrap();
        assert!(refused.is_unreachable && !refused.is_no_page);
        assert_eq!(refused.reason, "refused");
        let download = failed(r#"{"error": "a download", "isNoPage": true}"#).unwrap();
        assert!(!download.is_unreachable && download.is_no_page);
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_read(noise: Vec<u8>, status: u64, after: i64) {
            let _ = (of(&noise), with(&noise, absence));
            let text = format!(r#"{{"status": {status}, "retryAfter": {after}}}"#);
            let answer = of(text.as_bytes());
            proptest::prop_assert_eq!(answer.is_some(), as_status(status).is_some() && after >= 0);
        }
    }
}
