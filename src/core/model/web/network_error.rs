//! Errors of connections, by the words of the programs that report them.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkError {
    Name,
    Unreachable,
    TimedOut,
    /// The connection was refused or reset.
    Refused,
    /// The certificate is that of another site, or no server of TLS answers.
    Certificate,
    /// A redirect leads to a private address, as that of a network does in which users must sign in.
    Portal,
}

use NetworkError::{Certificate, Name, Portal, Refused, TimedOut, Unreachable};

/// Words of Chromium (net_error_list.h), wget, curl, Python, Node.js and the C library.
const WORDS: [(NetworkError, &[&str]); 5] = [
    (
        Name,
        &[
            "ERR_NAME_",
            "unable to resolve host",
            "ould not resolve host",
            "in name resolution",
            "Name or service not known",
            "the host is unknown",
            "resolving the name timed out",
            "EAI_AGAIN",
            "ENOTFOUND",
        ],
    ),
    (
        Unreachable,
        &[
            "ERR_ADDRESS_UNREACHABLE",
            "ERR_INTERNET_DISCONNECTED",
            "etwork is unreachable",
            "No route to host",
            "ENETUNREACH",
            "EHOSTUNREACH",
        ],
    ),
    (TimedOut, &["ERR_CONNECTION_TIMED_OUT", "ERR_TIMED_OUT", "onnection timed out", "ETIMEDOUT"]),
    (
        Refused,
        &[
            "ERR_CONNECTION_REFUSED",
            "ERR_CONNECTION_RESET",
            "onnection refused",
            "onnection reset",
            "ECONNREFUSED",
            "ECONNRESET",
        ],
    ),
    (Certificate, &["ERR_CERT_", "ERR_SSL_PROTOCOL_ERROR"]),
];

/// What hooks add to an error of a name if a name server answers: the machine is not to blame.
pub const NAME_SERVER_ANSWERS: &str = "a name server answers, and does not have this name";

/// What hooks add to the failure of a redirect whose address they do not know.
pub const REDIRECT_REFUSED: &str = "the page leads to an address that hooks do not reach";
/// What follows the address, if hooks know it.
const PRIVATE: &str = ", an address of a private network that hooks do not reach";

/// Whether a message is about a redirect to a private address. A name that has such an address is one of
/// an internal site.
fn leads_to_private(message: &str) -> bool {
    let is_redirect = |(before, _): (&str, &str)| {
        let mut words = before.split_whitespace().rev().skip(1);
        words.next() != Some("is")
    };
    message.contains(REDIRECT_REFUSED) || message.split_once(PRIVATE).is_some_and(is_redirect)
}

impl NetworkError {
    /// Returns the error that a message is about, if it is one for which the machine may be to blame.
    pub fn of(message: &str) -> Option<NetworkError> {
        if message.contains(NAME_SERVER_ANSWERS) {
            return None;
        }
        if leads_to_private(message) {
            return Some(Portal);
        }
        let mut all = WORDS.into_iter();
        let found = all.find(|(_, words)| words.iter().any(|word| message.contains(word)));
        found.map(|(error, _)| error)
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Name => "the name cannot be resolved",
            Unreachable => "the address is unreachable",
            TimedOut => "the connection timed out",
            Refused => "the connection was refused or reset",
            Certificate => "the certificate is not that of the site",
            Portal => "it leads to a private network, as where users must sign in",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_programs_are_known() {
        let table = [
            ("failed to load the page in chromium: net::ERR_NAME_NOT_RESOLVED", Some(Name)),
            ("wget failed (exit 4): unable to resolve host address 'a.example'", Some(Name)),
            ("curl failed (exit 6): Could not resolve host: a.example", Some(Name)),
            ("[Errno -3] Temporary failure in name resolution", Some(Name)),
            ("the host is unknown", Some(Name)),
            ("getaddrinfo EAI_AGAIN a.example", Some(Name)),
            ("wget failed (exit 4): failed: Network is unreachable", Some(Unreachable)),
            ("net::ERR_INTERNET_DISCONNECTED", Some(Unreachable)),
            ("failed: Connection timed out.", Some(TimedOut)),
            ("wget failed (exit 4): failed: Connection refused", Some(Refused)),
            ("net::ERR_CERT_COMMON_NAME_INVALID", Some(Certificate)),
            (
                "192.168.1.1, an address of a private network that hooks do not reach: x",
                Some(Portal),
            ),
            (
                "failed (exit 4); 10.0.0.1, an address of a private network that hooks do not reach",
                Some(Portal),
            ),
            (
                "net::ERR_NETWORK_ACCESS_DENIED; the page leads to an address that hooks do not reach: see",
                Some(Portal),
            ),
            (
                "wiki.test is 10.0.0.7, an address of a private network that hooks do not reach: x",
                None,
            ),
            ("http 404", None),
            (
                "net::ERR_NAME_NOT_RESOLVED; a name server answers, and does not have this name",
                None,
            ),
            ("the tab was closed", None),
            ("", None),
        ];
        for (message, want) in table {
            assert_eq!(NetworkError::of(message), want, "{message}");
        }
    }
}
