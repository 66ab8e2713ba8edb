use super::calls::Step;
use super::requests::Requests;
use super::rules::Rules;
use crate::chromium::cdp::Message;
use crate::page::secrets::LeftOut;
use crate::visit::recording::Row;
use archivist_warc::exchange::{Exchange, Truncated};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const URL: &str = "http://a.test/x";

/// A recorder, the calls that it has made, and what it has kept.
struct Bed {
    requests: Requests,
    calls: Vec<(u64, String, &'static str, Value)>,
    bodies: BTreeMap<String, Vec<u8>>,
    kept: Vec<(Exchange, Vec<u8>, Row)>,
    named: Vec<Row>,
}

impl Bed {
    fn new(rules: Rules) -> Bed {
        let mut bed = Bed {
            requests: Requests::new(rules, "ROOT", "OWN", 0),
            calls: Vec::new(),
            bodies: BTreeMap::new(),
            kept: Vec::new(),
            named: Vec::new(),
        };
        let steps = bed.requests.attach("PAGE", "T", "page");
        bed.carry_out(steps);
        bed
    }

    fn carry_out(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Send(call) => {
                    let session = call.session.unwrap();
                    self.calls.push((call.id, session, call.method, call.params));
                }
                Step::Append { request, bytes } => {
                    self.bodies.entry(request).or_default().extend(bytes);
                }
                Step::Join { from, to } => {
                    let rest = self.bodies.remove(&from).unwrap();
                    self.bodies.entry(to).or_default().extend(rest);
                }
                Step::Clear { request } => drop(self.bodies.remove(&request)),
                Step::Keep { body, exchange, row } => {
                    let body = body.and_then(|request| self.bodies.remove(&request));
                    self.kept.push((*exchange, body.unwrap_or_default(), row));
                }
                Step::Name(row) => self.named.push(row),
            }
        }
    }

    fn message(&mut self, message: &Value) {
        let text = message.to_string();
        let steps = self.requests.take(&Message::parse(text.as_bytes()).unwrap());
        self.carry_out(steps);
    }

    fn event(&mut self, method: &str, params: Value) {
        self.message(&json!({"method": method, "sessionId": "PAGE", "params": params}));
    }

    /// Answers the last call of this method.
    fn answer(&mut self, method: &str, result: Value) {
        let call = self.calls.iter().rev().find(|call| call.2 == method);
        let id = call.unwrap_or_else(|| panic!("{method} was not called")).0;
        self.message(&json!({"id": id, "result": result}));
    }

    fn refuse(&mut self, method: &str, reason: &str) {
        let call = self.calls.iter().rev().find(|call| call.2 == method);
        let id = call.unwrap_or_else(|| panic!("{method} was not called")).0;
        self.message(&json!({"id": id, "error": {"message": reason}}));
    }

    fn count(&self, method: &str) -> usize {
        self.calls.iter().filter(|call| call.2 == method).count()
    }

    fn sent(&mut self, id: &str, kind: &str) {
        self.event("Network.requestWillBeSent", will_be_sent(id, URL, kind));
    }

    fn received(&mut self, id: &str, response: Value) {
        let event = json!({"requestId": id, "response": response, "hasExtraInfo": false});
        self.event("Network.responseReceived", event);
    }

    fn data(&mut self, id: &str, length: usize, data: Option<&[u8]>) {
        let data = data.map(|data| STANDARD.encode(data));
        let event = json!({"requestId": id, "dataLength": length, "data": data});
        self.event("Network.dataReceived", event);
    }

    fn finished(&mut self, id: &str) {
        self.event("Network.loadingFinished", json!({"requestId": id}));
    }

    fn finish(&mut self) {
        let steps = self.requests.finish();
        self.carry_out(steps);
    }
}

fn rules() -> Rules {
    Rules {
        identity: None,
        numbers: None,
        body_max: 1000,
        left_out: LeftOut::NONE,
        masks: Arc::default(),
        completes_media: true,
    }
}

fn will_be_sent(id: &str, url: &str, kind: &str) -> Value {
    json!({"requestId": id, "type": kind, "wallTime": 1.5,
        "request": {"url": url, "method": "GET", "headers": {"A": "provisional"}}})
}

