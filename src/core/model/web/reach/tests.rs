use super::*;
use proptest::prelude::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

const HOSTS: &str = "127.0.0.1 localhost\n127.0.1.1\tmyhost.example.com myhost # this machine\n\
    10.1.1.5 WIKI.example.com\n93.184.216.34 pinned.example.com\n127.0.0.1 both.test\nfd00::7 both.test\n\
    0.0.0.0 ads.example.com\n:: ads.example.com\nnonsense here\n169.254.169.254 meta.test";

#[test]
fn addresses_have_their_kind() {
    use AddressKind::*;
    for (kind, addresses) in [
        (
            Public,
            "1.1.1.1 93.184.216.34 172.32.0.1 100.128.0.1 2606:2800:220:1::1 64:ff9b::101:101 ::ffff:1.1.1.1 2002:101:101::1",
        ),
        (
            Loopback,
            "127.0.0.1 127.255.0.1 0.0.0.0 0.1.2.3 ::1 :: ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::",
        ),
        (
            Private,
            "10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 192.0.0.1 192.0.2.1 198.18.0.1 198.51.100.1 \
            203.0.113.1 240.0.0.1 255.255.255.255 fd00::1 fc00::1 fec0::1 2001:db8::1 2001::1 3fff::1 5f00::1 100::1 \
            ::ffff:10.0.0.1 64:ff9b::a00:1 64:ff9b:1::1 2002:c0a8:101::1",
        ),
        (
            Never,
            "169.254.169.254 169.254.1.1 224.0.0.1 239.255.255.255 100.100.100.200 168.63.129.16 192.0.0.192 fe80::1 ff02::1 \
            fd00:ec2::254 fd20:ce::254 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1",
        ),
    ] {
        for address in addresses.split_whitespace() {
            assert_eq!(AddressKind::of(ip(address)), kind, "{address}");
        }
    }
}

#[test]
fn every_network_of_the_tables_is_read() {
    for (table, networks) in
        [(NEVER, never()), (PRIVATE, private()), (LOOPBACK, LOOPBACK_NETWORKS.as_slice())]
    {
        let v4 = table.iter().filter(|text| text.contains('.')).count();
        assert_eq!(networks.len(), table.len() + 2 * v4);
    }
}

/// The networks among the words of a file.
fn shipped(text: &str) -> Vec<Subnet> {
    let words = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| line.split([' ', '=', '\'']));
    let networks = words.filter(|word| word.contains('/')).filter_map(|word| word.parse().ok());
    let mut networks = networks.collect::<Vec<_>>();
    networks.sort();
    networks
}

fn sorted(mut networks: Vec<Subnet>) -> Vec<Subnet> {
    networks.sort();
    networks
}

#[test]
fn networks_that_are_never_reached_are_in_the_drop_ins() {
    for text in [
        include_str!("../../../../../units/system/archivist-hook-.service.d/15-network.conf"),
        include_str!("../../../../../units/system/archivist-check-.service.d/15-network.conf"),
        include_str!("../../../../../units/system/archivist-network@.service"),
        include_str!("../../../../../units/system/archivist-network-local@.service"),
    ] {
        assert_eq!(shipped(text), sorted(never().to_vec()));
    }
    let script = include_str!("../../../../../packaging/tree/usr/lib/archivist/close-network");
    assert_eq!(shipped(script), sorted([never(), private()].concat()));
}

#[test]
fn the_text_form() {
    for (text, shown) in [
        ("public", "public"),
        ("", "public"),
        ("any", "any"),
        ("loopback private", "any"),
        ("private", "private"),
        ("10.2.3.4/16, loopback 10.2.0.0/16", "loopback 10.2.0.0/16"),
        ("100.64.0.0/10", "100.64.0.0/10"),
        ("192.168.7.7", "192.168.7.7/32"),
    ] {
        assert_eq!(Reach::parse(text).unwrap().to_string(), shown, "{text}");
    }
    for bad in [
        "all",
        "10.0.0.0/40",
        "169.254.169.254",
        "169.254.0.0/17",
        "fe80::/10",
        "example.com",
        "public 300.1.1.1",
    ] {
        assert_eq!(Reach::parse(bad), None, "{bad}");
    }
}

