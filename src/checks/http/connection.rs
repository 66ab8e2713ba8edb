//! One connection: TCP or TLS, with a time limit for each step.

use super::client::Patience;
use super::fault::{CheckFailure, Fault};
use super::identity::{Answerer, Identity};
use super::trust::{Trust, in_words};
use crate::reach::Guard;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConnection, Error, StreamOwned};
use std::io::{self, BufRead, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::{Host, Url};

/// Names of protocols in the TLS handshake (RFC 7301).
const MODERN: &[u8] = b"h2";
const OLD: &[u8] = b"http/1.1";
/// Bytes that are read at once.
const PIECE: usize = 16 << 10;

pub struct Connection {
    stream: Stream,
    buffer: Vec<u8>,
    /// Start of the bytes of the buffer that are not consumed.
    at: usize,
    /// End of validity of the server's certificate, in seconds since 1970.
    pub expires: Option<i64>,
    /// Protocol that the server chose in the TLS handshake.
    pub protocol: Protocol,
    /// Whether the client offered HTTP/1.1 alone: the server may want HTTP/2.
    pub is_old_offer: bool,
    answerer: Arc<Answerer>,
}

/// Result of the negotiation of the protocol (RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// No TLS, or the server chose nothing.
    Unknown,
    /// HTTP/1.1.
    Old,
    /// HTTP/2.
    Modern,
}

pub struct Tls {
    pub trust: Trust,
    pub identity: Option<Identity>,
    /// Whether the server may choose HTTP/2.
    pub is_modern: bool,
}

enum Stream {
    Plain(Timed),
    Secure(Box<StreamOwned<ClientConnection, Timed>>),
}

/// A socket whose calls end at a time.
struct Timed {
    socket: TcpStream,
    until: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(left)
    }
}

/// A socket reports its time limit as "would block".
fn named(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.left()?))?;
        self.socket.read(into).map_err(named)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.left()?))?;
        self.socket.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl Connection {
    /// Connects to the server of a URL, if the guard allows each of its addresses.
    pub fn open(
        url: &Url,
        guard: &Guard,
        patience: Patience,
        tls: impl FnOnce() -> Result<Tls, Fault>,
    ) -> Result<Connection, CheckFailure> {
        let addresses = guard.addresses(url, patience.connect)?;
        let until = Instant::now() + patience.connect;
        let socket = reach(&addresses, until)?;
        let _ = socket.set_nodelay(true);
        let socket = Timed { socket, until };
        if url.scheme() != "https" {
            return Ok(Connection::over(Stream::Plain(socket), Arc::default()));
        }
        let name = server_name(url).ok_or_else(|| {
            let reason = "the host of this URL cannot be the name in a certificate";
            Fault::Tls(reason.to_owned())
        })?;
        let tls = tls()?;
        let answerer = Arc::new(Answerer::new(tls.identity));
        let is_old_offer = !tls.is_modern;
        let protocols: &[&[u8]] = if tls.is_modern { &[MODERN, OLD] } else { &[OLD] };
        let protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let config = tls.trust.config(&answerer);
        let tls = ClientConnection::new_with_alpn(config, name, protocols)
            .map_err(|error| Fault::Tls(in_words(&error)))?;
        let mut stream = StreamOwned::new(tls, socket);
        while stream.conn.is_handshaking() {
            let done = stream.conn.complete_io(&mut stream.sock);
            done.map_err(|error| {
                if is_old_offer && wants_other_protocol(&error) {
                    CheckFailure::Modern
                } else {
                    answerer.explain(handshake_fault(error).into())
                }
            })?;
        }
        let sent = stream.conn.peer_certificates().unwrap_or_default();
        let expires = sent.first().and_then(super::issuer::end_of_validity);
        let protocol = match stream.conn.alpn_protocol() {
            Some(MODERN) => Protocol::Modern,
            Some(_) => Protocol::Old,
            None => Protocol::Unknown,
        };
        let mut connection = Connection::over(Stream::Secure(Box::new(stream)), answerer);
        connection.expires = expires;
        (connection.protocol, connection.is_old_offer) = (protocol, is_old_offer);
        Ok(connection)
    }

    fn over(stream: Stream, answerer: Arc<Answerer>) -> Connection {
        Connection {
            stream,
            buffer: Vec::new(),
            at: 0,
            expires: None,
            protocol: Protocol::Unknown,
            is_old_offer: false,
            answerer,
        }
    }

    /// What the client answers to a server that asks for a certificate.
    pub fn answerer(&self) -> &Arc<Answerer> {
        &self.answerer
    }

    pub fn end_at(&mut self, until: Instant) {
        match &mut self.stream {
            Stream::Plain(socket) => socket.until = until,
            Stream::Secure(stream) => stream.sock.until = until,
        }
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Secure(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Waits for more bytes and appends them to those that are not consumed; returns how many.
    pub fn receive(&mut self) -> io::Result<usize> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let before = self.buffer.len();
        self.buffer.resize(before + PIECE, 0);
        let read = match &mut self.stream {
            Stream::Plain(socket) => socket.read(&mut self.buffer[before..]),
            // Many servers close a connection without TLS's own end; browsers do not mind.
            Stream::Secure(stream) => match stream.read(&mut self.buffer[before..]) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                read => read,
            },
        };
        self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
        read
    }

    /// Returns the received bytes that are not consumed.
    pub fn received(&self) -> &[u8] {
        &self.buffer[self.at..]
    }
}

impl Read for Connection {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let piece = self.fill_buf()?;
        let read = piece.len().min(into.len());
        into[..read].copy_from_slice(&piece[..read]);
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Connection {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.received().is_empty() {
            self.receive()?;
        }
        Ok(self.received())
    }

    fn consume(&mut self, read: usize) {
        self.at = (self.at + read).min(self.buffer.len());
    }
}

/// Connects to the first address that answers. Each address has its part of the time, so that one
/// that is dead does not take the time of the others.
fn reach(addresses: &[SocketAddr], until: Instant) -> Result<TcpStream, Fault> {
    let mut failed = Fault::Other("the host is unknown".to_owned());
    for (tried, address) in addresses.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        let part = left / u32::try_from(addresses.len() - tried).unwrap_or(1);
        if part.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(address, part) {
            Ok(socket) => return Ok(socket),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                failed = Fault::Late("connecting timed out".to_owned());
            }
            Err(error) => failed = Fault::of(&error),
        }
    }
    Err(failed)
}

fn server_name(url: &Url) -> Option<ServerName<'static>> {
    match url.host()? {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            ServerName::try_from(name.to_owned()).ok()
        }
        Host::Ipv4(ip) => Some(ServerName::from(std::net::IpAddr::from(ip))),
        Host::Ipv6(ip) => Some(ServerName::from(std::net::IpAddr::from(ip))),
    }
}

/// Returns whether the server speaks none of the offered protocols.
fn wants_other_protocol(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    inner == Some(&Error::AlertReceived(AlertDescription::NoApplicationProtocol))
}

/// A broken connection says nothing about TLS, except in the middle of the handshake.
fn handshake_fault(error: io::Error) -> Fault {
    if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
        return Fault::of_tls(inner);
    }
    match error.kind() {
        io::ErrorKind::TimedOut => Fault::Late("connecting timed out".to_owned()),
        io::ErrorKind::UnexpectedEof => Fault::Tls("the server closed the connection".to_owned()),
        _ => Fault::of(&error),
    }
}