fn ok() -> Value {
    json!({"status": 200, "statusText": "OK", "mimeType": "text/plain", "headers": {"B": "b"}})
}

/// The browser asks for what its cache lacks, and passes on both.
#[test]
fn range_of_a_body_from_cache_and_network_is_that_of_the_body() {
    let mut bed = Bed::new(rules());
    bed.sent("1", "Fetch");
    bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
    let head = |range: &str| json!({"Content-Range": format!("bytes {range}/10"), "X-Own": "1"});
    let asked = json!({"requestId": "1", "headers": {"Range": "bytes=4-5"}});
    bed.event("Network.requestWillBeSentExtraInfo", asked);
    let received = json!({"requestId": "1", "headers": head("4-5")});
    bed.event("Network.responseReceivedExtraInfo", received);
    let response = json!({"status": 206, "headers": head("0-5")});
    let received = json!({"requestId": "1", "response": response, "hasExtraInfo": true});
    bed.event("Network.responseReceived", received);
    bed.data("1", 6, Some(b"012345"));
    bed.finished("1");
    let (exchange, body, _) = &bed.kept[0];
    assert_eq!(body, b"012345");
    let response: BTreeMap<_, _> = exchange.response.iter().cloned().collect();
    assert_eq!((&*response["Content-Range"], &*response["X-Own"]), ("bytes 0-5/10", "1"));
}

/// A medium of ten bytes of which the page has read four, and then what it fetches.
fn fetched_medium(bed: &mut Bed, is_open: bool, sent: &str) {
    let part = |range: &str| {
        json!({"status": 206, "mimeType": "audio/wav",
            "headers": {"Content-Range": format!("bytes {range}/10")}})
    };
    bed.sent("1", "Media");
    bed.received("1", part("0-9"));
    bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
    bed.data("1", 4, Some(b"0123"));
    if !is_open {
        bed.event("Network.loadingFailed", json!({"requestId": "1", "errorText": "cut"}));
        bed.refuse("Network.getResponseBody", "no data found");
    }
    assert!(bed.kept.is_empty());
    let steps = bed.requests.complete();
    bed.carry_out(steps);
    bed.answer("Page.createIsolatedWorld", json!({"executionContextId": 3}));
    let script = bed.calls.last().unwrap().3["expression"].to_string();
    assert!(script.contains("bytes=4-9"), "{script}");
    // An element that is still open reads on.
    if is_open {
        bed.data("1", 2, Some(b"45"));
    }
    let mut own = will_be_sent("2", URL, "Fetch");
    own["request"]["headers"] = json!({"range": "bytes=4-9"});
    bed.event("Network.requestWillBeSent", own);
    bed.received("2", part(sent));
    bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
    bed.data("2", 6, Some(b"456789"));
    assert!(bed.requests.is_completing());
    bed.finished("2");
    assert!(!bed.requests.is_completing());
    assert_eq!(bed.kept.len(), 1);
}

#[test]
fn what_the_page_has_not_read_of_a_medium_is_fetched() {
    for is_open in [false, true] {
        let mut bed = Bed::new(rules());
        fetched_medium(&mut bed, is_open, "4-9");
        let (exchange, body, row) = &bed.kept[0];
        assert_eq!((body.as_slice(), exchange.truncated), (&b"0123456789"[..], None));
        assert_eq!(row.reason, None);
    }
}

#[test]
fn a_medium_stays_as_it_was_played_if_its_rest_is_another() {
    let mut bed = Bed::new(rules());
    fetched_medium(&mut bed, false, "0-5");
    let (exchange, body, row) = &bed.kept[0];
    assert_eq!(body, b"0123");
    assert_eq!(exchange.truncated, Some(Truncated::Disconnect));
    assert_eq!(row.reason.as_deref(), Some("cut"));
    // As it was played, or too large: it does not wait.
    for rules in [Rules { completes_media: false, ..rules() }, Rules { body_max: 9, ..rules() }] {
        let mut bed = Bed::new(rules);
        bed.sent("1", "Media");
        let headers = json!({"Content-Range": "bytes 0-9/10"});
        bed.received("1", json!({"status": 206, "mimeType": "audio/wav", "headers": headers}));
        bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
        bed.data("1", 4, Some(b"0123"));
        bed.event("Network.loadingFailed", json!({"requestId": "1", "errorText": "cut"}));
        bed.refuse("Network.getResponseBody", "no data found");
        assert_eq!(bed.kept.len(), 1);
    }
}

