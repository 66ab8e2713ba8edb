//! The networks of hooks and checks, and the addresses that their units refuse. [`Reach`] has the
//! rules.

use archivist_config::Scope;
use archivist_core::model::web::local::KernelTables;
use archivist_core::model::web::reach::{Hosts, nameservers};
use archivist_core::model::{AddressKind, CrawlId, Reach, Reading, Subnet};
use archivist_core::unit::{AddressFilter, Names, Network};
use archivist_shared::systemd::Manager;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

/// The address of the machine's resolver in a crawl's own network (archivist-network@.service).
const OWN_RESOLVER: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
pub const RESOLVERS: &str = "/etc/resolv.conf";
/// Directory with the kernel's tables of the machine's network (/proc/1/net), below that of the
/// orchestrator in /run: the orchestrator has neither this network nor a sight of process 1.
pub const NET: &str = "net";
/// A machine with more routes is a router.
const TABLE_MAX: u64 = 1 << 20;
/// What `/etc/resolv.conf` may be a link to, and the socket of nss-resolve(8). Hooks see nothing
/// else in /run, and in a network of their own not even these.
const RESOLVER_PATHS: [&str; 3] =
    ["/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf"];
/// The unit that tests the address filter.
const FILTER_TEST_UNIT: &str = "archivist-reach.service";
/// The process exited, see [`Reading::exec_main_code`].
const EXITED: i32 = 1;
/// The networks that one crawl or one check reaches.
#[derive(Debug, PartialEq, Eq)]
pub struct WayOut {
    /// What is reached in addition to the Internet.
    pub reach: Reach,
    /// The part of it that the start URLs open.
    pub opened: Reach,
    /// Whether hooks are in a network of their own.
    pub is_own: bool,
}

impl WayOut {
    /// The crawl's own network, if it has one.
    pub fn network(&self, crawl: CrawlId, names: &Names) -> Option<Network> {
        let neighbours = !self.reach.is_without_private();
        self.is_own.then(|| names.network(crawl, neighbours))
    }

    /// The addresses that a unit refuses. In a network of its own the loopback is the crawl's.
    pub fn filter(&self, machine: &MachineAddresses) -> AddressFilter {
        let local = &machine.local;
        if self.is_own {
            let reach = self.reach.clone().and(&Reach::loopback());
            return AddressFilter {
                refused: reach.refused(local),
                allowed: vec![Subnet::host(OWN_RESOLVER.into())],
            };
        }
        let refused = self.reach.refused(local);
        let is_refused = |ip: IpAddr| refused.iter().any(|net| net.contains(ip.to_canonical()));
        let allowed = machine
            .name_servers
            .iter()
            .filter(|ip| AddressKind::of(**ip) != AddressKind::Never && is_refused(**ip));
        AddressFilter { allowed: allowed.copied().map(Subnet::host).collect(), refused }
    }
}

/// Addresses from the files of the machine. They are read before each turn that may start
/// something: a machine that moves to another network has other name servers.
#[derive(Clone, Debug, Default)]
pub struct MachineAddresses {
    pub hosts: Hosts,
    /// Public networks of the machine.
    pub local: Vec<Subnet>,
    /// Whether the kernel's tables were read.
    pub knows_local: bool,
    pub name_servers: Vec<IpAddr>,
    /// Those of [`RESOLVER_PATHS`] that exist, for optional bind mounts. A missing one would cost
    /// each hook two walks along its path.
    pub resolver_paths: Vec<PathBuf>,
}

