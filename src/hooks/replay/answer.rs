//! Translates a recorded answer to what the browser gets for a request.

use crate::chromium::cdp::posted::{self, PostedPart};
use archivist_core::model::is_web;
use archivist_warc::Blocks;
use archivist_warc::head::is_redirect;
use archivist_warc::lookup::{Asked, Sent};
use archivist_warc::wacz::StoredAnswer;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Read};
use url::Url;

/// Largest body in bytes that the browser gets in one message: it closes a pipe with messages of
/// 100 MiB, and base64 adds a third. Media elements get any size in parts.
const BODY_MAX_BYTES: u64 = 64 << 20;
/// Largest part in bytes that a media element gets at once. It asks for the next part when it needs
/// more, so that a video of any size fits in memory.
const MEDIA_PIECE_BYTES: u64 = 1 << 20;

/// What the viewer of PDFs consists of; the first is its own page.
const OF_VIEWER: [&str; 3] = [
    "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/",
    "chrome://resources/",
    "chrome://theme/",
];

/// `Fetch.requestPaused`: a request that waits for its answer.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Paused {
    pub request_id: String,
    pub network_id: Option<String>,
    pub resource_type: String,
    pub request: Request,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The web, so the recording.
    Web,
    /// The page itself, or the viewer of PDFs that chromium puts into a page.
    Inside,
    /// Files of this machine, and pages of the browser about itself.
    Machine,
}

impl Paused {
    pub fn origin(&self) -> Origin {
        let url = &self.request.url;
        let is_inside = ["about:", "blob:", "data:"].iter().any(|scheme| url.starts_with(scheme));
        // The viewer is the extension of this id, and loads what it shares with other pages of chromium.
        let is_viewer = self.resource_type != "Document"
            && OF_VIEWER.iter().any(|of| url.starts_with(of))
            || url.starts_with(OF_VIEWER[0]);
        match is_web(url) {
            true => Origin::Web,
            false if is_inside || is_viewer => Origin::Inside,
            false => Origin::Machine,
        }
    }

