//! What is recorded of the requests of a page: messages of the browser in, calls to the browser and
//! bytes of bodies out. A state machine without I/O.
//!
//! Bodies come in five ways, the first of which that works is taken:
//!
//! | way | for | why not for all |
//! |---|---|---|
//! | `Fetch.getResponseBody` of a stopped response | files in place of a page, small documents, the type `Other`; all requests of service workers | the page gets nothing before the end |
//! | `Fetch.takeResponseBodyAsStream`, by the tab | longer files in place of a page | the page gets nothing at all |
//! | `Network.streamResourceContent` | all other requests | asked for too late, it lacks the begin: the bytes are counted |
//! | `Network.getResponseBody` after the end | what lacks bytes: what no page reads, or reads as a blob | the browser holds the body in memory, as long as it has room |
//! | a request of the page when the recording ends, see `media` | what lacks bytes, and media | the server may see a second request |
//!
//! `targets` has the sessions from which the messages come, `flight` what is known of one request and its
//! stages, `media` the requests that the page repeats at the end, `calls` what is ordered and expected.
//!
//! Requests are identified by their id alone: the events of one may come from several sessions, such as
//! those of a page and its worker.

use super::calls::{Awaited, Calls, Expected, Step};
use super::events::{
    Attached, Buffered, Data, Detached, Failed, Finished, Paused, Received, ReceivedHeaders,
    SentHeaders, SocketCreated, WholeBody, WillBeSent,
};
use super::flight::{Body, End, Flight, Hop, Stage, without_fragment};
use super::masks::Masks;
use super::media::{self, Media};
use super::rules::Rules;
use super::targets::{HELD_MAX_BYTES, Targets};
use crate::chromium::cdp::posted::{self, Posted};
use crate::chromium::cdp::{ATTACHED, DETACHED, Message};
use crate::page::content_type;
use crate::visit::recording::Row;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Requests of a page that are recorded.
pub const REQUESTS_MAX: usize = 20_000;
/// Largest document for people in bytes that is stopped: it comes in one piece, so the page does not
/// wait for its end. One that replaces itself is gone when it has come to its end.
const STOPPED_PAGE_MAX_BYTES: u64 = 64 << 10;
/// Attempts to stream a document, which no process has until it is shown.
const STREAM_ATTEMPTS: u8 = 3;

pub struct Requests {
    rules: Rules,
    calls: Calls,
    targets: Targets,
    media: Media,
    flights: BTreeMap<String, Flight>,
    /// Requests that are written or named.
    done: BTreeSet<String>,
    kept_urls: BTreeSet<String>,
    count: usize,
    /// Requests beyond [`REQUESTS_MAX`].
    pub left_out: usize,
}

impl Requests {
    /// A recording of the browser context `context`. Calls have numbers above `last_call`.
    pub fn new(rules: Rules, root: &str, context: &str, last_call: u64) -> Requests {
        Requests {
            rules,
            calls: Calls::new(last_call),
            targets: Targets::new(root, context),
            media: Media::default(),
            flights: BTreeMap::new(),
            done: BTreeSet::new(),
            kept_urls: BTreeSet::new(),
            count: 0,
            left_out: 0,
        }
    }

    pub fn masks(&self) -> Arc<Masks> {
        Arc::clone(&self.rules.masks)
    }

    pub fn attach(&mut self, session: &str, target: &str, kind: &str) -> Vec<Step> {
        self.media = Media::of(session, target);
        self.targets.prepare(session, [target, kind, ""], &mut self.rules, &mut self.calls);
        self.calls.take()
    }

    pub fn take(&mut self, message: &Message<'_>) -> Vec<Step> {
        match (message.id, &message.session, message.method.as_deref()) {
            (Some(id), ..) => self.answer(id, message),
            (None, Some(session), Some(method)) => {
                // An event that cannot be read is one of a later protocol.
                let _ = self.event(&session.clone(), method, message);
            }
            _ => {}
        }
        self.calls.take()
    }

    /// Most bytes of a body.
    pub fn body_max(&self) -> u64 {
        self.rules.body_max
    }

    /// Number of workers, and of their requests that began or ended, so far.
    pub fn worker_activity(&self) -> u64 {
        self.targets.worker_activity
    }

