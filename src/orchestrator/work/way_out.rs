//! How hooks and checks reach the world: in which network they are, and which addresses their
//! units refuse. The judgement is [`Reach`]'s.

use crate::main_loop::engine::Engine;
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_core::model::web::reach::{Hosts, nameservers};
use archivist_core::model::{AddressKind, CheckKind, CrawlId, Reach, Reading, Subnet};
use archivist_core::unit::{AddressFilter, Names, Network};
use archivist_shared::bus::documents::report::Reason;
use archivist_shared::config::{NetworkMode, Scope};
use archivist_shared::journal::message;
use archivist_shared::systemd::Manager;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

/// What stands for the machine's resolver in a network of a crawl's own (archivist-network@.service).
const OWN_RESOLVER: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
/// Where programs find their name servers.
const RESOLVERS: &str = "/etc/resolv.conf";
/// Tries the address filter when the orchestrator starts.
const TEST: &str = "archivist-reach.service";
/// The process exited, see [`Reading::exec_main_code`].
const EXITED: i32 = 1;
/// Words of errors of a connection that did not come about.
const NO_CONNECTION: [&str; 7] = [
    "timed out",
    "time limit",
    "not permitted",
    "ermission denied",
    "nreachable",
    "did not answer",
    "net::ERR_",
];

/// The way out of one crawl or one check.
#[derive(Debug, PartialEq, Eq)]
pub struct WayOut {
    /// What is reached besides the Internet.
    pub reach: Reach,
    /// The part of it that the start URLs open.
    pub opened: Reach,
    /// Whether hooks are in a network of their own.
    pub is_own: bool,
}

impl WayOut {
    /// The network that hooks have to themselves, if they have one.
    pub fn network(&self, crawl: CrawlId, names: &Names) -> Option<Network> {
        let neighbours = !self.reach.is_without_private();
        self.is_own.then(|| names.network(crawl, neighbours))
    }

    /// The network of a check with a browser, if it is not in the machine's.
    pub fn check_network(&self, names: &Names) -> Option<Network> {
        let neighbours = !self.reach.is_without_private();
        self.is_own.then(|| names.check_network(neighbours))
    }

    /// The addresses that a unit refuses. In a network of its own the loopback is the crawl's.
    fn filter(&self, name_servers: &[IpAddr]) -> AddressFilter {
        if self.is_own {
            let reach = self.reach.clone().and(&Reach::loopback());
            return AddressFilter {
                refused: reach.refused(),
                allowed: vec![Subnet::host(OWN_RESOLVER.into())],
            };
        }
        let allowed = name_servers
            .iter()
            .filter(|ip| AddressKind::of(**ip) != AddressKind::Never && !self.reach.allows(**ip));
        AddressFilter {
            refused: self.reach.refused(),
            allowed: allowed.copied().map(Subnet::host).collect(),
        }
    }
}

/// Addresses from the files of the machine. They are read before each turn that may start
/// something: a machine that moves to another network has other name servers.
#[derive(Debug, Default)]
pub struct MachineAddresses {
    pub hosts: Hosts,
    pub name_servers: Vec<IpAddr>,
}

