//! The document of a navigation, and whether it is a page.

use super::Response;
use crate::page::content_type;
use crate::page::html::one_line;

/// Chromium ended a navigation: to a download, to an answer without content, or because it was held.
pub const ABORTED: &str = "net::ERR_ABORTED";
/// An error of the server without a body.
pub const NO_BODY: &str = "net::ERR_HTTP_RESPONSE_CODE_FAILURE";
/// Chromium closed all connections because an address of the machine came or went.
pub const NETWORK_CHANGED: &str = "net::ERR_NETWORK_CHANGED";

const BLANK: &str = "about:blank";

#[derive(Debug)]
pub struct Document {
    /// Id of its loader, which is also that of its request.
    pub loader: String,
    pub url: String,
    pub mime_type: String,
    pub response: Option<Response>,
    /// Bytes of its body so far.
    pub bytes: u64,
    pub has_ended: bool,
    /// Why its body did not end.
    pub error: Option<String>,
    pub is_parsed: bool,
    pub is_loaded: bool,
}

impl Document {
    pub fn new(loader: String, url: String) -> Document {
        Document {
            loader,
            url,
            mime_type: String::new(),
            response: None,
            bytes: 0,
            has_ended: false,
            error: None,
            is_parsed: false,
            is_loaded: false,
        }
    }

    pub fn status(&self) -> Option<u64> {
        let response = self.response.as_ref()?;
        Some(response.status).filter(|status| *status > 0)
    }

    /// Whether the server ended the body early.
    pub fn was_cut_off(&self) -> bool {
        self.error.is_some()
    }

    pub fn cut_off_remark(&self) -> String {
        let error = one_line(self.error.as_deref().unwrap_or_default(), 100);
        let bytes = self.bytes;
        format!("the answer ended early, after {bytes} bytes: {error}")
    }

    /// Why the committed document is not a page, and whether that is a failure.
    pub fn refusal(&self) -> Option<(String, bool)> {
        if self.url == BLANK {
            return Some((format!("the page went to {BLANK}"), true));
        }
        if !content_type::is_viewable(&self.mime_type) {
            return Some(not_a_page(&self.mime_type));
        }
        let status = self.status()?;
        if let Some(error) = self.error.as_deref().filter(|_| self.bytes == 0) {
            return Some((format!("the answer has no content: {error}"), true));
        }
        let may_be_empty = self.response.as_ref().is_some_and(|it| it.may_be_empty);
        if self.is_loaded && self.has_ended && self.bytes == 0 && may_be_empty {
            return Some(no_content(status));
        }
        None
    }
}

/// Why chromium's answer to a navigation means that there is no page, and whether that is a
/// failure.
pub fn refusal(error: &str, is_download: bool, response: &Response) -> Option<(String, bool)> {
    let status = response.status;
    match error {
        "" if !is_download => None,
        NO_BODY if status > 0 => Some(no_content(status)),
        ABORTED if matches!(status, 204 | 205 | 304) => Some(no_content(status)),
        "" | ABORTED if content_type::is_viewable(&response.mime_type) => Some(download()),
        "" | ABORTED => Some(not_a_page(&response.mime_type)),
        _ => {
            let error = one_line(error, 100);
            Some((format!("failed to load the page in chromium: {error}"), true))
        }
    }
}

fn no_content(status: u64) -> (String, bool) {
    let is_failure = status >= 400;
    (format!("the answer has no content ({status})"), is_failure)
}

fn download() -> (String, bool) {
    ("not a page: the server offers a download".to_owned(), false)
}

fn not_a_page(mime_type: &str) -> (String, bool) {
    let reason = match mime_type {
        "" => return download(),
        kind => format!("not a page: {}", one_line(kind, 100)),
    };
    (reason, false)
}