#[test]
fn a_streamed_body_begins_with_what_was_buffered() {
    let mut bed = Bed::new(rules());
    bed.sent("1", "Image");
    bed.received("1", ok());
    bed.data("1", 2, None);
    let buffered = json!({"bufferedData": STANDARD.encode("ab")});
    bed.answer("Network.streamResourceContent", buffered);
    bed.data("1", 2, Some(b"cd"));
    bed.finished("1");
    let (exchange, body, row) = &bed.kept[0];
    assert_eq!((body.as_slice(), exchange.truncated), (&b"abcd"[..], None));
    assert_eq!((row.status, row.reason.as_ref()), (Some(200), None));
    assert_eq!(exchange.time.as_millisecond(), 1500);
    assert_eq!(bed.count("Network.getResponseBody"), 0);
}

#[test]
fn what_the_cache_answers_is_listed_once() {
    let mut bed = Bed::new(rules());
    bed.sent("1", "Image");
    bed.received("1", ok());
    bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
    bed.data("1", 2, Some(b"ab"));
    bed.finished("1");
    bed.sent("2", "Other");
    bed.event("Network.requestServedFromCache", json!({"requestId": "2"}));
    bed.received("2", ok());
    bed.finished("2");
    bed.finish();
    let bodies: Vec<_> = bed.kept.iter().map(|kept| kept.1.as_slice()).collect();
    assert_eq!(bodies, [b"ab"]);
    assert!(bed.named.is_empty() && bed.bodies.is_empty());
}

#[test]
fn what_a_stream_lacks_is_asked_for_at_the_end() {
    for (whole, truncated) in [("abcd", None), ("abc", Some(Truncated::Unspecified))] {
        let mut bed = Bed::new(rules());
        bed.sent("1", "Image");
        bed.received("1", ok());
        bed.data("1", 2, None);
        bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
        bed.data("1", 2, Some(b"cd"));
        bed.finished("1");
        assert!(bed.kept.is_empty() && !bed.requests.is_idle());
        let whole = json!({"body": whole, "base64Encoded": false});
        bed.answer("Network.getResponseBody", whole);
        bed.finish();
        let (exchange, body, row) = &bed.kept[0];
        assert_eq!(exchange.truncated, truncated);
        match truncated {
            None => assert_eq!(body, b"abcd"),
            Some(_) => {
                assert_eq!(body, b"cd");
                let reason = row.reason.as_deref().unwrap();
                assert_eq!(reason, "the browser passed on 2 of 4 bytes");
            }
        }
    }
}