    /// Adds the response `paused`, which the tab has stopped and of which it has saved a body of
    /// `length` bytes; chromium will report that the request has failed. Returns the request and the
    /// bytes that are kept; `None` if it is not known.
    pub fn adopt(&mut self, paused: &Value, length: u64) -> Option<(String, u64)> {
        let paused = Paused::deserialize(paused).ok()?;
        let response = paused.response()?;
        let request = paused.network_id?;
        let flight = self.flights.get_mut(&request)?;
        let hop = flight.hop.as_mut()?;
        hop.has_extra = !flight.sent.is_empty() && !flight.received.is_empty();
        hop.response = Some(response);
        flight.body = Body { is_whole: true, got: length, ..Body::default() };
        Some((request, length.min(self.rules.body_max)))
    }

    pub fn too_large(&mut self, call: u64) -> Vec<Step> {
        if let Some(expected) = self.calls.answered(call) {
            self.answered(expected);
        }
        self.calls.take()
    }

    /// Whether the browser cannot stream, so that all responses are stopped.
    pub fn stops_all(&self) -> bool {
        !self.targets.can_stream
    }

    /// Whether bodies or headers are on their way that a further message will bring.
    pub fn is_idle(&self) -> bool {
        let is_idle = |it: &Flight| it.end().is_none() || it.hop.is_none() || it.is_put_off;
        self.flights.values().all(is_idle)
    }

    /// Begins to fetch what bodies lack, one after the other.
    pub fn complete(&mut self) -> Vec<Step> {
        self.media.begin(&self.flights, &self.rules, &mut self.calls);
        self.calls.take()
    }

    pub fn is_completing(&self) -> bool {
        self.media.is_completing()
    }

    /// Ends the recording: what is still being received is cut off.
    pub fn finish(&mut self) -> Vec<Step> {
        self.media = Media::default();
        for request in self.flights.keys().cloned().collect::<Vec<_>>() {
            self.conclude(&request);
        }
        self.calls.take()
    }

    /// Calls for something of a request, which waits for the answer.
    fn ask(&mut self, request: &str, session: &str, method: &'static str, what: Awaited) {
        let params = match &what {
            Awaited::Stopped { stop, .. } => json!({"requestId": stop}),
            _ => json!({"requestId": request}),
        };
        if let Some(flight) = self.flights.get_mut(request) {
            flight.calls += 1;
        }
        let expected = Expected::Of { request: request.to_owned(), what };
        self.calls.ask(session, method, params, expected);
    }

    fn event(&mut self, session: &str, method: &str, message: &Message<'_>) -> Option<()> {
        match method {
            "Network.dataReceived" => self.data(message.params()?),
            "Network.requestWillBeSent" => self.sent(session, message.params()?),
            "Network.requestWillBeSentExtraInfo" => {
                let SentHeaders { request_id, headers } = message.params()?;
                self.flight(&request_id)?.sent.push_back(headers);
                self.advance(&request_id);
            }
            "Network.responseReceived" => self.received(session, message.params()?),
            "Network.responseReceivedExtraInfo" => {
                let event: ReceivedHeaders = message.params()?;
                let headers = event.headers();
                self.rules.masks.learn(&headers);
                self.flight(&event.request_id)?.received.push_back(headers);
                self.advance(&event.request_id);
            }
            "Network.requestServedFromCache" => {
                let Finished { request_id } = message.params()?;
                self.flights.get_mut(&request_id)?.hop.as_mut()?.is_cached = true;
            }
            "Network.loadingFinished" => {
                let Finished { request_id } = message.params()?;
                self.ended(session, &request_id, End::Finished);
            }
            "Network.loadingFailed" => {
                let event: Failed = message.params()?;
                let blocked = event.blocked_reason.map(|why| format!("blocked: {why}"));
                let reason = blocked.unwrap_or(event.error_text);
                self.ended(session, &event.request_id, End::Failed(reason));
            }
            "Network.webSocketCreated" => {
                let SocketCreated { url } = message.params()?;
                self.name_socket(url);
            }
            "Fetch.requestPaused" => self.paused(session, message.params()?),
            ATTACHED => {
                let event: Attached = message.params()?;
                self.targets.attached(session, &event, &mut self.rules, &mut self.calls);
            }
            DETACHED => {
                let Detached { session_id } = message.params()?;
                self.targets.detached(&session_id);
            }
            _ => {}
        }
        Some(())
    }

