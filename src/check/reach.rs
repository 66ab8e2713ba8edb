//! Who may be asked. A public site whose redirects and links point into the network that the
//! check runs in must not have it knock there (the metadata service of a cloud, a router).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, OnceLock};
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Looks up names, and refuses addresses of networks that are nobody else's once the check has
/// begun at a public one. A site of one's own network may point wherever it likes.
#[derive(Clone, Default)]
pub struct Reach {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    names: DefaultResolver,
    /// Whether the first address of all was a public one.
    began_public: OnceLock<bool>,
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reach")
    }
}

/// Why an address was refused.
#[derive(Debug, PartialEq, Eq)]
pub struct Private(pub IpAddr);

impl fmt::Display for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is an address of a private network, and this began at a public one",
            self.0
        )
    }
}

impl std::error::Error for Private {}

impl Resolver for Reach {
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

impl Reach {
    /// Judges the addresses of a host; those of the first one decide what later ones may be.
    fn allow(&self, mut addresses: impl Iterator<Item = IpAddr>) -> Result<(), Private> {
        let private = addresses.find(|ip| !is_public(*ip));
        let began_public = *self.inner.began_public.get_or_init(|| private.is_none());
        match private {
            Some(private) if began_public => Err(Private(private)),
            _ => Ok(()),
        }
    }
}

/// Whether an address is one of the Internet's (IANA special-purpose registries).
fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let protocol = a == 192 && b == 0 && c == 0;
    let benchmark = a == 198 && (b == 18 || b == 19);
    !(a == 0 || a >= 240 || shared || protocol || benchmark)
        && !(ip.is_private() || ip.is_loopback() || ip.is_link_local())
        && !(ip.is_documentation() || ip.is_multicast())
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, ..] = ip.segments();
    let embedded = |high: u16, low: u16| {
        let [(a, b), (c, d)] = [high, low].map(|it| ((it >> 8) as u8, it as u8));
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    if let Some(v4) = ip.to_ipv4_mapped() {
        return is_public_v4(v4);
    }
    match (a, b) {
        // Translators (RFC 6052) and 6to4 carry an address of the other kind.
        (0x64, 0xff9b) => embedded(ip.segments()[6], ip.segments()[7]),
        (0x2002, high) => embedded(high, ip.segments()[2]),
        (0x2001, 0xdb8) => false,
        _ => (0x2000..0x4000).contains(&a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_addresses_they_are() {
        for public in [
            "1.1.1.1",
            "93.184.216.34",
            "172.32.0.1",
            "2606:2800:220:1::1",
            "64:ff9b::101:101",
            "::ffff:1.1.1.1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2001:db8::1",
        ];
        for private in private {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn from_a_public_site_no_private_one_is_asked() {
        let ask = |reach: &Reach, ip: &str| reach.allow([ip.parse().unwrap()].into_iter());
        let own = Reach::default();
        for ip in ["127.0.0.1", "1.1.1.1", "127.0.0.2"] {
            assert_eq!(ask(&own, ip), Ok(()));
        }
        let reach = Reach::default();
        assert_eq!(ask(&reach, "1.1.1.1"), Ok(()));
        let refused = ask(&reach, "127.0.0.1").unwrap_err().to_string();
        assert!(
            refused.contains("127.0.0.1 is an address of a private network"),
            "{refused}"
        );
        assert_eq!(ask(&reach, "9.9.9.9"), Ok(()));
    }
}
