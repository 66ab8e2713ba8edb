//! HTTP/1.1 client of the checks: limits for everything, the certificate authorities that Debian
//! trusts, and no automatic redirects.

use super::reach::{Guard, Private};
use archivist_hooks::page::html::one_line;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq::http::{HeaderMap, Method, Request};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::transport::{
    ConnectionDetails, Connector, RustlsConnector, TcpConnector, Transport,
};
use ureq::{Agent, Timeout};
use url::Url;

/// Default User-Agent.
pub const USER_AGENT: &str = concat!(
    "Mozilla/5.0 (compatible; archivist/",
    env!("CARGO_PKG_VERSION"),
    ")"
);
/// Most bytes of the headers of one answer.
const HEADERS: usize = 64 << 10;

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

/// Reason for a missing answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// TLS failed: certificate or protocol.
    Tls(String),
    /// A time limit was reached.
    Late(String),
    /// Any other reason.
    Other(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Tls(reason) => write!(f, "TLS: {reason}"),
            Fault::Late(reason) | Fault::Other(reason) => f.write_str(reason),
        }
    }
}

/// One answer.
#[derive(Debug)]
pub struct Answer {
    /// The status number.
    pub status: u16,
    /// Names in lower case; invalid UTF-8 in values is replaced.
    pub headers: Vec<(String, String)>,
    /// Time from the call to the headers.
    pub after: Duration,
    /// Start of the body, as much as was requested.
    pub body: Vec<u8>,
    /// Whether the body is longer.
    pub is_cut: bool,
    /// Why the body is incomplete, if it is.
    pub problem: Option<Fault>,
}

impl Answer {
    /// Returns the first header with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the target of a redirect.
    pub fn location(&self) -> Option<&str> {
        match self.status {
            301 | 302 | 303 | 307 | 308 => self.header("location"),
            _ => None,
        }
    }

    /// Returns the media type, such as `text/html`.
    pub fn media_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        let essence = value.split(';').next().unwrap_or_default();
        essence.trim().to_ascii_lowercase()
    }
}

/// A client. Threads may share it.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
}

impl Client {
    /// Returns a client with these limits and this User-Agent.
    pub fn new(patience: Patience, user_agent: &str, guard: &Guard) -> Client {
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_response_header_size(HEADERS)
            .max_idle_connections_per_host(4)
            .user_agent(one_line(user_agent, 300))
            .timeout_resolve(Some(patience.connect))
            .timeout_connect(Some(patience.connect))
            .timeout_send_request(Some(patience.connect))
            .timeout_recv_response(Some(patience.read))
            .timeout_recv_body(Some(patience.read))
            .build();
        let connector = ().chain(TcpConnector::default()).chain(Tls::default());
        Client {
            agent: Agent::with_parts(config, connector, guard.clone()),
        }
    }

    /// Sends GET; keeps `most` bytes of the body.
    pub fn get(&self, url: &Url, most: u64) -> Result<Answer, Fault> {
        self.ask(Method::GET, url, |_| most)
    }

    /// Sends GET; `most` decides from the answer how many bytes of the body to keep.
    pub fn get_some(&self, url: &Url, most: impl FnOnce(&Answer) -> u64) -> Result<Answer, Fault> {
        self.ask(Method::GET, url, most)
    }

    /// Sends HEAD.
    pub fn head(&self, url: &Url) -> Result<Answer, Fault> {
        self.ask(Method::HEAD, url, |_| 0)
    }

    fn ask(
        &self,
        method: Method,
        url: &Url,
        most: impl FnOnce(&Answer) -> u64,
    ) -> Result<Answer, Fault> {
        let request = Request::builder()
            .method(method)
            .uri(url.as_str())
            .body(())
            .map_err(|error| {
                Fault::Other(format!("failed to make a request of this URL: {error}"))
            })?;
        let begun = Instant::now();
        let response = self.agent.run(request).map_err(fault)?;
        let after = begun.elapsed();
        let (head, body) = response.into_parts();
        let mut answer = Answer {
            status: head.status.as_u16(),
            headers: headers(&head.headers),
            after,
            body: Vec::new(),
            is_cut: false,
            problem: None,
        };
        let most = most(&answer);
        if most > 0 {
            let mut reader = body.into_with_config().limit(u64::MAX).reader();
            let read = reader.by_ref().take(most + 1).read_to_end(&mut answer.body);
            answer.is_cut = answer.body.len() as u64 > most;
            answer
                .body
                .truncate(usize::try_from(most).unwrap_or(usize::MAX));
            answer.problem = read.err().map(|error| fault(ureq::Error::from(error)));
        }
        Ok(answer)
    }
}