#[test]
fn a_start_url_allows_its_own_network() {
    let hosts = Hosts::parse(HOSTS);
    for (url, opens) in [
        ("https://example.com/", "public"),
        ("https://1.1.1.1/", "public"),
        ("https://192.168.1.1.example.com/", "public"),
        ("https://localhost.example.com/", "public"),
        ("https://ads.example.com/", "public"),
        ("https://pinned.example.com/", "public"),
        ("http://169.254.169.254/latest/", "public"),
        ("http://meta.test/", "public"),
        ("http://[fe80::1]/", "public"),
        ("http://127.0.0.1:8080/", "loopback"),
        ("http://2130706433/", "loopback"),
        ("http://0x7f.1/", "loopback"),
        ("http://0.0.0.0/", "loopback"),
        ("http://[::1]/", "loopback"),
        ("http://[::ffff:127.0.0.1]/", "loopback"),
        ("http://LocalHost/", "loopback"),
        ("http://a.localhost./", "loopback"),
        ("http://myhost/", "loopback"),
        ("http://10.0.0.1/", "private"),
        ("http://[fd00::1]:8080/", "private"),
        ("http://wiki.example.com/", "private"),
        ("http://wiki/", "private"),
        ("http://printer.local/", "private"),
        ("http://nas.home.arpa/", "private"),
        ("http://a.corp./", "private"),
        ("http://both.test/", "any"),
        ("archivist:install/chromium", "public"),
        ("nonsense", "public"),
    ] {
        assert_eq!(Reach::of_url(url, &hosts, &[]).to_string(), opens, "{url}");
    }
}

#[test]
fn public_networks_of_the_machine_are_refused_unless_a_url_names_the_address() {
    let local: Vec<Subnet> =
        ["93.184.216.0/24", "2600:1::/64"].iter().map(|text| text.parse().unwrap()).collect();
    let hosts = Hosts::parse("93.184.216.35 own.example.com\n");
    let refuses = |reach: &Reach, address: &str| {
        let refused = reach.refused(&local);
        refused.iter().any(|network| network.contains(ip(address)))
    };
    for (url, reached) in [
        ("https://example.com/", &[][..]),
        ("https://1.1.1.1/", &[]),
        ("http://93.184.216.34/", &["93.184.216.34"]),
        ("http://[::ffff:93.184.216.34]/", &["93.184.216.34"]),
        ("http://own.example.com/", &["93.184.216.35"]),
        ("http://[2600:1::2]:8099/", &["2600:1::2"]),
    ] {
        let reach = Reach::of_url(url, &hosts, &local);
        for address in ["93.184.216.34", "93.184.216.35", "2600:1::2", "2600:1::3"] {
            assert_eq!(refuses(&reach, address), !reached.contains(&address), "{address} by {url}");
        }
        assert!(!refuses(&reach, "93.184.217.1") && refuses(&reach, "10.0.0.1"));
        assert!(reach.is_without_private(), "{url}");
    }
    assert!(refuses(&Reach::default(), "64:ff9b::5db8:d822"), "NAT64");
    for allowed in ["any", "private", "93.184.216.0/24"] {
        let reach = Reach::parse(allowed).unwrap();
        assert!(!refuses(&reach, "93.184.216.34"), "{allowed}");
    }
}

#[test]
fn allowances_add_up() {
    let reach = Reach::parse("10.2.0.0/16").unwrap();
    assert!(
        reach.allows(ip("10.2.3.4"))
            && !reach.allows(ip("10.3.0.1"))
            && !reach.allows(ip("127.0.0.1"))
    );
    assert!(!reach.is_without_private());
    let reach = reach.and(&Reach::parse("loopback").unwrap());
    assert!(reach.allows(ip("10.2.3.4")) && reach.allows(ip("::1")));
    assert!(Reach::any().refused(&[]).is_empty());
    let tailnet = Reach::parse("100.64.0.0/10").unwrap();
    assert!(tailnet.allows(ip("100.64.0.1")) && !tailnet.allows(ip("100.100.100.200")));
}

