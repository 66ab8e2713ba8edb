//! How the page of a visit loaded.

use crate::process::finding::Finding;
use serde::{Deserialize, Serialize};

/// `navigation.json`: how the page loaded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Navigation {
    pub wait_until: String,
    /// Milliseconds from the request until the page was ready to be saved.
    pub elapsed: u64,
    pub url: String,
    pub final_url: String,
    /// Id of the tab. Each visit of the page has a tab of its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u64>,
    /// Seconds after which an overloaded server wants to be asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    pub mime_type: String,
    /// Time of the load in RFC 3339 format.
    pub timestamp: String,
    /// Set if the page did not finish loading, so that the saved page shows an intermediate state,
    /// or if walls that covered it were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why the page is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the URL leads to a download instead of a page, so that the error is not a failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_no_page: bool,
    /// Whether the recording of this visit has what the server sent for the URL.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_recorded: bool,
    /// Whether the site could not be reached.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unreachable: bool,
}

/// Errors of a site that cannot be reached (net_error_list.h of Chromium).
const UNREACHABLE: [&str; 6] = [
    "net::ERR_ADDRESS_UNREACHABLE",
    "net::ERR_CONNECTION_REFUSED",
    "net::ERR_CONNECTION_TIMED_OUT",
    "net::ERR_INTERNET_DISCONNECTED",
    "net::ERR_NAME_NOT_RESOLVED",
    "net::ERR_NAME_RESOLUTION_FAILED",
];

/// Errors of a certificate that every client refuses, whatever authorities it trusts.
const INVALID_CERTIFICATE: [&str; 2] =
    ["net::ERR_CERT_COMMON_NAME_INVALID", "net::ERR_CERT_DATE_INVALID"];

impl Navigation {
    /// Creates the navigation of a page that ended with this finding.
    pub fn failed(url: &str, finding: &Finding) -> Navigation {
        Navigation {
            url: url.to_owned(),
            error: Some(finding.output_str.clone()),
            is_no_page: finding.exit_code() == 0,
            ..Navigation::default()
        }
    }

    /// Whether the error is that of a site that cannot be reached.
    pub fn has_unreachable_site(&self) -> bool {
        self.has_error(&UNREACHABLE)
    }

    /// Whether the error is that of a certificate that any client refuses that checks certificates.
    pub fn has_invalid_certificate(&self) -> bool {
        self.has_error(&INVALID_CERTIFICATE)
    }

    fn has_error(&self, errors: &[&str]) -> bool {
        let has = |reason: &str| errors.iter().any(|error| reason.contains(error));
        self.error.as_deref().is_some_and(has)
    }

    /// The finding of the tab if the page is not available.
    pub fn failure(&self) -> Finding {
        let reason = self.error.as_deref().unwrap_or("the page did not load");
        if self.is_no_page { Finding::noresults(reason) } else { Finding::failed(reason) }
    }

    /// Returns the navigation if the page is available, else the finding of every hook that needs
    /// the page: the failure is reported once, by the tab.
    pub fn into_result(self) -> Result<Navigation, Finding> {
        match &self.error {
            None => Ok(self),
            Some(reason) if self.is_no_page => Err(Finding::noresults(reason)),
            Some(reason) => Err(Finding::skipped(reason)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::process::finding::EXIT_SKIPPED;

    #[test]
    fn failed_navigation_skips_every_hook_that_needs_the_page() {
        let failed = Navigation::failed("http://a.test/", &Finding::failed("net::ERR_X"));
        let text = serde_json::to_string(&failed).unwrap();
        let back: Navigation = serde_json::from_str(&text).unwrap();
        let finding = back.into_result().unwrap_err();
        assert_eq!(finding.exit_code(), EXIT_SKIPPED);
        assert_eq!(finding.output_str, "net::ERR_X");
        let none = Navigation::failed("http://a.test/", &Finding::noresults("a download"));
        assert_eq!(none.into_result().unwrap_err().exit_code(), 0);
        assert!(
            serde_json::from_str::<Navigation>("{\"url\":\"x\"}").unwrap().into_result().is_ok()
        );
    }
}
