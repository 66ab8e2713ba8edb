//! HTTP/2 by the crate h2, for servers that refuse HTTP/1.1; the client asks for HTTP/2 only after
//! that. One request at a time on each connection.
//!
//! h2 is stricter than Chromium. It refuses an answer with `Connection:` or with a body of another
//! length than announced. Only servers of HTTP/2 alone meet that: all others are asked by
//! HTTP/1.1.
//!
//! h2 is asynchronous, the checks are not. It reads and writes a pipe in memory; [`Session`] carries
//! the bytes between the pipe and the [`Connection`], which has the time limits. No runtime is
//! required, because the session polls everything after each step.

use super::connection::Connection;
use super::fault::{CheckFailure, Fault, NO_ANSWER, unsent};
use super::head::Head;
use bytes::Bytes;
use h2::client::{self, SendRequest};
use h2::{Error, Reason, RecvStream};
use http::{Request, Response};
use std::future::Future;
use std::io::{self, BufRead, Read};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// Most bytes of the headers of one answer, as of HTTP/1.1.
const HEADERS: u32 = 512 << 10;
/// Bytes of a body that the server may send before it gets permission for more; of the whole
/// connection, more. Both are those of Chromium.
const WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;
/// Bytes that the pipe holds in each direction.
const PIPE: usize = 64 << 10;
/// Bytes that are sent at once.
const PIECE: usize = 16 << 10;
/// Bytes of the start of a frame (RFC 9113, section 4.1).
const FRAME_START: usize = 9;

/// A connection that speaks HTTP/2, with its current answer.
pub struct Session {
    connection: Connection,
    /// The end of the pipe that h2 does not have.
    pipe: DuplexStream,
    driver: client::Connection<DuplexStream, Bytes>,
    sender: SendRequest<Bytes>,
    is_closed: bool,
    body: Option<RecvStream>,
    /// Received part of the body that was not read yet.
    data: Bytes,
}

impl Session {
    /// Returns a session over a new connection. Sends nothing before the first request.
    ///
    /// # Errors
    /// If h2 cannot start.
    pub fn new(connection: Connection) -> Result<Session, CheckFailure> {
        let (pipe, own) = tokio::io::duplex(PIPE);
        let mut builder = client::Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEADERS);
        let handshake = pin!(builder.handshake(own));
        // It writes to the pipe alone, and does not wait for the server.
        let (sender, driver) = match handshake.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(begun) => begun.map_err(|error| failure(&error))?,
            Poll::Pending => return Err(CheckFailure::Stale),
        };
        Ok(Session {
            connection,
            pipe,
            driver,
            sender,
            is_closed: false,
            body: None,
            data: Bytes::new(),
        })
    }

    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    pub fn end_at(&mut self, until: Instant) {
        self.connection.end_at(until);
    }

    /// Returns whether another request can be sent: the last answer is complete.
    pub fn is_reusable(&self) -> bool {
        let is_complete = self.body.as_ref().is_some_and(RecvStream::is_end_stream);
        is_complete && self.data.is_empty() && !self.is_closed
    }

    /// Sends a request and waits for the headers of the answer.
    ///
    /// # Errors
    /// If the connection or h2 fails, or the server refuses the request.
    pub fn exchange(
        &mut self,
        request: Request<()>,
        body: Option<&[u8]>,
    ) -> Result<Head, CheckFailure> {
        let mut sender = self.sender.clone();
        self.drive(|context| sender.poll_ready(context))?;
        let body = body.filter(|body| !body.is_empty());
        let sent = sender.send_request(request, body.is_none());
        let (mut answer, mut upload) = sent.map_err(|error| failure(&error))?;
        if let Some(body) = body {
            let sent = upload.send_data(Bytes::copy_from_slice(body), true);
            sent.map_err(|error| failure(&error))?;
        }
        let answer = self.drive(|context| Pin::new(&mut answer).poll(context))?;
        let head = head(&answer);
        (self.body, self.data) = (Some(answer.into_body()), Bytes::new());
        Ok(head)
    }

    /// Carries bytes between h2 and the server until `poll` returns a value.
    fn drive<T>(
        &mut self,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<Result<T, Error>>,
    ) -> Result<T, CheckFailure> {
        let context = &mut Context::from_waker(Waker::noop());
        loop {
            let is_pending =
                !self.is_closed && Pin::new(&mut self.driver).poll(context).is_pending();
            self.is_closed = !is_pending;
            let has_sent = self.send(context)?;
            match poll(context) {
                Poll::Ready(done) => return done.map_err(|error| failure(&error)),
                Poll::Pending if self.is_closed => return Err(CheckFailure::Stale),
                // h2 may have more to send.
                Poll::Pending if has_sent => {}
                Poll::Pending => self.receive(context)?,
            }
        }
    }

    /// Sends what h2 has written; returns whether that was anything.
    fn send(&mut self, context: &mut Context<'_>) -> Result<bool, CheckFailure> {
        let mut has_sent = false;
        loop {
            let mut piece = [0; PIECE];
            let mut piece = ReadBuf::new(&mut piece);
            let read = Pin::new(&mut self.pipe).poll_read(context, &mut piece);
            if read.is_pending() || piece.filled().is_empty() {
                return Ok(has_sent);
            }
            let sent = self.connection.send(piece.filled());
            sent.map_err(|error| unsent(&error, "sending the request timed out"))?;
            has_sent = true;
        }
    }

    /// Waits for bytes of the server, and hands them to h2.
    fn receive(&mut self, context: &mut Context<'_>) -> Result<(), CheckFailure> {
        let received = self.connection.fill_buf();
        let received = received.map_err(|error| unsent(&error, NO_ANSWER))?;
        if received.is_empty() {
            return Err(CheckFailure::Stale);
        }
        if let Poll::Ready(Ok(written)) = Pin::new(&mut self.pipe).poll_write(context, received) {
            self.connection.consume(written);
        }
        Ok(())
    }
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

