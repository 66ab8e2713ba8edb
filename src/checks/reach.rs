//! Addresses that a check may reach. A site whose names, redirects and links point into the local
//! network must not make the check send requests there (a router, the metadata service of a cloud).

use crate::http::Fault;
use archivist_core::model::{AddressKind, Reach};
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use url::{Host, Url};

/// Most addresses of a host that are used.
const ADDRESSES: usize = 16;

/// Resolves names, and refuses a host if any of its addresses is forbidden.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    reach: Arc<Reach>,
}

/// Why an address was refused.
#[derive(Debug, PartialEq, Eq)]
pub struct Private(pub IpAddr);

impl fmt::Display for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = AddressKind::of(self.0);
        write!(
            f,
            "{} is an address of {}, which this check does not reach: {}",
            self.0,
            kind.as_text(),
            kind.remedy()
        )
    }
}

impl std::error::Error for Private {}

impl Guard {
    /// Returns a guard for these limits.
    pub fn new(reach: Reach) -> Guard {
        Guard { reach: Arc::new(reach) }
    }

    /// Returns the addresses of the server of a URL, if all of them are allowed. A name lookup takes
    /// at most `longest`.
    pub fn addresses(&self, url: &Url, longest: Duration) -> Result<Vec<SocketAddr>, Fault> {
        let unknown = || Fault::Other("the host is unknown".to_owned());
        let port = url.port_or_known_default().ok_or_else(unknown)?;
        let found = match url.host().ok_or_else(unknown)? {
            Host::Ipv4(ip) => vec![SocketAddr::new(ip.into(), port)],
            Host::Ipv6(ip) => vec![SocketAddr::new(ip.into(), port)],
            Host::Domain(name) => look_up(name.to_owned(), port, longest)?,
        };
        if found.is_empty() {
            return Err(unknown());
        }
        self.allow(found.iter().map(SocketAddr::ip))
            .map_err(|private| Fault::Other(private.to_string()))?;
        Ok(found.into_iter().take(ADDRESSES).collect())
    }

    fn allow(&self, mut addresses: impl Iterator<Item = IpAddr>) -> Result<(), Private> {
        match addresses.find(|ip| !self.reach.allows(*ip)) {
            Some(refused) => Err(Private(refused)),
            None => Ok(()),
        }
    }
}

/// Looks up a name in a thread of its own, because getaddrinfo(3) has no time limit.
fn look_up(name: String, port: u16, longest: Duration) -> Result<Vec<SocketAddr>, Fault> {
    let (found, answer) = channel();
    let look = move || {
        let all = (name.as_str(), port).to_socket_addrs();
        let _ = found.send(all.map(Iterator::collect));
    };
    thread::Builder::new()
        .name("resolve".into())
        .spawn(look)
        .map_err(|error| Fault::Other(format!("failed to start a thread: {error}")))?;
    match answer.recv_timeout(longest) {
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
            Err(Fault::Other("the host is unknown".to_owned()))
        }
        Err(RecvTimeoutError::Timeout) => {
            Err(Fault::Late("resolving the name timed out".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(reach: &str, addresses: &[&str]) -> Result<(), String> {
        let guard = Guard::new(Reach::parse(reach).unwrap());
        let addresses = addresses.iter().map(|ip| ip.parse().unwrap());
        guard.allow(addresses).map_err(|refused| refused.to_string())
    }

    #[test]
    fn one_forbidden_address_refuses_the_host() {
        assert_eq!(allow("public", &["1.1.1.1", "2606:2800:220:1::1"]), Ok(()));
        let refused = allow("public", &["1.1.1.1", "127.0.0.1"]).unwrap_err();
        assert_eq!(
            refused,
            "127.0.0.1 is an address of the machine's loopback, which this check does not reach: \
             Reach=loopback in archivist.conf(5) allows it"
        );
        // What the first answer was decides nothing.
        let guard = Guard::new(Reach::default());
        let ask = |ip: &str| guard.allow([ip.parse().unwrap()].into_iter());
        assert!(ask("127.0.0.1").is_err() && ask("1.1.1.1").is_ok() && ask("10.0.0.1").is_err());
    }

    #[test]
    fn allowed_networks_are_reached_and_metadata_never() {
        assert_eq!(allow("loopback", &["127.0.0.1", "::1"]), Ok(()));
        assert!(allow("loopback", &["192.168.1.1"]).is_err());
        assert_eq!(allow("private", &["192.168.1.1"]), Ok(()));
        let refused = allow("any", &["169.254.169.254"]).unwrap_err();
        assert!(refused.ends_with("nothing allows it"), "{refused}");
    }
}
