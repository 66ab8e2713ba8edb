//! What is recorded of the requests of a page: messages of the browser in, calls to the browser and
//! bytes of bodies out. A state machine without I/O.
//!
//! Bodies come in four ways, the first of which that works is taken:
//!
//! | way | for | why not for all |
//! |---|---|---|
//! | `Fetch.getResponseBody` of a stopped response | files in place of a page, small documents, the type `Other`; all requests of service workers | the page gets nothing before the end |
//! | `Fetch.takeResponseBodyAsStream`, by the tab | longer files in place of a page | the page gets nothing at all |
//! | `Network.streamResourceContent` | all other requests | asked for too late, it lacks the begin: the bytes are counted |
//! | `Network.getResponseBody` after the end | what lacks bytes | the browser holds the body in memory, as long as it has room |
//!
//! Requests are identified by their id alone: the events of one may come from several sessions, such as
//! those of a page and its worker.

use super::super::cdp::{ATTACHED, Call, DETACHED, Message};
use super::super::posted::{self, Posted};
use super::events::{
    Attached, Buffered, Data, Detached, Failed, Finished, Headers, Paused, Received,
    ReceivedHeaders, Response, SentHeaders, SocketCreated, WholeBody, WillBeSent,
};
use super::media::Media;
use super::report::Row;
use crate::page;
use archivist_warc::exchange::{Exchange, Truncated};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Requests of a page that are recorded.
pub const REQUESTS_MAX: usize = 20_000;
/// Largest body in bytes that the browser holds until it is read.
pub const HELD_MAX_BYTES: u64 = 16 << 20;
/// Bytes of bodies that the browser holds for one process of a page.
const HELD_TOTAL_BYTES: u64 = 64 << 20;
/// Largest document for people in bytes that is stopped: it comes in one piece, so the page does not
/// wait for its end. One that replaces itself is gone when it has come to its end.
const STOPPED_PAGE_MAX_BYTES: u64 = 64 << 10;
/// Largest posted body in bytes that is in the event of its request.
const POSTED_MAX_BYTES: u64 = 1 << 20;
/// Attempts to stream a document, which no process has until it is shown.
const STREAM_ATTEMPTS: u8 = 3;
/// Headers that are secrets.
const SECRETS: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "set-cookie"];

/// What is recorded.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Parameters of `Emulation.setUserAgentOverride` for frames of other sites and workers, which do
    /// not have those of the tab.
    pub identity: Option<Value>,
    /// Script that runs before those of pages and frames.
    pub preload: Option<String>,
    /// Most bytes of a body; the rest is cut off.
    pub body_max: u64,
    /// Whether cookies and passwords are left out.
    pub is_redacted: bool,
    /// Whether media of which the page has not read all are completed.
    pub completes_media: bool,
}

/// What the recorder does next.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Call the browser.
    Send(Call),
    /// Add bytes to the body of a request.
    Append { request: String, bytes: Vec<u8> },
    /// Add the body of a request to that of another.
    Join { from: String, to: String },
    /// Forget the body of a request.
    Clear { request: String },
    /// Write a request with its response. Its body is that of `body`, if it has one.
    Keep { body: Option<String>, exchange: Box<Exchange>, row: Row },
    /// Name a request that is not kept.
    Name(Row),
}

/// Whose answer is expected, by the number of the call.
#[derive(Debug)]
pub(super) enum Expected {
    Stream {
        request: String,
    },
    Body {
        request: String,
    },
    Stopped {
        session: String,
        request: Option<String>,
        stop: String,
    },
    Posted {
        request: String,
    },
    /// A worker of another page is there, and then runs.
    Foreign {
        session: String,
    },
    ForeignRuns {
        session: String,
    },
    /// The world in which parts of media are fetched.
    World,
    /// A part of a medium was fetched.
    Fetched,
    Nothing,
}

