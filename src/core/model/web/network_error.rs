//! Errors of connections, by the words of the programs that report them.

use std::fmt;

/// Why no server answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// The name of the host cannot be resolved.
    Name,
    /// No way leads to the address.
    Unreachable,
    /// The connection timed out.
    TimedOut,
    /// The connection was refused or reset.
    Refused,
    /// The certificate is that of another site, or no server of TLS answers.
    Certificate,
}

use NetworkError::{Certificate, Name, Refused, TimedOut, Unreachable};

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

impl NetworkError {
    /// Returns the error that a message is about, if it is one for which the machine may be to blame.
    pub fn of(message: &str) -> Option<NetworkError> {
        if message.contains(NAME_SERVER_ANSWERS) {
            return None;
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