/// What `Response.blob()` reads: the browser reports that bytes were delivered, but not that the page got
/// them, and answers with an empty body.
#[test]
fn a_body_of_which_the_browser_passes_on_nothing_is_named() {
    let reason = |method: &str, response: Value, delivered: usize| {
        let mut bed = Bed::new(rules());
        let mut sent = will_be_sent("1", URL, "Fetch");
        sent["request"]["method"] = method.into();
        bed.event("Network.requestWillBeSent", sent);
        bed.received("1", response);
        bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
        if delivered > 0 {
            let data = json!({"requestId": "1", "dataLength": 0, "encodedDataLength": delivered});
            bed.event("Network.dataReceived", data);
        }
        bed.finished("1");
        if bed.kept.is_empty() {
            let empty = json!({"body": "", "base64Encoded": true});
            bed.answer("Network.getResponseBody", empty);
        }
        bed.finish();
        let (exchange, body, row) = bed.kept.remove(0);
        assert_eq!(body, b"");
        assert_eq!(exchange.truncated.is_some(), row.reason.is_some());
        row.reason.unwrap_or_default()
    };
    let of = |status: u16, headers: Value| json!({"status": status, "headers": headers, "remoteIPAddress": "192.0.2.1"});
    let announced = |length: u32| json!({"Content-Length": length.to_string()});
    let coded =
        |length: u32| json!({"Content-Length": length.to_string(), "Content-Encoding": "gzip"});
    let passed_on = |length: u32| format!("the browser passed on 0 of {length} bytes");
    // As long as announced, coded, of unknown length, and a range.
    assert_eq!(reason("GET", of(200, announced(64)), 64), passed_on(64));
    assert_eq!(reason("GET", of(200, coded(31)), 31), passed_on(31));
    assert_eq!(reason("GET", of(200, json!({})), 77), passed_on(77));
    assert_eq!(reason("GET", of(206, announced(64)), 64), passed_on(64));
    assert_eq!(reason("GET", of(200, announced(64)), 0), passed_on(64));
    let mut cached = of(200, coded(31));
    cached["fromDiskCache"] = true.into();
    assert_eq!(reason("GET", cached, 0), passed_on(31));
    // Bodies that are empty: 20 bytes are an empty text in gzip, of which nothing is delivered.
    for (method, response) in [
        ("GET", of(200, announced(0))),
        ("GET", of(200, json!({}))),
        ("GET", of(200, coded(20))),
        ("HEAD", of(200, announced(64))),
        ("GET", of(204, json!({}))),
        ("GET", of(304, announced(64))),
    ] {
        assert_eq!(reason(method, response.clone(), 0), "", "{method} {response}");
    }
}

/// A large blob, of which the browser holds nothing.
#[test]
fn a_body_that_the_browser_does_not_hold_is_requested_again() {
    for (again, is_whole) in [("v1", true), ("v2", false)] {
        let mut bed = Bed::new(rules());
        let answer =
            |tag: &str| json!({"status": 200, "headers": {"content-length": "4", "etag": tag}});
        bed.sent("1", "Fetch");
        bed.received("1", answer("v1"));
        bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
        let data = json!({"requestId": "1", "dataLength": 0, "encodedDataLength": 4});
        bed.event("Network.dataReceived", data);
        bed.finished("1");
        bed.answer("Network.getResponseBody", json!({"body": "", "base64Encoded": false}));
        assert!(bed.kept.is_empty() && bed.requests.is_idle());
        let steps = bed.requests.complete();
        bed.carry_out(steps);
        bed.answer("Page.createIsolatedWorld", json!({"executionContextId": 3}));
        assert!(bed.requests.is_completing());
        bed.sent("2", "Fetch");
        bed.received("2", answer(again));
        bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
        bed.data("2", 4, Some(b"abcd"));
        bed.finished("2");
        assert!(!bed.requests.is_completing());
        let [(_, body, row)] = bed.kept.as_slice() else { panic!("{}", bed.kept.len()) };
        assert_eq!(body.as_slice(), if is_whole { &b"abcd"[..] } else { b"" });
        assert_eq!((row.reason.is_none(), row.is_repeated), (is_whole, is_whole));
    }
}

#[test]
fn a_body_that_is_shorter_than_announced_is_named() {
    let reason = |response: Value| {
        let mut bed = Bed::new(rules());
        bed.sent("1", "Fetch");
        bed.received("1", response);
        bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
        bed.data("1", 4, Some(b"abcd"));
        bed.finished("1");
        if bed.kept.is_empty() {
            let short = json!({"body": STANDARD.encode("abcd"), "base64Encoded": true});
            bed.answer("Network.getResponseBody", short);
        }
        bed.finish();
        let (_, body, row) = bed.kept.remove(0);
        assert_eq!(body, b"abcd");
        row.reason
    };
    let headers = json!({"content-length": "5"});
    let response = json!({"status": 200, "headers": headers});
    let named = reason(response.clone());
    assert_eq!(named.unwrap(), "the browser passed on 4 of 5 bytes");
    // A worker may answer with headers of another body, and a coded body has another length.
    let mut by_worker = response.clone();
    by_worker["fromServiceWorker"] = true.into();
    assert_eq!(reason(by_worker), None);
    let mut coded = response;
    coded["headers"]["content-encoding"] = "br".into();
    assert_eq!(reason(coded), None);
}