/// What a request waits for.
#[derive(Debug, Default)]
pub(super) struct Flight {
    session: String,
    /// The request that was sent last; none while only its headers are known.
    pub(super) hop: Option<Hop>,
    /// Redirects that lack headers.
    redirects: VecDeque<Hop>,
    sent: VecDeque<Headers>,
    received: VecDeque<Headers>,
    pub(super) body: Body,
    /// Calls for bodies without an answer.
    pub(super) calls: u32,
    /// Whether the rest of its body comes with a request of its own.
    pub(super) is_put_off: bool,
    /// The request whose body this one completes.
    completes: Option<String>,
    /// How it ended.
    end: Option<End>,
}

#[derive(Debug)]
pub(super) struct Hop {
    pub(super) url: String,
    pub(super) method: String,
    pub(super) kind: String,
    time: Timestamp,
    headers: Headers,
    posted: Option<Vec<u8>>,
    pub(super) response: Option<Response>,
    /// Whether events with the headers as sent and received belong to it.
    has_extra: bool,
    is_cached: bool,
}

#[derive(Debug, Default)]
pub(super) struct Body {
    /// Whether the stopped response was read.
    pub(super) is_whole: bool,
    /// Attempts to stream it.
    attempts: u8,
    is_streamed: bool,
    /// Bytes that the page got.
    pub(super) expected: u64,
    /// Bytes of the body that came over the network, with its content coding and without those of
    /// documents, which another process receives.
    delivered: u64,
    /// Bytes that were received here.
    pub(super) got: u64,
    /// Whether it was asked for after the end.
    is_read: bool,
}

#[derive(Debug)]
enum End {
    Finished,
    Failed(String),
}

/// The requests of a page.
pub struct Requests {
    pub(super) rules: Rules,
    pub(super) media: Media,
    /// Session and target of the page.
    pub(super) page: (String, String),
    /// Session of the browser that reports shared workers.
    root: String,
    /// Browser context of the page.
    context: String,
    last_call: u64,
    expected: BTreeMap<u64, Expected>,
    targets: BTreeSet<String>,
    /// Sessions that stop responses.
    sessions: BTreeSet<String>,
    pub(super) flights: BTreeMap<String, Flight>,
    /// Requests that are written or named.
    done: BTreeSet<String>,
    kept_urls: BTreeSet<String>,
    count: usize,
    /// Sessions of workers.
    workers: BTreeSet<String>,
    /// Number of workers, and of their requests that began or ended, so far.
    pub worker_activity: u64,
    /// Requests beyond [`REQUESTS_MAX`].
    pub left_out: usize,
    can_stream: bool,
    pub(super) steps: Vec<Step>,
}

impl Requests {
    /// A recording of the browser context `context`. Calls have numbers above `last_call`.
    pub fn new(rules: Rules, root: &str, context: &str, last_call: u64) -> Requests {
        Requests {
            rules,
            media: Media::default(),
            page: Default::default(),
            root: root.to_owned(),
            context: context.to_owned(),
            last_call,
            expected: BTreeMap::new(),
            targets: BTreeSet::new(),
            sessions: BTreeSet::new(),
            flights: BTreeMap::new(),
            done: BTreeSet::new(),
            kept_urls: BTreeSet::new(),
            count: 0,
            workers: BTreeSet::new(),
            worker_activity: 0,
            left_out: 0,
            can_stream: true,
            steps: Vec::new(),
        }
    }

    /// Begins to record a target of this type.
    pub fn attach(&mut self, session: &str, target: &str, kind: &str) -> Vec<Step> {
        self.page = (session.to_owned(), target.to_owned());
        self.prepare(session, target, kind);
        std::mem::take(&mut self.steps)
    }

    /// Processes a message of the browser.
    pub fn take(&mut self, message: &Message<'_>) -> Vec<Step> {
        match (message.id, &message.session, message.method.as_deref()) {
            (Some(id), ..) => self.answer(id, message),
            (None, Some(session), Some(method)) => {
                // An event that cannot be read is one of a later protocol.
                let _ = self.event(&session.clone(), method, message);
            }
            _ => {}
        }
        std::mem::take(&mut self.steps)
    }

