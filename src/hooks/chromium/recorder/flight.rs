//! One request of a page: what is known of it, and what it lacks.
//!
//! | stage | what moves it | next |
//! |---|---|---|
//! | open | the events of the browser and the answers to calls add to it; its end is reported | ended |
//! | ended | all calls are answered and all headers known: if bytes lack, the browser is asked for the body | reread |
//! | ended, reread | nothing lacks, or nothing helps | written or named |
//! | reread | the page can fetch what lacks: it is put off until the recording ends | written |

use super::events::{Headers, Response};
use crate::page::secrets::LeftOut;
use crate::visit::recording::{NO_RESPONSE, Row};
use archivist_warc::exchange::{Exchange, Truncated};
use jiff::Timestamp;
use std::collections::VecDeque;

/// Headers as sent and as received, if they are known.
pub type ExtraHeaders = (Option<Headers>, Option<Headers>);

/// A request, from its first event until it is written or named.
#[derive(Debug, Default)]
pub struct Flight {
    pub session: String,
    /// The request that was sent last; none while only its headers are known.
    pub hop: Option<Hop>,
    /// Redirects that lack headers.
    pub redirects: VecDeque<Hop>,
    pub sent: VecDeque<Headers>,
    pub received: VecDeque<Headers>,
    pub body: Body,
    /// Calls for bodies without an answer.
    pub calls: u32,
    /// Whether the rest of its body comes with a request of its own.
    pub is_put_off: bool,
    /// Whether its body, or a part of it, is that of a request of its own.
    pub is_repeated: bool,
    /// The request whose missing bytes this one fetches.
    pub completes: Option<String>,
    pub stage: Stage,
}

#[derive(Debug)]
pub struct Hop {
    pub url: String,
    pub method: String,
    pub kind: String,
    pub time: Timestamp,
    pub headers: Headers,
    pub posted: Option<Vec<u8>>,
    pub response: Option<Response>,
    /// Whether events with the headers as sent and received belong to it.
    pub has_extra: bool,
    pub is_cached: bool,
}

#[derive(Debug, Default)]
pub struct Body {
    /// Whether the stopped response was read.
    pub is_whole: bool,
    /// Attempts to stream it.
    pub attempts: u8,
    pub is_streamed: bool,
    /// Bytes that the page got.
    pub expected: u64,
    /// Bytes of the body that came over the network: with its codings, none of some documents, which
    /// another process receives, and twice those of some that were stopped.
    pub delivered: u64,
    /// Bytes that were received here.
    pub got: u64,
}

/// How far a request is.
#[derive(Debug, Default)]
pub enum Stage {
    #[default]
    Open,
    Ended(End),
    /// It has ended, and the browser was asked for the body again, which lacked bytes.
    Reread(End),
}

#[derive(Debug)]
pub enum End {
    Finished,
    Failed(String),
}

impl Flight {
    pub fn end(&self) -> Option<&End> {
        match &self.stage {
            Stage::Open => None,
            Stage::Ended(end) | Stage::Reread(end) => Some(end),
        }
    }

    /// Whether its end is not known yet, of one that was sent.
    pub fn is_open(&self) -> bool {
        self.hop.is_some() && matches!(self.stage, Stage::Open)
    }

    pub fn is_reread(&self) -> bool {
        matches!(self.stage, Stage::Reread(_))
    }

    /// Whether the browser must be asked for the body again, which happens once.
    pub fn rereads(&mut self) -> bool {
        if !self.lacks_bytes() {
            return false;
        }
        match std::mem::take(&mut self.stage) {
            Stage::Ended(end) => {
                self.stage = Stage::Reread(end);
                true
            }
            stage => {
                self.stage = stage;
                false
            }
        }
    }

    /// Counts bytes of the body. Returns those that are kept, of at most `most` of all.
    pub fn add(&mut self, mut bytes: Vec<u8>, most: u64) -> Vec<u8> {
        let room = most.saturating_sub(self.body.got);
        self.body.got += bytes.len() as u64;
        bytes.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        bytes
    }

