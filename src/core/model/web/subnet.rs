//! Networks as an address and the length of its prefix (CIDR, RFC 4632).
//!
//! Not by the crate ipnet: its networks keep the bits behind the prefix, so that two can differ and
//! mean the same, and it neither reads an address alone nor cuts a network out of another.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// A network: all addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subnet {
    address: IpAddr,
    prefix: u8,
}

/// Error for an invalid network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a network like 192.168.0.0/16 or fd00::/8")]
pub struct ParseSubnetError;

/// Returns the bits of an address, from the most significant of 32 or 128.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(it) => u128::from(it.to_bits()) << 96,
        IpAddr::V6(it) => it.to_bits(),
    }
}

/// Returns the address with these bits, in the family of `like`.
fn address(like: IpAddr, bits: u128) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::from_bits((bits >> 96) as u32).into(),
        IpAddr::V6(_) => Ipv6Addr::from_bits(bits).into(),
    }
}

fn mask(prefix: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0)
}

impl Subnet {
    /// Returns the network of `address` with this prefix length; `None` if it is too long for the
    /// family.
    pub fn new(of: IpAddr, prefix: u8) -> Option<Subnet> {
        let longest = if of.is_ipv4() { 32 } else { 128 };
        (prefix <= longest)
            .then(|| Subnet { address: address(of, bits(of) & mask(prefix)), prefix })
    }

    pub fn host(address: IpAddr) -> Subnet {
        let prefix = if address.is_ipv4() { 32 } else { 128 };
        Subnet { address, prefix }
    }

    /// Returns its first address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    pub fn prefix(self) -> u8 {
        self.prefix
    }

    pub fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && (bits(self.address) ^ bits(address)) & mask(self.prefix) == 0
    }

    /// Returns whether all addresses of `other` are in the network.
    pub fn covers(self, other: Subnet) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }

    /// Returns the rest of the network without the addresses of `hole`.
    pub fn without(self, hole: Subnet) -> Vec<Subnet> {
        if hole.covers(self) {
            return Vec::new();
        }
        if !self.covers(hole) {
            return vec![self];
        }
        let halves = self.halves().into_iter();
        halves.flat_map(|half| half.without(hole)).collect()
    }

    fn halves(self) -> [Subnet; 2] {
        let prefix = self.prefix + 1;
        let middle = 1u128 << (128 - u32::from(prefix));
        let upper = address(self.address, bits(self.address) | middle);
        [self.address, upper].map(|address| Subnet { address, prefix })
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Subnet {
    type Err = ParseSubnetError;

    /// Parses `ADDRESS/PREFIX`, or an address alone.
    fn from_str(text: &str) -> Result<Subnet, ParseSubnetError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address = address.parse().map_err(|_| ParseSubnetError)?;
        let Some(digits) = prefix else {
            return Ok(Subnet::host(address));
        };
        let prefix = digits.parse().map_err(|_| ParseSubnetError)?;
        Subnet::new(address, prefix).ok_or(ParseSubnetError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn subnet(text: &str) -> Subnet {
        text.parse().unwrap()
    }

    #[test]
    fn networks_are_read_and_shown() {
        for (text, shown) in [
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("192.168.1.1", "192.168.1.1/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::/0", "::/0"),
            ("fd12:3456::7/16", "fd12::/16"),
        ] {
            assert_eq!(subnet(text).to_string(), shown);
        }
        for text in ["", "10", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "a/8", "10.0.0.0/"] {
            assert_eq!(text.parse::<Subnet>(), Err(ParseSubnetError), "{text}");
        }
    }

    #[test]
    fn a_hole_is_all_that_is_missing() {
        let left = subnet("10.0.0.0/8")
            .without(subnet("10.128.0.0/10"))
            .iter()
            .map(Subnet::to_string)
            .collect::<Vec<_>>();
        assert_eq!(left, ["10.0.0.0/9", "10.192.0.0/10"]);
        let whole = subnet("10.0.0.0/8");
        assert_eq!(whole.without(subnet("11.0.0.0/8")), [whole]);
        assert_eq!(whole.without(subnet("::/0")), [whole]);
        assert_eq!(whole.without(subnet("0.0.0.0/0")), []);
    }

    fn any_subnet() -> impl Strategy<Value = Subnet> {
        let v4 = (any::<u32>(), 0u8..=32).prop_map(|(it, p)| (Ipv4Addr::from_bits(it).into(), p));
        let v6 = (any::<u128>(), 0u8..=128).prop_map(|(it, p)| (Ipv6Addr::from_bits(it).into(), p));
        prop_oneof![v4, v6].prop_map(|(address, prefix)| Subnet::new(address, prefix).unwrap())
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}", near in "[0-9a-f:./]{0,30}") {
            for text in [text, near] {
                if let Ok(subnet) = text.parse::<Subnet>() {
                    prop_assert_eq!(subnet.to_string().parse(), Ok(subnet));
                }
            }
        }

        #[test]
        fn the_rest_and_the_hole_are_the_whole(whole in any_subnet(), longer in 0u8..=20, salt in any::<u128>(), probe in any::<u128>()) {
            let inside = |salt: u128| address(whole.address, bits(whole.address) | (salt & !mask(whole.prefix)));
            let longest = if whole.address.is_ipv4() { 32 } else { 128 };
            let hole = Subnet::new(inside(salt), (whole.prefix + longer).min(longest)).unwrap();
            let left = whole.without(hole);
            let probe = inside(probe);
            let found = left.iter().filter(|it| it.contains(probe)).count();
            prop_assert_eq!(found, usize::from(!hole.contains(probe)));
        }
    }
}