    /// Most bytes of a body.
    pub fn body_max(&self) -> u64 {
        self.rules.body_max
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

    /// Processes an answer that was too large to read.
    pub fn too_large(&mut self, call: u64) -> Vec<Step> {
        if let Some(expected) = self.expected.remove(&call) {
            self.answered(expected);
        }
        std::mem::take(&mut self.steps)
    }

    /// Whether the browser cannot stream, so that all responses are stopped.
    pub fn stops_all(&self) -> bool {
        !self.can_stream
    }

    /// Whether bodies or headers are on their way that a further message will bring.
    pub fn is_idle(&self) -> bool {
        self.flights
            .values()
            .all(|flight| flight.end.is_none() || flight.hop.is_none() || flight.is_put_off)
    }

    /// Ends the recording: what is still being received is cut off.
    pub fn finish(&mut self) -> Vec<Step> {
        self.media = Media::default();
        for request in self.flights.keys().cloned().collect::<Vec<_>>() {
            self.conclude(&request);
        }
        std::mem::take(&mut self.steps)
    }

    pub(super) fn call(
        &mut self,
        session: &str,
        method: &'static str,
        params: Value,
        expected: Expected,
    ) {
        self.last_call += 1;
        let id = self.last_call;
        if !matches!(expected, Expected::Nothing) {
            self.expected.insert(id, expected);
        }
        self.steps.push(Step::Send(Call { id, session: Some(session.to_owned()), method, params }));
    }

    fn post(&mut self, session: &str, method: &'static str, params: Value) {
        self.call(session, method, params, Expected::Nothing);
    }

    /// Sends all that a session needs, without waiting: the target may wait for the last call.
    fn prepare(&mut self, session: &str, target: &str, kind: &str) {
        if self.targets.insert(target.to_owned()) {
            let buffers = json!({"maxTotalBufferSize": HELD_TOTAL_BYTES,
                "maxResourceBufferSize": HELD_MAX_BYTES, "maxPostDataSize": POSTED_MAX_BYTES});
            self.post(session, "Network.enable", buffers);
            if let Some(identity) = self.rules.identity.clone().filter(|_| kind != "page") {
                self.post(session, "Emulation.setUserAgentOverride", identity);
            }
            if let Some(script) = self.rules.preload.clone()
                && ["page", "iframe"].contains(&kind)
            {
                self.post(session, "Page.enable", json!({}));
                let script = json!({"source": script, "runImmediately": true});
                self.post(session, "Page.addScriptToEvaluateOnNewDocument", script);
            }
            let stops_all = kind == "service_worker" || !self.can_stream;
            // Workers other than those of services have no such method.
            self.post(session, "Fetch.enable", stopped(stops_all));
            self.sessions.insert(session.to_owned());
            if kind.ends_with("worker") {
                self.workers.insert(session.to_owned());
                self.note_activity(session);
            }
            self.post(session, "Target.setAutoAttach", auto_attach());
        }
        self.post(session, "Runtime.runIfWaitingForDebugger", json!({}));
    }

    fn note_activity(&mut self, session: &str) {
        self.worker_activity += u64::from(self.workers.contains(session));
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
            "Fetch.requestPaused" => self.paused(session, &message.params()?),
            ATTACHED => self.attached(session, &message.params()?),
            DETACHED => {
                let Detached { session_id } = message.params()?;
                self.sessions.remove(&session_id);
            }
            _ => {}
        }
        Some(())
    }

