//! The client: limits for everything, the certificates that the machine trusts, cookies, and no
//! automatic redirects.

use super::answer::Answer;
use super::connection::Connection;
use super::cookies::Jar;
use super::fault::Fault;
use super::framing::{Body, Framing};
use super::head::{self, Head};
use super::request::{self, Ask};
use super::trust::Trust;
use crate::reach::Guard;
use archivist_hooks::page::html::one_line;
use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use url::Url;

/// Default User-Agent.
pub const USER_AGENT: &str = concat!(
    "Mozilla/5.0 (compatible; archivist/",
    env!("CARGO_PKG_VERSION"),
    ")"
);
/// Most bytes of the headers of one answer: twice those of Chromium.
const HEADERS: usize = 512 << 10;
/// Most interim answers (1xx) before the answer.
const INTERIM: usize = 20;
/// Most idle connections to one server.
const IDLE: usize = 4;
/// Most bytes after the kept ones that are read so that the connection can be used again.
const REST: u64 = 4096;

/// Time limits of one exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// Limit for the name lookup, and for connecting including TLS.
    pub connect: Duration,
    /// Limit until the headers, and then until the body has arrived.
    pub read: Duration,
}

impl Patience {
    /// Returns limits in seconds.
    pub const fn of(connect: u64, read: u64) -> Patience {
        Patience {
            connect: Duration::from_secs(connect),
            read: Duration::from_secs(read),
        }
    }
}

/// How much of a body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing.
    Nothing,
    /// The first bytes, as they are; for a stream, nothing: the next bytes may be hours away.
    Start,
    /// At most this many bytes, decoded.
    Bytes(u64),
}

/// A client. Threads may share it.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    cookies: Arc<Mutex<Jar>>,
}

struct Shared {
    patience: Patience,
    user_agent: String,
    guard: Guard,
    trust: OnceLock<Result<Trust, Fault>>,
    idle: Mutex<HashMap<String, Vec<Connection>>>,
}

/// Why there is no answer.
enum Failure {
    /// A connection that was used before had ended: the request is sent again.
    Stale,
    Fault(Fault),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Fault(fault)
    }
}

impl Client {
    /// Returns a client with these limits and this User-Agent.
    pub fn new(patience: Patience, user_agent: &str, guard: &Guard) -> Client {
        let shared = Shared {
            patience,
            user_agent: one_line(user_agent, 300),
            guard: guard.clone(),
            trust: OnceLock::new(),
            idle: Mutex::default(),
        };
        Client {
            shared: Arc::new(shared),
            cookies: Arc::default(),
        }
    }

    /// Returns the same client without cookies.
    pub fn without_cookies(&self) -> Client {
        Client {
            shared: self.shared.clone(),
            cookies: Arc::default(),
        }
    }

    /// Sends GET; keeps `most` bytes of the body.
    pub fn get(&self, url: &Url, most: u64) -> Result<Answer, Fault> {
        self.send(&Ask::new("GET", url), |_| Wanted::some(most))
    }

    /// Sends GET; `most` decides from the answer how many bytes of the body to keep.
    pub fn get_some(&self, url: &Url, most: impl FnOnce(&Answer) -> u64) -> Result<Answer, Fault> {
        self.send(&Ask::new("GET", url), |answer| Wanted::some(most(answer)))
    }

    /// Sends HEAD.
    pub fn head(&self, url: &Url) -> Result<Answer, Fault> {
        self.send(&Ask::new("HEAD", url), |_| Wanted::Nothing)
    }

    /// Sends a request; `wanted` decides from the answer what to read of the body.
    pub fn send(
        &self,
        ask: &Ask<'_>,
        wanted: impl FnOnce(&Answer) -> Wanted,
    ) -> Result<Answer, Fault> {
        let cookies = lock(&self.cookies).header(ask.url);
        let request = request::bytes(ask, &self.shared.user_agent, cookies);
        let begun = Instant::now();
        while let Some(connection) = self.idle(ask.url) {
            match self.exchange(connection, ask, &request) {
                Ok(exchange) => return self.read(exchange, ask.url, begun, wanted),
                Err(Failure::Fault(fault)) => return Err(fault),
                Err(Failure::Stale) => {}
            }
        }
        let trust = || {
            let trust = self.shared.trust.get_or_init(Trust::of_the_machine);
            trust.clone()
        };
        let Shared {
            guard, patience, ..
        } = &*self.shared;
        let connection = Connection::open(ask.url, guard, *patience, trust)?;
        let exchange =
            self.exchange(connection, ask, &request)
                .map_err(|failure| match failure {
                    Failure::Fault(fault) => fault,
                    Failure::Stale => Fault::Other(
                        "the server closed the connection before it answered".to_owned(),
                    ),
                })?;
        self.read(exchange, ask.url, begun, wanted)
    }

