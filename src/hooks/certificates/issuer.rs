//! Certificates whose issuer a program does not know.

use crate::process::finding::Finding;

/// Messages of curl (OpenSSL) and wget (GnuTLS).
const UNKNOWN: [&str; 3] = [
    "unable to get local issuer certificate",
    "doesn't have a known issuer",
    "hasn't got a known issuer",
];
const REASON: &str = "this machine does not trust the issuer, or the server does not send the certificate of \
    its issuer, which browsers fetch";

/// Appends the reason to the message of a failure.
pub fn with_explanation(finding: Finding) -> Finding {
    // With CHECK_SSL_VALIDITY=no, it is a warning of wget, and something else the cause.
    let is_cause = !finding.output_str.contains("WARNING: The certificate");
    if is_cause && UNKNOWN.iter().any(|text| finding.output_str.contains(text)) {
        return finding.because(REASON);
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuer_that_may_be_missing_is_explained_to_curl_and_wget() {
        let explained = |text: &str| with_explanation(Finding::failed(text)).output_str;
        for text in [
            "curl: (60) SSL certificate problem: unable to get local issuer certificate",
            "ERROR: The certificate of \u{2018}a.test\u{2019} doesn't have a known issuer.",
        ] {
            assert_eq!(explained(text), format!("{text}; {REASON}"));
        }
        let warning =
            "WARNING: The certificate of \u{2018}a.test\u{2019} doesn't have a known issuer.";
        assert_eq!(explained(warning), warning);
    }
}