    fn attached(&mut self, parent: &str, event: &Attached) {
        let (session, target) = (&event.session_id, &event.target_info);
        if parent == self.root && target.browser_context_id != self.context {
            // A worker of another page waits, too. Its recorder, if it has one, gets time.
            let session = session.clone();
            let expected = Expected::Foreign { session: session.clone() };
            self.call(&session, "Runtime.getIsolateId", json!({}), expected);
        } else {
            self.prepare(session, &target.target_id, &target.r#type);
        }
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
        let completes = self.completed_by(&event.request.url, event.request.headers.get("range"));
        self.count += usize::from(completes.is_none());
        self.note_activity(session);
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
            flight.calls += 1;
            let request = json!({"requestId": id});
            let expected = Expected::Posted { request: id.clone() };
            self.call(session, "Network.getRequestPostData", request, expected);
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
        if !self.can_stream || body.is_whole || body.attempts >= STREAM_ATTEMPTS {
            return;
        }
        body.attempts += 1;
        flight.calls += 1;
        let params = json!({"requestId": request});
        let request = request.to_owned();
        self.call(session, "Network.streamResourceContent", params, Expected::Stream { request });
    }

    fn received(&mut self, session: &str, event: Received) {
        let Some(flight) = self.flights.get_mut(&event.request_id) else {
            return;
        };
        let Some(hop) = &mut flight.hop else { return };
        hop.has_extra = event.has_extra_info;
        hop.is_cached |= event.response.from_disk_cache;
        hop.response = Some(event.response);
        if flight.body.attempts == 0 {
            self.stream(session, &event.request_id);
        }
    }

    fn data(&mut self, event: Data<'_>) {
        let Some(flight) = self.flights.get_mut(&event.request_id) else {
            return;
        };
        if flight.is_put_off {
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
    fn append(&mut self, request: &str, mut bytes: Vec<u8>) {
        let flight = self.flights.get_mut(request);
        let Some(flight) = flight.filter(|flight| flight.hop.is_some()) else {
            return;
        };
        let room = self.rules.body_max.saturating_sub(flight.body.got);
        flight.body.got += bytes.len() as u64;
        bytes.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        if !bytes.is_empty() {
            let request = request.to_owned();
            self.steps.push(Step::Append { request, bytes });
        }
    }

    fn paused(&mut self, session: &str, event: &Paused) {
        let stop = json!({"requestId": event.request_id});
        let known = event.network_id.as_ref().and_then(|id| self.flights.get(id));
        let is_wanted = known.is_some() && self.is_read_stopped(event);
        if is_wanted {
            let request = event.network_id.clone();
            if let Some(flight) = request.as_ref().and_then(|id| self.flights.get_mut(id)) {
                flight.calls += 1;
            }
            let expected = Expected::Stopped {
                session: session.to_owned(),
                request,
                stop: event.request_id.clone(),
            };
            self.call(session, "Fetch.getResponseBody", stop, expected);
        } else {
            self.post(session, "Fetch.continueRequest", stop);
        }
    }

    /// Whether the body of a stopped response is read: it must come to an end soon.
    fn is_read_stopped(&self, event: &Paused) -> bool {
        let is_redirect = matches!(event.response_status_code, None | Some(300..=399 | 204));
        let length = event.header("content-length").and_then(|length| length.parse().ok());
        let kind = event.header("content-type").unwrap_or_default();
        let is_page = event.resource_type == "Document" && page::is_viewable(kind);
        let most = if is_page { STOPPED_PAGE_MAX_BYTES } else { HELD_MAX_BYTES };
        !is_redirect && length.is_some_and(|length: u64| length <= most)
    }

    fn ended(&mut self, session: &str, request: &str, end: End) {
        let Some(flight) = self.flights.get_mut(request) else {
            return;
        };
        if flight.hop.is_none() || flight.end.is_some() {
            return;
        }
        session.clone_into(&mut flight.session);
        flight.end = Some(end);
        self.note_activity(session);
        self.advance(request);
    }

    fn answer(&mut self, call: u64, message: &Message<'_>) {
        let Some(expected) = self.expected.remove(&call) else {
            return;
        };
        match &expected {
            Expected::World => return self.entered(message.result().ok()),
            Expected::Stream { request } => match message.result::<Buffered<'_>>() {
                Ok(buffered) => self.streams(request, &buffered),
                Err(reason) if reason.contains("wasn't found") => self.stop_all(),
                Err(_) => {}
            },
            Expected::Body { request } | Expected::Stopped { request: Some(request), .. } => {
                if let Ok(whole) = message.result() {
                    self.replace(request, whole);
                }
            }
            Expected::Posted { request } => {
                let hop = self.flights.get_mut(request).and_then(|flight| flight.hop.as_mut());
                if let (Ok(posted), Some(hop)) = (message.result::<Posted>(), hop) {
                    hop.posted = posted.bytes();
                }
            }
            _ => {}
        }
        self.answered(expected);
    }

    /// Processes the begin of a stream.
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
        if bytes.is_empty() && flight.body.is_read {
            return;
        }
        flight.body.is_whole = true;
        if std::mem::take(&mut flight.body.got) > 0 {
            let request = request.to_owned();
            self.steps.push(Step::Clear { request });
        }
        self.append(request, bytes);
    }

    /// Processes the end of a call.
    fn answered(&mut self, expected: Expected) {
        let request = match expected {
            Expected::Stopped { session, request, stop } => {
                self.post(&session, "Fetch.continueRequest", json!({"requestId": stop}));
                request
            }
            Expected::Stream { request }
            | Expected::Body { request }
            | Expected::Posted { request } => Some(request),
            Expected::Foreign { session } => {
                let expected = Expected::ForeignRuns { session: session.clone() };
                self.call(&session, "Runtime.runIfWaitingForDebugger", json!({}), expected);
                None
            }
            // A session that ends sooner would leave the worker waiting.
            Expected::ForeignRuns { session } => {
                let root = self.root.clone();
                self.post(&root, "Target.detachFromTarget", json!({"sessionId": session}));
                None
            }
            Expected::World => {
                self.entered(None);
                None
            }
            Expected::Fetched => {
                self.fetched();
                None
            }
            Expected::Nothing => None,
        };
        if let Some(request) = request {
            self.called(&request);
            self.advance(&request);
        }
    }

    fn called(&mut self, request: &str) {
        if let Some(flight) = self.flights.get_mut(request) {
            flight.calls = flight.calls.saturating_sub(1);
        }
    }

    /// The browser cannot stream: all responses are stopped from now on.
    fn stop_all(&mut self) {
        if std::mem::replace(&mut self.can_stream, false) {
            for session in self.sessions.clone() {
                self.post(&session, "Fetch.enable", stopped(true));
            }
        }
    }

    /// Writes what is complete of a request, and asks for what is missing.
    fn advance(&mut self, request: &str) {
        if !self.keep_redirects(request, false) {
            return;
        }
        let Some(flight) = self.flights.get_mut(request) else {
            return;
        };
        if !flight.is_over() {
            return;
        }
        if flight.lacks_bytes() && !std::mem::replace(&mut flight.body.is_read, true) {
            flight.calls += 1;
            let session = flight.session.clone();
            let params = json!({"requestId": request});
            let request = request.to_owned();
            self.call(&session, "Network.getResponseBody", params, Expected::Body { request });
            return;
        }
        if !self.puts_off(request) {
            self.conclude(request);
        }
    }

    /// Keeps the redirects of a request whose headers are known, or all. Returns whether none is left.
    fn keep_redirects(&mut self, request: &str, is_last: bool) -> bool {
        let Some(flight) = self.flights.get_mut(request) else {
            return true;
        };
        while let Some(redirect) = flight.redirects.pop_front() {
            if flight.lacks_headers_of(&redirect) && !is_last {
                flight.redirects.push_front(redirect);
                return false;
            }
            let headers = redirect.extra(&mut flight.sent, &mut flight.received);
            let (exchange, row) = redirect.exchange(headers, self.rules.is_redacted, None);
            let exchange = Box::new(exchange);
            self.steps.push(Step::Keep { body: None, exchange, row });
        }
        true
    }

    /// Keeps or names a request as it is.
    pub(super) fn conclude(&mut self, request: &str) {
        self.keep_redirects(request, true);
        let Some(mut flight) = self.flights.remove(request) else {
            return;
        };
        if let Some(medium) = flight.completes.take() {
            self.done.insert(request.to_owned());
            return self.join(request, &medium, &flight);
        }
        let Some(hop) = flight.hop.take() else { return };
        self.done.insert(request.to_owned());
        // What the browser answers from its cache is no request to the server: the recording has its
        // body, and its URL is listed.
        if hop.is_cached && hop.response.is_some() && self.kept_urls.contains(&hop.url) {
            let request = request.to_owned();
            self.steps.push(Step::Clear { request });
            return;
        }
        if let Some(reason) = hop.reason_against(&flight) {
            let request = request.to_owned();
            let mut row = hop.row();
            row.reason = Some(reason);
            self.steps.extend([Step::Clear { request }, Step::Name(row)]);
            return;
        }
        let (truncated, reason) = flight.truncated(&hop, self.rules.body_max).unzip();
        let headers = hop.extra(&mut flight.sent, &mut flight.received);
        let (exchange, mut row) = hop.exchange(headers, self.rules.is_redacted, truncated);
        row.reason = reason;
        self.kept_urls.insert(exchange.url.clone());
        let (body, exchange) = (Some(request.to_owned()), Box::new(exchange));
        self.steps.push(Step::Keep { body, exchange, row });
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
            self.steps.push(Step::Name(row));
        } else {
            self.left_out += 1;
        }
    }
}