impl BufRead for Session {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Some(mut body) = self.body.take() {
            let mut next = Ok(Some(Bytes::new()));
            while self.data.is_empty() && matches!(next, Ok(Some(_))) {
                next = self.drive(|context| body.poll_data(context).map(until_end));
                if let Ok(Some(data)) = &next {
                    // The server may send as much again.
                    let _ = body.flow_control().release_capacity(data.len());
                    self.data = data.clone();
                }
            }
            self.body = Some(body);
            next.map_err(CheckFailure::into_io)?;
        }
        Ok(&self.data)
    }

    fn consume(&mut self, read: usize) {
        let _ = self.data.split_to(read.min(self.data.len()));
    }
}

/// A server that has answered and does not want the rest of the request resets the stream without an
/// error (RFC 9113, section 8.1).
fn until_end(next: Option<Result<Bytes, Error>>) -> Result<Option<Bytes>, Error> {
    match next.transpose() {
        Err(error) if error.is_reset() && error.reason() == Some(Reason::NO_ERROR) => Ok(None),
        next => next,
    }
}

fn head(answer: &Response<RecvStream>) -> Head {
    let fields = answer.headers().iter();
    Head {
        status: answer.status().as_u16(),
        is_modern: true,
        headers: fields
            .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
            .collect(),
    }
}

fn failure(error: &Error) -> CheckFailure {
    let is_end = error.is_go_away() && error.is_remote();
    match error.reason() {
        Some(Reason::REFUSED_STREAM) => CheckFailure::Refused,
        Some(Reason::NO_ERROR) if is_end => CheckFailure::Refused,
        _ => Fault::Other(format!("HTTP/2: {error}")).into(),
    }
}

/// Returns whether these first bytes of an answer are HTTP/2: SETTINGS, or GOAWAY for a client that
/// does not speak HTTP/2 (RFC 9113, section 6).
pub fn is_start(bytes: &[u8]) -> bool {
    let Some([0, high, low, kind, 0, 0, 0, 0, 0]) = bytes.get(..FRAME_START) else {
        return false;
    };
    let length = u16::from_be_bytes([*high, *low]);
    (*kind == 4 && length.is_multiple_of(6)) || (*kind == 7 && length >= 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_of_http_2_is_recognized() {
        assert!(is_start(&[0, 0, 0, 4, 0, 0, 0, 0, 0]));
        assert!(is_start(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]));
        assert!(is_start(&[0, 0, 8, 7, 0, 0, 0, 0, 0]));
        for other in [
            &b"HTTP/1.1 200 OK"[..],
            b"SSH-2.0-OpenSSH",
            &[0, 0, 5, 4, 0, 0, 0, 0, 0],
            &[0, 0, 6, 4, 1, 0, 0, 0, 0],
            &[0, 0, 6, 4, 0, 0, 0, 0, 1],
            &[0, 0, 0, 4, 0, 0, 0, 0],
        ] {
            assert!(!is_start(other), "{other:?}");
        }
    }
}