    /// Takes the next redirect with its headers as sent and received. `None` while these are on their way,
    /// unless `is_last`.
    pub fn next_redirect(&mut self, is_last: bool) -> Option<(Hop, ExtraHeaders)> {
        let redirect = self.redirects.front()?;
        if self.lacks_headers_of(redirect) && !is_last {
            return None;
        }
        let redirect = self.redirects.pop_front()?;
        let headers = redirect.extra(&mut self.sent, &mut self.received);
        Some((redirect, headers))
    }

    /// Whether the request has ended and all calls for it are answered.
    pub fn is_over(&self) -> bool {
        let lacks_headers = self.hop.as_ref().is_none_or(|hop| self.lacks_headers_of(hop));
        self.end().is_some() && self.calls == 0 && !lacks_headers
    }

    fn lacks_headers_of(&self, hop: &Hop) -> bool {
        let lacks_any = self.sent.is_empty() || self.received.is_empty();
        hop.response.is_some() && hop.has_extra && lacks_any
    }

    /// Whether more of the body may have been sent than was received here.
    fn lacks_bytes(&self) -> bool {
        let Some(hop) = &self.hop else { return false };
        let Body { got, expected, is_whole, .. } = self.body;
        // Of what goes past the page, the browser reports no bytes, and none of what it refused.
        let is_silent = expected == 0 && hop.announced().is_none_or(|length| length > 0);
        let is_refused = matches!(self.end(), Some(End::Failed(_)));
        let has_body = hop.response.is_some() && hop.may_have_body();
        let may_lack = is_silent || is_refused || got != expected || got < self.due(hop);
        has_body && !is_whole && may_lack
    }

    /// Why the body is not whole, as a value of WARC and as a text.
    pub fn truncated(&self, hop: &Hop, body_max: u64) -> Option<(Truncated, String)> {
        let got = self.body.got;
        if !hop.may_have_body() {
            return None;
        }
        if got > body_max {
            let reason = format!("cut off: its body has more than {body_max} bytes");
            return Some((Truncated::Length, reason));
        }
        let due = self.due(hop);
        let is_all = self.body.is_whole || hop.length() == Some(got);
        match self.end() {
            _ if is_all && got >= due => None,
            None => Some((Truncated::Time, "it had not ended when the recording did".to_owned())),
            Some(End::Failed(reason)) => Some((Truncated::Disconnect, reason.clone())),
            Some(End::Finished) if got == due => None,
            Some(End::Finished) => {
                let reason = format!("the browser passed on {got} of {due} bytes");
                Some((Truncated::Unspecified, reason))
            }
        }
    }

    /// Bytes of a body that came to its end, but of which the browser passes on fewer.
    pub fn held_back(&self, hop: &Hop) -> Option<u64> {
        let is_reread = matches!(self.stage, Stage::Reread(End::Finished)) && !hop.is_cached;
        let due = self.due(hop);
        (is_reread && hop.may_have_body() && self.body.got < due).then_some(due)
    }

    /// Whether it is an answer with all of its body.
    pub fn is_sound(&self, hop: &Hop) -> bool {
        let is_ok = hop.response.as_ref().is_some_and(|response| response.status == 200);
        is_ok && self.truncated(hop, u64::MAX).is_none()
    }

    /// Bytes that the body has, if all of it is here: those that the page got, or that the server announced.
    /// If nothing is here, those that the network delivered, with their coding.
    fn due(&self, hop: &Hop) -> u64 {
        let Body { got, expected, delivered, .. } = self.body;
        let response = hop.response.as_ref();
        let is_from_worker = response.is_some_and(|response| response.from_service_worker);
        let sent = match got {
            // A coded body may be empty: no bytes are reported as delivered then. Nothing is delivered of
            // what comes from the cache.
            0 if delivered > 0 || hop.is_cached => hop.announced().or(Some(delivered)),
            0 => hop.length(),
            // A worker may answer with the headers of another response.
            _ => hop.length().filter(|_| !is_from_worker),
        };
        expected.max(sent.unwrap_or_default())
    }
}

