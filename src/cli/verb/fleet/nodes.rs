//! `archivist fleet nodes` and `archivist fleet status`.

use crate::client::exit::{Exit, Failure};
use crate::client::fleet_service;
use crate::display::style::{self, Style, Tone};
use crate::display::table::{Cell, Table};
use archivist_core::text::{clean, human_span};
use archivist_shared::bus::documents::fleet::{Fleet, Member, NodeState};
use clap::Args;
use serde::Serialize;
use std::time::Duration;

#[derive(Args)]
pub struct ShowArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `status --json` prints.
#[derive(Serialize)]
struct FleetStatus {
    node: NodeState,
    /// Null if the database does not answer; `node` then has the fault.
    fleet: Option<Fleet>,
}

pub(super) async fn nodes(args: &ShowArgs) -> Result<Exit, Failure> {
    let fleet = fleet_service::fleet().await?;
    if let Some(fault) = fleet_service::state().await.ok().and_then(|node| node.fault) {
        eprintln!("archivist: {}", clean(&fault));
    }
    if args.json {
        style::print_value(&fleet.nodes)?;
    } else {
        style::print(&table(&fleet.nodes).render(&Style::of_stdout()))?;
    }
    Ok(Exit::Done)
}

/// Shows the fleet as this node sees it. Exit status 1 if it is not connected.
pub(super) async fn status(args: &ShowArgs) -> Result<Exit, Failure> {
    let node = fleet_service::state().await?;
    let asked = fleet_service::fleet().await;
    let (fleet, failure) = match asked {
        Ok(fleet) => (Some(fleet), None),
        Err(failure) => (None, Some(failure)),
    };
    if args.json {
        style::print_value(&FleetStatus { node, fleet })?;
    } else {
        style::print(&lines(&node, fleet.as_ref()))?;
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Exit::Done),
    }
}

fn lines(node: &NodeState, fleet: Option<&Fleet>) -> String {
    let state = match (&node.fault, node.works) {
        (Some(fault), _) => clean(fault),
        (None, true) => "connected".to_owned(),
        (None, false) => "connecting".to_owned(),
    };
    let mut text =
        format!("node      {}, {state}\ndatabase  {}\n", node.name, clean(&node.database));
    let Some(fleet) = fleet else {
        return text;
    };
    let connected = fleet.nodes.iter().filter(|node| node.is_connected).count();
    let hosts: u64 = fleet.nodes.iter().map(|node| node.hosts).sum();
    text += &format!(
        "server    PostgreSQL {}, {} dead of {} rows, clock {}\n",
        clean(&fleet.server_version),
        fleet.dead_rows,
        fleet.dead_rows + fleet.live_rows,
        clock(fleet.clock_ahead_ms)
    );
    text += &format!(
        "nodes     {}, {connected} connected, {hosts} hosts leased for {}\n",
        fleet.nodes.len(),
        human_span(Duration::from_millis(fleet.lease_ms))
    );
    text += &format!("queue     {} pages\n", fleet.open_pages);
    if fleet.claims_in_ms > 0 {
        text += &format!(
            "failover  the server changed: hosts are leased again in {}\n",
            human_span(Duration::from_millis(fleet.claims_in_ms))
        );
    }
    text
}

/// Returns by how much the clock of the server differs from that of this machine.
fn clock(ahead_ms: i64) -> String {
    let span = human_span(Duration::from_millis(ahead_ms.unsigned_abs()));
    match ahead_ms {
        -999..=999 => "as here".to_owned(),
        1000.. => format!("{span} ahead"),
        _ => format!("{span} behind"),
    }
}

fn table(nodes: &[Member]) -> Table {
    let mut table = Table::new("NODE…  STATE  HOSTS  SEEN");
    for node in nodes {
        let (state, tone) = state(node);
        table.row([
            clean(&node.name).into(),
            Cell::toned(state, tone),
            node.hosts.to_string().into(),
            format!("{} ago", human_span(Duration::from_millis(node.seen_ms))).into(),
        ]);
    }
    table
}

fn state(node: &Member) -> (String, Tone) {
    let (state, tone) = match (node.is_connected, node.draining) {
        (true, true) => ("draining", Tone::Busy),
        (true, false) => ("connected", Tone::Good),
        (false, _) if node.has_ended => ("stopped", Tone::Dim),
        (false, _) if node.is_lost => ("lost", Tone::Bad),
        (false, _) => {
            let seen = human_span(Duration::from_millis(node.seen_ms));
            return (format!("not seen for {seen}"), Tone::Busy);
        }
    };
    (state.to_owned(), tone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;

    fn member(name: &str, is_connected: bool, draining: bool) -> Member {
        Member {
            name: name.to_owned(),
            seen_ms: 4_000,
            is_connected,
            is_lost: !is_connected,
            has_ended: false,
            draining,
            hosts: 3,
        }
    }

    #[test]
    fn each_node_has_its_state() {
        let nodes = [
            member("web1", true, false),
            member("web2", true, true),
            member("web3", false, false),
            Member { seen_ms: 14_000, is_lost: false, ..member("web4", false, false) },
        ];
        let text = table(&nodes).render(&Style::plain(Time(0)));
        for words in [
            ["web1", "connected"],
            ["web2", "draining"],
            ["web3", "lost"],
            ["web4", "not seen for 14s"],
        ] {
            let has = |line: &str| words.iter().all(|word| line.contains(word));
            assert!(text.lines().any(has), "{words:?}\n{text}");
        }
    }

    #[test]
    fn status_says_why_the_node_is_not_connected() {
        let node = NodeState {
            name: "web1".to_owned(),
            database: "postgresql://db.example/archive".to_owned(),
            fault: Some("connection refused".to_owned()),
            ..NodeState::default()
        };
        let text = lines(&node, None);
        assert!(text.contains("web1, connection refused"), "{text}");
        let fleet = Fleet {
            clock_ahead_ms: -90_000,
            nodes: vec![member("web1", true, false), member("web2", false, false)],
            ..Fleet::default()
        };
        let text = lines(&node, Some(&fleet));
        assert!(text.contains("2, 1 connected, 6 hosts"), "{text}");
        assert!(text.contains("behind") && !text.contains("failover"), "{text}");
    }
}
