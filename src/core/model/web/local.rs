//! The public addresses of this machine and of its networks. Servers there may be closed to the Internet
//! by a firewall that does not see what hooks of this machine send, so they count as private.

use crate::model::{AddressKind, Subnet};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Shorter prefixes are no networks of neighbours: a tunnel may have half of the Internet for its own.
const PREFIX_MIN_V4: u8 = 16;
const PREFIX_MIN_V6: u8 = 48;

/// Flags of a route (route(8)): it is up, through a gateway, refuses.
const RTF_UP: u32 = 0x1;
const RTF_GATEWAY: u32 = 0x2;
const RTF_REJECT: u32 = 0x200;

/// What the kernel says in /proc/net (proc_pid_net(5)).
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelTables<'a> {
    /// `fib_trie`: the addresses of IPv4.
    pub fib_trie: &'a str,
    /// `route`: the routes of IPv4.
    pub route: &'a str,
    /// `if_inet6`: addresses and prefixes of IPv6.
    pub if_inet6: &'a str,
}

impl KernelTables<'_> {
    /// Returns the networks that would otherwise count as the Internet, each once: the address alone
    /// if it has no network of a usual size.
    pub fn local_networks(&self) -> Vec<Subnet> {
        let routes: Vec<Subnet> = self.route.lines().filter_map(on_link).collect();
        let of_v4 = |ip: IpAddr| {
            let within = routes.iter().filter(|route| route.contains(ip));
            within.copied().max_by_key(|route| route.prefix())
        };
        let v4 = addresses(self.fib_trie).map(|ip| of_v4(ip).unwrap_or(Subnet::host(ip)));
        let v6 = self.if_inet6.lines().filter_map(prefix);
        let mut networks: Vec<Subnet> = v4.chain(v6).filter(is_public).collect();
        networks.sort();
        networks.dedup();
        let all = networks.clone();
        let is_part = |network: &Subnet| {
            let mut others = all.iter().filter(|other| *other != network);
            others.any(|other| other.covers(*network))
        };
        networks.retain(|network| !is_part(network));
        networks
    }
}

fn is_public(network: &Subnet) -> bool {
    AddressKind::of(network.address()) == AddressKind::Public
}

/// The local addresses in `fib_trie`: a leaf, followed by its entries, one of which is
/// `/32 host LOCAL`.
fn addresses(fib_trie: &str) -> impl Iterator<Item = IpAddr> {
    let mut leaf = None;
    fib_trie.lines().filter_map(move |line| {
        if let Some((_, address)) = line.split_once("|-- ") {
            leaf = address.trim().parse::<Ipv4Addr>().ok();
            return None;
        }
        let is_local = line.trim() == "/32 host LOCAL";
        leaf.filter(|_| is_local).map(IpAddr::from)
    })
}

/// The network of a line in `route`, if it is reached without a gateway.
fn on_link(line: &str) -> Option<Subnet> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let hex = |column: usize| u32::from_str_radix(words.get(column)?, 16).ok();
    // The kernel prints addresses as numbers in its own byte order.
    let (destination, flags, mask) = (hex(1)?.to_ne_bytes(), hex(3)?, hex(7)?.to_ne_bytes());
    let prefix = u32::from_be_bytes(mask).leading_ones() as u8;
    let is_direct = flags & (RTF_UP | RTF_GATEWAY | RTF_REJECT) == RTF_UP;
    let network = Subnet::new(Ipv4Addr::from(destination).into(), prefix)?;
    (is_direct && prefix >= PREFIX_MIN_V4).then_some(network)
}

/// The network of a line in `if_inet6`.
fn prefix(line: &str) -> Option<Subnet> {
    let mut words = line.split_whitespace();
    let address = u128::from_str_radix(words.next()?, 16).ok()?;
    let address = IpAddr::from(Ipv6Addr::from_bits(address));
    let prefix = u8::from_str_radix(words.nth(1)?, 16).ok()?;
    match prefix {
        PREFIX_MIN_V6.. => Subnet::new(address, prefix),
        _ => Some(Subnet::host(address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIB_TRIE: &str = "Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 93.184.216.0/24 2 0 2
        +-- 93.184.216.0/26 2 0 2
           |-- 93.184.216.0
              /24 link UNICAST
           |-- 93.184.216.34
              /32 host LOCAL
        |-- 93.184.216.255
           /32 link BROADCAST
     |-- 45.33.32.156
        /32 host LOCAL
Local:
  +-- 0.0.0.0/0 3 0 5
     |-- 10.0.0.2
        /32 host LOCAL
     |-- 93.184.216.34
        /32 host LOCAL
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
";
    const ROUTE: &str =
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t01D8B85D\t0003\t0\t0\t0\t00000000\t0\t0\t0
wg0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0
eth0\t00D8B85D\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth1\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0
eth0\t0020212D\t01D8B85D\t0003\t0\t0\t0\t00FFFFFF\t0\t0\t0
";
    const IF_INET6: &str = "00000000000000000000000000000001 01 80 10 80       lo
fe800000000000000000000000000001 02 40 20 80     eth0
26000001000000000000000000000002 02 40 00 80     eth0
fd000000000000000000000000000002 02 40 00 80     eth0
2a010000000000000000000000000005 03 10 00 80     tun0
";

    fn networks(tables: &KernelTables<'_>) -> Vec<String> {
        let networks = tables.local_networks();
        networks.iter().map(Subnet::to_string).collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn public_networks_of_the_machine_are_found() {
        let tables = KernelTables { fib_trie: FIB_TRIE, route: ROUTE, if_inet6: IF_INET6 };
        let found = networks(&tables);
        let wanted = ["45.33.32.156/32", "93.184.216.0/24", "2600:1::/64", "2a01::5/128"];
        assert_eq!(found, wanted);
    }

    #[test]
    fn machine_with_private_addresses_has_none() {
        let tables = KernelTables {
            fib_trie: "     |-- 192.168.1.7\n        /32 host LOCAL\n",
            ..KernelTables::default()
        };
        assert!(tables.local_networks().is_empty());
    }

    proptest! {
        #[test]
        fn no_table_panics(fib_trie in "(\\|-- [0-9.]{0,9}\n|/32 host LOCAL\n|.{0,9}\n){0,9}", route in "([0-9A-F\t]{0,30}\n){0,5}", if_inet6 in "([0-9a-f ]{0,50}\n){0,5}") {
            let tables = KernelTables { fib_trie: &fib_trie, route: &route, if_inet6: &if_inet6 };
            for network in tables.local_networks() {
                prop_assert_eq!(AddressKind::of(network.address()), AddressKind::Public);
            }
        }
    }
}
