//! What the server answered while the tab loaded its page: the responses to the navigation, a file in
//! place of the page, and the icon of the page. Hooks that need them read them here instead of asking
//! the server again, and the recorder gets the file.
//!
//! The tab sees them where chromium stops a response before the page gets it
//! (`Fetch.requestPaused`). A page goes on at once; a body that no page waits for is read to its end:
//! a short one as a message, a longer one as a stream, after which chromium cannot continue the request.
//! Cookies are in another event (`Network.responseReceivedExtraInfo`).

use super::events;
use crate::chromium::cdp::stream;
use crate::chromium::cdp::{CdpError, Session};
use crate::chromium::recorder::FileSink;
use crate::page::content_type::{essence, is_read, is_viewable};
use crate::page::response::ResponseHead;
use crate::page::suffix;
use crate::process::files;
use crate::process::finding::Finding;
use crate::visit::{self, DOCUMENT, ICON, Icon, RESPONSES};
use archivist_plugin::files::whole::{Survives, Whole};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

/// Responses of one navigation. Chromium follows 20 redirects.
const RESPONSES_MAX: usize = 32;
/// Responses whose cookies are kept. Those of a navigation precede those of its page.
const COOKIES_MAX: usize = 64;
/// Largest body in bytes that is read as one message: its text in base64 has to be shorter than the
/// longest answer to the tab.
const BODY_MAX_BYTES: u64 = 2 << 20;
/// Time that a server gets to send such a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Cookies {
    request: String,
    status: u64,
    lines: Vec<String>,
}

/// What the tab does with a response that chromium has stopped.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Continue,
    /// Save its body in place of a page, then let it go on.
    SaveFile,
    /// Save its body of at most so many bytes in place of a page, then refuse it.
    StreamFile(u64),
    /// Save its body as the icon of the page, then let it go on.
    SaveIcon(ResponseHead),
}

#[derive(Debug, Default)]
pub struct Answers {
    /// Bytes of a file that hooks read.
    read_max: u64,
    /// Bytes of any file.
    kept_max: u64,
    hops: Vec<ResponseHead>,
    /// Id of the request that the hops have answered; redirects keep it.
    request: String,
    cookies: Vec<Cookies>,
    has_icon: bool,
}

impl Answers {
    /// No answers so far. `read_max`: bytes of a file that hooks read; `kept_max`: bytes of any file.
    pub fn new(read_max: u64, kept_max: u64) -> Answers {
        Answers { read_max, kept_max, ..Answers::default() }
    }

    /// Notes a response that chromium has stopped. `main` is the id of the main frame.
    pub fn take(&mut self, params: &Value, main: &str) -> Next {
        let Some(hop) = hop(params) else {
            return Next::Continue;
        };
        match params["resourceType"].as_str() {
            Some("Document") if params["frameId"] == main && self.is_open() => {
                let next = file(&hop, self.read_max, self.kept_max);
                self.add(hop, params["networkId"].as_str().unwrap_or_default());
                next
            }
            Some("Other") if !self.has_icon && may_be_icon(&hop) => {
                self.has_icon = true;
                Next::SaveIcon(hop)
            }
            _ => Next::Continue,
        }
    }

    pub fn take_cookies(&mut self, params: &Value) {
        let Some(lines) = events::header(&params["headers"], "set-cookie") else {
            return;
        };
        if self.cookies.len() < COOKIES_MAX {
            self.cookies.push(Cookies {
                request: text(&params["requestId"]),
                status: params["statusCode"].as_u64().unwrap_or_default(),
                lines: lines.lines().map(str::to_owned).collect(),
            });
        }
    }

    /// Whether the navigation has not come to its end. Afterwards, the page goes elsewhere.
    fn is_open(&self) -> bool {
        self.hops.last().is_none_or(ResponseHead::is_redirect)
    }

    fn add(&mut self, hop: ResponseHead, request: &str) {
        if self.hops.len() < RESPONSES_MAX {
            self.hops.push(hop);
            self.request = request.to_owned();
        }
    }

    /// The responses with their cookies, which are in the order of the responses.
    fn with_cookies(&self) -> Vec<ResponseHead> {
        let mut hops = self.hops.clone();
        let mut rest = hops.iter_mut();
        for cookies in self.cookies.iter().filter(|it| it.request == self.request) {
            let Some(hop) = rest.find(|hop| u64::from(hop.status) == cookies.status) else {
                break;
            };
            let lines = cookies.lines.iter();
            hop.headers.extend(lines.map(|line| ("set-cookie".to_owned(), line.clone())));
        }
        hops
    }