    fn idle(&self, url: &Url) -> Option<Connection> {
        lock(&self.shared.idle).get_mut(&origin(url))?.pop()
    }

    fn keep(&self, url: &Url, connection: Connection) {
        let mut idle = lock(&self.shared.idle);
        let kept = idle.entry(origin(url)).or_default();
        if kept.len() < IDLE {
            kept.push(connection);
        }
    }

    /// Sends a request and reads the headers of the answer.
    fn exchange(
        &self,
        mut connection: Connection,
        ask: &Ask<'_>,
        request: &[u8],
    ) -> Result<Exchange, Failure> {
        let Patience { connect, read } = self.shared.patience;
        connection.end_at(Instant::now() + connect);
        connection
            .send(request)
            .map_err(|error| unsent(&error, "sending the request timed out"))?;
        connection.end_at(Instant::now() + read);
        let is_secure = ask.url.scheme() == "https";
        let mut head = read_head(&mut connection, is_secure)?;
        for _ in 0..INTERIM {
            if !matches!(head.status, 100 | 102..200) {
                break;
            }
            head = read_head(&mut connection, is_secure)?;
        }
        let framing = Framing::of(&head, ask.method == "HEAD").map_err(Fault::Other)?;
        Ok(Exchange {
            connection,
            head,
            framing,
            at: Instant::now(),
        })
    }

    fn read(
        &self,
        exchange: Exchange,
        url: &Url,
        begun: Instant,
        wanted: impl FnOnce(&Answer) -> Wanted,
    ) -> Result<Answer, Fault> {
        let Exchange {
            mut connection,
            head,
            framing,
            at,
        } = exchange;
        let mut answer = Answer::of(&head, at - begun);
        answer.certificate_expires = connection.expires;
        for cookie in head.values("set-cookie") {
            lock(&self.cookies).set(url, cookie);
        }
        let wanted = wanted(&answer);
        connection.end_at(Instant::now() + self.shared.patience.read);
        let mut body = Body::new(&mut connection, framing);
        match wanted {
            Wanted::Bytes(most) => answer.take_body(&mut body, &head, most),
            Wanted::Start if !answer.is_stream() => answer.take_start(&mut body),
            Wanted::Start | Wanted::Nothing => {}
        }
        if matches!(wanted, Wanted::Bytes(_)) && !answer.is_cut && answer.problem.is_none() {
            let _ = io::copy(&mut (&mut body).take(REST), &mut io::sink());
        }
        let is_over = body.is_over;
        let is_kept = head.is_modern && !head.lists("connection", "close");
        if is_over && is_kept && framing != Framing::Close && connection.received().is_empty() {
            self.keep(url, connection);
        }
        Ok(answer)
    }
}

struct Exchange {
    connection: Connection,
    head: Head,
    framing: Framing,
    /// When the headers had arrived.
    at: Instant,
}

impl Wanted {
    fn some(most: u64) -> Wanted {
        if most == 0 {
            Wanted::Nothing
        } else {
            Wanted::Bytes(most)
        }
    }
}

fn read_head(connection: &mut Connection, is_secure: bool) -> Result<Head, Failure> {
    let no_http = || Failure::Fault(Fault::Other("the answer is not HTTP".to_owned()));
    let mut searched = 0;
    loop {
        let bytes = connection.received();
        if !head::may_be_http(bytes) {
            return Err(no_http());
        }
        if let Some(end) = head::end(bytes, searched) {
            let head = head::parse(&bytes[..end]);
            connection.consume(end);
            return head.ok_or_else(no_http);
        }
        if bytes.len() > HEADERS {
            let reason = format!("the headers are longer than {} KiB", HEADERS >> 10);
            return Err(Fault::Other(reason).into());
        }
        searched = bytes.len().saturating_sub(2);
        let received = connection
            .receive()
            .map_err(|error| unsent(&error, "no answer within the time limit"))?;
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
            None if length == 0 => Err(Failure::Stale),
            None => {
                let reason = "the server closed the connection in the middle of the headers";
                Err(Fault::Other(reason.to_owned()).into())
            }
        };
    }
}

/// Returns the reason why no answer arrived.
fn unsent(error: &io::Error, late: &str) -> Failure {
    match error.kind() {
        io::ErrorKind::TimedOut => Fault::Late(late.to_owned()).into(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => Failure::Stale,
        _ => Fault::of(error).into(),
    }
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