    /// Whether chromium asks for the icon of a site that names none. It does so once for all pages of a
    /// crawl, so it is in one recording of them.
    pub fn is_icon(&self) -> bool {
        let path = Url::parse(&self.request.url).map(|url| url.path() == "/favicon.ico");
        self.resource_type == "Other" && path.unwrap_or(false)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Request {
    /// Without fragment.
    pub url: String,
    pub method: String,
    pub headers: BTreeMap<String, String>,
    pub has_post_data: bool,
    pub post_data_entries: Vec<PostedPart>,
}

impl Request {
    /// The posted body, if the event has all of it.
    pub fn posted(&self) -> Option<Vec<u8>> {
        posted::in_event(&self.post_data_entries)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        header(self.headers.iter(), name)
    }
}

#[derive(Debug, PartialEq)]
pub struct Reply {
    pub status: u16,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Why a recorded answer cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum Unsendable {
    #[error("{0}")]
    Damaged(#[from] io::Error),
    /// The record has other bytes of the resource than those that the request asks for.
    #[error("these bytes of it were not recorded")]
    OtherPart,
    /// The body does not fit in one message to the browser.
    #[error("more than {} MiB, which chromium cannot get at once", BODY_MAX_BYTES >> 20)]
    TooLarge,
    #[error("it has no status")]
    NoStatus,
}

/// Composes the answer to a request. Reads the body.
pub fn compose(stored: StoredAnswer, paused: &Paused) -> Result<Reply, Unsendable> {
    let StoredAnswer { status, reason, headers, length, blocks, mut body } = stored;
    if !(200..=599).contains(&status) {
        return Err(Unsendable::NoStatus);
    }
    let value = |name| header(headers.iter().map(|(name, value)| (name, value)), name);
    let sent = value("content-range").filter(|_| status == 206).and_then(Sent::of);
    if paused.request.method == "HEAD" {
        let announced = value("x-archive-orig-content-length").or_else(|| value("content-length"));
        let announced = announced.and_then(|length| length.trim().parse().ok());
        // The record of a HEAD request has no body.
        let own = length.filter(|length| *length > 0).or(announced);
        let total = sent.map_or(own, |sent| sent.total);
        let mut reply = Reply { status, reason, headers: kept(headers), body: Vec::new() };
        reply.set_whole();
        total.into_iter().for_each(|total| reply.set("Content-Length", total.to_string()));
        return Ok(reply);
    }
    let (length, mut body): (u64, Box<dyn Read>) = match length {
        Some(length) => (length, body),
        None => {
            let whole = read(&mut body, BODY_MAX_BYTES + 1)?;
            (whole.len() as u64, Box::new(io::Cursor::new(whole)))
        }
    };
    // A body that is longer has other bytes than the header says.
    let sent = sent.filter(|sent| length <= sent.count());
    // Of the resource, the record has the bytes from `first` up to `end`.
    let first = sent.map_or(0, |sent| sent.first);
    let end = first.saturating_add(length);
    let total = sent.and_then(|sent| sent.total).unwrap_or(end);
    let asked = Asked::of(paused.request.header("range"));
    let range = asked.within(total);
    let mut reply = Reply { status, reason, headers: kept(headers), body: Vec::new() };
    match (asked, sent) {
        (Asked::All, Some(sent)) if sent.total != Some(length) => {
            return Err(Unsendable::OtherPart);
        }
        (Asked::All, sent) => {
            reply.body = read_exactly(&mut body, length)?;
            if sent.is_some() {
                reply.set_whole();
            }
        }
        (_, None) if status == 206 => return Err(Unsendable::OtherPart),
        _ if !matches!(status, 200 | 206) => reply.body = read_exactly(&mut body, length)?,
        _ if range.is_empty() => {
            reply.set_status(416);
            reply.set("Content-Range", format!("bytes */{total}"));
        }
        (_, sent) => {
            let is_media = paused.resource_type == "Media";
            let is_cut = sent.is_some_and(|sent| sent.last >= range.end - 1);
            // Who asks for all that follows, or reads as it needs, asks for the rest.
            let may_lack_end = is_media || is_cut || matches!(asked, Asked::From(_));
            let has_begin = (first..end).contains(&range.start);
            if !has_begin || range.end > end && !may_lack_end {
                return Err(Unsendable::OtherPart);
            }
            let most = if is_media { MEDIA_PIECE_BYTES } else { u64::MAX };
            let length = (range.end.min(end) - range.start).min(most);
            let skipped = range.start - first;
            let sought = blocks.map(|blocks| seek(&blocks, skipped, length));
            reply.body = match sought.transpose()?.flatten() {
                Some(bytes) => bytes,
                None => {
                    let passed = io::copy(&mut (&mut body).take(skipped), &mut io::sink())?;
                    if passed < skipped {
                        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                    }
                    read_exactly(&mut body, length)?
                }
            };
            reply.set_status(206);
            let last = range.start + length - 1;
            reply.set("Content-Range", format!("bytes {}-{last}/{total}", range.start));
        }
    }
    reply.set("Content-Length", reply.body.len().to_string());
    Ok(reply)
}

impl Reply {
    /// Parameters of `Fetch.fulfillRequest`.
    pub fn params(&self, request_id: &str) -> Value {
        let headers = self.headers.iter();
        let headers: Vec<_> =
            headers.map(|(name, value)| json!({"name": name, "value": value})).collect();
        let mut params = json!({"requestId": request_id, "responseCode": self.status,
            "responseHeaders": headers, "body": STANDARD.encode(&self.body)});
        if !self.reason.is_empty() {
            params["responsePhrase"] = self.reason.as_str().into();
        }
        params
    }

    /// Lets cookies be there that were at the time of the visit.
    pub fn keep_cookies(&mut self, then: Timestamp) {
        let cookies = self.headers.iter_mut();
        let cookies = cookies.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        cookies.for_each(|(_, value)| *value = super::set_cookie::lasting(value, then));
    }

    /// The cookies of an answer that redirects, as parameters of `Storage.setCookies`; none for
    /// others, whose cookies chromium keeps by itself.
    pub fn redirect_cookies(&self, url: &str, now: i64) -> Vec<Value> {
        let Some(url) = Url::parse(url).ok().filter(|_| self.is_redirect()) else {
            return Vec::new();
        };
        let headers = self.headers.iter();
        headers
            .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"))
            .filter_map(|(_, value)| super::set_cookie::parse(value, &url, now))
            .collect()
    }

    /// Whether the answer leads to another URL.
    pub fn is_redirect(&self) -> bool {
        is_redirect(self.status)
    }

    /// Lets a whole script call the function that the wanted URL names, instead of that which the
    /// recorded one names.
    pub fn call(&mut self, recorded: &str, wanted: &str) {
        if self.status == 200
            && let Some(body) = super::jsonp::renamed(&self.body, recorded, wanted)
        {
            self.set("Content-Length", body.len().to_string());
            self.body = body;
        }
    }

    /// Makes the answer to a request for a part one to a request for the resource.
    fn set_whole(&mut self) {
        if self.status == 206 {
            self.set_status(200);
            self.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-range"));
        }
    }

    fn set_status(&mut self, status: u16) {
        if self.status != status {
            self.status = status;
            self.reason.clear();
        }
    }

    fn set(&mut self, name: &str, value: String) {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value));
    }
}

/// The headers that still hold for a body without codings, and that chromium accepts.
fn kept(headers: Vec<(String, String)>) -> Vec<(String, String)> {
    const OF_THE_TRANSFER: [&str; 5] =
        ["connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding"];
    let is_name = |name: &str| {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        !name.is_empty() && name.chars().all(is_token)
    };
    let mut kept = headers;
    kept.retain(|(name, value)| {
        let lower = name.to_ascii_lowercase();
        is_name(name)
            && !value.contains(['\r', '\n', '\0'])
            && !OF_THE_TRANSFER.contains(&lower.as_str())
            && !lower.starts_with("x-archive-orig-")
    });
    kept
}

fn header<'a>(
    mut headers: impl Iterator<Item = (&'a String, &'a String)>,
    name: &str,
) -> Option<&'a str> {
    let found = headers.find(|(other, _)| other.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.as_str())
}