    /// Whether no server has answered.
    pub fn is_empty(&self) -> bool {
        self.hops.is_empty()
    }

    /// Whether a navigation that led to no page left nothing to request again: its last answer has no
    /// body, or the body is saved.
    pub fn are_kept(&self) -> bool {
        let is_empty = |hop: &ResponseHead| is_without_body(hop) || length(hop) == Some(0);
        self.hops.last().is_some_and(is_empty) || visit::document_in(Path::new(".")).is_some()
    }

    /// Writes `responses.json`, if there was an answer.
    pub fn write(&self) -> Result<(), Finding> {
        if self.hops.is_empty() {
            return Ok(());
        }
        visit::write(RESPONSES, &self.with_cookies())
    }
}

/// Carries out what [`Answers::take`] says about a stopped response. Bodies are saved in tasks of their
/// own; the task of one that no page waits for is returned.
pub fn carry_out(
    next: Next,
    params: &Value,
    session: &Session,
    files: Option<FileSink>,
    until: Instant,
) -> Result<Option<JoinHandle<()>>, CdpError> {
    let request = json!({"requestId": params["requestId"]});
    let session = session.clone();
    match next {
        Next::Continue => session.post("Fetch.continueRequest", request)?,
        Next::SaveFile => drop(tokio::spawn(save_file(session, request, name(params)))),
        Next::SaveIcon(hop) => drop(tokio::spawn(save_icon(session, request, hop))),
        Next::StreamFile(most) => {
            let stream = FileStream { session, request, name: name(params), most };
            let saving = stream.save(params.clone(), files, until);
            return Ok(Some(tokio::spawn(saving)));
        }
    }
    Ok(None)
}

/// The name of the file in a stopped response.
fn name(params: &Value) -> String {
    let Some(hop) = hop(params) else {
        return DOCUMENT.to_owned();
    };
    let media_type = essence(content_type(&hop));
    suffix::file_name(&hop.url, &media_type, hop.header("content-disposition"))
}

/// The head of a stopped response. `None` for a request that got none.
fn hop(params: &Value) -> Option<ResponseHead> {
    let status = params["responseStatusCode"].as_u64()?;
    let headers = params["responseHeaders"].as_array()?.iter();
    let header = |header: &Value| {
        let name = header["name"].as_str()?.to_ascii_lowercase();
        Some((name, header["value"].as_str()?.trim().to_owned()))
    };
    Some(ResponseHead {
        url: Url::parse(params["request"]["url"].as_str()?).ok()?,
        status: u16::try_from(status).ok()?,
        reason: text(&params["responseStatusText"]),
        headers: headers.filter_map(header).collect(),
    })
}

/// Whether a response to a request of type `Other` is that of the page's icon, rather than a
/// preflight, something that the page loads ahead, or a download.
fn may_be_icon(hop: &ResponseHead) -> bool {
    let is_image = content_type(hop).to_ascii_lowercase().starts_with("image/");
    let is_named = is_image || hop.url.path() == "/favicon.ico";
    !hop.is_redirect() && is_named && length(hop).is_none_or(|length| length <= BODY_MAX_BYTES)
}

/// What is done with the end of the navigation: a file that is no page is saved if it is short, if hooks
/// read such files and it has at most `read_max` bytes, or if it has at most `kept_max`. A media stream
/// without a length may never end.
fn file(hop: &ResponseHead, read_max: u64, kept_max: u64) -> Next {
    let disposition = hop.header("content-disposition").unwrap_or_default();
    let is_attached = disposition.trim_start().to_ascii_lowercase().starts_with("attachment");
    let kind = content_type(hop);
    let is_file = is_attached || !is_viewable(kind);
    if !is_file || hop.is_redirect() || is_without_body(hop) {
        return Next::Continue;
    }
    let most = if is_read(kind) { read_max.max(kept_max) } else { kept_max };
    let ends = is_attached || essence(kind).starts_with("application/");
    match length(hop) {
        Some(length) if length <= BODY_MAX_BYTES => Next::SaveFile,
        Some(length) if length <= most => Next::StreamFile(most),
        None if ends && kept_max > 0 => Next::StreamFile(kept_max),
        _ => Next::Continue,
    }
}

fn is_without_body(hop: &ResponseHead) -> bool {
    matches!(hop.status, 204 | 205 | 304)
}

fn content_type(hop: &ResponseHead) -> &str {
    hop.header("content-type").unwrap_or_default()
}

