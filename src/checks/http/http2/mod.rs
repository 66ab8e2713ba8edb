//! HTTP/2 (RFC 9113) for servers that choose it in the TLS handshake, as most do for browsers: one
//! request at a time on each connection.
//!
//! The crate h2 refuses answers that browsers show, such as those with `Connection:`, and a body
//! whose length is not the announced one, and it needs an asynchronous runtime, which the checks do
//! not have.

mod frame;
mod hpack;
mod huffman;

pub use frame::Start;

use super::connection::Connection;
use super::fault::{Failure, Fault, unsent};
use super::head::Head;
use frame::Frame;
use std::io::{self, BufRead, Read};
use std::time::Instant;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a body that the server may send before it gets permission for more; of the whole
/// connection, more. Both are those of Chromium.
const WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;
/// Window of a connection at its beginning.
const FIRST_WINDOW: i64 = 65_535;
/// Received bytes after which the server gets permission for more.
const OWED: u32 = 1 << 20;
/// Most bytes of the headers of one answer, as of HTTP/1.1, packed and unpacked.
const HEADERS: usize = 512 << 10;
/// Most interim answers (1xx) before the answer.
const INTERIM: usize = 20;
/// Settings of the client and of the server (section 6.5.2).
const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_HEADER_LIST_SIZE: u16 = 6;

/// A connection that speaks HTTP/2, with its current stream.
pub struct Session {
    connection: Connection,
    decoder: hpack::Decoder,
    /// Frames to send.
    out: Vec<u8>,
    /// Number of the current stream; 0 before the first.
    stream: u32,
    /// Headers of the answer that arrived last.
    head: Option<Head>,
    /// Received part of the body, and the start of what was not read yet.
    data: Vec<u8>,
    at: usize,
    /// Whether the server has ended the current stream.
    is_over: bool,
    /// Error with which the server ended the stream.
    reset: Option<u32>,
    /// Last stream that the server carries out, and error with which it ends the connection.
    goodbye: Option<(u32, u32)>,
    /// Bytes that may be sent on the connection and on the stream, and at first on each stream.
    window: i64,
    stream_window: i64,
    first_window: i64,
    /// Received bytes for which the server has no new permission, of connection and stream.
    owed: u32,
    stream_owed: u32,
    /// Whether a part of the request was not sent, because the answer came first.
    is_cut: bool,
    /// Whether a frame has arrived.
    has_begun: bool,
}

