//! Why a page or crawl is not done, as sentences: functions of what the database says.

use archivist_core::model::{Lifecycle, Owner, Time};
use archivist_core::text::human_span;
use archivist_shared::bus::documents::report::Reason;
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    pub now: Time,
    pub connected: u64,
    /// Connected nodes that get no pages.
    pub draining: u64,
    /// No host is claimed before.
    pub claims_from: Option<Time>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct HostFacts {
    pub name: String,
    /// Owner of the lease; `None` if it was released.
    pub owner: Option<String>,
    pub is_live: bool,
    pub leased_until: Option<Time>,
    /// No page starts before.
    pub next_at: Option<Time>,
    pub delay: Duration,
    /// Hosts that are due before it, up to a limit.
    pub hosts_ahead: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PageFacts {
    /// Node that has it; `None` while it waits.
    pub node: Option<String>,
    pub is_paused: bool,
    pub is_cancelled: bool,
    /// The crawl is paused, not the page alone.
    pub is_crawl_paused: bool,
    /// Earlier open pages of the host, up to a limit.
    pub pages_ahead: u64,
    pub host: HostFacts,
}

pub(super) fn reason(code: &str, text: impl Into<String>) -> Reason {
    Reason { code: code.to_owned(), text: text.into(), until: None }
}

fn until(code: &str, text: String, until: Option<Time>) -> Reason {
    Reason { until, ..reason(code, text) }
}

/// Returns why an open page is not done, the most important reason first.
pub(super) fn of_page(page: &PageFacts, id: Owner, crawl: Owner, fleet: &Standing) -> Vec<Reason> {
    let mut all = Vec::new();
    if page.is_cancelled {
        all.push(match &page.node {
            Some(node) => reason("cancelling", format!("it is being cancelled on {node}")),
            None => reason("cancelling", "it is being cancelled"),
        });
    } else if page.is_paused {
        let id = if page.is_crawl_paused { crawl } else { id };
        let text = format!("{id} is paused in the fleet; to continue: archivist resume {id}");
        all.push(reason("paused", text));
    }
    if page.node.is_some() {
        all.push(leased(&page.host));
    } else if !page.is_cancelled && !page.is_paused {
        all.extend(of_fleet(fleet));
        all.extend(of_waiting(page, fleet.now));
    }
    all
}

/// `leased to web2 until 12:03:10, host delay 5 s`.
fn leased(host: &HostFacts) -> Reason {
    let owner = host.owner.as_deref().unwrap_or("a node");
    let end = match (host.leased_until, host.is_live) {
        (Some(time), true) => format!("until {time}"),
        (Some(time), false) => {
            format!("whose lease ended at {time}: another node gets it, or {owner} renews it")
        }
        (None, _) => String::new(),
    };
    let text = format!("leased to {owner} {end}{}", delay(host));
    until("leased", text, host.leased_until.filter(|_| host.is_live))
}

fn delay(host: &HostFacts) -> String {
    if host.delay.is_zero() {
        String::new()
    } else {
        format!(", host delay {}", human_span(host.delay))
    }
}

/// Why no node gets any page.
fn of_fleet(fleet: &Standing) -> Option<Reason> {
    if fleet.connected == 0 {
        let text = "no node is connected to the database; see: archivist fleet nodes";
        return Some(reason("no-node", text));
    }
    if fleet.draining == fleet.connected {
        let text = match fleet.connected {
            1 => "the only connected node drains; see: archivist fleet nodes".to_owned(),
            n => format!("all {n} connected nodes drain; see: archivist fleet nodes"),
        };
        return Some(reason("draining", text));
    }
    fleet.claims_from.map(|time| {
        let text = format!("the database failed over: no node gets a host before {time}");
        until("failover", text, Some(time))
    })
}

fn of_waiting(page: &PageFacts, now: Time) -> Vec<Reason> {
    let (mut all, host) = (Vec::new(), &page.host);
    if let Some(owner) = host.owner.as_ref().filter(|_| host.is_live) {
        let end = host.leased_until;
        let end = end.map(|time| format!(" until {time}")).unwrap_or_default();
        let text =
            format!("waits at host {}, which is leased to {owner}{end}{}", host.name, delay(host));
        all.push(until("host-leased", text, host.leased_until));
    } else if let Some(time) = host.next_at.filter(|time| *time > now) {
        let text = format!("host {} may be visited again after {time}{}", host.name, delay(host));
        all.push(until("host-delay", text, Some(time)));
    } else if host.hosts_ahead > 0 {
        let text = format!(
            "host {} waits for a node: {} hosts are before it",
            host.name, host.hosts_ahead
        );
        all.push(reason("turn", text));
    }
    if page.pages_ahead > 0 {
        let text =
            format!("{} pages of host {} are ahead in the queue", page.pages_ahead, host.name);
        all.push(reason("host-turn", text));
    }
    if all.is_empty() {
        let text = format!("host {} waits for the next claim of a node", host.name);
        all.push(reason("turn", text));
    }
    all
}

/// Returns why a page that ended is as it is.
pub(super) fn of_ended(
    status: Lifecycle,
    reason_of_page: Option<&str>,
    node: Option<&str>,
) -> Reason {
    let place = node.map(|node| format!(" on {node}")).unwrap_or_default();
    match (status, reason_of_page) {
        (Lifecycle::Cancelled, said) => {
            let said = said.unwrap_or("cancelled");
            reason("cancelled", format!("{said}{place}"))
        }
        (_, Some(said)) => reason("done", format!("done{place}, but {said}")),
        (_, None) => reason("done", format!("done{place}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{CrawlId, SnapshotId};

    const PAGE: Owner = Owner::Snapshot(SnapshotId(345));
    const CRAWL: Owner = Owner::Crawl(CrawlId(12));
    /// 2026-11-23T12:00:00Z
    const NOON: Time = Time(1_795_435_200_000);

    fn fleet() -> Standing {
        Standing { now: NOON, connected: 2, ..Standing::default() }
    }

    fn host() -> HostFacts {
        HostFacts {
            name: "a.example".to_owned(),
            owner: Some("web2".to_owned()),
            is_live: true,
            leased_until: Some(Time(NOON.0 + 190_000)),
            delay: Duration::from_secs(5),
            ..HostFacts::default()
        }
    }

    fn texts(page: &PageFacts, fleet: &Standing) -> Vec<String> {
        let reasons = of_page(page, PAGE, CRAWL, fleet).into_iter();
        reasons.map(|reason| reason.text).collect()
    }

    #[test]
    fn a_page_of_a_node_names_node_lease_and_delay() {
        let page =
            PageFacts { node: Some("web2".to_owned()), host: host(), ..PageFacts::default() };
        let want = "leased to web2 until 2026-11-23T12:03:10.000Z, host delay 5.0s";
        assert_eq!(texts(&page, &fleet()), [want]);
    }

    #[test]
    fn a_waiting_page_names_what_holds_its_host() {
        let mut page = PageFacts { host: host(), pages_ahead: 3, ..PageFacts::default() };
        let texts_of = texts(&page, &fleet());
        assert!(texts_of[0].contains("which is leased to web2 until"), "{texts_of:?}");
        assert!(texts_of[1].contains("3 pages of host a.example"), "{texts_of:?}");
        page.host.is_live = false;
        page.host.next_at = Some(Time(NOON.0 + 5_000));
        let texts_of = texts(&page, &fleet());
        assert!(texts_of[0].contains("may be visited again after"), "{texts_of:?}");
    }

    #[test]
    fn a_fleet_without_willing_nodes_is_the_first_reason() {
        let page = PageFacts::default();
        let none = Standing::default();
        assert!(texts(&page, &none)[0].starts_with("no node is connected"));
        let drain = Standing { draining: 2, ..fleet() };
        assert!(texts(&page, &drain)[0].starts_with("all 2 connected nodes drain"));
        let failover = Standing { claims_from: Some(NOON), ..fleet() };
        assert!(texts(&page, &failover)[0].starts_with("the database failed over"));
    }

    #[test]
    fn paused_and_cancelled_pages_name_the_command_or_the_node() {
        let paused = PageFacts { is_paused: true, is_crawl_paused: true, ..PageFacts::default() };
        let texts_of = texts(&paused, &Standing::default());
        assert_eq!(texts_of, ["c12 is paused in the fleet; to continue: archivist resume c12"]);
        let cancelled = PageFacts {
            is_cancelled: true,
            node: Some("web2".to_owned()),
            host: host(),
            ..PageFacts::default()
        };
        assert_eq!(texts(&cancelled, &fleet())[0], "it is being cancelled on web2");
    }
}