fn length(hop: &ResponseHead) -> Option<u64> {
    hop.header("content-length")?.parse().ok()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

async fn save_icon(session: Session, request: Value, hop: ResponseHead) {
    let icon =
        Icon { url: hop.url.to_string(), status: hop.status, body: body(&session, &request).await };
    // The tab may be closed.
    let _ = session.post("Fetch.continueRequest", request);
    or_ignore(visit::write(ICON, &icon));
}

async fn save_file(session: Session, request: Value, name: String) {
    let bytes = decode(&body(&session, &request).await);
    if !bytes.is_empty() {
        let path = visit::new_document(&name).map_err(|error| not_written(&error));
        or_ignore(path.and_then(|path| files::write(&path.to_string_lossy(), &bytes)));
    }
    let _ = session.post("Fetch.continueRequest", request);
}

/// The body of a stopped response in place of a page, with at most `most` bytes when it is decoded.
struct FileStream {
    session: Session,
    request: Value,
    /// Name of the file.
    name: String,
    most: u64,
}

impl FileStream {
    /// Saves the body of the stopped response `paused`, has the recorder take it, and refuses the
    /// request: chromium cannot continue it.
    async fn save(self, paused: Value, files: Option<FileSink>, until: Instant) {
        let late = |_| Err(Finding::failed("the file did not arrive in time"));
        let saved = timeout_at(until, self.read()).await.unwrap_or_else(late);
        match (&saved, files) {
            (Ok(path), Some(files)) => files.take(paused, path).await,
            (Ok(_), None) => {}
            (Err(_), _) => visit::remove_all(DOCUMENT),
        }
        or_ignore(saved.map(drop));
        let mut refused = self.request;
        refused["errorReason"] = "Aborted".into();
        // The tab may be closed.
        let _ = self.session.post("Fetch.failRequest", refused);
    }

    async fn read(&self) -> Result<PathBuf, Finding> {
        #[derive(Deserialize)]
        struct BodyStream {
            stream: String,
        }
        let fail = |error: io::Error| not_written(&error);
        let path = visit::new_document(&self.name).map_err(fail)?;
        let whole = Whole::at(&path, files::MODE).map_err(fail)?;
        let body: BodyStream =
            self.session.call("Fetch.takeResponseBodyAsStream", self.request.clone()).await?;
        let mut bytes = 0;
        let append = |piece: &[u8]| {
            bytes += piece.len() as u64;
            if bytes > self.most {
                return Err(Finding::failed(format!("the file has more than {} bytes", self.most)));
            }
            whole.file().write_all(piece).map_err(fail)
        };
        stream::read(&self.session, &body.stream, append).await?;
        whole.place(Survives::Kill).map_err(fail)?;
        Ok(path)
    }
}

fn not_written(error: &io::Error) -> Finding {
    Finding::failed(format!("failed to write the file: {error}"))
}

/// The body of a stopped response in base64; empty if it has not arrived.
async fn body(session: &Session, request: &Value) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body {
        body: String,
        base64_encoded: bool,
    }
    let reading = session.call::<Body>("Fetch.getResponseBody", request.clone());
    match timeout(BODY_TIMEOUT, reading).await {
        Ok(Ok(read)) if read.base64_encoded => read.body,
        Ok(Ok(read)) => STANDARD.encode(read.body),
        Ok(Err(_)) | Err(_) => String::new(),
    }
}

fn decode(body: &str) -> Vec<u8> {
    STANDARD.decode(body).unwrap_or_default()
}

