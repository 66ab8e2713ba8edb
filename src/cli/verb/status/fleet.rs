//! The fleet of this machine in `archivist status`.

use crate::client::exit::Failure;
use crate::client::server::decode;
use crate::display::block::Block;
use crate::display::style::Style;
use crate::display::text;
use archivist_shared::bus::documents::report::{Fleet, FleetNode, Status};
use serde_json::Value;

/// Returns the status of a machine with that of its fleet, both as JSON.
pub fn added(status: &str, fleet: &str) -> Result<String, Failure> {
    let mut status: Value = decode(status)?;
    let fleet: Value = decode(fleet)?;
    if let Some(fields) = status.as_object_mut() {
        fields.insert("fleet".to_owned(), fleet);
    }
    Ok(status.to_string())
}

/// Adds the lines about crawls and pages of the whole fleet, and about its nodes.
pub fn lines(fleet: &Fleet, status: &Status, block: &mut Block, style: &Style) {
    let states = text::lifecycles();
    block.line("Crawls", text::counts(&fleet.crawls, &states));
    block.line("Pages", text::counts(&fleet.snapshots, &states));
    block.line("Health", text::health(fleet.uses));
    block.line("Here", text::counts(&status.snapshots, &states));
    block.line("Fleet", head(fleet));
    if let Some(from) = fleet.claims_from {
        let at = text::stamp_and_age(from, style);
        block.line("Failover", format!("no node gets a host before {at}"));
    }
    for node in &fleet.nodes {
        block.line("Node", summary(node, node.name == fleet.node, style));
    }
    block.line("Dead rows", dead(fleet, style));
}

/// `postgresql://db/archivist, 12 hosts wait for a node`
fn head(fleet: &Fleet) -> String {
    match fleet.due_hosts {
        0 => fleet.server.clone(),
        1 => format!("{}, 1 host waits for a node", fleet.server),
        n => format!("{}, {n} hosts wait for a node", fleet.server),
    }
}

/// `web2, lost, 3 hosts, 12 pages, seen Sat …; 3min ago`
fn summary(node: &FleetNode, is_this: bool, style: &Style) -> String {
    let name = if is_this { format!("{} (this machine)", node.name) } else { node.name.clone() };
    let state = match node.state() {
        "not seen" => {
            format!("not seen for {}", text::elapsed(Some(node.seen_at), None, style.now))
        }
        state => state.to_owned(),
    };
    let mut line = format!("{name}, {state}, {} hosts, {} pages", node.hosts, node.pages);
    if !node.connected {
        let seen = text::stamp_and_age(node.seen_at, style);
        line.push_str(&format!(", seen {seen}"));
    }
    line
}

/// `page 1200, host 3; oldest transaction 3min ago`
fn dead(fleet: &Fleet, style: &Style) -> String {
    let tables = fleet.dead_rows.iter();
    let tables: Vec<_> = tables.map(|(table, rows)| format!("{table} {rows}")).collect();
    let oldest = fleet.oldest_transaction;
    let oldest =
        oldest.map(|time| format!("oldest transaction {}", text::relative(time, style.now)));
    let parts: Vec<_> =
        [tables.join(", ")].into_iter().filter(|text| !text.is_empty()).chain(oldest).collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use archivist_core::model::Time;
    use archivist_shared::bus::documents::report::Counts;

    #[test]
    fn a_fleet_is_shown_with_its_nodes_and_what_keeps_dead_rows() {
        let fleet = Fleet {
            node: "web1".into(),
            server: "postgresql://db/archivist".into(),
            nodes: vec![
                FleetNode {
                    name: "web1".into(),
                    connected: true,
                    hosts: 3,
                    pages: 12,
                    ..FleetNode::default()
                },
                FleetNode {
                    name: "web2\u{1b}[31m".into(),
                    lost: true,
                    seen_at: Time(sample::NOW.0 - 184_000),
                    ..FleetNode::default()
                },
                FleetNode {
                    name: "web3".into(),
                    seen_at: Time(sample::NOW.0 - 14_000),
                    hosts: 2,
                    ..FleetNode::default()
                },
            ],
            snapshots: Counts::from([("queued".into(), 40), ("started".into(), 12)]),
            due_hosts: 2,
            dead_rows: [("host".into(), 3), ("page".into(), 1200)].into(),
            oldest_transaction: Some(Time(sample::NOW.0 - 61_000)),
            ..Fleet::default()
        };
        let status =
            Status { snapshots: Counts::from([("started".into(), 12)]), ..Status::default() };
        let mut block = Block::new();
        lines(&fleet, &status, &mut block, &Style::plain(sample::NOW));
        assert_eq!(
            block.render(),
            "    Crawls: none\n     \
             Pages: 40 queued, 12 started\n      \
             Here: 12 started\n     \
             Fleet: postgresql://db/archivist, 2 hosts wait for a node\n      \
             Node: web1 (this machine), connected, 3 hosts, 12 pages\n      \
             Node: web2\u{fffd}[31m, lost, 0 hosts, 0 pages, seen Sat 2026-11-21 09:22:01 UTC; 3min 4s ago\n      \
             Node: web3, not seen for 14s, 2 hosts, 0 pages, seen Sat 2026-11-21 09:24:51 UTC; 14s ago\n \
             Dead rows: host 3, page 1200; oldest transaction 1min 1s ago\n"
        );
    }

    #[test]
    fn json_has_the_fleet_as_a_field() {
        let both = added(r#"{"version":"1"}"#, r#"{"node":"web1"}"#).unwrap();
        assert_eq!(both, r#"{"version":"1","fleet":{"node":"web1"}}"#);
        assert_eq!(added("{}", "{}").unwrap(), r#"{"fleet":{}}"#);
    }
}
