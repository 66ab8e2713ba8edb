//! Addresses that hooks and checks may reach: those of the Internet, and others only if a start URL
//! names such a network or the administrator allows it. A page must not make a hook send requests
//! to servers on the machine or in its networks.

use crate::model::Subnet;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;
use std::sync::LazyLock;
use url::{Host, Url};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    Public,
    /// The machine's loopback.
    Loopback,
    /// In a network that is not part of the Internet (IANA special-purpose registries).
    Private,
    /// Link-local, multicast, or the metadata service of a cloud: never reached.
    Never,
}

/// Link-local and multicast networks, and the metadata services of clouds in other networks: Azure,
/// Alibaba, Oracle, Amazon, Google.
const NEVER: &[&str] = &[
    "169.254.0.0/16",
    "224.0.0.0/4",
    "100.100.100.200/32",
    "168.63.129.16/32",
    "192.0.0.192/32",
    "fe80::/10",
    "ff00::/8",
    "fd00:ec2::254/128",
    "fd20:ce::254/128",
];

/// The unspecified address also leads to the loopback.
const LOOPBACK: &[&str] = &["127.0.0.0/8", "0.0.0.0/8", "::1/128", "::/128"];

/// All of IPv6 except 2000::/3, which is the Internet, and the well-known prefix of NAT64.
const PRIVATE: &[&str] = &[
    "10.0.0.0/8",
    "100.64.0.0/10",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "240.0.0.0/4",
    "64:ff9b:1::/48",
    "100::/8",
    "200::/7",
    "400::/6",
    "800::/5",
    "1000::/4",
    "2001::/32",
    "2001:db8::/32",
    "3fff::/20",
    "4000::/2",
    "8000::/1",
];

/// Domains that public name servers do not have (RFC 6762, RFC 8375 and common local ones).
const LOCAL_NAMES: &[&str] = &[
    "local",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "localdomain",
    "home.arpa",
];

/// Returns the networks of a table, and the IPv6 networks that lead to its IPv4 networks: through a
/// translator (NAT64, RFC 6052) and a tunnel (6to4, RFC 3056).
fn networks(table: &[&str]) -> Vec<Subnet> {
    let plain = table.iter().filter_map(|text| text.parse::<Subnet>().ok()).collect::<Vec<_>>();
    let embedded = plain.iter().copied().flat_map(embedded);
    plain.iter().copied().chain(embedded).collect()
}

fn embedded(subnet: Subnet) -> Vec<Subnet> {
    let IpAddr::V4(v4) = subnet.address() else {
        return Vec::new();
    };
    let v4 = u128::from(v4.to_bits());
    let forms = [(0x64_ff9b_u128 << 96 | v4, 96), (0x2002_u128 << 112 | v4 << 80, 16)].map(
        |(bits, more)| {
            let address = Ipv6Addr::from_bits(bits).into();
            Subnet::new(address, more + subnet.prefix())
        },
    );
    forms.into_iter().flatten().collect()
}

static NEVER_NETWORKS: LazyLock<Vec<Subnet>> = LazyLock::new(|| networks(NEVER));
static LOOPBACK_NETWORKS: LazyLock<Vec<Subnet>> = LazyLock::new(|| networks(LOOPBACK));
static PRIVATE_NETWORKS: LazyLock<Vec<Subnet>> = LazyLock::new(|| networks(PRIVATE));

/// Returns the networks that are never reached; units/ has them in drop-ins.
pub fn never() -> &'static [Subnet] {
    &NEVER_NETWORKS
}

/// Returns the private networks; units/ has them in the script that closes a crawl's own network.
pub fn private() -> &'static [Subnet] {
    &PRIVATE_NETWORKS
}

impl AddressKind {
    /// Returns the kind of an address; for an IPv6 address that stands for an IPv4 address, the
    /// kind of that.
    pub fn of(ip: IpAddr) -> AddressKind {
        let ip = ip.to_canonical();
        let within = |networks: &[Subnet]| networks.iter().any(|network| network.contains(ip));
        if within(&NEVER_NETWORKS) {
            AddressKind::Never
        } else if within(&LOOPBACK_NETWORKS) {
            AddressKind::Loopback
        } else if within(&PRIVATE_NETWORKS) {
            AddressKind::Private
        } else {
            AddressKind::Public
        }
    }

    /// Returns the name of the kind, for messages.
    pub fn as_text(self) -> &'static str {
        match self {
            AddressKind::Public => "the Internet",
            AddressKind::Loopback => "the machine's loopback",
            AddressKind::Private => "a private network",
            AddressKind::Never => "a link-local, multicast or metadata network",
        }
    }

    /// Returns which setting allows it, for messages.
    pub fn remedy(self) -> &'static str {
        match self {
            AddressKind::Public => "it is allowed",
            AddressKind::Loopback => "Reach=loopback in archivist.conf(5) allows it",
            AddressKind::Private => "Reach=private in archivist.conf(5) allows it",
            AddressKind::Never => "nothing allows it",
        }
    }
}

