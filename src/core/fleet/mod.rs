//! One archive over several machines: the protocol between nodes and their database, as functions
//! of values. Without `[Fleet]` in the configuration nothing of this runs.
//!
//! 1. The database leases hosts to nodes. Only the owner of a host starts its pages.
//! 2. Each claim of a host gives it the next epoch. Epochs only grow, and are the fence of every
//!    later request about the host.
//! 3. Durations cross the wire, never times. The database measures with its own clock, a node with
//!    CLOCK_BOOTTIME of its present boot ([`BootTime`]).
//! 4. A connection begins with [`Hello`]. The database answers with a new incarnation of the node
//!    and refuses requests of older ones. A request without a reply ends the connection, so a
//!    request that was late cannot take effect after the next hello.
//! 5. At most one request per connection is unanswered.
//! 6. The deadline of a lease is the time at which the request left, plus the duration of the lease,
//!    minus a margin ([`margin`]). The margin covers clocks of different speed and the end of units.
//! 7. No page starts after the deadline. Each hook of the page compares it with the clock when it
//!    starts, because the orchestrator may have been stopped between its decision and the start.
//! 8. What still runs at the deadline is stopped and given back, which counts no attempt.
//! 9. "Due in" counts from the receipt of the reply. Late replies make a node later, never earlier.
//! 10. Renewal and release carry the pace of the host ([`Pace`]): when the next page may start, and
//!     the delay between starts.
//! 11. A lease that ended without release is claimed with the next start at the end of the lease
//!     plus the delay, because the last start of the lost node is unknown.
//! 12. A node renews only what its orchestrator holds. The owner of a host can renew an expired
//!     lease while no other node has claimed the host.
//! 13. A host that the database leased to a node that does not know of it (the reply was lost) is
//!     named in the reply to the next hello, and the node releases it.
//! 14. A page is queued, open under (node, epoch), or final. Its attempts are the claims that were
//!     not given back.
//! 15. A record is accepted once, from the node and epoch under which the page is open. The same
//!     record again is answered with `Already`, any other with `Stale`.
//! 16. What a user or unit was promised waits in the outbox of the node, on disk. An entry leaves
//!     the queue with the reply of the database, and is kept for an hour after it; not if the reply
//!     is `Stale` or a refusal, because the node then discards what it has.
//! 17. Entries are sent in order. Those from before a hello go before requests that bring pages or
//!     give them back: refill, claim, and the release of unknown leases.
//! 18. After a failover (the database has another timeline) the generation grows, at least to the
//!     number of the timeline: the new server may be a replica that lacks an earlier failover. The
//!     first hello begins a grace of one lease, in which nothing is claimed: all leases that the
//!     database forgot end in it.
//! 19. Within the grace, a live lease of a later epoch than the database knows is renewed as it is.
//! 20. A node that sees another generation renews without refill. Then it compares the crawls and pages
//!     that it has with those of the database, and sends what the database lacks; then the kept entries
//!     of the outbox that were answered since the database last knew of the node; then it continues.
//! 21. Ids of crawls and pages, and epochs, skip ahead with each generation: none is given twice.
//! 22. Hosts that no node claimed since a failover are claimed with the next start at the end of the
//!     grace plus the delay.
//! 23. The same machine in a new boot takes over at once, with its leases and its outbox, if the
//!     earlier boot was not seen since the new one began, and not in the last 15 s (connected nodes
//!     are seen every 5 s). Otherwise the disk may have been cloned: refused.
//! 24. After a reboot the last start on a host is unknown: the node waits for one delay.
//! 25. Commands (cancel, pause, resume, retry) change the database. Nodes get orders as state, not
//!     as events: the wanted state of all crawls in which they take part.
//! 26. A draining node gets no hosts and no pages, and starts none from the receipt of the order on,
//!     which its next renewal confirms. It releases each host as soon as no page of it runs.
//! 27. A node that leaves, or is removed, keeps its leases until they end.
//! 28. A crawl is sealed when it has no open or queued page, and each node that took part in it has
//!     closed it or holds no lease. A node closes a crawl when its orders say that all pages are
//!     recorded, or when it had no page of it for a while.
//! 29. Renewals say how many hosts a node wants if its last claim was not filled. Of the nodes that have
//!     at least two hosts more than the one of these with the fewest, none claims, and the one with the
//!     most hands over half of the difference: it starts no further page of these hosts, and releases
//!     each as soon as no page of it runs.
//! 30. After each hello, a node starts no page before it has its orders.
//! 31. A hello has what the node remembers of the database ([`Memory`]). If the database went back to an
//!     earlier state, it refuses all nodes until an administrator declares that it was restored, which
//!     begins another generation. Ids then skip ahead of all that nodes remember.
//! 32. Not covered: a database server whose clock jumps ahead, and a cloned disk that boots while the
//!     original is cut off from the database. These can bring two starts on one host too close; none
//!     records a page twice.

pub mod bounds;
mod exchange;
mod lease;
mod memory;
mod outbox;
mod page;
mod recall;
mod reply;
mod request;
pub mod service;
mod value;

pub use exchange::{Delivery, Holdings};
pub use lease::Lease;
pub use memory::{Found, Memory};
pub use outbox::{KEEP, KEEP_LONG, OutboxEntry, is_kept_long};
pub use page::{CrawlSpec, HookResult, LeasedPage, NewPage, PageEnd, PageTimes};
pub use recall::{COMPARED, Compare, Item, RECALL, RESTORED, Restored, crawl_again, resent_since};
pub use reply::{
    Claimed, CrawlSpecs, CrawlUse, Fate, Grant, NodeRefusal, NodeReply, Order, Orders, Renewal,
    Renewed, Welcome,
};
pub use request::{
    Claim, Command, CommandVerb, Held, Hello, NodeRequest, Pace, Record, Release, Renew, Submit,
};
pub use value::{
    BootTime, Epoch, FLEET_USER, Generation, HostKey, ID_MAX, Incarnation, LEASE_MIN,
    NODE_NAME_ALLOWED, NodeId, SCHEMA, Session, is_node_name, margin,
};
