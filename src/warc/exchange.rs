//! What a recording consists of: requests and their responses.

use jiff::Timestamp;
use std::net::IpAddr;

/// A request and its response. The body of the response is passed next to it, because it may be
/// larger than the memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// URL of the request, without fragment.
    pub url: String,
    /// Method of the request in upper case.
    pub method: String,
    /// When the request was sent.
    pub time: Timestamp,
    /// Names and values of the request's headers as they were sent.
    pub request: Vec<(String, String)>,
    pub posted: Option<Vec<u8>>,
    pub status: u16,
    /// Reason phrase of the response; empty in HTTP/2 and later.
    pub reason: String,
    /// Names and values of the response's headers as they were received. The writer renames those
    /// that describe a body with codings and framing, which the stored body does not have.
    pub response: Vec<(String, String)>,
    /// Values of `WARC-Protocol`, such as `h2` and `tls/1.3`.
    pub protocols: Vec<String>,
    /// Address of the server.
    pub address: Option<IpAddr>,
    /// Type of the resource as the browser has it, in lower case: `document`, `image`.
    pub kind: String,
    /// Why the stored body is not whole.
    pub truncated: Option<Truncated>,
}

/// Why a body was cut off: values of `WARC-Truncated` (ISO 28500, 5.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncated {
    /// Longer than the recorder keeps.
    Length,
    /// It took longer than the recorder waits.
    Time,
    Disconnect,
    /// Any other reason.
    Unspecified,
}

impl Truncated {
    /// The value of `WARC-Truncated`.
    #[must_use]
    pub fn value(self) -> &'static str {
        match self {
            Truncated::Length => "length",
            Truncated::Time => "time",
            Truncated::Disconnect => "disconnect",
            Truncated::Unspecified => "unspecified",
        }
    }
}