/// A page that read the first bytes, and refused the rest.
#[test]
fn what_the_network_delivered_is_recorded_if_the_page_does_not_read_it() {
    for (whole, named) in [("abcd", None), ("abc", Some("net::ERR_ABORTED"))] {
        let mut bed = Bed::new(rules());
        bed.sent("1", "Fetch");
        bed.received("1", json!({"status": 200, "headers": {"content-length": "4"}}));
        bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
        bed.data("1", 2, Some(b"ab"));
        let failed = json!({"requestId": "1", "errorText": "net::ERR_ABORTED"});
        bed.event("Network.loadingFailed", failed);
        let whole = whole.as_bytes();
        let answer = json!({"body": STANDARD.encode(whole), "base64Encoded": true});
        bed.answer("Network.getResponseBody", answer);
        let (_, body, row) = &bed.kept[0];
        assert_eq!((body.as_slice(), row.reason.as_deref()), (whole, named));
    }
}

/// The page of chromium's viewer stands for a PDF that a page shows.
#[test]
fn what_no_server_sent_is_not_recorded() {
    let mut bed = Bed::new(rules());
    bed.sent("1", "Document");
    let viewer =
        json!({"status": 200, "headers": {}, "mimeType": "text/html", "remoteIPAddress": ""});
    bed.received("1", viewer);
    bed.data("1", 2, None);
    bed.finished("1");
    bed.finish();
    assert!(bed.kept.is_empty() && bed.named.is_empty() && bed.bodies.is_empty());
}

#[test]
fn text_has_the_bytes_that_the_server_sent() {
    let whole = |charset: &str, length: usize, text: &str| {
        let mut bed = Bed::new(rules());
        bed.sent("1", "Fetch");
        let mut response = ok();
        response["charset"] = charset.into();
        bed.received("1", response);
        bed.refuse("Network.streamResourceContent", "already finished");
        bed.data("1", length, None);
        bed.refuse("Network.streamResourceContent", "already finished");
        bed.finished("1");
        let whole = json!({"body": text, "base64Encoded": false});
        bed.answer("Network.getResponseBody", whole);
        bed.finish();
        let (exchange, body, _) = bed.kept.remove(0);
        exchange.truncated.is_none().then_some(body)
    };
    assert_eq!(whole("utf-8", 2, "é").unwrap(), "é".as_bytes());
    assert_eq!(whole("", 1, "é").unwrap(), b"\xe9");
    assert_eq!(whole("", 2, "Ã©").unwrap(), "é".as_bytes());
    assert_eq!(whole("shift_jis", 2, "日").unwrap(), b"\x93\xfa");
    assert_eq!(whole("utf-8", 4, "x").unwrap(), b"\xef\xbb\xbfx");
    // A byte that is no text.
    assert_eq!(whole("utf-8", 1, "\u{fffd}"), None);
}

#[test]
fn redirects_have_their_own_headers_whenever_these_come() {
    let mut bed = Bed::new(rules());
    let extra = |name: &str| json!({"requestId": "1", "headers": {"N": name}});
    bed.event("Network.requestWillBeSentExtraInfo", extra("sent 1"));
    bed.sent("1", "Document");
    let mut second = will_be_sent("1", "http://a.test/y#part", "Document");
    second["redirectResponse"] = json!({"status": 302, "headers": {"N": "provisional"}});
    second["redirectHasExtraInfo"] = true.into();
    bed.event("Network.requestWillBeSent", second);
    assert!(bed.kept.is_empty());
    bed.event("Network.responseReceivedExtraInfo", extra("received 1"));
    let headers = |name: &str| vec![("N".to_owned(), name.to_owned())];
    assert_eq!(bed.kept[0].0.status, 302);
    assert_eq!(bed.kept[0].0.request, headers("sent 1"));
    assert_eq!(bed.kept[0].0.response, headers("received 1"));
    let mut response = ok();
    response["headers"] = json!({"content-length": "0"});
    let response = json!({"requestId": "1", "response": response, "hasExtraInfo": true});
    bed.event("Network.responseReceived", response);
    bed.finished("1");
    bed.refuse("Network.streamResourceContent", "does not exist");
    bed.event("Network.requestWillBeSentExtraInfo", extra("sent 2"));
    assert_eq!(bed.kept.len(), 1);
    bed.event("Network.responseReceivedExtraInfo", extra("received 2"));
    let exchange = &bed.kept[1].0;
    assert_eq!(exchange.url, "http://a.test/y");
    assert_eq!(exchange.request, headers("sent 2"));
    assert_eq!(exchange.response, headers("received 2"));
}