impl Flight {
    /// Whether the request has ended and all calls for it are answered.
    fn is_over(&self) -> bool {
        let lacks_headers = self.hop.as_ref().is_none_or(|hop| self.lacks_headers_of(hop));
        self.end.is_some() && self.calls == 0 && !lacks_headers
    }

    fn lacks_headers_of(&self, hop: &Hop) -> bool {
        let lacks_any = self.sent.is_empty() || self.received.is_empty();
        hop.response.is_some() && hop.has_extra && lacks_any
    }

    /// Whether the page got more than was received here.
    fn lacks_bytes(&self) -> bool {
        let Some(hop) = &self.hop else { return false };
        let has_body = hop.response.is_some() && hop.may_have_body();
        let is_silent = self.body.expected == 0 && hop.announced().is_none_or(|length| length > 0);
        !self.body.is_whole && has_body && (is_silent || self.body.got != self.body.expected)
    }

    /// Why the body is not whole, as a value of WARC and as a text.
    fn truncated(&self, hop: &Hop, body_max: u64) -> Option<(Truncated, String)> {
        let Body { got, expected, is_whole, .. } = self.body;
        if !hop.may_have_body() {
            return None;
        }
        if got > body_max {
            let reason = format!("cut off: its body has more than {body_max} bytes");
            return Some((Truncated::Length, reason));
        }
        if is_whole || hop.length() == Some(got) {
            return None;
        }
        let passed_on = |most: u64| {
            let reason = format!("the browser passed on {got} of {most} bytes");
            (Truncated::Unspecified, reason)
        };
        if got != expected {
            return Some(passed_on(expected));
        }
        match &self.end {
            None => Some((Truncated::Time, "it had not ended when the recording did".to_owned())),
            Some(End::Failed(reason)) => Some((Truncated::Disconnect, reason.clone())),
            Some(End::Finished) => self.sent(hop).filter(|sent| *sent > got).map(passed_on),
        }
    }

