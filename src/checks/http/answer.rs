//! Answers, and what is kept of their bodies.

use super::decode::decoded;
use super::fault::{Fault, unread};
use super::framing::Body;
use super::head::{self, Head};
use std::io::Read;
use std::time::Duration;

#[derive(Debug)]
pub struct CheckAnswer {
    pub status: u16,
    /// Names in lower case; values that are not UTF-8 are read as Latin-1.
    pub headers: Vec<(String, String)>,
    /// Time from the call to the headers.
    pub after: Duration,
    /// Start of the body, as much as was requested.
    pub body: Vec<u8>,
    /// Whether the body is longer.
    pub is_cut: bool,
    /// Why the body is incomplete, if it is.
    pub problem: Option<Fault>,
    pub sets_cookie: bool,
    /// End of validity of the server's certificate, in seconds since 1970.
    pub certificate_expires: Option<i64>,
    /// Whether the server asked for a certificate of the client and got none.
    pub misses_certificate: bool,
    /// Target of `Location:`, in which bytes that are not UTF-8 are percent-encoded.
    location: Option<String>,
}

impl CheckAnswer {
    /// Returns the first header with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn location(&self) -> Option<&str> {
        match self.status {
            301 | 302 | 303 | 307 | 308 => self.location.as_deref(),
            _ => None,
        }
    }

    /// Makes a redirect an answer.
    pub fn stay(&mut self) {
        self.location = None;
    }

    /// Returns the media type, such as `text/html`.
    pub fn media_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        let essence = value.split(';').next().unwrap_or_default();
        essence.trim().to_ascii_lowercase()
    }
}

impl CheckAnswer {
    pub(super) fn of(head: &Head, after: Duration) -> CheckAnswer {
        let text = |(name, value): &(String, Vec<u8>)| (name.clone(), head::text(value));
        CheckAnswer {
            status: head.status,
            headers: head.headers.iter().map(text).collect(),
            after,
            body: Vec::new(),
            is_cut: false,
            problem: None,
            sets_cookie: head.values("set-cookie").next().is_some(),
            certificate_expires: None,
            misses_certificate: false,
            location: head.values("location").next().map(location),
        }
    }

    /// Returns whether the body is a stream that need not have begun.
    pub(super) fn is_stream(&self) -> bool {
        let kind = self.media_type();
        kind == "text/event-stream"
            || ["audio/", "video/", "multipart/x-mixed-replace"]
                .iter()
                .any(|start| kind.starts_with(start))
    }

    pub(super) fn take_start(&mut self, body: &mut Body<'_>) {
        let mut start = [0; 4096];
        match body.read(&mut start) {
            Ok(read) => {
                self.body.extend_from_slice(&start[..read]);
                self.is_cut = !body.is_over;
            }
            Err(error) => self.problem = Some(unread(&error, "no body within the time limit")),
        }
    }

    pub(super) fn take_body(&mut self, body: &mut Body<'_>, head: &Head, most: u64) {
        let read = decoded(&mut *body, head)
            .and_then(|reader| reader.take(most.saturating_add(1)).read_to_end(&mut self.body));
        self.is_cut = self.body.len() as u64 > most;
        self.body.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        let late = "the answer did not end within the time limit";
        self.problem = read.err().map(|error| unread(&error, late));
    }
}

/// Percent-encodes the bytes of a redirect that are not UTF-8, as browsers do.
fn location(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => value
            .iter()
            .map(|byte| match byte {
                0..0x80 => char::from(*byte).to_string(),
                _ => format!("%{byte:02X}"),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9110, section 15.4: the other statuses name no address to go on at.
    #[test]
    fn redirects_are_five_statuses() {
        let redirects = (200..400).filter(|status| {
            let head = format!("HTTP/1.1 {status} -\r\nLocation: /there\r\n\r\n");
            let head = head::parse(head.as_bytes()).expect("a head");
            CheckAnswer::of(&head, Duration::ZERO).location() == Some("/there")
        });
        assert_eq!(Vec::from_iter(redirects), [301, 302, 303, 307, 308]);
    }
}