impl Session {
    /// Returns a session over a new connection. Sends nothing before the first request.
    pub fn new(connection: Connection) -> Session {
        let mut settings = Vec::new();
        for (key, value) in [
            (HEADER_TABLE_SIZE, hpack::TABLE as u32),
            (ENABLE_PUSH, 0),
            (INITIAL_WINDOW_SIZE, WINDOW),
            (MAX_HEADER_LIST_SIZE, HEADERS as u32),
        ] {
            settings.extend_from_slice(&key.to_be_bytes());
            settings.extend_from_slice(&value.to_be_bytes());
        }
        let mut out = PREFACE.to_vec();
        frame::put(&mut out, frame::SETTINGS, 0, 0, &settings);
        let more = CONNECTION_WINDOW - FIRST_WINDOW as u32;
        frame::put(&mut out, frame::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        Session {
            connection,
            decoder: hpack::Decoder::default(),
            out,
            stream: 0,
            head: None,
            data: Vec::new(),
            at: 0,
            is_over: true,
            reset: None,
            goodbye: None,
            window: FIRST_WINDOW,
            stream_window: FIRST_WINDOW,
            first_window: FIRST_WINDOW,
            owed: 0,
            stream_owed: 0,
            is_cut: false,
            has_begun: false,
        }
    }

    /// The connection below.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Ends all calls at this time.
    pub fn end_at(&mut self, until: Instant) {
        self.connection.end_at(until);
    }

    /// Returns whether another request can be sent: the last answer is complete.
    pub fn is_reusable(&self) -> bool {
        let is_complete = self.is_over && !self.is_cut && self.reset.is_none();
        is_complete && self.goodbye.is_none() && self.stream < 1 << 30
    }

    /// Sends a request, whose pseudo-headers come first.
    pub fn send(
        &mut self,
        fields: &[(String, Vec<u8>)],
        body: Option<&[u8]>,
    ) -> Result<(), Failure> {
        self.stream = if self.stream == 0 { 1 } else { self.stream + 2 };
        (self.head, self.is_over, self.reset) = (None, false, None);
        (self.data, self.at, self.stream_owed) = (Vec::new(), 0, 0);
        self.stream_window = self.first_window;
        let body = body.unwrap_or_default();
        let block = hpack::encode(fields);
        let pieces = block.chunks(frame::LONGEST);
        let last = pieces.len().saturating_sub(1);
        for (number, piece) in pieces.enumerate() {
            let kind = if number == 0 {
                frame::HEADERS
            } else {
                frame::CONTINUATION
            };
            let ends = if number == 0 && body.is_empty() {
                frame::END_STREAM
            } else {
                0
            };
            let flags = ends
                | if number == last {
                    frame::END_HEADERS
                } else {
                    0
                };
            frame::put(&mut self.out, kind, flags, self.stream, piece);
        }
        self.send_body(body)
    }

    /// Sends a body as far as the server wants it.
    fn send_body(&mut self, mut body: &[u8]) -> Result<(), Failure> {
        while !body.is_empty() && !self.has_answered() {
            let most = self
                .window
                .min(self.stream_window)
                .clamp(0, frame::LONGEST as i64) as usize;
            if most == 0 {
                self.step()?;
                continue;
            }
            let (piece, rest) = body.split_at(most.min(body.len()));
            let flags = if rest.is_empty() {
                frame::END_STREAM
            } else {
                0
            };
            frame::put(&mut self.out, frame::DATA, flags, self.stream, piece);
            self.window -= piece.len() as i64;
            self.stream_window -= piece.len() as i64;
            body = rest;
        }
        self.is_cut = !body.is_empty();
        self.flush()
    }

    fn has_answered(&self) -> bool {
        let is_final = self.head.as_ref().is_some_and(|head| head.status >= 200);
        is_final || self.is_over || self.refusal().is_err()
    }

    /// Waits for the headers of the answer.
    pub fn head(&mut self) -> Result<Head, Failure> {
        let mut interim = 0;
        loop {
            match self.head.take() {
                Some(head) if matches!(head.status, 100..200) && interim < INTERIM => interim += 1,
                Some(head) => return Ok(head),
                None => {
                    self.refusal()?;
                    self.step()?;
                }
            }
        }
    }

    /// Returns whether there will be no answer to the request.
    fn refusal(&self) -> Result<(), Failure> {
        let by_goodbye = self.goodbye.filter(|(last, _)| *last < self.stream);
        match (self.reset, by_goodbye) {
            (Some(frame::HTTP_1_1_REQUIRED), _) | (_, Some((_, frame::HTTP_1_1_REQUIRED))) => {
                Err(Failure::OldOnly)
            }
            (Some(frame::REFUSED_STREAM), _) | (_, Some((_, frame::NO_ERROR))) => {
                Err(Failure::Refused)
            }
            (Some(code), _) | (_, Some((_, code))) => Err(ended(code).into()),
            (None, None) if self.is_over => Err(protocol("ended the answer before its headers")),
            (None, None) => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let out = std::mem::take(&mut self.out);
        let sent = if out.is_empty() {
            Ok(())
        } else {
            self.connection.send(&out)
        };
        sent.map_err(|error| unsent(&error, "sending the request timed out"))
    }

    /// Sends what there is to send, and carries out the next frame.
    fn step(&mut self) -> Result<(), Failure> {
        self.flush()?;
        let frame = self.next()?;
        self.carry_out(frame)
    }

    /// Waits for a frame.
    fn next(&mut self) -> Result<Frame, Failure> {
        let start = loop {
            if let Some(start) = Start::read(self.connection.received()) {
                break start;
            }
            self.more()?;
        };
        if !self.has_begun && !start.is_of_server() {
            let reason = "the server chose HTTP/2 in the TLS handshake and does not speak it";
            return Err(Fault::Other(reason.to_owned()).into());
        }
        self.has_begun = true;
        if start.length > frame::LONGEST {
            return Err(protocol("sent a frame that is too long"));
        }
        let end = frame::HEADER + start.length;
        while self.connection.received().len() < end {
            self.more()?;
        }
        let payload = self.connection.received()[frame::HEADER..end].to_vec();
        self.connection.consume(end);
        Ok(Frame {
            kind: start.kind,
            flags: start.flags,
            stream: start.stream,
            payload,
        })
    }

    fn more(&mut self) -> Result<(), Failure> {
        let received = self.connection.receive();
        let late = "no answer within the time limit";
        match received.map_err(|error| unsent(&error, late))? {
            0 => Err(match self.goodbye {
                None | Some((_, frame::NO_ERROR)) => Failure::Stale,
                Some((_, frame::HTTP_1_1_REQUIRED)) => Failure::OldOnly,
                Some((_, code)) => ended(code).into(),
            }),
            _ => Ok(()),
        }
    }

    fn carry_out(&mut self, frame: Frame) -> Result<(), Failure> {
        let is_own = frame.stream == self.stream;
        match frame.kind {
            frame::DATA => self.take_data(&frame)?,
            frame::HEADERS => self.take_headers(frame)?,
            frame::CONTINUATION => return Err(protocol("sent headers that have no beginning")),
            frame::PUSH_PROMISE => return Err(protocol("sent an answer that was not requested")),
            frame::RST_STREAM if is_own && !self.is_over => {
                self.reset = Some(frame.number(0).unwrap_or_default());
            }
            frame::SETTINGS if !frame.has(frame::ACK) => {
                for (key, value) in frame.settings() {
                    if key == INITIAL_WINDOW_SIZE {
                        self.stream_window += i64::from(value) - self.first_window;
                        self.first_window = i64::from(value);
                    }
                }
                frame::put(&mut self.out, frame::SETTINGS, frame::ACK, 0, &[]);
            }
            frame::PING if !frame.has(frame::ACK) => {
                frame::put(&mut self.out, frame::PING, frame::ACK, 0, &frame.payload);
            }
            frame::GOAWAY => {
                let last = frame.number(0).unwrap_or_default() & 0x7fff_ffff;
                self.goodbye = Some((last, frame.number(4).unwrap_or_default()));
            }
            frame::WINDOW_UPDATE => {
                let more = i64::from(frame.number(0).unwrap_or_default() & 0x7fff_ffff);
                match frame.stream {
                    _ if more == 0 => return Err(protocol("sent a window update of 0")),
                    0 => self.window += more,
                    _ if is_own => self.stream_window += more,
                    _ => {}
                }
            }
            // Unknown frames are extensions.
            _ => {}
        }
        Ok(())
    }

    fn take_data(&mut self, frame: &Frame) -> Result<(), Failure> {
        let length = frame.payload.len() as u32;
        self.owed += length;
        let content = frame
            .content()
            .ok_or_else(|| protocol("sent a damaged frame"))?;
        if frame.stream == self.stream && !self.is_over {
            self.data.drain(..self.at);
            self.at = 0;
            self.data.extend_from_slice(content);
            self.is_over = frame.has(frame::END_STREAM);
            self.stream_owed += length;
        }
        if self.stream_owed >= OWED && !self.is_over {
            let owed = std::mem::take(&mut self.stream_owed).to_be_bytes();
            frame::put(&mut self.out, frame::WINDOW_UPDATE, 0, self.stream, &owed);
        }
        if self.owed >= OWED {
            let owed = std::mem::take(&mut self.owed).to_be_bytes();
            frame::put(&mut self.out, frame::WINDOW_UPDATE, 0, 0, &owed);
        }
        Ok(())
    }

    /// Headers of the answer, or trailers, which do not matter but change the table.
    fn take_headers(&mut self, mut frame: Frame) -> Result<(), Failure> {
        let damaged = || protocol("sent headers that are damaged or too long");
        let (stream, ends) = (frame.stream, frame.has(frame::END_STREAM));
        let mut block = frame.content().ok_or_else(damaged)?.to_vec();
        while !frame.has(frame::END_HEADERS) {
            frame = self.next()?;
            if frame.kind != frame::CONTINUATION || frame.stream != stream {
                return Err(protocol("sent headers that do not end"));
            }
            block.extend_from_slice(&frame.payload);
            if block.len() > HEADERS {
                return Err(damaged());
            }
        }
        let fields = self.decoder.decode(&block, HEADERS).ok_or_else(damaged)?;
        if stream != self.stream || self.is_over {
            return Ok(());
        }
        self.is_over = ends;
        let is_trailer = !fields.iter().any(|(name, _)| name == b":status");
        if self.head.is_none() && !is_trailer {
            self.head = Some(head(fields)?);
        }
        Ok(())
    }
}

/// Reads the headers of an answer as Chromium does: what it would leave out on a connection of
/// HTTP/1.1 is an error here.
fn head(fields: Vec<hpack::Field>) -> Result<Head, Failure> {
    let mut head = Head {
        status: 0,
        is_modern: true,
        headers: Vec::new(),
    };
    for (name, value) in fields {
        if name == b":status" && head.headers.is_empty() {
            let number = std::str::from_utf8(&value)
                .ok()
                .and_then(|text| text.parse().ok());
            head.status = number.unwrap_or_default();
            continue;
        }
        // Unknown pseudo-headers, as Chromium does, and only before all others.
        if name.first() == Some(&b':') && name != b":status" && head.headers.is_empty() {
            continue;
        }
        let is_token =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        let has_capital = name.iter().any(u8::is_ascii_uppercase);
        let is_name = !name.is_empty()
            && name.iter().all(is_token)
            && !has_capital
            && name != b"transfer-encoding";
        let is_value = |byte: &u8| !matches!(byte, 0..=8 | 10..=31 | 127);
        if !is_name || !value.iter().all(is_value) {
            return Err(protocol("sent a header that HTTP/2 does not allow"));
        }
        head.headers
            .push((String::from_utf8_lossy(&name).into_owned(), value));
    }
    if head.status == 0 {
        return Err(protocol("sent no status"));
    }
    Ok(head)
}

fn protocol(what: &str) -> Failure {
    Fault::Other(format!("HTTP/2: the server {what}")).into()
}

/// Returns the reason for a stream or connection that ended with an error (section 7).
fn ended(code: u32) -> Fault {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    let name = NAMES.get(code as usize).map(|name| (*name).to_owned());
    let name = name.unwrap_or_else(|| format!("error {code}"));
    Fault::Other(format!("HTTP/2: the server ended the request with {name}"))
}

impl Read for Session {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let piece = self.fill_buf()?;
        let read = piece.len().min(into.len());
        into[..read].copy_from_slice(&piece[..read]);
        self.consume(read);
        Ok(read)
    }
}

/// The body of the current answer.
impl BufRead for Session {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.at == self.data.len() && !self.is_over {
            match self.reset {
                // A server that has answered and does not want the rest of the request.
                Some(frame::NO_ERROR) => self.is_over = true,
                Some(code) => return Err(io::Error::other(ended(code).to_string())),
                None => self.step().map_err(Failure::into_io)?,
            }
        }
        Ok(&self.data[self.at..])
    }

    fn consume(&mut self, read: usize) {
        self.at = (self.at + read).min(self.data.len());
    }
}