fn or_ignore(written: Result<(), Finding>) {
    if let Err(finding) = written {
        eprintln!("{}, ignoring", finding.output_str.escape_debug());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(url: &str, status: u64, headers: Value) -> ResponseHead {
        let paused = json!({"requestId": "1", "request": {"url": url}, "responseStatusCode": status,
            "responseStatusText": "", "responseHeaders": headers});
        hop(&paused).unwrap()
    }

    fn of_type(kind: &str) -> Value {
        json!([{"name": "Content-Type", "value": kind}])
    }

    #[test]
    fn cookies_belong_to_the_response_that_sets_them() {
        let mut answers = Answers::default();
        let to = json!([{"name": "Location", "value": "/b"}]);
        answers.add(answer("http://a.test/", 302, to.clone()), "R");
        answers.add(answer("http://a.test/b", 307, to), "R");
        assert!(answers.is_open());
        answers.add(answer("http://a.test/c", 200, json!([])), "R");
        assert!(!answers.is_open());
        for (request, status, lines) in
            [("R", 302, "a=1\nb=2"), ("R", 200, "c=3"), ("S", 200, "d=4")]
        {
            let headers = json!({"Set-Cookie": lines});
            answers.take_cookies(
                &json!({"requestId": request, "statusCode": status, "headers": headers}),
            );
        }
        let count = |hop: &ResponseHead| {
            let cookies = hop.headers.iter();
            cookies.filter(|(name, _)| name == "set-cookie").count()
        };
        let counts: Vec<_> = answers.with_cookies().iter().map(count).collect();
        assert_eq!(counts, [2, 0, 1]);
    }

    #[test]
    fn the_first_icon_and_the_document_of_the_tab_are_taken() {
        let mut answers = Answers::default();
        let mut take = |kind: &str, frame: &str, headers: Value| {
            let paused = json!({"requestId": "1", "request": {"url": "http://a.test/"},
                "resourceType": kind, "frameId": frame, "responseStatusCode": 200,
                "responseHeaders": headers});
            answers.take(&paused, "MAIN")
        };
        assert_eq!(take("Document", "FRAME", of_type("image/png")), Next::Continue);
        let file = json!([{"name": "content-type", "value": "application/pdf"},
            {"name": "content-length", "value": "10"}]);
        assert_eq!(take("Document", "MAIN", file.clone()), Next::SaveFile);
        assert_eq!(take("Document", "MAIN", file), Next::Continue);
        let first = take("Other", "MAIN", of_type("image/png"));
        assert!(matches!(first, Next::SaveIcon(_)));
        assert_eq!(take("Other", "MAIN", of_type("image/png")), Next::Continue);
    }

    #[test]
    fn icons_are_not_any_other_request() {
        let is_icon = |url: &str, headers| may_be_icon(&answer(url, 200, headers));
        assert!(is_icon("http://a.test/i", of_type("image/png")));
        assert!(is_icon("http://a.test/favicon.ico", of_type("text/html")));
        assert!(!is_icon("http://a.test/next", of_type("text/html")));
        let long = json!([{"name": "content-type", "value": "image/png"},
            {"name": "content-length", "value": "99999999"}]);
        assert!(!is_icon("http://a.test/i", long));
    }

    #[test]
    fn files_that_hooks_or_the_recording_need_are_saved() {
        let head = |kind: &str, disposition: &str, length: &str| {
            let headers = json!([{"name": "Content-Type", "value": kind},
                {"name": "Content-Disposition", "value": disposition},
                {"name": "Content-Length", "value": length}]);
            answer("http://a.test/", 200, headers)
        };
        let (read, kept) = (20 << 20, 500 << 20);
        let saved = |kind: &str, disposition: &str, length: &str| {
            file(&head(kind, disposition, length), read, 0)
        };
        assert_eq!(saved("application/pdf", "inline", "10"), Next::SaveFile);
        assert_eq!(saved("text/html", "attachment", "10"), Next::SaveFile);
        assert_eq!(saved("text/html", "inline", "10"), Next::Continue);
        let large = |kind: &str, length: &str| saved(kind, "attachment; filename=a", length);
        for kind in ["text/csv", "application/gzip", "text/html", "application/rss+xml"] {
            assert_eq!(large(kind, "9999999"), Next::StreamFile(read), "{kind}");
            assert_eq!(large(kind, "99999999"), Next::Continue, "{kind}");
            assert_eq!(large(kind, "endless"), Next::Continue, "{kind}");
        }
        for kind in ["application/zip", "application/octet-stream", ""] {
            assert_eq!(large(kind, "9999999"), Next::Continue, "{kind}");
        }
        let recorded = |kind: &str, disposition: &str, length: &str| {
            file(&head(kind, disposition, length), read, kept)
        };
        for kind in ["application/zip", "application/pdf", "video/mp4"] {
            assert_eq!(recorded(kind, "", "99999999"), Next::StreamFile(kept));
            assert_eq!(recorded(kind, "", "999999999"), Next::Continue, "{kind}");
        }
        assert_eq!(recorded("application/zip", "", ""), Next::StreamFile(kept));
        assert_eq!(recorded("video/mp4", "", ""), Next::Continue, "no end");
        assert_eq!(recorded("text/html", "", "99999999"), Next::Continue);
    }

    #[test]
    fn a_request_without_a_response_has_no_head() {
        let refused = json!({"requestId": "1", "request": {"url": "http://a.test/"},
            "responseErrorReason": "ConnectionRefused"});
        assert_eq!(hop(&refused), None);
    }
}