#[test]
fn stopped_responses_are_read_if_they_end_soon_and_go_on_in_any_case() {
    let stopped = |kind: &str, status: u16, media: &str, length: Option<u64>| {
        let mut bed = Bed::new(rules());
        bed.sent("1", kind);
        let mut headers = vec![json!({"name": "Content-Type", "value": media})];
        headers.extend(
            length.map(|length| json!({"name": "content-length", "value": length.to_string()})),
        );
        let paused = json!({"requestId": "STOP", "networkId": "1", "resourceType": kind,
            "responseStatusCode": status, "responseHeaders": headers});
        bed.event("Fetch.requestPaused", paused);
        bed
    };
    let is_read = |kind: &str, status, media: &str, length| {
        let bed = stopped(kind, status, media, length);
        assert_eq!(bed.count("Fetch.getResponseBody") + bed.count("Fetch.continueRequest"), 1);
        bed.count("Fetch.getResponseBody") == 1
    };
    assert!(is_read("Document", 200, "text/html", Some(1000)));
    assert!(!is_read("Document", 200, "text/html", Some(1_000_000)));
    assert!(!is_read("Document", 200, "text/html", None));
    assert!(!is_read("Document", 302, "text/html", Some(10)));
    assert!(is_read("Document", 200, "application/zip", Some(1_000_000)));
    assert!(!is_read("Document", 200, "application/zip", Some(17 << 20)));
    assert!(is_read("Other", 200, "image/png", Some(1_000_000)));

    let mut bed = stopped("Other", 200, "image/png", Some(2));
    bed.answer("Fetch.getResponseBody", json!({"body": "YWI=", "base64Encoded": true}));
    assert_eq!(bed.count("Fetch.continueRequest"), 1);
    bed.received("1", ok());
    // The page gets what was read here before.
    bed.data("1", 2, Some(b"ab"));
    bed.answer("Network.streamResourceContent", json!({"bufferedData": "YWI="}));
    bed.finished("1");
    assert_eq!(bed.kept[0].1, b"ab");
    let mut bed = stopped("Other", 200, "image/png", Some(2));
    bed.refuse("Fetch.getResponseBody", "gone");
    assert_eq!(bed.count("Fetch.continueRequest"), 1);
}

#[test]
fn a_browser_that_cannot_stream_stops_all_responses() {
    let mut bed = Bed::new(rules());
    bed.sent("1", "Image");
    let before = bed.count("Fetch.enable");
    assert!(!bed.requests.stops_all());
    bed.refuse("Network.streamResourceContent", "'Network.streamResourceContent' wasn't found");
    assert_eq!(bed.count("Fetch.enable"), before + 1);
    assert!(bed.requests.stops_all());
    let patterns = &bed.calls.last().unwrap().3["patterns"];
    assert!(patterns[0]["resourceType"].is_null());
    bed.sent("2", "Image");
    assert_eq!(bed.count("Network.streamResourceContent"), 1);
}

#[test]
fn bodies_are_cut_off_at_their_limit() {
    let mut bed = Bed::new(rules());
    bed.sent("1", "Fetch");
    bed.received("1", ok());
    bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
    for _ in 0..3 {
        bed.data("1", 600, Some(&[b'x'; 600]));
    }
    bed.finished("1");
    let (exchange, body, row) = &bed.kept[0];
    assert_eq!((body.len(), exchange.truncated), (1000, Some(Truncated::Length)));
    assert!(row.reason.as_deref().unwrap().starts_with("cut off"), "{row:?}");
    assert_eq!(bed.count("Network.getResponseBody"), 0);
}