fn read_exactly(body: &mut dyn Read, length: u64) -> Result<Vec<u8>, Unsendable> {
    let bytes = read(body, length)?;
    if (bytes.len() as u64) < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(bytes)
}

/// Reads a part of a body that is stored without compression, unless it is too large to be sent.
fn seek(blocks: &Blocks, offset: u64, length: u64) -> io::Result<Option<Vec<u8>>> {
    match usize::try_from(length) {
        Ok(count) if length <= BODY_MAX_BYTES => blocks.read(offset, count),
        _ => Ok(None),
    }
}

/// Reads at most `most` bytes.
fn read(body: &mut dyn Read, most: u64) -> Result<Vec<u8>, Unsendable> {
    let mut bytes = Vec::new();
    let bound = most.min(BODY_MAX_BYTES + 1);
    body.take(bound).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BODY_MAX_BYTES {
        return Err(Unsendable::TooLarge);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(status: u16, headers: &[(&str, &str)], body: &[u8]) -> StoredAnswer {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        StoredAnswer {
            status,
            reason: String::new(),
            headers: headers.iter().map(owned).collect(),
            length: Some(body.len() as u64),
            blocks: None,
            body: Box::new(io::Cursor::new(body.to_vec())),
        }
    }

    fn asked(kind: &str, range: Option<&str>) -> Paused {
        let headers = range.map(|range| ("Range".to_owned(), range.to_owned()));
        Paused {
            resource_type: kind.to_owned(),
            request: Request { headers: headers.into_iter().collect(), ..Request::default() },
            ..Paused::default()
        }
    }

    fn value<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
        header(reply.headers.iter().map(|(n, v)| (n, v)), name)
    }

    #[test]
    fn headers_describe_the_body_that_is_sent() {
        let headers = [
            ("Content-Type", "text/css"),
            ("Content-Encoding", "br"),
            ("content-length", "3"),
            ("Transfer-Encoding", "chunked"),
            ("X-Archive-Orig-Content-Encoding", "br"),
            ("Bad Name", "x"),
            ("Set-Cookie", "a=1"),
            ("Set-Cookie", "b=2"),
        ];
        let reply = compose(stored(200, &headers, b"body {}"), &asked("Stylesheet", None)).unwrap();
        let names: Vec<_> = reply.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Content-Type", "Set-Cookie", "Set-Cookie", "Content-Length"]);
        assert_eq!(value(&reply, "content-length"), Some("7"));
    }

    #[test]
    fn ranges_are_cut_from_whole_and_partial_records() {
        let whole = || stored(200, &[], b"0123456789");
        let reply = compose(whole(), &asked("Fetch", Some("bytes=2-4"))).unwrap();
        assert_eq!((reply.status, reply.body.as_slice()), (206, &b"234"[..]));
        assert_eq!(value(&reply, "content-range"), Some("bytes 2-4/10"));
        let reply = compose(whole(), &asked("Fetch", Some("bytes=10-"))).unwrap();
        assert_eq!((reply.status, reply.body.len()), (416, 0));
        let part = || stored(206, &[("Content-Range", "bytes 4-7/10")], b"4567");
        let reply = compose(part(), &asked("Fetch", Some("bytes=5-"))).unwrap();
        assert_eq!((reply.status, reply.body.as_slice()), (206, &b"567"[..]));
        assert_eq!(value(&reply, "content-range"), Some("bytes 5-7/10"));
        let before = compose(part(), &asked("Fetch", Some("bytes=0-1")));
        assert!(matches!(before, Err(Unsendable::OtherPart)));
        // A reader that goes on by itself gets what there is; others would take it for all.
        let asked_for = |kind, range| compose(part(), &asked(kind, Some(range)));
        assert_eq!(asked_for("Media", "bytes=6-8").unwrap().body, b"67");
        assert!(matches!(asked_for("Fetch", "bytes=6-8"), Err(Unsendable::OtherPart)));
        assert!(matches!(asked_for("Fetch", "bytes=-4"), Err(Unsendable::OtherPart)));
        let mut cut = part();
        (cut.length, cut.body) = (Some(2), Box::new(io::Cursor::new(b"45".to_vec())));
        assert_eq!(compose(cut, &asked("Fetch", Some("bytes=4-7"))).unwrap().body, b"45");
    }

    #[test]
    fn part_answers_a_request_for_the_resource_if_it_is_all_of_it() {
        let of = |range| stored(206, &[("Content-Range", range)], b"0123456789");
        let reply = compose(of("bytes 0-9/10"), &asked("Fetch", None)).unwrap();
        assert_eq!((reply.status, value(&reply, "content-range")), (200, None));
        for range in ["bytes 0-9/11", "bytes 0-9/*", "bytes 1-10/11"] {
            let part = compose(of(range), &asked("Fetch", None));
            assert!(matches!(part, Err(Unsendable::OtherPart)), "{range}");
        }
        // Several parts in one body are an answer to the request for them alone.
        let several = || stored(206, &[("Content-Type", "multipart/byteranges")], b"--x");
        let reply = compose(several(), &asked("Fetch", Some("bytes=0-1,5-6"))).unwrap();
        assert_eq!((reply.status, reply.body.as_slice()), (206, &b"--x"[..]));
        let longer = || stored(206, &[("Content-Range", "bytes 0-1/10")], b"0123");
        for other in [several(), longer()] {
            let one = compose(other, &asked("Fetch", Some("bytes=0-1")));
            assert!(matches!(one, Err(Unsendable::OtherPart)));
        }
    }

    #[test]
    fn head_has_the_length_of_the_resource_and_no_body() {
        let head = |stored| {
            let mut paused = asked("Fetch", None);
            paused.request.method = "HEAD".to_owned();
            let reply = compose(stored, &paused).unwrap();
            assert_eq!(reply.body, b"");
            (reply.status, value(&reply, "content-length").map(str::to_owned))
        };
        let of = |length: &str| (200, Some(length.to_owned()));
        assert_eq!(head(stored(206, &[("Content-Range", "bytes 0-1/512")], b"01")), of("512"));
        assert_eq!(head(stored(200, &[("Content-Length", "10")], b"0123456789")), of("10"));
        let own = [("X-Archive-Orig-Content-Length", "512"), ("Content-Length", "0")];
        assert_eq!(head(stored(200, &own, b"")), of("512"));
        assert_eq!(head(stored(200, &[("content-length", "512")], b"")), of("512"));
    }

    #[test]
    fn cut_and_endless_records_are_errors() {
        let mut cut = stored(200, &[], b"0123");
        cut.length = Some(10);
        let cut = compose(cut, &asked("Fetch", None));
        assert!(matches!(cut, Err(Unsendable::Damaged(_))), "{cut:?}");
        let mut endless = stored(200, &[], b"");
        (endless.length, endless.body) = (None, Box::new(io::repeat(b'x')));
        let endless = compose(endless, &asked("Fetch", None));
        assert!(matches!(endless, Err(Unsendable::TooLarge)));
        let none = compose(stored(0, &[], b""), &asked("Fetch", None));
        assert!(matches!(none, Err(Unsendable::NoStatus)));
    }

    #[test]
    fn large_media_is_sent_in_parts() {
        let mut media = stored(200, &[("Content-Type", "video/mp4")], b"");
        (media.length, media.body) = (Some(1 << 30), Box::new(io::repeat(b'x')));
        let reply = compose(media, &asked("Media", Some("bytes=5-"))).unwrap();
        assert_eq!((reply.status, reply.body.len()), (206, 1 << 20));
        let range = value(&reply, "content-range");
        assert_eq!(range, Some("bytes 5-1048580/1073741824"));
    }

    #[test]
    fn cookies_of_redirects_alone_are_set() {
        let cookies = |status| {
            let headers = [("Location", "/b"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")];
            let reply = compose(stored(status, &headers, b""), &asked("Document", None)).unwrap();
            reply.redirect_cookies("http://a.test/", 0).len()
        };
        assert_eq!((cookies(302), cookies(200)), (2, 0));
    }

    #[test]
    fn posted_body_is_that_of_all_parts() {
        let request = |parts: Value| {
            let paused = json!({"request": {"postDataEntries": parts}});
            serde_json::from_value::<Paused>(paused).unwrap().request
        };
        let whole = request(json!([{"bytes": "YT0x"}, {"bytes": "JmI9"}]));
        assert_eq!(whole.posted().as_deref(), Some(&b"a=1&b="[..]));
        assert_eq!(request(json!([{"bytes": "YT0x"}, {}])).posted(), None);
        assert_eq!(request(json!([])).posted(), None);
    }
}
