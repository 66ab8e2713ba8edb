//! Requests as bytes, and as headers.

use super::fault::Fault;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Uri, Version};
use percent_encoding::percent_decode_str;
use url::Url;

#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The method, such as `GET`.
    pub method: &'a str,
    pub url: &'a Url,
    /// Headers that replace those of the client, or that it would not send.
    pub headers: &'a [(String, String)],
    pub body: Option<&'a [u8]>,
}

impl<'a> Ask<'a> {
    /// Returns a request without body or headers of its own.
    pub fn new(method: &'a str, url: &'a Url) -> Ask<'a> {
        Ask { method, url, headers: &[], body: None }
    }
}

/// Returns the bytes of a request of HTTP/1.1.
pub fn bytes(ask: &Ask<'_>, fields: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut request = format!("{} {} HTTP/1.1\r\n", ask.method, target(ask.url)).into_bytes();
    for (name, value) in fields {
        request.extend_from_slice(name.as_bytes());
        request.extend_from_slice(b": ");
        request.extend_from_slice(value);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    request.extend_from_slice(ask.body.unwrap_or_default());
    request
}

/// Returns a request of HTTP/2: the URI has `Host`. Headers about the connection are not allowed
/// (RFC 9113, section 8.2.2).
///
/// # Errors
/// If the URL or a header has a character that HTTP/2 does not allow.
pub fn modern(ask: &Ask<'_>, fields: &[(String, Vec<u8>)]) -> Result<Request<()>, Fault> {
    let host = fields
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.as_slice());
    let uri = Uri::builder()
        .scheme(ask.url.scheme())
        .authority(host.unwrap_or_default())
        .path_and_query(target(ask.url))
        .build();
    let is_left = |name: &str| {
        !matches!(
            name,
            "host"
                | "connection"
                | "keep-alive"
                | "proxy-connection"
                | "te"
                | "transfer-encoding"
                | "upgrade"
        )
    };
    let request = uri.and_then(|uri| {
        let request = Request::builder().method(ask.method).uri(uri).version(Version::HTTP_2);
        fields
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .filter(|(name, _)| is_left(name))
            .fold(request, |request, (name, value)| request.header(name, value.as_slice()))
            .body(())
    });
    request.map_err(|error| Fault::Other(format!("HTTP/2: the request is not valid: {error}")))
}

pub fn fields(ask: &Ask<'_>, user_agent: &str, cookies: Option<Vec<u8>>) -> Vec<(String, Vec<u8>)> {
    let url = ask.url;
    let mut usual: Vec<(&str, Vec<u8>)> = vec![
        ("Host", host(url).into_bytes()),
        ("User-Agent", user_agent.as_bytes().to_vec()),
        ("Accept", b"*/*".to_vec()),
        ("Accept-Encoding", b"gzip".to_vec()),
    ];
    usual.extend(credentials(url).map(|text| ("Authorization", text.into_bytes())));
    usual.extend(cookies.map(|header| ("Cookie", header)));
    if let Some(body) = ask.body {
        usual.push(("Content-Length", body.len().to_string().into_bytes()));
    }
    let is_replaced = |name: &str| {
        let mut own = ask.headers.iter();
        own.any(|(own, _)| own.eq_ignore_ascii_case(name))
    };
    usual.retain(|(name, _)| !is_replaced(name));
    let own = ask.headers.iter();
    usual.extend(own.map(|(name, value)| (name.as_str(), value.clone().into_bytes())));
    // A line feed would begin another header.
    let line = |value: Vec<u8>| -> Vec<u8> {
        let bytes = value.into_iter();
        bytes.filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)).collect()
    };
    let usual = usual.into_iter();
    usual.map(|(name, value)| (name.to_owned(), line(value))).collect()
}

fn target(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Returns the value of `Authorization:` for the user and password of a URL.
fn credentials(url: &Url) -> Option<String> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut text: Vec<u8> = percent_decode_str(url.username()).collect();
    text.push(b':');
    text.extend(percent_decode_str(url.password().unwrap_or_default()));
    Some(format!("Basic {}", STANDARD.encode(text)))
}