    /// Bytes of the body that the server sent, if they are known. The browser reports what a page reads;
    /// what `Response.blob()` of a script reads goes past it, and is reported as delivered alone.
    fn sent(&self, hop: &Hop) -> Option<u64> {
        let is_from_worker =
            hop.response.as_ref().is_some_and(|response| response.from_service_worker);
        if self.body.got > 0 {
            return hop.length().filter(|_| !is_from_worker);
        }
        // A coded body may be empty: no bytes are reported as delivered then. Nothing is delivered of
        // what comes from the cache.
        let is_certain = self.body.delivered > 0 || hop.is_cached;
        let announced = if is_certain { hop.announced() } else { hop.length() };
        announced.or(Some(self.body.delivered))
    }
}

impl Hop {
    /// The headers as sent and received, if they are known.
    fn extra(
        &self,
        sent: &mut VecDeque<Headers>,
        received: &mut VecDeque<Headers>,
    ) -> (Option<Headers>, Option<Headers>) {
        if self.has_extra { (sent.pop_front(), received.pop_front()) } else { (None, None) }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.response.as_ref()?.headers.get(name)
    }

    /// Bytes of the body as it was sent, if the server said that.
    fn announced(&self) -> Option<u64> {
        self.header("content-length")?.trim().parse().ok()
    }

