//! Requests of nodes. Each is one transaction of the database and safe to repeat.

use super::memory::Memory;
use super::page::{CrawlSpec, HookResult, NewPage, PageEnd, PageTimes};
use super::recall::{Compare, Restored};
use super::value::{Epoch, HostKey, NodeId, maybe_millis, millis};
use crate::model::{CrawlId, Owner, SnapshotId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The first request of a connection. The database answers with [`Welcome`](super::Welcome).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Name of the node, unique in the fleet.
    pub name: String,
    /// Identity of the machine: what stays the same over reboots.
    pub machine: String,
    /// Life of the service manager (PID 1) of the machine. Containers share the boot id of the
    /// kernel, so the boot id alone does not identify it.
    pub boot: String,
    /// Time since that life began, on CLOCK_BOOTTIME.
    #[serde(with = "millis")]
    pub uptime: Duration,
    pub schema: u32,
    /// Duration of leases in the configuration of the node (LeaseSec=). Of all nodes that have one, the
    /// longest holds for the fleet.
    #[serde(default, with = "maybe_millis")]
    pub lease: Option<Duration>,
    /// What the node remembers of the database; `None` if it has never been connected.
    pub memory: Option<Memory>,
}

/// Any other request. The sender is a [`Session`](super::Session).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "request")]
pub enum NodeRequest {
    /// Reserves ids for this number of crawls, so that crawls can be added while the database cannot
    /// be reached. Answer: `CrawlIds`.
    ReserveCrawls { count: u32 },
    /// Queues pages of a crawl. Answer: `Submitted`.
    Submit(Submit),
    /// Asks for hosts. Answer: `Claimed`.
    Claim(Claim),
    /// Extends leases, asks for orders, and shows that the node is alive. Answer: `Renewed`.
    Renew(Renew),
    /// Records the end of a page. Answer: `Recorded`.
    Record(Record),
    /// Queues a page again without counting an attempt. Answer: `GivenBack`.
    GiveBack {
        page: SnapshotId,
        /// Epoch of its host when it was claimed.
        epoch: Epoch,
    },
    /// Ends a lease and gives back its open pages. Answer: `Released`.
    Release(Release),
    /// A command of a user. Answer: `Commanded`, with `more` until the last piece.
    Command(Command),
    /// Stops or resumes giving hosts and pages to a node, of any name. Answer: `Done`.
    Drain {
        node: NodeId,
        /// `false` ends the drain.
        draining: bool,
    },
    /// Removes a node. Its leases last until they end. Answer: `Done`.
    Leave { node: NodeId },
    /// The fleet service ends in an orderly way: another instance may take over at once. Leases last
    /// until they end. Answer: `Done`.
    Goodbye,
    /// The node has run its last hooks of the crawl. Answer: `Done`.
    CrawlClosed { crawl: CrawlId },
    /// Asks what the database lacks of the crawls and pages of the node. Answer: `Lacks`.
    Compare(Compare),
    /// Puts pages back that the database lacks. Answer: `Restored`.
    Restore {
        /// The pages. Their crawls exist.
        pages: Vec<Restored>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submit {
    /// The crawl, of a reserved id.
    pub crawl: CrawlId,
    /// Creates the crawl if it does not exist; the first part of a list has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<CrawlSpec>,
    /// The pages. Those that the crawl has are left out.
    pub pages: Vec<NewPage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub hosts: u32,
    pub pages_per_host: u32,
    /// Delay between two starts on a host that the node observes at least (HostDelay=).
    #[serde(with = "millis")]
    pub delay: Duration,
}

/// When the next page of a host may start, as its owner knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// Time until the next start is allowed: the last start plus the delay.
    #[serde(with = "millis")]
    pub next_in: Duration,
    /// Time for which the host asked not to be visited (Retry-After).
    #[serde(with = "millis")]
    pub blocked_for: Duration,
    /// Delay between two starts, configured or asked for by the host.
    #[serde(with = "millis")]
    pub delay: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub host: HostKey,
    pub epoch: Epoch,
    /// Whether the deadline of the lease has not passed. Only a live lease is renewed if the
    /// database has forgotten it in a failover.
    pub live: bool,
    /// When the next page may start.
    pub pace: Pace,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renew {
    /// The leases; may be empty, to ask for orders only.
    pub leases: Vec<Held>,
    /// Number of open pages up to which each host is filled; 0 brings none.
    pub refill: u32,
    /// Number of hosts that the node could work on concurrently, if its last claim brought fewer than
    /// it asked for; else 0.
    pub wanting: u32,
    /// The node knows that it drains: it starts no page.
    pub drains: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub page: SnapshotId,
    /// Epoch of its host when it was claimed.
    pub epoch: Epoch,
    pub end: PageEnd,
    /// Why, if there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Path of its directory on the node, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    pub results: Vec<HookResult>,
    pub children: Vec<NewPage>,
    /// For display.
    pub times: PageTimes,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    pub host: HostKey,
    pub epoch: Epoch,
    /// When the next page may start. `None` if the node does not know of the lease: the database
    /// then assumes a start just now.
    pub pace: Option<Pace>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandVerb {
    Cancel,
    /// Starts no further page of it and freezes those that run.
    Pause,
    Resume,
    /// Queues what is final again; of a crawl, its cancelled pages too.
    Retry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    pub verb: CommandVerb,
    /// The crawl or page.
    pub target: Owner,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{Fate, NodeRefusal, NodeReply};
    use crate::model::ResultState;

    #[test]
    fn requests_and_replies_survive_json() {
        let result = HookResult {
            plugin: "wget".into(),
            hook: "on_Snapshot__wget".into(),
            state: ResultState::NoResults,
            output: None,
            error: None,
            size: 7,
            attempts: 1,
            took: Some(Duration::from_millis(1_500)),
        };
        let requests = [
            NodeRequest::Goodbye,
            NodeRequest::ReserveCrawls { count: 9 },
            NodeRequest::Record(Record {
                page: SnapshotId(345),
                epoch: Epoch(7),
                end: PageEnd::Sealed,
                reason: None,
                directory: None,
                results: vec![result],
                children: Vec::new(),
                times: PageTimes::default(),
            }),
            NodeRequest::Command(Command {
                verb: CommandVerb::Retry,
                target: Owner::Crawl(CrawlId(12)),
            }),
        ];
        for request in requests {
            let json = serde_json::to_string(&request).unwrap();
            assert_eq!(serde_json::from_str::<NodeRequest>(&json).unwrap(), request);
        }
        let page = SnapshotId(345);
        let answers: [Result<NodeReply, NodeRefusal>; 3] = [
            Ok(NodeReply::Recorded(Fate::Stale)),
            Ok(NodeReply::Done),
            Err(NodeRefusal::UnknownPage { page }),
        ];
        for answer in answers {
            let json = serde_json::to_string(&answer).unwrap();
            let read: Result<NodeReply, NodeRefusal> = serde_json::from_str(&json).unwrap();
            assert_eq!(read, answer);
        }
    }
}
