//! The HTTP status of a page's document: the final response, after all redirects.

use super::TAB;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// First status of an error (RFC 9110, section 15.5).
const FIRST_ERROR: u16 = 400;

/// Whether this status means that the server did not send the page.
pub fn is_http_error(status: u16) -> bool {
    status >= FIRST_ERROR
}

crate::text::named! {
    /// What becomes of pages whose document is an HTTP error (`HttpErrors=`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum HttpErrors {
        /// The document is archived, and its status recorded.
        #[default]
        Keep = "keep",
        /// The results that show the document fail.
        Fail = "fail",
        /// The page is visited again later, as after status 429.
        Retry = "retry",
    }
}

/// The status of a document as a hook saw it. A server may answer each program differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpAnswer {
    pub status: u16,
    pub plugin: String,
}

impl HttpAnswer {
    /// The reason for a page or result that this answer fails, in short.
    pub fn reason(&self) -> String {
        format!("http {}", self.status)
    }

    pub fn is_of_browser(&self) -> bool {
        self.plugin == TAB
    }

    /// Returns the answer of a visit, of which `self` is known and `other` is reported later: that
    /// of the browser, else the later one.
    pub fn or_newer(self, other: HttpAnswer) -> HttpAnswer {
        if self.is_of_browser() && !other.is_of_browser() { self } else { other }
    }
}

/// The statuses that a list is limited to: `404`, `4xx` or `400-499`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRange {
    pub from: u16,
    pub to: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadHttpRange(String);

impl fmt::Display for BadHttpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        write!(
            f,
            "'{text}' is not an HTTP status: expected one like 404, a class like 4xx, or a range like 400-499"
        )
    }
}

impl std::error::Error for BadHttpRange {}

fn status(text: &str) -> Option<u16> {
    let is_number = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let status = text.parse().ok().filter(|_| is_number)?;
    (100..1000).contains(&status).then_some(status)
}

impl FromStr for HttpRange {
    type Err = BadHttpRange;

    fn from_str(text: &str) -> Result<HttpRange, BadHttpRange> {
        let class = || {
            let text = text.to_ascii_lowercase();
            let from = status(&format!("{}00", text.strip_suffix("xx")?))?;
            Some((from, from + 99))
        };
        let range = || {
            let (from, to) = text.split_once('-')?;
            Some((status(from.trim())?, status(to.trim())?))
        };
        let single = || status(text).map(|status| (status, status));
        single()
            .or_else(class)
            .or_else(range)
            .filter(|(from, to)| from <= to)
            .map(|(from, to)| HttpRange { from, to })
            .ok_or_else(|| BadHttpRange(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_classes_and_ranges_are_read() {
        let range = |text: &str| text.parse::<HttpRange>().ok().map(|r| (r.from, r.to));
        assert_eq!(range("404"), Some((404, 404)));
        assert_eq!(range("4xx"), Some((400, 499)));
        assert_eq!(range("5XX"), Some((500, 599)));
        assert_eq!(range("400-499"), Some((400, 499)));
        assert_eq!(range("400 - 599"), Some((400, 599)));
        for bad in ["", "4", "xx", "0xx", "40x", "099", "4040", "499-400", "-", "404-", "+04", "4é"]
        {
            assert_eq!(range(bad), None, "{bad}");
        }
        let error = "gone".parse::<HttpRange>().unwrap_err().to_string();
        assert!(error.contains("like 4xx"), "{error}");
    }

    #[test]
    fn answer_to_the_browser_counts_before_others() {
        let answer = |status, plugin: &str| HttpAnswer { status, plugin: plugin.to_owned() };
        let newer = |one: (u16, &str), two: (u16, &str)| {
            answer(one.0, one.1).or_newer(answer(two.0, two.1)).status
        };
        assert_eq!(newer((403, "headers"), (200, "chromium")), 200);
        assert_eq!(newer((200, "chromium"), (403, "headers")), 200);
        assert_eq!(newer((403, "headers"), (404, "wget")), 404);
        assert_eq!(newer((404, "chromium"), (200, "chromium")), 200);
    }

    #[test]
    fn errors_begin_at_400() {
        assert!(!is_http_error(399) && is_http_error(400) && is_http_error(599));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_range_or_refused(text in "[0-9xX -]{0,9}|.{0,9}") {
            if let Ok(range) = text.parse::<HttpRange>() {
                assert!(100 <= range.from && range.from <= range.to && range.to < 1000);
            }
        }
    }
}