    /// Bytes of the body as the page reads it, if the server said that.
    fn length(&self) -> Option<u64> {
        let is_coded = self.header("content-encoding").is_some();
        self.announced().filter(|_| !is_coded)
    }

    fn may_have_body(&self) -> bool {
        let status = self.response.as_ref().map_or(0, |response| response.status);
        self.method != "HEAD" && !matches!(status, 100..=199 | 204 | 205 | 304)
    }

    /// Why the request is not kept.
    fn reason_against(&self, flight: &Flight) -> Option<String> {
        match (&self.response, &flight.end) {
            (Some(_), _) => None,
            (None, Some(End::Failed(reason))) => Some(reason.clone()),
            (None, Some(End::Finished)) => Some("no response was reported".to_owned()),
            (None, None) => Some("it had no response when the recording ended".to_owned()),
        }
    }

    fn row(&self) -> Row {
        let response = self.response.as_ref();
        Row {
            url: self.url.clone(),
            method: self.method.clone(),
            status: response.map(|response| response.status),
            kind: self.kind.clone(),
            mime: response.map(|response| response.mime_type.clone()).unwrap_or_default(),
            bytes: 0,
            reason: None,
        }
    }

    fn exchange(
        self,
        (sent, received): (Option<Headers>, Option<Headers>),
        is_redacted: bool,
        truncated: Option<Truncated>,
    ) -> (Exchange, Row) {
        let row = self.row();
        let response = self.response.unwrap_or_default();
        let protocols = protocols(&response);
        let headers = |headers: Headers| {
            let mut pairs = headers.0;
            // Names with a colon are pseudo-headers of HTTP/2.
            pairs.retain(|(name, _)| !(name.starts_with(':') || is_redacted && is_secret(name)));
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
            response: headers(received.unwrap_or(response.headers)),
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

/// Whether a header is a secret, in any case of its name.
pub fn is_secret(name: &str) -> bool {
    SECRETS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
}

fn without_fragment(url: &str) -> String {
    let (start, _) = url.split_once('#').unwrap_or((url, ""));
    start.to_owned()
}

/// Responses that stop. Those of chromium's own pages, such as the viewer of PDFs, do not.
fn stopped(stops_all: bool) -> Value {
    let pattern = |scheme: &str, kind: &str| json!({"urlPattern": format!("{scheme}://*"), "resourceType": kind, "requestStage": "Response"});
    let all =
        |scheme: &str| json!({"urlPattern": format!("{scheme}://*"), "requestStage": "Response"});
    let patterns: Vec<Value> = ["http", "https"]
        .iter()
        .flat_map(|scheme| {
            if stops_all {
                vec![all(scheme)]
            } else {
                vec![pattern(scheme, "Document"), pattern(scheme, "Other")]
            }
        })
        .collect();
    json!({"patterns": patterns})
}

/// Parameters of `Target.setAutoAttach` for frames and workers, which wait until they are recorded.
fn auto_attach() -> Value {
    json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
}
