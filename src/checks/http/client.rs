//! The client: limits for everything, the certificates that the machine trusts, cookies, and no
//! automatic redirects.

use super::answer::CheckAnswer;
use super::channel::Channel;
use super::connection::{Connection, Tls};
use super::cookies::Jar;
use super::fault::{CheckFailure, Fault};
use super::framing::{Body, Framing};
use super::head::Head;
use super::identity::Identity;
use super::request::{self, Ask};
use super::trust::Trust;
use crate::reach::Guard;
use archivist_core::lock;
use archivist_hooks::page::html::one_line;
use std::collections::{HashMap, HashSet};
use std::io::{self, Read};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use url::Url;

pub const USER_AGENT: &str =
    concat!("Mozilla/5.0 (compatible; archivist/", env!("CARGO_PKG_VERSION"), ")");
/// Most idle connections to one server.
const IDLE: usize = 4;
/// Most new connections for one request, if the server refuses it on each.
const ATTEMPTS: usize = 3;
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
        Patience { connect: Duration::from_secs(connect), read: Duration::from_secs(read) }
    }
}

/// How much of a body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
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
    /// Certificate of the client, and the host that gets it.
    identity: Option<(String, Identity)>,
    idle: Mutex<HashMap<String, Vec<Channel>>>,
    /// Origins that want HTTP/2.
    modern: Mutex<HashSet<String>>,
}

impl Shared {
    fn identity_for(&self, url: &Url) -> Option<Identity> {
        let own = self.identity.as_ref();
        let own = own.filter(|(host, _)| url.host_str() == Some(host));
        own.map(|(_, identity)| identity.clone())
    }
}

impl Client {
    /// Returns a client with these limits and this User-Agent.
    pub fn new(
        patience: Patience,
        user_agent: &str,
        guard: &Guard,
        identity: Option<(String, Identity)>,
    ) -> Client {
        let shared = Shared {
            patience,
            user_agent: one_line(user_agent, 300),
            guard: guard.clone(),
            trust: OnceLock::new(),
            identity,
            idle: Mutex::default(),
            modern: Mutex::default(),
        };
        Client { shared: Arc::new(shared), cookies: Arc::default() }
    }

    /// Returns the same client without cookies.
    pub fn without_cookies(&self) -> Client {
        Client { shared: self.shared.clone(), cookies: Arc::default() }
    }

    /// Sends GET; keeps `most` bytes of the body.
    pub fn get(&self, url: &Url, most: u64) -> Result<CheckAnswer, Fault> {
        self.send(&Ask::new("GET", url), |_| Wanted::some(most))
    }

    /// Sends a request; `most` decides from the answer how many bytes of the body to keep.
    pub fn get_some(
        &self,
        ask: &Ask<'_>,
        most: impl FnOnce(&CheckAnswer) -> u64,
    ) -> Result<CheckAnswer, Fault> {
        self.send(ask, |answer| Wanted::some(most(answer)))
    }

    pub fn head(&self, url: &Url) -> Result<CheckAnswer, Fault> {
        self.send(&Ask::new("HEAD", url), |_| Wanted::Nothing)
    }

    /// Sends a request; `wanted` decides from the answer what to read of the body.
    pub fn send(
        &self,
        ask: &Ask<'_>,
        wanted: impl FnOnce(&CheckAnswer) -> Wanted,
    ) -> Result<CheckAnswer, Fault> {
        let cookies = lock(&self.cookies).header(ask.url);
        let fields = request::fields(ask, &self.shared.user_agent, cookies);
        let begun = Instant::now();
        let mut fresh = 0;
        loop {
            let idle = self.idle(ask.url);
            let is_fresh = idle.is_none();
            fresh += usize::from(is_fresh);
            let channel = match idle {
                Some(channel) => Ok(channel),
                None => self.open(ask.url),
            };
            match channel.and_then(|channel| self.exchange(channel, ask, &fields)) {
                Ok(exchange) => return self.read(exchange, ask.url, begun, wanted),
                Err(CheckFailure::Fault(fault)) => return Err(fault),
                Err(CheckFailure::Modern) => {
                    lock(&self.shared.modern).insert(origin(ask.url));
                }
                Err(CheckFailure::Stale) if is_fresh => return Err(closed()),
                Err(CheckFailure::Stale | CheckFailure::Refused) => {}
            }
            if fresh == ATTEMPTS {
                return Err(Fault::Other("the server refused the request".to_owned()));
            }
        }
    }

    fn idle(&self, url: &Url) -> Option<Channel> {
        lock(&self.shared.idle).get_mut(&origin(url))?.pop()
    }

    fn keep(&self, url: &Url, channel: Channel) {
        let mut idle = lock(&self.shared.idle);
        let kept = idle.entry(origin(url)).or_default();
        if kept.len() < IDLE {
            kept.push(channel);
        }
    }

    fn open(&self, url: &Url) -> Result<Channel, CheckFailure> {
        let shared = &*self.shared;
        let tls = || {
            Ok(Tls {
                trust: shared.trust.get_or_init(Trust::of_the_machine).clone()?,
                identity: shared.identity_for(url),
                is_modern: lock(&shared.modern).contains(&origin(url)),
            })
        };
        let connection = Connection::open(url, &shared.guard, shared.patience, tls)?;
        Channel::over(connection)
    }

    /// Sends a request and reads the headers of the answer.
    fn exchange(
        &self,
        mut channel: Channel,
        ask: &Ask<'_>,
        fields: &[(String, Vec<u8>)],
    ) -> Result<Exchange, CheckFailure> {
        let (head, framing) = channel.exchange(ask, fields, self.shared.patience)?;
        Ok(Exchange { channel, head, framing, at: Instant::now() })
    }

    fn read(
        &self,
        exchange: Exchange,
        url: &Url,
        begun: Instant,
        wanted: impl FnOnce(&CheckAnswer) -> Wanted,
    ) -> Result<CheckAnswer, Fault> {
        let Exchange { mut channel, head, framing, at } = exchange;
        let mut answer = CheckAnswer::of(&head, at - begun);
        answer.certificate_expires = channel.connection().expires;
        answer.misses_certificate = channel.connection().answerer().misses_one();
        for cookie in head.values("set-cookie") {
            lock(&self.cookies).set(url, cookie);
        }
        let wanted = wanted(&answer);
        channel.end_at(Instant::now() + self.shared.patience.read);
        let mut body = Body::new(channel.body(), framing);
        match wanted {
            Wanted::Bytes(most) => answer.take_body(&mut body, &head, most),
            Wanted::Start if !answer.is_stream() => answer.take_start(&mut body),
            Wanted::Start | Wanted::Nothing => {}
        }
        if matches!(wanted, Wanted::Bytes(_)) && !answer.is_cut && answer.problem.is_none() {
            let _ = io::copy(&mut (&mut body).take(REST), &mut io::sink());
        }
        let is_over = body.is_over;
        if channel.is_reusable(&head, framing, is_over) {
            self.keep(url, channel);
        }
        Ok(answer)
    }
}

struct Exchange {
    channel: Channel,
    head: Head,
    framing: Framing,
    /// When the headers had arrived.
    at: Instant,
}

impl Wanted {
    fn some(most: u64) -> Wanted {
        if most == 0 { Wanted::Nothing } else { Wanted::Bytes(most) }
    }
}

fn closed() -> Fault {
    Fault::Other("the server closed the connection before it answered".to_owned())
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}
