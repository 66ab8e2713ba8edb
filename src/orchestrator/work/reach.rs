//! The networks that crawls and checks reach, as configured, and why a connection failed.

use crate::engine::state::Engine;
use crate::engine::way_out::{MachineAddresses, NET, RESOLVERS, WayOut};
use crate::main_loop::turn::{Turn, TurnResult};
use archivist_config::NetworkMode;
use archivist_core::model::{AddressKind, CrawlId, Reach, Subnet};
use archivist_core::unit::AddressFilter;
use archivist_shared::bus::documents::report::Reason;
use archivist_shared::journal::message;
use std::rc::Rc;

/// Words in the errors of failed connections.
const NO_CONNECTION: [&str; 7] = [
    "timed out",
    "time limit",
    "not permitted",
    "ermission denied",
    "nreachable",
    "did not answer",
    "net::ERR_",
];
/// Words in the errors of connections that the other side refused, which no filter does.
const REFUSED: [&str; 3] = ["ERR_CONNECTION_REFUSED", "onnection refused", "ECONNREFUSED"];
/// Words in the errors of names, which no setting explains.
const NO_NAME: &str = "net::ERR_NAME_";

/// Logs which protections do not work on this machine.
pub fn warn(engine: &Engine) {
    let scope = &engine.scope;
    if engine.filter_holds == Some(false) && !scope.user {
        tracing::warn!(
            message_id = message::ADDRESSES_OPEN,
            archivist_network = engine.settings.network.as_str(),
            "systemd's address filter has no effect on this machine: hooks in the machine's network, and checks, reach private networks and metadata services"
        );
    }
    let addresses = MachineAddresses::read(scope);
    if !addresses.knows_local && !scope.user {
        tracing::warn!(
            "failed to read the addresses of this machine in '{}': public ones count as the Internet",
            scope.runtime_dir().join(NET).display()
        );
    }
    for ip in addresses.name_servers {
        if AddressKind::of(ip) == AddressKind::Never && !scope.user {
            tracing::warn!(
                "name server {ip} of {RESOLVERS} is an address that hooks never reach; see Reach= in archivist.conf(5)"
            );
        }
    }
}

impl Engine {
    /// The network of hooks and what they reach, in one line.
    pub fn network_line(&self) -> String {
        let (mode, reach) = (self.settings.network, &self.settings.reach);
        let whose = if mode.is_own(self.start_facts.network_lack.as_ref(), reach.loopback) {
            "one for each crawl"
        } else {
            "the machine's"
        };
        format!("{whose} (Network={}), Reach={reach}", mode.as_str())
    }

    /// The networks that a crawl with these start URLs reaches.
    pub fn way_out<'a>(&self, urls: impl IntoIterator<Item = &'a str>) -> WayOut {
        let MachineAddresses { hosts, local, .. } = &self.start_facts.addresses;
        let each = urls.into_iter().map(|url| Reach::of_url(url, hosts, local));
        let opened = each.fold(Reach::default(), |all, one| all.and(&one));
        let reach = self.settings.reach.clone().and(&opened);
        let lack = self.start_facts.network_lack.as_ref();
        let is_own = self.settings.network.is_own(lack, reach.loopback);
        WayOut { reach, opened, is_own }
    }

    /// The addresses that hooks with this way out refuse: none under a user's service manager,
    /// which cannot filter.
    pub fn filter_of(&self, way_out: &WayOut) -> AddressFilter {
        if self.scope.user {
            return AddressFilter::default();
        }
        way_out.filter(&self.start_facts.addresses)
    }
}

/// The networks that a crawl's hooks reach, derived once and kept while the crawl runs.
pub(super) fn way_out(turn: &Turn<'_>, crawl: CrawlId) -> TurnResult<Rc<WayOut>> {
    if let Some(way_out) = turn.engine.ways.borrow().get(&crawl) {
        return Ok(way_out.clone());
    }
    let urls = turn.tx.start_hosts(crawl)?;
    let way_out = Rc::new(turn.engine.way_out(urls.iter().map(String::as_str)));
    turn.engine.ways.borrow_mut().insert(crawl, way_out.clone());
    Ok(way_out)
}

/// Returns whether a connection failed that networks may explain, and whether one was refused because nothing
/// listens. Without the machine's loopback interface, nothing listens on the one of the hooks.
fn connections(errors: &[String], has_loopback: bool) -> (bool, bool) {
    let has = |error: &String, words: &[&str]| words.iter().any(|word| error.contains(word));
    let is_refused = |error: &String| has_loopback && has(error, &REFUSED);
    let mut others = errors.iter().filter(|error| !error.contains(NO_NAME) && !is_refused(error));
    (others.any(|error| has(error, &NO_CONNECTION)), errors.iter().any(is_refused))
}

/// Why results of a crawl with these errors may have failed because of its networks.
pub(crate) fn why_reach(
    turn: &Turn<'_>,
    crawl: CrawlId,
    errors: &[String],
) -> TurnResult<Vec<Reason>> {
    let way_out = way_out(turn, crawl)?;
    let (is_connection, is_refused) = connections(errors, way_out.reach.loopback);
    let mut reasons = Vec::new();
    let mut tell = |text: String| {
        let (code, until) = ("reach".to_owned(), None);
        reasons.push(Reason { code, text, until });
    };
    let explicit = turn.engine.settings.network == NetworkMode::Private;
    if explicit && way_out.opened.loopback && !errors.is_empty() {
        tell(format!(
            "{crawl} has a URL on the machine's loopback interface, which Network=private hides: set Network=auto, or add the port to LOOPBACK_PORTS= of archivist-network@.service"
        ));
    }
    if is_refused {
        tell("a connection was refused: no server listens at this address and port".to_owned());
    }
    if way_out.reach != Reach::any() && is_connection {
        let others = if way_out.reach == Reach::default() {
            String::new()
        } else {
            format!(" and {}", way_out.reach)
        };
        let local = &turn.engine.start_facts.addresses.local;
        let except = match local.iter().map(Subnet::to_string).collect::<Vec<_>>() {
            none if none.is_empty() => String::new(),
            local => format!(", but not {} (this machine and its networks)", local.join(" ")),
        };
        tell(format!(
            "hooks of {crawl} can only reach the Internet{others}{except}: a connection to any other address fails or gets no answer; see Reach= in archivist.conf(5)"
        ));
    }
    Ok(reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_connection_is_not_explained_by_networks() {
        let found = |error: &str, has_loopback| connections(&[error.to_owned()], has_loopback);
        for error in ["net::ERR_CONNECTION_REFUSED", "wget failed (exit 4): Connection refused"] {
            assert_eq!(found(error, true), (false, true), "{error}");
        }
        assert_eq!(found("net::ERR_CONNECTION_REFUSED", false), (true, false));
        assert_eq!(found("net::ERR_NETWORK_ACCESS_DENIED", true), (true, false));
        assert_eq!(found("net::ERR_NAME_NOT_RESOLVED", true), (false, false));
    }
}