#[test]
fn secrets_are_left_out_on_request() {
    for (left_out, left) in [(LeftOut::NONE, (3, 3)), (LeftOut::ALL, (1, 2))] {
        let mut bed = Bed::new(Rules { left_out, ..rules() });
        let mut sent = will_be_sent("1", URL, "Fetch");
        sent["request"]["headers"] = json!({"Cookie": "a=1", "authorization": "Basic x", "A": "a"});
        bed.event("Network.requestWillBeSent", sent);
        let mut response = ok();
        response["headers"] = json!({"Set-Cookie": "a=1; HttpOnly\nb=2", "content-length": "0"});
        bed.received("1", response);
        bed.refuse("Network.streamResourceContent", "already finished");
        bed.finished("1");
        let exchange = &bed.kept[0].0;
        let counts = (exchange.request.len(), exchange.response.len());
        assert_eq!(counts, left);
    }
}

#[test]
fn what_is_open_at_the_end_is_cut_off_or_named() {
    let mut bed = Bed::new(rules());
    bed.sent("1", "EventSource");
    bed.received("1", ok());
    bed.answer("Network.streamResourceContent", json!({"bufferedData": ""}));
    bed.data("1", 1, Some(b"d"));
    bed.sent("2", "Fetch");
    bed.sent("3", "Fetch");
    let failed = json!({"requestId": "3", "errorText": "net::ERR_X"});
    bed.event("Network.loadingFailed", failed);
    let socket = json!({"requestId": "4", "url": "ws://a.test/"});
    bed.event("Network.webSocketCreated", socket);
    bed.sent("5", "Fetch");
    let data = will_be_sent("6", "data:text/plain,x", "Image");
    bed.event("Network.requestWillBeSent", data);
    bed.refuse("Network.streamResourceContent", "does not exist");
    bed.finish();
    assert_eq!(bed.kept.len(), 1);
    assert_eq!(bed.kept[0].0.truncated, Some(Truncated::Time));
    assert_eq!(bed.kept[0].1, b"d");
    let mut reasons: Vec<_> = bed.named.iter().map(|row| row.reason.clone().unwrap()).collect();
    reasons.sort();
    let open = "it had no response when the recording ended";
    let socket = "messages of a WebSocket are not recorded";
    assert_eq!(reasons, [open, open, socket, "net::ERR_X"][..]);
}

#[test]
fn posted_files_are_asked_for() {
    let mut bed = Bed::new(rules());
    let mut sent = will_be_sent("1", URL, "Fetch");
    sent["request"]["hasPostData"] = true.into();
    sent["request"]["postDataEntries"] = json!([{"bytes": "YWI="}, {"bytes": "Y2Q="}]);
    bed.event("Network.requestWillBeSent", sent.clone());
    assert_eq!(bed.count("Network.getRequestPostData"), 0);
    sent["requestId"] = "2".into();
    sent["request"]["postDataEntries"] = json!([{"bytes": "YWI="}, {}]);
    bed.event("Network.requestWillBeSent", sent);
    bed.answer("Network.getRequestPostData", json!({"postData": "form"}));
    for id in ["1", "2"] {
        bed.received(id, ok());
    }
    bed.finish();
    let posted: Vec<_> = bed.kept.iter().map(|kept| kept.0.posted.clone().unwrap()).collect();
    assert_eq!(posted, [b"abcd".to_vec(), b"form".to_vec()]);
}

#[test]
fn workers_of_other_pages_run_without_a_recording() {
    let mut bed = Bed::new(rules());
    let shared = |session: &str, context: &str| {
        let target =
            json!({"targetId": session, "type": "shared_worker", "browserContextId": context});
        json!({"method": "Target.attachedToTarget", "sessionId": "ROOT",
            "params": {"sessionId": session, "targetInfo": target}})
    };
    bed.message(&shared("W1", "OTHER"));
    bed.answer("Runtime.getIsolateId", json!({"id": "x"}));
    assert_eq!(bed.count("Target.detachFromTarget"), 0);
    bed.answer("Runtime.runIfWaitingForDebugger", json!({}));
    let (_, session, method, params) = bed.calls.last().unwrap();
    assert_eq!((session.as_str(), *method), ("ROOT", "Target.detachFromTarget"));
    assert_eq!(params["sessionId"], "W1");
    let of = |bed: &Bed, session: &str| -> Vec<_> {
        let calls = bed.calls.iter().filter(|call| call.1 == session);
        calls.map(|call| call.2).collect()
    };
    bed.message(&shared("W2", "OWN"));
    let calls = of(&bed, "W2");
    assert_eq!(calls.first(), Some(&"Network.enable"));
    assert_eq!(calls.last(), Some(&"Runtime.runIfWaitingForDebugger"));
    // A target that another session has reported must run, too.
    bed.message(&json!({"method": "Target.attachedToTarget", "sessionId": "PAGE",
        "params": {"sessionId": "W3", "targetInfo": {"targetId": "W2", "type": "shared_worker"}}}));
    assert_eq!(of(&bed, "W3"), ["Runtime.runIfWaitingForDebugger"]);
}