    /// The flight of a request, which its headers may precede.
    fn flight(&mut self, request: &str) -> Option<&mut Flight> {
        if self.done.contains(request) || self.flights.len() >= REQUESTS_MAX {
            return self.flights.get_mut(request);
        }
        Some(self.flights.entry(request.to_owned()).or_default())
    }

    fn sent(&mut self, session: &str, event: WillBeSent) {
        let is_web =
            event.request.url.starts_with("http:") || event.request.url.starts_with("https:");
        if !is_web || self.done.contains(&event.request_id) {
            return;
        }
        let id = event.request_id.clone();
        let is_known = self.flights.get(&id).is_some_and(|flight| flight.hop.is_some());
        if is_known && event.redirect_response.is_none() {
            // Another session reports the same request.
            return;
        }
        if self.count >= REQUESTS_MAX {
            self.left_out += 1;
            return;
        }
        let completes =
            self.media.completed_by(&event.request.url, event.request.headers.get("range"));
        self.count += usize::from(completes.is_none());
        self.targets.note_activity(session);
        let has_extra = event.redirect_has_extra_info;
        let Some(flight) = self.flight(&id) else {
            return;
        };
        if let (Some(mut redirect), Some(response)) = (flight.hop.take(), event.redirect_response) {
            redirect.response = Some(response);
            redirect.has_extra = has_extra;
            flight.redirects.push_back(redirect);
        }
        session.clone_into(&mut flight.session);
        if completes.is_some() {
            flight.completes = completes;
        }
        let time = WillBeSent::time_of(event.wall_time);
        let kind = event.r#type.to_ascii_lowercase();
        let posted = posted::in_event(&event.request.post_data_entries);
        let asks_for_posted = event.request.has_post_data && posted.is_none();
        flight.hop = Some(Hop {
            url: without_fragment(&event.request.url),
            method: event.request.method,
            kind,
            time,
            headers: event.request.headers,
            posted,
            response: None,
            has_extra: false,
            is_cached: false,
        });
        let is_document = event.r#type == "Document";
        let is_first = flight.body.attempts == 0;
        if asks_for_posted {
            self.ask(&id, session, "Network.getRequestPostData", Awaited::Posted);
        }
        // A document is loaded by the browser's own process first.
        if !is_document && is_first {
            self.stream(session, &id);
        }
        self.advance(&id);
    }

    fn stream(&mut self, session: &str, request: &str) {
        let Some(flight) = self.flights.get_mut(request) else {
            return;
        };
        let body = &mut flight.body;
        if self.targets.can_stream && !body.is_whole && body.attempts < STREAM_ATTEMPTS {
            body.attempts += 1;
            self.ask(request, session, "Network.streamResourceContent", Awaited::Stream);
        }
    }

    fn received(&mut self, session: &str, event: Received) {
        if !event.response.is_sent() {
            self.flights.remove(&event.request_id);
            self.done.insert(event.request_id);
            return;
        }
        let Some(flight) = self.flights.get_mut(&event.request_id) else {
            return;
        };
        let Some(hop) = &mut flight.hop else { return };
        hop.has_extra = event.has_extra_info;
        hop.is_cached |= event.response.from_disk_cache;
        hop.response = Some(event.response);
        if flight.body.attempts == 0 && !hop.is_viewed() {
            self.stream(session, &event.request_id);
        }
    }

    fn data(&mut self, event: Data<'_>) {
        let Some(flight) = self.flights.get_mut(&event.request_id) else {
            return;
        };
        if flight.is_put_off || flight.hop.as_ref().is_some_and(Hop::is_viewed) {
            return;
        }
        flight.body.expected += event.data_length;
        flight.body.delivered += event.encoded_data_length;
        if flight.body.is_whole {
            return;
        }
        let session = flight.session.clone();
        let is_unstreamed = !flight.body.is_streamed && flight.calls == 0;
        match event.data.map(|data| STANDARD.decode(data.as_bytes())) {
            Some(Ok(bytes)) => self.append(&event.request_id, bytes),
            Some(Err(_)) => {}
            None if is_unstreamed => self.stream(&session, &event.request_id),
            None => {}
        }
    }