/// Addresses allowed in addition to the Internet. Its text form is the word of the configuration:
/// `public`, `any`, or `loopback`, `private` and networks, separated by blanks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The machine's loopback.
    pub loopback: bool,
    pub private: bool,
    subnets: Vec<Subnet>,
}

impl Reach {
    /// Everything except what is never reached.
    pub fn any() -> Reach {
        Reach { loopback: true, private: true, subnets: Vec::new() }
    }

    /// The machine's loopback.
    pub fn loopback() -> Reach {
        Reach { loopback: true, ..Reach::default() }
    }

    /// Parses the text form; `None` if a word is neither known nor a network, or is a network that
    /// is never reached.
    pub fn parse(text: &str) -> Option<Reach> {
        let words = text.split([' ', '\t', ',']).filter(|word| !word.is_empty());
        words.map(Reach::word).try_fold(Reach::default(), |reach, word| Some(reach.and(&word?)))
    }

    fn word(word: &str) -> Option<Reach> {
        let none = Reach::default();
        Some(match word {
            "public" => none,
            "any" => Reach::any(),
            "loopback" => Reach { loopback: true, ..none },
            "private" => Reach { private: true, ..none },
            network => {
                let network = network.parse::<Subnet>().ok()?;
                if never().iter().any(|never| never.covers(network)) {
                    return None;
                }
                Reach { subnets: vec![network], ..none }
            }
        })
    }

    /// Returns what a start URL allows by itself: the kind of network of its host, by address, by
    /// the table of hosts, or by a name that public name servers do not have. Of `local`, the public
    /// networks of the machine, it allows only the address itself.
    pub fn of_url(url: &str, hosts: &Hosts, local: &[Subnet]) -> Reach {
        let url = Url::parse(url).ok();
        let host = url.as_ref().and_then(Url::host);
        match host {
            Some(Host::Ipv4(ip)) => Reach::of_address(ip.into(), local),
            Some(Host::Ipv6(ip)) => Reach::of_address(ip.into(), local),
            Some(Host::Domain(name)) => Reach::of_name(name, hosts, local),
            None => Reach::default(),
        }
    }

    fn of_address(ip: IpAddr, local: &[Subnet]) -> Reach {
        let ip = ip.to_canonical();
        let kind = AddressKind::of(ip);
        let is_local = kind == AddressKind::Public && local.iter().any(|net| net.contains(ip));
        Reach {
            loopback: kind == AddressKind::Loopback,
            private: kind == AddressKind::Private,
            subnets: is_local.then(|| Subnet::host(ip)).into_iter().collect(),
        }
    }