proptest::proptest! {
    /// Whatever the order of messages, each request is kept or named once, and no response stays
    /// stopped.
    #[test]
    fn each_request_ends_once(moves in proptest::collection::vec((0u8..10, 0usize..4), 0..80)) {
        let mut bed = Bed::new(rules());
        let mut hops: BTreeMap<String, usize> = BTreeMap::new();
        let mut stops = BTreeSet::new();
        let mut ended = BTreeSet::new();
        for (step, (kind, which)) in moves.into_iter().enumerate() {
            let id = which.to_string();
            match kind {
                0 if !hops.contains_key(&id) => {
                    hops.insert(id.clone(), 1);
                    bed.sent(&id, "Fetch");
                }
                // Another session reports it.
                0 => bed.sent(&id, "Fetch"),
                1 if hops.contains_key(&id) && !ended.contains(&id) => {
                    *hops.entry(id.clone()).or_default() += 1;
                    let mut sent = will_be_sent(&id, URL, "Fetch");
                    sent["redirectResponse"] = json!({"status": 302});
                    sent["redirectHasExtraInfo"] = (step % 2 == 0).into();
                    bed.event("Network.requestWillBeSent", sent);
                }
                2 => {
                    let event = json!({"requestId": id, "response": ok(), "hasExtraInfo": step % 2 == 0});
                    bed.event("Network.responseReceived", event);
                }
                3 => bed.data(&id, 2, (step % 2 == 0).then_some(b"ab")),
                4 if hops.contains_key(&id) => {
                    ended.insert(id.clone());
                    bed.finished(&id);
                }
                5 if hops.contains_key(&id) => {
                    ended.insert(id.clone());
                    bed.event("Network.loadingFailed", json!({"requestId": id, "errorText": "x"}));
                }
                6 => {
                    let stop = format!("STOP {step}");
                    bed.event("Fetch.requestPaused", json!({"requestId": stop, "networkId": id,
                        "resourceType": "Other", "responseStatusCode": 200,
                        "responseHeaders": [{"name": "content-length", "value": "2"}]}));
                    stops.insert(stop);
                }
                7 => bed.event("Network.responseReceivedExtraInfo", json!({"requestId": id, "headers": {}})),
                8 => bed.event("Network.requestWillBeSentExtraInfo", json!({"requestId": id, "headers": {}})),
                _ => {
                    let Some(call) = bed.calls.get(step % bed.calls.len()).map(|call| call.0) else { continue };
                    let result = json!({"bufferedData": "YWI=", "body": "ab", "base64Encoded": false});
                    bed.message(&json!({"id": call, "result": result}));
                }
            }
        }
        for call in bed.calls.iter().map(|call| call.0).collect::<Vec<_>>() {
            bed.message(&json!({"id": call, "error": {"message": "late"}}));
        }
        bed.finish();
        proptest::prop_assert_eq!(bed.kept.len() + bed.named.len(), hops.values().sum::<usize>());
        proptest::prop_assert!(bed.bodies.is_empty());
        let continued = bed.calls.iter().filter(|call| call.2 == "Fetch.continueRequest");
        let continued: BTreeSet<_> = continued.map(|call| call.3["requestId"].as_str().unwrap().to_owned()).collect();
        proptest::prop_assert_eq!(continued, stops);
    }
}