    /// Adds bytes to a body, up to the most that are kept.
    fn append(&mut self, request: &str, bytes: Vec<u8>) {
        let flight = self.flights.get_mut(request).filter(|flight| flight.hop.is_some());
        let bytes = flight.map(|flight| flight.add(bytes, self.rules.body_max)).unwrap_or_default();
        if !bytes.is_empty() {
            self.calls.order(Step::Append { request: request.to_owned(), bytes });
        }
    }

    fn paused(&mut self, session: &str, event: Paused) {
        let known = event.network_id.clone().filter(|id| self.flights.contains_key(id));
        let (session, stop) = (session.to_owned(), event.request_id.clone());
        match known.filter(|_| is_read_stopped(&event)) {
            Some(request) => {
                let what = Awaited::Stopped { session: session.clone(), stop };
                self.ask(&request, &session, "Fetch.getResponseBody", what);
            }
            None => self.calls.post(&session, "Fetch.continueRequest", json!({"requestId": stop})),
        }
    }

    fn ended(&mut self, session: &str, request: &str, end: End) {
        let flight = self.flights.get_mut(request);
        if let Some(flight) = flight.filter(|flight| flight.is_open()) {
            session.clone_into(&mut flight.session);
            flight.stage = Stage::Ended(end);
            self.targets.note_activity(session);
            self.advance(request);
        }
    }