impl Hop {
    /// The headers as sent and received, if they are known.
    pub fn extra(
        &self,
        sent: &mut VecDeque<Headers>,
        received: &mut VecDeque<Headers>,
    ) -> ExtraHeaders {
        if self.has_extra { (sent.pop_front(), received.pop_front()) } else { (None, None) }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.as_ref()?.headers.get(name)
    }

    /// Bytes of the body as it was sent, if the server said that.
    fn announced(&self) -> Option<u64> {
        self.header("content-length")?.trim().parse().ok()
    }

    /// Bytes of the body as the page reads it, if the server said that.
    fn length(&self) -> Option<u64> {
        self.announced().filter(|_| !self.is_coded())
    }

    fn is_coded(&self) -> bool {
        self.header("content-encoding").is_some()
    }

    fn may_have_body(&self) -> bool {
        let status = self.response.as_ref().map_or(0, |response| response.status);
        self.method != "HEAD" && !matches!(status, 100..=199 | 204 | 205 | 304)
    }

    /// Whether the page gets chromium's viewer instead of the body.
    pub fn is_viewed(&self) -> bool {
        let is_paper = |response: &Response| response.mime_type == "application/pdf";
        self.kind == "document" && self.response.as_ref().is_some_and(is_paper)
    }

    /// Why the request is not kept.
    pub fn reason_against(&self, flight: &Flight) -> Option<String> {
        match (&self.response, flight.end()) {
            (Some(_), _) => None,
            (None, Some(End::Failed(reason))) => Some(reason.clone()),
            (None, Some(End::Finished)) => Some("no response was reported".to_owned()),
            (None, None) => Some(NO_RESPONSE.to_owned()),
        }
    }

    pub fn row(&self) -> Row {
        let response = self.response.as_ref();
        Row {
            url: self.url.clone(),
            method: self.method.clone(),
            status: response.map(|response| response.status),
            kind: self.kind.clone(),
            mime: response.map(|response| response.mime_type.clone()).unwrap_or_default(),
            ..Row::default()
        }
    }

    pub fn exchange(
        self,
        (sent, received): ExtraHeaders,
        left_out: LeftOut,
        truncated: Option<Truncated>,
    ) -> (Exchange, Row) {
        let row = self.row();
        let response = self.response.unwrap_or_default();
        let protocols = protocols(&response);
        let mut received = received.unwrap_or_else(|| response.headers.clone());
        // What the browser has put together of parts, some from its cache, has the range of all.
        if let Some(range) = response.headers.get("content-range") {
            received.set("Content-Range", range);
        }
        let headers = |headers: Headers| {
            let mut pairs = headers.0;
            // Names with a colon are pseudo-headers of HTTP/2.
            pairs.retain(|(name, value)| {
                !(name.starts_with(':') || left_out.has_field(name, value))
            });
            pairs
        };
        let exchange = Exchange {
            url: self.url,
            method: self.method,
            time: self.time,
            request: headers(sent.unwrap_or(self.headers)),
            posted: self.posted,
            status: response.status,
            reason: response.status_text,
            response: headers(received),
            protocols,
            address: response
                .remote_ip_address
                .and_then(|address| address.trim_matches(['[', ']']).parse().ok()),
            kind: self.kind,
            truncated,
        };
        (exchange, row)
    }
}

/// Values of `WARC-Protocol`.
fn protocols(response: &Response) -> Vec<String> {
    let own = response
        .protocol
        .as_deref()
        .filter(|own| ["http/0.9", "http/1.0", "http/1.1", "h2", "h3"].contains(own));
    let security = response
        .security_details
        .as_ref()
        .map(|security| security.protocol.to_ascii_lowercase().replace(' ', "/"));
    let security = security.filter(|security| security.starts_with("tls/"));
    own.map(str::to_owned).into_iter().chain(security).collect()
}

pub fn without_fragment(url: &str) -> String {
    let (start, _) = url.split_once('#').unwrap_or((url, ""));
    start.to_owned()
}
