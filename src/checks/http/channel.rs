//! A connection with its protocol: what sends a request and reads the answer.

use super::client::Patience;
use super::connection::{Connection, Protocol};
use super::fault::{CheckFailure, Fault, NO_ANSWER, unsent};
use super::framing::Framing;
use super::head::{self, Head};
use super::http2::{self, Session};
use super::request::{self, Ask};
use std::io::BufRead;
use std::time::Instant;

/// Most bytes of the headers of one answer: twice those of Chromium.
const HEADERS: usize = 512 << 10;
/// Most interim answers (1xx) before the answer.
const INTERIM: usize = 20;
/// Bytes that show whether an answer is HTTP/2.
const START: usize = 9;

/// A connection that speaks HTTP/1.1 or HTTP/2.
pub enum Channel {
    /// HTTP/1.1.
    Old(Box<Connection>),
    /// HTTP/2.
    Modern(Box<Session>),
}

impl Channel {
    /// Returns a channel of the protocol that the server chose.
    ///
    /// # Errors
    /// If HTTP/2 cannot start.
    pub fn over(connection: Connection) -> Result<Channel, CheckFailure> {
        Ok(match connection.protocol {
            Protocol::Modern => Channel::Modern(Box::new(Session::new(connection)?)),
            Protocol::Old | Protocol::Unknown => Channel::Old(Box::new(connection)),
        })
    }

    pub fn connection(&self) -> &Connection {
        match self {
            Channel::Old(connection) => connection,
            Channel::Modern(session) => session.connection(),
        }
    }

    pub fn end_at(&mut self, until: Instant) {
        match self {
            Channel::Old(connection) => connection.end_at(until),
            Channel::Modern(session) => session.end_at(until),
        }
    }

    /// Sends a request and reads the headers of the answer.
    pub fn exchange(
        &mut self,
        ask: &Ask<'_>,
        fields: &[(String, Vec<u8>)],
        patience: Patience,
    ) -> Result<(Head, Framing), CheckFailure> {
        self.send_and_read(ask, fields, patience).map_err(|failure| match failure {
            // A server of HTTP/2 alone may choose no protocol and close the connection.
            failure if self.may_want_modern() && failure.is_end() => CheckFailure::Modern,
            failure => self.connection().answerer().explain(failure),
        })
    }

    fn may_want_modern(&self) -> bool {
        let connection = self.connection();
        connection.is_old_offer && connection.protocol == Protocol::Unknown
    }

    fn send_and_read(
        &mut self,
        ask: &Ask<'_>,
        fields: &[(String, Vec<u8>)],
        patience: Patience,
    ) -> Result<(Head, Framing), CheckFailure> {
        let head = match self {
            Channel::Old(connection) => {
                connection.end_at(Instant::now() + patience.connect);
                connection
                    .send(&request::bytes(ask, fields))
                    .map_err(|error| unsent(&error, "sending the request timed out"))?;
                connection.end_at(Instant::now() + patience.read);
                let head = final_head(connection, ask.url.scheme() == "https")?;
                if connection.is_old_offer && is_refusal(&head) {
                    return Err(CheckFailure::Modern);
                }
                head
            }
            Channel::Modern(session) => {
                session.end_at(Instant::now() + patience.read);
                session.exchange(request::modern(ask, fields)?, ask.body)?
            }
        };
        let framing = Framing::of(&head, ask.method == "HEAD").map_err(Fault::Other)?;
        Ok(match (self, framing) {
            (Channel::Modern(_), Framing::Length(_) | Framing::Chunked) => (head, Framing::Close),
            (_, framing) => (head, framing),
        })
    }

    /// The body of the answer, and on HTTP/1.1 all that follows it.
    pub fn body(&mut self) -> &mut (dyn BufRead + Send) {
        match self {
            Channel::Old(connection) => &mut **connection,
            Channel::Modern(session) => &mut **session,
        }
    }

    /// Returns whether another request can be sent after an answer whose body `is_over`.
    pub fn is_reusable(&self, head: &Head, framing: Framing, is_over: bool) -> bool {
        match self {
            Channel::Old(connection) => {
                let is_kept = head.is_modern && !head.lists("connection", "close");
                let has_end = framing != Framing::Close;
                is_over && is_kept && has_end && connection.received().is_empty()
            }
            Channel::Modern(session) => session.is_reusable(),
        }
    }
}

/// Returns whether the server answers only that it wants HTTP/2 (RFC 9110, sections 15.5.22, 15.6.6).
fn is_refusal(head: &Head) -> bool {
    let is_upgrade = || ["h2", "HTTP/2", "HTTP/2.0"].iter().any(|name| head.lists("upgrade", name));
    head.status == 505 || (head.status == 426 && is_upgrade())
}

/// Reads the headers of an answer of HTTP/1.1, and leaves out interim answers.
fn final_head(connection: &mut Connection, is_secure: bool) -> Result<Head, CheckFailure> {
    let mut head = read_head(connection, is_secure)?;
    for _ in 0..INTERIM {
        if !matches!(head.status, 100 | 102..200) {
            break;
        }
        head = read_head(connection, is_secure)?;
    }
    Ok(head)
}

fn read_head(connection: &mut Connection, is_secure: bool) -> Result<Head, CheckFailure> {
    let is_old_offer = connection.is_old_offer;
    let no_http = |bytes: &[u8]| match http2::is_start(bytes) {
        true if is_old_offer => CheckFailure::Modern,
        is_modern => Fault::Other(no_http(is_modern, is_secure).to_owned()).into(),
    };
    let mut searched = 0;
    loop {
        let bytes = connection.received();
        if bytes.len() >= START && !head::may_be_http(bytes) {
            return Err(no_http(bytes));
        }
        if let Some(end) = head::end(bytes, searched) {
            let head = head::parse(&bytes[..end]).ok_or_else(|| no_http(bytes));
            connection.consume(end);
            return head;
        }
        if bytes.len() > HEADERS {
            let reason = format!("the headers are longer than {} KiB", HEADERS >> 10);
            return Err(Fault::Other(reason).into());
        }
        searched = bytes.len().saturating_sub(2);
        let received = connection.receive().map_err(|error| unsent(&error, NO_ANSWER))?;
        if received > 0 {
            continue;
        }
        let bytes = connection.received();
        let length = bytes.len();
        // Without TLS, browsers accept headers that the end of the connection cuts off.
        let cut = Some(bytes).filter(|bytes| !is_secure && bytes.contains(&b'\n'));
        return match cut.and_then(head::parse) {
            Some(head) => {
                connection.consume(length);
                Ok(head)
            }
            None if length == 0 => Err(CheckFailure::Stale),
            None => {
                let reason = "the server closed the connection in the middle of the headers";
                Err(Fault::Other(reason.to_owned()).into())
            }
        };
    }
}

fn no_http(is_modern: bool, is_secure: bool) -> &'static str {
    if !is_modern {
        "the answer is not HTTP"
    } else if is_secure {
        "the server speaks HTTP/2, which it did not choose in the TLS handshake"
    } else {
        "the server speaks HTTP/2 without TLS, which browsers do not"
    }
}
