//! Addresses that a check may reach. A site whose names, redirects and links point into the local
//! network must not make the check send requests there (a router, the metadata service of a cloud).

use archivist_core::model::{AddressKind, Reach};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Resolves names, and refuses a host if any of its addresses is forbidden.
#[derive(Clone, Default)]
pub struct Guard {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    names: DefaultResolver,
    reach: Reach,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
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
            kind.owner(),
            kind.remedy()
        )
    }
}

impl std::error::Error for Private {}

impl Resolver for Guard {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let found = self.inner.names.resolve(uri, config, timeout)?;
        self.allow(found.iter().map(|address| address.ip()))
            .map_err(|private| Error::Other(Box::new(private)))?;
        Ok(found)
    }
}

impl Guard {
    /// Returns a guard for these limits.
    pub fn new(reach: Reach) -> Guard {
        let names = DefaultResolver::default();
        Guard {
            inner: Arc::new(Inner { names, reach }),
        }
    }

    fn allow(&self, mut addresses: impl Iterator<Item = IpAddr>) -> Result<(), Private> {
        match addresses.find(|ip| !self.inner.reach.allows(*ip)) {
            Some(refused) => Err(Private(refused)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(reach: &str, addresses: &[&str]) -> Result<(), String> {
        let guard = Guard::new(Reach::parse(reach).unwrap());
        let addresses = addresses.iter().map(|ip| ip.parse().unwrap());
        guard
            .allow(addresses)
            .map_err(|refused| refused.to_string())
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