impl MachineAddresses {
    /// Reads them; a file that cannot be read counts as empty.
    pub fn read(scope: &Scope) -> MachineAddresses {
        let text = |path: &str| {
            let bytes = std::fs::read(scope.rooted(path)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        MachineAddresses {
            hosts: Hosts::parse(&text("/etc/hosts")),
            name_servers: nameservers(&text(RESOLVERS)),
        }
    }
}

/// Whether the address filter of units has an effect, as far as that was tried.
pub async fn filter_holds(manager: &Manager, scope: &Scope) -> Option<bool> {
    if scope.user {
        return Some(false);
    }
    match manager.read(TEST).await {
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

/// Logs what does not hold on this machine.
pub fn warn(engine: &Engine) {
    let scope = &engine.scope;
    if engine.filter_holds == Some(false) && !scope.user {
        tracing::warn!(
            message_id = message::ADDRESSES_OPEN,
            archivist_network = engine.settings.network.as_str(),
            "the address filter of systemd has no effect here: hooks in the machine's network, and checks, reach private networks and metadata services"
        );
    }
    for ip in MachineAddresses::read(scope).name_servers {
        if AddressKind::of(ip) == AddressKind::Never && !scope.user {
            tracing::warn!(
                "name server {ip} of {RESOLVERS} is an address that hooks never reach; see Reach= in archivist.conf(5)"
            );
        }
    }
}

impl Engine {
    /// Whose network hooks are in and what they reach, in one line.
    pub fn network_line(&self) -> String {
        let (mode, reach) = (self.settings.network, &self.settings.reach);
        let whose = if mode.is_own(&self.scope, reach.loopback) {
            "one for each crawl"
        } else {
            "the machine's"
        };
        format!("{whose} (Network={}), Reach={reach}", mode.as_str())
    }

    /// The way out with these start URLs.
    pub fn way_out<'a>(&self, urls: impl IntoIterator<Item = &'a str>) -> WayOut {
        let hosts = &self.addresses.hosts;
        let each = urls.into_iter().map(|url| Reach::of_url(url, hosts));
        let opened = each.fold(Reach::default(), |all, one| all.and(&one));
        let reach = self.settings.reach.clone().and(&opened);
        let is_own = self.settings.network.is_own(&self.scope, reach.loopback);
        WayOut {
            reach,
            opened,
            is_own,
        }
    }

    /// The addresses that units with this way out refuse: none under a user's service manager, which
    /// cannot filter.
    pub fn filter_of(&self, way_out: &WayOut) -> AddressFilter {
        if self.scope.user {
            return AddressFilter::default();
        }
        way_out.filter(&self.addresses.name_servers)
    }

    /// The way out of a check of this URL: checks are in the machine's network. But for lighthouse, whose browser
    /// listens on the loopback: where the machine's is closed, it has a loopback of its own.
    pub fn way_out_of_check(&self, kind: CheckKind, url: &str) -> WayOut {
        let way_out = self.way_out([url]);
        let browses = kind == CheckKind::Lighthouse && !way_out.reach.loopback;
        WayOut {
            is_own: way_out.is_own && browses,
            ..way_out
        }
    }
}

impl Turn<'_> {
    /// The way out of a crawl's hooks, found once and kept while the crawl runs.
    pub(crate) fn way_out(&self, crawl: CrawlId) -> TurnResult<Rc<WayOut>> {
        if let Some(way_out) = self.engine.ways.borrow().get(&crawl) {
            return Ok(way_out.clone());
        }
        let urls = self.tx.start_hosts(crawl)?;
        let way_out = Rc::new(self.engine.way_out(urls.iter().map(String::as_str)));
        self.engine.ways.borrow_mut().insert(crawl, way_out.clone());
        Ok(way_out)
    }

    /// What of its way out may be why results of a crawl failed with these errors.
    pub(crate) fn why_reach(&self, crawl: CrawlId, errors: &[String]) -> TurnResult<Vec<Reason>> {
        let said = |word: &&str| errors.iter().any(|error| error.contains(*word));
        let way_out = self.way_out(crawl)?;
        let mut reasons = Vec::new();
        let mut tell = |text: String| {
            let (code, until) = ("reach".to_owned(), None);
            reasons.push(Reason { code, text, until });
        };
        let explicit = self.engine.settings.network == NetworkMode::Private;
        if explicit && way_out.opened.loopback && !errors.is_empty() {
            tell(format!(
                "{crawl} has a URL on the machine's loopback, which is not there with Network=private: set Network=auto, or let its port in by LOOPBACK_PORTS= of archivist-network@.service"
            ));
        }
        if way_out.reach != Reach::any() && NO_CONNECTION.iter().any(said) {
            let others = if way_out.reach == Reach::default() {
                "none".to_owned()
            } else {
                way_out.reach.to_string()
            };
            tell(format!(
                "hooks of {crawl} reach the Internet and of other networks {others}: a connection to any other address fails or gets no answer; see Reach= in archivist.conf(5)"
            ));
        }
        Ok(reasons)
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
        WayOut {
            reach,
            opened,
            is_own,
        }
    }

    fn refuses(filter: &AddressFilter, ip: &str) -> bool {
        let within =
            |networks: &[Subnet]| networks.iter().any(|it| it.contains(ip.parse().unwrap()));
        within(&filter.refused) && !within(&filter.allowed)
    }

    #[test]
    fn name_servers_are_reached_in_the_machine_s_network() {
        let text = "nameserver 127.0.0.53\nnameserver 192.168.1.1\nnameserver 169.254.169.254\nnameserver 9.9.9.9\n";
        let (_root, scope) = scope(text);
        let addresses = MachineAddresses::read(&scope);
        let filter = way_out("public", false).filter(&addresses.name_servers);
        let allowed = filter
            .allowed
            .iter()
            .map(Subnet::to_string)
            .collect::<Vec<_>>();
        assert_eq!(allowed, ["127.0.0.53/32", "192.168.1.1/32"]);
        for (ip, refused) in [
            ("127.0.0.53", false),
            ("127.0.0.1", true),
            ("10.0.0.1", true),
            ("1.1.1.1", false),
        ] {
            assert_eq!(refuses(&filter, ip), refused, "{ip}");
        }
    }

    #[test]
    fn in_a_network_of_its_own_the_loopback_is_the_crawl_s() {
        let filter = way_out("public", true).filter(&["192.168.1.1".parse().unwrap()]);
        for (ip, refused) in [
            ("127.0.0.1", false),
            ("::1", false),
            ("192.168.1.1", true),
            ("fd00::1", true),
        ] {
            assert_eq!(refuses(&filter, ip), refused, "{ip}");
        }
        let shipped = include_str!("../../../packaging/tree/usr/lib/archivist/resolv.conf");
        assert_eq!(nameservers(shipped), [IpAddr::from(OWN_RESOLVER)]);
        assert_eq!(filter.allowed, [Subnet::host(OWN_RESOLVER.into())]);
    }

    #[test]
    fn neighbours_are_in_reach_of_those_that_may_reach_some() {
        let names = Names::new("archivist");
        let unit = |reach, is_own| {
            way_out(reach, is_own)
                .network(CrawlId(3), &names)
                .map(|it| it.unit)
        };
        assert_eq!(unit("public", false), None);
        for (reach, template) in [
            ("public", "archivist-network"),
            ("loopback", "archivist-network"),
            ("10.2.0.0/16", "archivist-network-local"),
        ] {
            assert_eq!(
                unit(reach, true),
                Some(format!("{template}@crawl-3.service"))
            );
        }
    }

    #[test]
    fn a_check_with_a_browser_has_a_loopback_of_its_own() {
        let names = Names::new("archivist");
        let unit = |reach, is_own| {
            way_out(reach, is_own)
                .check_network(&names)
                .map(|it| it.unit)
        };
        assert_eq!(unit("public", false), None);
        assert_eq!(
            unit("public", true).as_deref(),
            Some("archivist-network@check-slow.service")
        );
        assert_eq!(
            unit("private", true).as_deref(),
            Some("archivist-network-local@check-slow.service")
        );
    }

    #[test]
    fn how_the_test_of_the_filter_ended() {
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