impl MachineAddresses {
    /// Reads them; a file that cannot be read counts as empty.
    pub fn read(scope: &Scope) -> MachineAddresses {
        let text = |path: &str| {
            let bytes = std::fs::read(scope.rooted(path)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let table = |name: &str| table(&scope.runtime_dir().join(NET).join(name));
        let (fib_trie, route, if_inet6) = (table("fib_trie"), table("route"), table("if_inet6"));
        let tables = KernelTables {
            fib_trie: fib_trie.as_deref().unwrap_or_default(),
            route: route.as_deref().unwrap_or_default(),
            if_inet6: if_inet6.as_deref().unwrap_or_default(),
        };
        let exists = |path: &&str| scope.rooted(path).exists();
        let optional = |path: &str| PathBuf::from(format!("-{path}"));
        let paths = RESOLVER_PATHS.into_iter().filter(exists);
        MachineAddresses {
            resolver_paths: paths.map(optional).collect(),
            hosts: Hosts::parse(&text("/etc/hosts")),
            local: tables.local_networks(),
            knows_local: fib_trie.is_some() && route.is_some(),
            name_servers: nameservers(&text(RESOLVERS)),
        }
    }
}

/// Reads a table of the kernel, of which at most [`TABLE_MAX`] bytes count.
fn table(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(TABLE_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether the address filter of units has an effect; none if that is unknown.
pub async fn filter_holds(manager: &Manager, scope: &Scope) -> Option<bool> {
    if scope.user {
        return Some(false);
    }
    match manager.read(FILTER_TEST_UNIT).await {
        Ok(reading) => tried(&reading),
        Err(error) => {
            tracing::warn!("{error}, ignoring");
            None
        }
    }
}

fn tried(reading: &Reading) -> Option<bool> {
    match (reading.exec_main_code, reading.exec_main_status) {
        (EXITED, 0) => Some(true),
        (EXITED, 1) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(resolvers: &str) -> (tempfile::TempDir, Scope) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("etc")).unwrap();
        std::fs::write(root.path().join("etc/resolv.conf"), resolvers).unwrap();
        let scope = Scope::system(root.path());
        (root, scope)
    }

    fn way_out(reach: &str, is_own: bool) -> WayOut {
        let opened = Reach::default();
        let reach = Reach::parse(reach).unwrap();
        WayOut { reach, opened, is_own }
    }

    fn refuses(filter: &AddressFilter, ip: &str) -> bool {
        let within =
            |networks: &[Subnet]| networks.iter().any(|it| it.contains(ip.parse().unwrap()));
        within(&filter.refused) && !within(&filter.allowed)
    }

    #[test]
    fn name_servers_are_allowed_in_the_machine_network() {
        let text = "nameserver 127.0.0.53\nnameserver 192.168.1.1\nnameserver 169.254.169.254\nnameserver 9.9.9.9\n";
        let (_root, scope) = scope(text);
        let addresses = MachineAddresses::read(&scope);
        let filter = way_out("public", false).filter(&addresses);
        let allowed = filter.allowed.iter().map(Subnet::to_string).collect::<Vec<_>>();
        assert_eq!(allowed, ["127.0.0.53/32", "192.168.1.1/32"]);
        for (ip, refused) in
            [("127.0.0.53", false), ("127.0.0.1", true), ("10.0.0.1", true), ("1.1.1.1", false)]
        {
            assert_eq!(refuses(&filter, ip), refused, "{ip}");
        }
    }

    #[test]
    fn networks_of_the_machine_are_refused_except_for_its_name_servers() {
        let (root, scope) = scope("nameserver 93.184.216.53\n");
        assert!(!MachineAddresses::read(&scope).knows_local);
        let net = root.path().join("run/archivist/net");
        std::fs::create_dir_all(&net).unwrap();
        let write = |name: &str, text: &str| std::fs::write(net.join(name), text).unwrap();
        write("fib_trie", "  |-- 93.184.216.34\n     /32 host LOCAL\n");
        let (network, mask) = ([93, 184, 216, 0], [255, 255, 255, 0]);
        let hex = |bytes| format!("{:08X}", u32::from_ne_bytes(bytes));
        let (network, mask) = (hex(network), hex(mask));
        write("route", &format!("eth0 {network} 00000000 0001 0 0 0 {mask} 0 0 0\n"));
        write("if_inet6", "26000001000000000000000000000002 02 40 00 80 eth0\n");
        let addresses = MachineAddresses::read(&scope);
        assert!(addresses.knows_local);
        for is_own in [true, false] {
            let filter = way_out("public", is_own).filter(&addresses);
            for (ip, refused) in [
                ("93.184.216.34", true),
                ("93.184.216.7", true),
                ("2600:1::7", true),
                ("93.184.217.1", false),
                ("93.184.216.53", is_own),
            ] {
                assert_eq!(refuses(&filter, ip), refused, "{ip}");
            }
        }
    }

    #[test]
    fn only_existing_resolvers_are_bound() {
        let (root, scope) = scope("nameserver 127.0.0.53\n");
        assert!(MachineAddresses::read(&scope).resolver_paths.is_empty());
        std::fs::create_dir_all(root.path().join("run/systemd/resolve")).unwrap();
        let paths = MachineAddresses::read(&scope).resolver_paths;
        assert_eq!(paths, [PathBuf::from("-/run/systemd/resolve")]);
    }

    #[test]
    fn own_network_allows_loopback() {
        let filter = way_out("public", true).filter(&MachineAddresses {
            name_servers: vec!["192.168.1.1".parse().unwrap()],
            ..MachineAddresses::default()
        });
        for (ip, refused) in
            [("127.0.0.1", false), ("::1", false), ("192.168.1.1", true), ("fd00::1", true)]
        {
            assert_eq!(refuses(&filter, ip), refused, "{ip}");
        }
        let shipped = include_str!("../../../packaging/tree/usr/lib/archivist/resolv.conf");
        assert_eq!(nameservers(shipped), [IpAddr::from(OWN_RESOLVER)]);
        assert_eq!(filter.allowed, [Subnet::host(OWN_RESOLVER.into())]);
    }

    #[test]
    fn local_network_unit_is_chosen_for_private_reach() {
        let names = Names::new("archivist");
        let unit =
            |reach, is_own| way_out(reach, is_own).network(CrawlId(3), &names).map(|it| it.unit);
        assert_eq!(unit("public", false), None);
        for (reach, template) in [
            ("public", "archivist-network"),
            ("loopback", "archivist-network"),
            ("10.2.0.0/16", "archivist-network-local"),
        ] {
            assert_eq!(unit(reach, true), Some(format!("{template}@crawl-3.service")));
        }
    }

    #[test]
    fn filter_test_result_is_read() {
        let reading = |code, status| Reading {
            exec_main_code: code,
            exec_main_status: status,
            ..Reading::default()
        };
        assert_eq!(tried(&reading(1, 0)), Some(true));
        assert_eq!(tried(&reading(1, 1)), Some(false));
        for unknown in [(0, 0), (1, 226), (2, 9)] {
            assert_eq!(tried(&reading(unknown.0, unknown.1)), None);
        }
    }
}
