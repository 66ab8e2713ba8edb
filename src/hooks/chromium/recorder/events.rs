//! Events of the DevTools protocol that a recording is made of, with the fields that it needs.

use crate::chromium::cdp::posted::PostedPart;
use crate::page::content_type;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, WINDOWS_1252};
use jiff::Timestamp;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;

/// Names and values of headers in their order. Chromium puts the values of a repeated header into one
/// text, separated by line feeds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// Value of the first header of this name, in any case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut own = self.0.iter();
        let (_, value) = own.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(value)
    }

    /// Replaces the value of a header, or adds the header.
    pub fn set(&mut self, name: &str, value: &str) {
        match self.0.iter_mut().find(|(own, _)| own.eq_ignore_ascii_case(name)) {
            Some((_, own)) => value.clone_into(own),
            None => self.0.push((name.to_owned(), value.to_owned())),
        }
    }

    /// Parses the head of a response of HTTP/1.
    fn parse(text: &str) -> Headers {
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.trim().to_owned()))
        };
        Headers(text.lines().skip(1).filter_map(header).collect())
    }
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Headers, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Headers;

            fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
                to.write_str("headers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
                let mut pairs = Vec::new();
                while let Some((name, values)) = map.next_entry::<String, String>()? {
                    let values = values.split('\n');
                    pairs.extend(values.map(|value| (name.clone(), value.to_owned())));
                }
                Ok(Headers(pairs))
            }
        }
        from.deserialize_map(Pairs)
    }
}

/// `Target.attachedToTarget`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attached {
    pub session_id: String,
    pub target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetInfo {
    pub target_id: String,
    pub r#type: String,
    #[serde(default)]
    pub url: String,
    #[serde(default)]
    pub browser_context_id: String,
}

/// `Target.detachedFromTarget`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Detached {
    pub session_id: String,
}

/// `Network.requestWillBeSent`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WillBeSent {
    pub request_id: String,
    pub request: Request,
    /// Seconds since 1970.
    pub wall_time: f64,
    pub redirect_response: Option<Response>,
    #[serde(default)]
    pub redirect_has_extra_info: bool,
    #[serde(default)]
    pub r#type: String,
}

impl WillBeSent {
    pub fn time_of(wall_time: f64) -> Timestamp {
        Timestamp::from_microsecond((wall_time * 1e6) as i64).unwrap_or_default()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    pub url: String,
    pub method: String,
    #[serde(default)]
    pub headers: Headers,
    #[serde(default)]
    pub has_post_data: bool,
    #[serde(default)]
    pub post_data_entries: Vec<PostedPart>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Response {
    pub status: u16,
    pub status_text: String,
    pub headers: Headers,
    pub mime_type: String,
    /// Encoding in which the browser reads it.
    pub charset: String,
    pub protocol: Option<String>,
    #[serde(rename = "remoteIPAddress")]
    pub remote_ip_address: Option<String>,
    pub security_details: Option<SecurityDetails>,
    pub from_disk_cache: bool,
    /// Whether a worker made it, maybe with the headers of another response.
    pub from_service_worker: bool,
}

impl Response {
    /// Whether a server or a worker sent it. Chromium itself answers with its viewer of PDFs for the address
    /// of a PDF that is shown in a page.
    pub fn is_sent(&self) -> bool {
        let is_from_server = self.remote_ip_address.as_deref().is_some_and(|it| !it.is_empty());
        is_from_server || self.from_service_worker || !self.headers.0.is_empty()
    }
}

#[derive(Debug, Deserialize)]
pub struct SecurityDetails {
    pub protocol: String,
}

/// `Network.responseReceived`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Received {
    pub request_id: String,
    pub response: Response,
    #[serde(default)]
    pub has_extra_info: bool,
}

/// `Network.requestWillBeSentExtraInfo`: headers as they were sent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SentHeaders {
    pub request_id: String,
    pub headers: Headers,
}

/// `Network.responseReceivedExtraInfo`: headers as they were received.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceivedHeaders {
    pub request_id: String,
    headers: Headers,
    /// The head of the response as text, if it came over HTTP/1.
    headers_text: Option<String>,
}

impl ReceivedHeaders {
    /// The headers, in the order in which they came if that is known.
    pub fn headers(&self) -> Headers {
        let text = self.headers_text.as_deref().map(Headers::parse);
        // The text lacks what chromium could not read.
        text.filter(|text| text.0.len() >= self.headers.0.len())
            .unwrap_or_else(|| self.headers.clone())
    }
}

/// `Network.dataReceived`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Data<'a> {
    pub request_id: String,
    pub data_length: u64,
    /// Bytes as they came over the network.
    #[serde(default)]
    pub encoded_data_length: u64,
    /// In base64, if the request is streamed.
    #[serde(borrow)]
    pub data: Option<Cow<'a, str>>,
}

/// `Network.loadingFinished` and `Network.requestServedFromCache`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    pub request_id: String,
}

/// `Network.loadingFailed`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    pub request_id: String,
    pub error_text: String,
    pub blocked_reason: Option<String>,
}

/// `Network.webSocketCreated`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SocketCreated {
    pub url: String,
}

/// `Fetch.requestPaused`: a response that chromium has stopped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Paused {
    /// Id of the stop.
    pub request_id: String,
    /// Id of the request.
    pub network_id: Option<String>,
    pub resource_type: String,
    pub response_status_code: Option<u16>,
    #[serde(default)]
    response_status_text: String,
    #[serde(default)]
    response_headers: Vec<Header>,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    value: String,
}

impl Paused {
    /// The head of the response. `None` if there is none.
    pub fn response(&self) -> Option<Response> {
        let headers = self.response_headers.iter();
        let pairs = headers.map(|header| (header.name.clone(), header.value.clone()));
        Some(Response {
            status: self.response_status_code?,
            status_text: self.response_status_text.clone(),
            mime_type: content_type::essence(self.header("content-type").unwrap_or_default()),
            headers: Headers(pairs.collect()),
            ..Response::default()
        })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.response_headers.iter();
        let header = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(&header.value)
    }
}

/// Answer to `Network.getResponseBody` and `Fetch.getResponseBody`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WholeBody<'a> {
    #[serde(borrow)]
    body: Cow<'a, str>,
    base64_encoded: bool,
}

impl WholeBody<'_> {
    /// The bytes of the body, if these are at least the `length` bytes that the page got. Chromium returns text as it reads it, in
    /// the encoding `charset`, by default windows-1252, and without its byte order mark.
    pub fn bytes(self, charset: &str, length: u64) -> Option<Vec<u8>> {
        let is_whole = |bytes: &Vec<u8>| length == 0 || bytes.len() as u64 == length;
        if self.base64_encoded {
            let bytes = STANDARD.decode(self.body.as_bytes()).ok();
            return bytes.filter(|bytes| bytes.len() as u64 >= length);
        }
        let text = self.body.into_owned();
        let encoding = Encoding::for_label(charset.as_bytes()).unwrap_or(WINDOWS_1252);
        let (encoded, _, is_lossy) = encoding.encode(&text);
        let encoded = (!is_lossy).then(|| encoded.into_owned());
        let marked = [BYTE_ORDER_MARK, text.as_bytes()].concat();
        let all = [Some(text.into_bytes()), encoded, Some(marked)];
        all.into_iter().flatten().find(is_whole)
    }
}

/// Declares UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Answer to `Network.streamResourceContent`: what came before the stream, in base64.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Buffered<'a> {
    #[serde(borrow)]
    pub buffered_data: Cow<'a, str>,
}