fn headers(map: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    map.iter()
        .map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())))
        .collect()
}

/// TLS connector that marks failures of TLS.
#[derive(Debug, Default)]
struct Tls(RustlsConnector);

/// A failure during the TLS handshake.
#[derive(Debug)]
struct NoTls(String);

impl fmt::Display for NoTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoTls {}

impl<In: Transport> Connector<In> for Tls {
    type Out = <RustlsConnector as Connector<In>>::Out;

    fn connect(
        &self,
        details: &ConnectionDetails,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        self.0
            .connect(details, chained)
            .map_err(|error| match error {
                ureq::Error::Timeout(which) => ureq::Error::Timeout(which),
                ureq::Error::Io(error) if is_of_the_network(&error) => ureq::Error::Io(error),
                error => ureq::Error::Other(Box::new(NoTls(in_words(&error)))),
            })
    }
}

/// A broken connection says nothing about TLS, except in the middle of the handshake.
fn is_of_the_network(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    )
}

fn fault(error: ureq::Error) -> Fault {
    match error {
        ureq::Error::Timeout(which) => Fault::Late(late(which).to_owned()),
        ureq::Error::Other(inner) if inner.is::<NoTls>() => Fault::Tls(inner.to_string()),
        ureq::Error::Other(inner) if inner.is::<Private>() => Fault::Other(inner.to_string()),
        error @ (ureq::Error::Rustls(_) | ureq::Error::Tls(_)) => Fault::Tls(in_words(&error)),
        ureq::Error::HostNotFound => Fault::Other("the host is unknown".to_owned()),
        ureq::Error::Io(error) => of_io(&error),
        error => Fault::Other(one_line(&error.to_string(), 300)),
    }
}

fn of_io(error: &io::Error) -> Fault {
    let text = match error.kind() {
        io::ErrorKind::TimedOut => return Fault::Late("the network timed out".to_owned()),
        io::ErrorKind::ConnectionRefused => "the connection was refused".to_owned(),
        io::ErrorKind::ConnectionReset => "the connection was reset".to_owned(),
        io::ErrorKind::UnexpectedEof => {
            "the server closed the connection before it answered".to_owned()
        }
        _ => error.to_string(),
    };
    let about_tls = error
        .get_ref()
        .is_some_and(|inner| inner.is::<rustls::Error>());
    if about_tls {
        Fault::Tls(one_line(&text, 300))
    } else {
        Fault::Other(one_line(&text, 300))
    }
}

fn late(which: Timeout) -> &'static str {
    match which {
        Timeout::Resolve => "resolving the name timed out",
        Timeout::Connect => "connecting timed out",
        Timeout::SendRequest => "sending the request timed out",
        Timeout::RecvResponse => "no answer within the time limit",
        Timeout::RecvBody => "the answer did not end within the time limit",
        _ => "the request timed out",
    }
}

/// Returns the reason for a TLS failure in plain words.
fn in_words(error: &ureq::Error) -> String {
    let inner = match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => error.get_ref().and_then(|inner| inner.downcast_ref()),
        _ => None,
    };
    let Some(error) = inner else {
        return match error {
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                "the server closed the connection".to_owned()
            }
            error => one_line(&error.to_string(), 300),
        };
    };
    use rustls::CertificateError as Certificate;
    let text = match error {
        rustls::Error::InvalidCertificate(
            Certificate::Expired | Certificate::ExpiredContext { .. },
        ) => "the certificate has expired",
        rustls::Error::InvalidCertificate(
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. },
        ) => "the certificate is not valid yet",
        rustls::Error::InvalidCertificate(
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
        ) => "the certificate is for another name",
        rustls::Error::InvalidCertificate(Certificate::UnknownIssuer) => {
            "no authority that this machine trusts has issued the certificate"
        }
        rustls::Error::InvalidCertificate(Certificate::Revoked) => "the certificate was revoked",
        rustls::Error::InvalidMessage(_) => "the server does not speak TLS",
        rustls::Error::General(text) if text.contains("CA cert") => {
            "this machine trusts no authority: install ca-certificates"
        }
        error => return one_line(&error.to_string(), 300),
    };
    text.to_owned()
}