#[test]
fn hosts_on_the_internet_differ_from_local_ones() {
    let hosts = Hosts::parse("10.0.0.5 wiki.example.org\n");
    let domain = |url: &str| {
        crate::model::PageUrl::parse(url).map_or_else(|_| "unknown".to_owned(), |url| url.domain())
    };
    for url in [
        "http://a.example.org/",
        "https://a.example.org.:8443/x",
        "http://93.184.216.34/",
        "http://[2606:2800:220:1::1]/",
        "http://[2606:2800:220:1::1]:8080/",
        "http://93.184.216.34:8080/",
    ] {
        assert!(is_on_internet(url, &hosts), "{url}");
        assert!(is_domain_on_internet(&domain(url), &hosts), "{url}");
    }
    for url in [
        "http://wiki.example.org/",
        "http://Wiki.example.org/",
        "http://localhost/",
        "http://router/",
        "http://nas.lan/",
        "http://page.test/",
        "http://page.TEST./",
        "http://a.invalid/",
        "http://127.0.0.1:8000/",
        "http://192.168.1.1/",
        "http://169.254.169.254/",
        "http://[::1]/",
        "http://[fd00::1]/",
        "http://[fd00::1]:8080/",
        "file:///etc/passwd",
        "nonsense",
    ] {
        assert!(!is_on_internet(url, &hosts), "{url}");
        assert!(!is_domain_on_internet(&domain(url), &hosts), "{url}");
    }
}

#[test]
fn name_servers_of_the_machine() {
    let text = "# resolv.conf\nnameserver 127.0.0.53\nsearch example.com\nnameserver fe80::1%eth0\n nameserver\t10.0.0.2 \nnameserver x\nnameserver";
    let found = nameservers(text);
    assert_eq!(found, [ip("127.0.0.53"), ip("fe80::1"), ip("10.0.0.2")]);
}

fn any_ip() -> impl Strategy<Value = IpAddr> {
    let v4 = any::<u32>().prop_map(|it| Ipv4Addr::from_bits(it).into());
    let v6 = any::<u128>().prop_map(|it| Ipv6Addr::from_bits(it).into());
    let near = (0usize..60, any::<u128>()).prop_map(|(place, salt)| {
        let all = [never(), private(), &LOOPBACK_NETWORKS].concat();
        let network = all[place % all.len()];
        match network.address() {
            IpAddr::V4(it) => {
                let host = (salt as u32).checked_shr(u32::from(network.prefix())).unwrap_or(0);
                Ipv4Addr::from_bits(it.to_bits() | host).into()
            }
            IpAddr::V6(it) => {
                let host = salt.checked_shr(u32::from(network.prefix())).unwrap_or(0);
                Ipv6Addr::from_bits(it.to_bits() | host).into()
            }
        }
    });
    prop_oneof![v4, v6, near]
}

proptest! {
    #[test]
    fn the_filter_and_allows_agree(address in any_ip(), loopback: bool, private: bool, holes in prop::collection::vec((any_ip(), 0u8..=32), 0..3)) {
        let subnets = holes.into_iter().filter_map(|(ip, prefix)| Subnet::new(ip, prefix));
        let reach = Reach { loopback, private, subnets: subnets.collect() };
        let refused = reach.refused(&[]);
        // A filter sees a packet of IPv4 where a program wrote the mapped form.
        let seen = address.to_canonical();
        let filtered = refused.iter().chain(never()).any(|network| network.contains(seen));
        prop_assert_eq!(reach.allows(address), !filtered, "{} {}", reach, address);
    }

    #[test]
    fn no_text_panics(text in "(?s).{0,200}", lines in prop::collection::vec("[0-9a-f:.%# \tnameserver]{0,40}", 0..5)) {
        for text in [text, lines.join("\n")] {
            let hosts = Hosts::parse(&text);
            let _ = nameservers(&text);
            let _ = Reach::of_url(&text, &hosts, &[]);
            if let Some(reach) = Reach::parse(&text) {
                prop_assert_eq!(Reach::parse(&reach.to_string()), Some(reach));
            }
        }
    }
}