    fn of_name(name: &str, hosts: &Hosts, local: &[Subnet]) -> Reach {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let below = |parent: &str| {
            let rest = name.strip_suffix(parent);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let none = Reach::default();
        if below("localhost") {
            Reach { loopback: true, ..none }
        } else if let Some(known) = hosts.addresses(&name) {
            let each = known.iter().map(|ip| Reach::of_address(*ip, local));
            each.fold(none, |all, one| all.and(&one))
        } else if !name.contains('.') || LOCAL_NAMES.iter().any(|parent| below(parent)) {
            Reach { private: true, ..none }
        } else {
            none
        }
    }

    /// Returns the union.
    pub fn and(mut self, other: &Reach) -> Reach {
        self.loopback |= other.loopback;
        self.private |= other.private;
        for subnet in &other.subnets {
            if !self.subnets.contains(subnet) {
                self.subnets.push(*subnet);
            }
        }
        self
    }

    /// Returns whether it is the Internet alone, or the Internet and the loopback.
    pub fn is_without_private(&self) -> bool {
        let meets = |net: &Subnet| {
            let mut private = PRIVATE_NETWORKS.iter();
            private.any(|other| other.covers(*net) || net.covers(*other))
        };
        !self.private && !self.subnets.iter().any(meets)
    }

    pub fn allows(&self, ip: IpAddr) -> bool {
        let named = || self.subnets.iter().any(|subnet| subnet.contains(ip.to_canonical()));
        match AddressKind::of(ip) {
            AddressKind::Public => true,
            AddressKind::Loopback => self.loopback || named(),
            AddressKind::Private => self.private || named(),
            AddressKind::Never => false,
        }
    }

    /// Returns the networks to refuse, in addition to those that are always refused. `local` are
    /// public networks of the machine.
    pub fn refused(&self, local: &[Subnet]) -> Vec<Subnet> {
        let loopback = (!self.loopback).then(|| LOOPBACK_NETWORKS.iter());
        let private = (!self.private).then(|| PRIVATE_NETWORKS.iter());
        let all = loopback
            .into_iter()
            .flatten()
            .chain(private.into_iter().flatten())
            .copied()
            .chain(self.refused_of(local));
        self.subnets.iter().fold(all.collect(), |left: Vec<Subnet>, hole| {
            left.into_iter().flat_map(|network| network.without(*hole)).collect()
        })
    }
}

impl Reach {
    /// The part of `local` that is refused, with its forms in IPv6.
    fn refused_of(&self, local: &[Subnet]) -> Vec<Subnet> {
        let local = local.iter().filter(|_| !self.private);
        local.flat_map(|net| embedded(*net).into_iter().chain([*net])).collect()
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.loopback && self.private {
            return f.write_str("any");
        }
        let words = [(self.loopback, "loopback"), (self.private, "private")]
            .into_iter()
            .filter(|(is, _)| *is)
            .map(|(_, word)| word.to_owned())
            .chain(self.subnets.iter().map(Subnet::to_string))
            .collect::<Vec<_>>();
        if words.is_empty() { f.write_str("public") } else { f.write_str(&words.join(" ")) }
    }
}

/// The machine's table of hosts (hosts(5)).
#[derive(Clone, Debug, Default)]
pub struct Hosts(HashMap<String, Vec<IpAddr>>);

impl Hosts {
    /// Parses the table. The unspecified address, common in block lists, is ignored.
    pub fn parse(text: &str) -> Hosts {
        let mut hosts = HashMap::<String, Vec<IpAddr>>::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(ip) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else {
                continue;
            };
            if ip.is_unspecified() {
                continue;
            }
            for name in words {
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                hosts.entry(name).or_default().push(ip);
            }
        }
        Hosts(hosts)
    }

    fn addresses(&self, name: &str) -> Option<&[IpAddr]> {
        self.0.get(name).map(Vec::as_slice)
    }
}

/// Top-level names that no public name server has (RFC 6761, RFC 7686).
const RESERVED_NAMES: [&str; 4] = ["test", "invalid", "example", "onion"];

/// Whether the machine needs the Internet to reach the host of a URL: no address of its own or of a private
/// network, no name in the table of hosts, and none that public name servers do not have.
pub fn is_on_internet(url: &str, hosts: &Hosts) -> bool {
    let is_reserved = |name: &str| {
        let last = name.trim_end_matches('.').rsplit('.').next();
        last.is_some_and(|last| RESERVED_NAMES.contains(&last.to_ascii_lowercase().as_str()))
    };
    let parsed = Url::parse(url).ok();
    let Some(host) = parsed.as_ref().and_then(Url::host) else {
        return false;
    };
    let is_known = match host {
        Host::Domain(name) => {
            hosts.addresses(&name.to_ascii_lowercase()).is_some() || is_reserved(name)
        }
        Host::Ipv4(ip) => AddressKind::of(ip.into()) != AddressKind::Public,
        Host::Ipv6(ip) => AddressKind::of(ip.into()) != AddressKind::Public,
    };
    !is_known && Reach::of_url(url, hosts, &[]) == Reach::default()
}

/// The same for a host as [`PageUrl::domain`](crate::model::PageUrl::domain) writes it.
pub fn is_domain_on_internet(domain: &str, hosts: &Hosts) -> bool {
    let is_port = |port: &&str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let without_port = || {
        let (host, _) = domain.rsplit_once('_').filter(|(_, port)| is_port(port))?;
        Some(host)
    };
    let url = match domain.strip_prefix('_') {
        // An IPv6 address, with underscores for brackets and colons.
        Some(rest) => {
            let rest = without_port()
                .and_then(|host| host.strip_prefix('_'))
                .filter(|host| host.ends_with('_'))
                .unwrap_or(rest);
            let address = rest.strip_suffix('_').unwrap_or(rest).replace('_', ":");
            format!("http://[{address}]/")
        }
        None => format!("http://{}/", without_port().unwrap_or(domain)),
    };
    is_on_internet(&url, hosts)
}

/// Returns the name servers in resolv.conf(5).
pub fn nameservers(text: &str) -> Vec<IpAddr> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == "nameserver").then(|| words.next())?
    });
    let servers = lines.filter_map(|word| word.split('%').next()?.parse().ok());
    let none = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    servers.filter(|ip| !none.contains(ip)).collect()
}

#[cfg(test)]
#[path = "reach/tests.rs"]
mod tests;