    fn answer(&mut self, call: u64, message: &Message<'_>) {
        let Some(expected) = self.calls.answered(call) else {
            return;
        };
        match &expected {
            Expected::World => {
                let world = message.result().ok();
                return self.media.entered(world, &mut self.flights, &self.rules, &mut self.calls);
            }
            Expected::Of { request, what: Awaited::Stream } => {
                match message.result::<Buffered<'_>>() {
                    Ok(buffered) => self.streams(request, &buffered),
                    Err(reason) if reason.contains("wasn't found") => {
                        self.targets.stop_all(&mut self.calls);
                    }
                    Err(_) => {}
                }
            }
            Expected::Of { request, what: Awaited::Body | Awaited::Stopped { .. } } => {
                if let Ok(whole) = message.result() {
                    self.replace(request, whole);
                }
            }
            Expected::Of { request, what: Awaited::Posted } => {
                let hop = self.flights.get_mut(request).and_then(|flight| flight.hop.as_mut());
                if let (Ok(posted), Some(hop)) = (message.result::<Posted>(), hop) {
                    hop.posted = posted.bytes();
                }
            }
            Expected::ForeignWorker { .. } | Expected::Fetched => {}
        }
        self.answered(expected);
    }

    fn streams(&mut self, request: &str, buffered: &Buffered<'_>) {
        let Some(flight) = self.flights.get_mut(request) else {
            return;
        };
        flight.body.is_streamed = true;
        let before = STANDARD.decode(buffered.buffered_data.as_bytes());
        if let (false, Ok(before)) = (flight.body.is_whole, before) {
            self.append(request, before);
        }
    }

    /// Puts a whole body in the place of what was streamed.
    fn replace(&mut self, request: &str, whole: WholeBody<'_>) {
        let Some(flight) = self.flights.get_mut(request) else {
            return;
        };
        let response = flight.hop.as_ref().and_then(|hop| hop.response.as_ref());
        let charset = response.map_or("", |response| &response.charset);
        let Some(bytes) = whole.bytes(charset, flight.body.expected) else {
            return;
        };
        // The browser answers the same for a body that it does not have.
        if bytes.is_empty() && flight.is_reread() {
            return;
        }
        let is_reread = flight.is_reread();
        let body = &mut flight.body;
        body.is_whole = true;
        if is_reread {
            // Also what the page did not read any more.
            body.expected = body.expected.max(bytes.len() as u64);
        }
        if std::mem::take(&mut body.got) > 0 {
            self.calls.clear(request);
        }
        self.append(request, bytes);
    }

    /// Goes on after the answer to a call, whatever it was.
    fn answered(&mut self, expected: Expected) {
        match expected {
            Expected::Of { request, what } => {
                if let Awaited::Stopped { session, stop } = what {
                    let params = json!({"requestId": stop});
                    self.calls.post(&session, "Fetch.continueRequest", params);
                }
                if let Some(flight) = self.flights.get_mut(&request) {
                    flight.calls = flight.calls.saturating_sub(1);
                }
                self.advance(&request);
            }
            Expected::ForeignWorker { session, is_running } => {
                self.targets.leave(session, is_running, &mut self.calls);
            }
            Expected::World => {
                self.media.entered(None, &mut self.flights, &self.rules, &mut self.calls);
            }
            Expected::Fetched => {
                self.media.fetched(&mut self.flights, &self.rules, &mut self.calls);
            }
        }
    }

    /// Writes what is complete of a request, and asks for what is missing.
    fn advance(&mut self, request: &str) {
        if !self.keep_redirects(request, false) {
            return;
        }
        let Some(flight) = self.flights.get_mut(request).filter(|flight| flight.is_over()) else {
            return;
        };
        if flight.rereads() {
            let session = flight.session.clone();
            return self.ask(request, &session, "Network.getResponseBody", Awaited::Body);
        }
        if !media::puts_off(flight, &self.rules) {
            self.conclude(request);
        }
    }

    /// Keeps the redirects of a request whose headers are known, or all. Returns whether none is left.
    fn keep_redirects(&mut self, request: &str, is_last: bool) -> bool {
        let Some(flight) = self.flights.get_mut(request) else {
            return true;
        };
        while let Some((redirect, headers)) = flight.next_redirect(is_last) {
            let (exchange, row) = redirect.exchange(headers, self.rules.left_out, None);
            let exchange = Box::new(exchange);
            self.calls.order(Step::Keep { body: None, exchange, row });
        }
        flight.redirects.is_empty()
    }

    /// Keeps or names a request as it is.
    fn conclude(&mut self, request: &str) {
        self.keep_redirects(request, true);
        let Some(mut flight) = self.flights.remove(request) else {
            return;
        };
        if let Some(medium) = flight.completes.take() {
            self.done.insert(request.to_owned());
            self.media.join(request, &medium, &flight, &mut self.flights, &mut self.calls);
            self.conclude(&medium);
            return self.media.fetch_next(&mut self.flights, &self.rules, &mut self.calls);
        }
        let Some(hop) = flight.hop.take() else { return };
        self.done.insert(request.to_owned());
        // What the browser answers from its cache is no request to the server: the recording has its
        // body, and its URL is listed.
        if hop.is_cached && hop.response.is_some() && self.kept_urls.contains(&hop.url) {
            return self.calls.clear(request);
        }
        if let Some(reason) = hop.reason_against(&flight) {
            self.calls.clear(request);
            return self.calls.order(Step::Name(Row { reason: Some(reason), ..hop.row() }));
        }
        let (truncated, reason) = flight.truncated(&hop, self.rules.body_max).unzip();
        let headers = hop.extra(&mut flight.sent, &mut flight.received);
        let (exchange, mut row) = hop.exchange(headers, self.rules.left_out, truncated);
        row.reason = reason;
        row.is_repeated = flight.is_repeated;
        self.kept_urls.insert(exchange.url.clone());
        let (body, exchange) = (Some(request.to_owned()), Box::new(exchange));
        self.calls.order(Step::Keep { body, exchange, row });
    }

    fn name_socket(&mut self, url: String) {
        let reason = "messages of a WebSocket are not recorded".to_owned();
        let row = Row {
            url,
            method: "GET".to_owned(),
            kind: "websocket".to_owned(),
            reason: Some(reason),
            ..Row::default()
        };
        self.count += 1;
        if self.count <= REQUESTS_MAX {
            self.calls.order(Step::Name(row));
        } else {
            self.left_out += 1;
        }
    }
}

/// Whether the body of a stopped response is read: it must come to an end soon.
fn is_read_stopped(event: &Paused) -> bool {
    let is_redirect = matches!(event.response_status_code, None | Some(300..=399 | 204));
    let length = event.header("content-length").and_then(|length| length.parse().ok());
    let kind = event.header("content-type").unwrap_or_default();
    let is_page = event.resource_type == "Document" && content_type::is_viewable(kind);
    let most = if is_page { STOPPED_PAGE_MAX_BYTES } else { HELD_MAX_BYTES };
    !is_redirect && length.is_some_and(|length: u64| length <= most)
}
