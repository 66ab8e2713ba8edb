//! Replies of the fleet's database: leases with pages, orders, and what became of requests.

use crate::database::rows::fleet::{FleetCrawl, GivenPage, NodeRow};
use crate::database::rows::lease::NodeOrders;
use crate::fleet;
use crate::main_loop;
use crate::main_loop::turn::{Change, Turn, TurnResult, invalid};
use crate::notices;
use crate::orders::crawls;
use crate::orders::lost;
use crate::orders::recall;
use crate::orders::release;
use crate::orders::row_check;
use crate::orders::row_check::{PageTexts, Refused, check_id, document_of};
use archivist_core::fleet::{
    BootTime, Claimed, CrawlSpec, Delivery, Epoch, Fate, KEEP, KEEP_LONG, Lease, LeasedPage,
    NodeRefusal, NodeReply, NodeRequest, PageEnd, PageTimes, RECALL, Record, Renewal, Renewed,
};
use archivist_core::model::{CrawlId, Lifecycle, Owner, PageUrl, Step};
use archivist_core::plan::{HostId, Notice};
use std::time::Duration;

pub(crate) fn deliver(turn: &mut Turn<'_>, delivery: &Delivery) -> TurnResult<()> {
    match delivery {
        Delivery::Welcomed { node, generation, forgot } => {
            welcomed(turn, NodeRow { node: *node, generation: *generation }, *forgot)
        }
        Delivery::Claimed { claimed, sent } => take_claimed(turn, claimed, *sent),
        Delivery::Renewed { renewed, sent, refilled } => {
            take_renewed(turn, renewed, *sent, *refilled)
        }
        Delivery::Released { host, epoch, .. } => {
            let host = turn.tx.host(&host.0)?;
            Ok(turn.tx.remove_lease(host, *epoch)?)
        }
        Delivery::Answered { number, reply } if *number == RECALL => recall::recalled(turn, reply),
        Delivery::Answered { number, reply } => answered(turn, *number, reply),
        Delivery::Refused { refusal, .. } => {
            log_refusal(turn, refusal.to_string());
            Ok(())
        }
    }
}

/// Until its orders come, the node starts no page: its users may have cancelled pages meanwhile.
fn welcomed(turn: &mut Turn<'_>, row: NodeRow, forgot: Option<Duration>) -> TurnResult<()> {
    turn.engine.node_orders.set(None);
    match turn.tx.node()? {
        Some(known) if known == row => return Ok(()),
        Some(known) => {
            if known.generation != row.generation {
                recall::begin_recall(turn, forgot)?;
            }
            if known.node != row.node {
                turn.tx.remove_leases()?;
                lost::discard_lost_pages(turn)?;
            }
        }
        None => may_join(turn)?,
    }
    Ok(turn.tx.set_node(row)?)
}

/// # Errors
/// If a crawl of this machine alone is not finished: its hosts have no leases.
fn may_join(turn: &Turn<'_>) -> TurnResult<()> {
    let counts = turn.tx.counts("crawl", None)?;
    let open = Lifecycle::ALL.iter().filter(|status| !status.is_final());
    let open: u64 = open.filter_map(|status| counts.get(status.as_str())).sum();
    if open == 0 {
        return Ok(());
    }
    Err(invalid(format!(
        "{open} crawls of this machine are not finished: wait for them, or cancel them, before it joins a fleet"
    )))
}

fn take_claimed(turn: &mut Turn<'_>, claimed: &Claimed, sent: BootTime) -> TurnResult<()> {
    if turn.engine.node_orders.get().is_none() {
        // A node with leases renews them first, so there is none that orders could be about.
        turn.engine.node_orders.set(Some(NodeOrders { draining: false, claims_none: false }));
    }
    let refused = take_crawls(turn, &claimed.crawls)?;
    for grant in &claimed.hosts {
        let delay = turn.engine.settings.host_delay;
        let lease = Lease::granted(grant, sent, boot_time(turn), delay);
        let host = set_lease(turn, &lease)?;
        take_pages(turn, &grant.pages, host, lease.epoch, &refused)?;
    }
    lost::discard_lost_pages(turn)
}

fn take_renewed(
    turn: &mut Turn<'_>,
    renewed: &Renewed,
    sent: BootTime,
    refilled: bool,
) -> TurnResult<()> {
    recall::learn_ids(turn, renewed.given)?;
    let refused = take_crawls(turn, &renewed.crawls)?;
    for renewal in &renewed.leases {
        renew(turn, renewal, sent, &refused)?;
    }
    for (host, epoch) in &renewed.lost {
        let host = turn.tx.host(&host.0)?;
        turn.tx.remove_lease(host, *epoch)?;
    }
    lost::discard_lost_pages(turn)?;
    let is_current = !turn.tx.has_unanswered_command()?;
    if is_current {
        crawls::obey(turn, &renewed.orders)?;
        crawls::close_done_crawls(turn, &renewed.orders)?;
    }
    let draining = renewed.orders.draining;
    if is_current || turn.engine.node_orders.get().is_some() {
        turn.engine
            .node_orders
            .set(Some(NodeOrders { draining, claims_none: renewed.orders.hand_over.is_some() }));
    }
    if refilled {
        let hosts = renewed.leases.iter().map(|renewal| &renewal.host);
        release::release_idle(turn, &hosts.collect::<Vec<_>>())?;
    }
    release::choose_leaving(turn, renewed.orders.hand_over.unwrap_or_default())?;
    release::release_leaving(turn)?;
    if draining {
        // No more pages come.
        crawls::close_idle_crawls(turn, Duration::ZERO)?;
    }
    Ok(())
}

fn renew(
    turn: &mut Turn<'_>,
    renewal: &Renewal,
    sent: BootTime,
    refused: &Refused,
) -> TurnResult<()> {
    let id = turn.tx.host(&renewal.host.0)?;
    let boot = &turn.engine.boot;
    let Some(deadline) = turn.tx.lease_deadline(id, renewal.epoch, boot)? else {
        return Ok(());
    };
    let mut lease = Lease {
        host: renewal.host.clone(),
        epoch: renewal.epoch,
        deadline,
        next_at: BootTime(0),
        blocked_until: BootTime(0),
        delay: main_loop::host_view(turn, id)?.delay,
    };
    lease.renew(renewal, sent, boot_time(turn));
    set_lease(turn, &lease)?;
    take_pages(turn, &renewal.pages, id, renewal.epoch, refused)
}

fn set_lease(turn: &mut Turn<'_>, lease: &Lease) -> TurnResult<HostId> {
    let host = turn.tx.host(&lease.host.0)?;
    let next_at = turn.now.after(lease.next_at.until(boot_time(turn)));
    turn.tx.set_lease(host, lease, &turn.engine.boot, next_at)?;
    Ok(host)
}

fn answered(
    turn: &mut Turn<'_>,
    number: u64,
    reply: &Result<NodeReply, NodeRefusal>,
) -> TurnResult<()> {
    if let Ok(reply) = reply {
        recall::learn_answer(turn, number, reply)?;
    }
    match reply {
        Ok(NodeReply::CrawlIds { first, count }) => {
            let last = CrawlId(first.0.saturating_add(i64::from(*count) - 1));
            check_id(last.0).map_err(|why| {
                invalid(format!("the fleet's database reserves the id {first}: {why}"))
            })?;
            turn.tx.reserve_crawl_ids(*first, last)?;
        }
        // A database that forgets this answer must not get the entry again.
        Ok(NodeReply::Recorded(Fate::Stale) | NodeReply::GivenBack(Fate::Stale)) => {
            return Ok(turn.tx.remove_entry(number)?);
        }
        Ok(_) => {}
        Err(refusal) => {
            log_refusal(turn, refusal.to_string());
            return Ok(turn.tx.remove_entry(number)?);
        }
    }
    turn.tx.entry_answered(number, turn.now)?;
    let (before, long_before) = (turn.now.before(KEEP), turn.now.before(KEEP_LONG));
    Ok(turn.tx.prune_outbox(before, long_before)?)
}

/// The database of the fleet refuses a request of this node.
pub(super) fn log_refusal(turn: &mut Turn<'_>, why: String) {
    turn.log(move || tracing::error!("the database of the fleet refuses a request: {why}"));
}

/// Returns the crawls that this node cannot take.
fn take_crawls(turn: &mut Turn<'_>, crawls: &[(CrawlId, CrawlSpec)]) -> TurnResult<Refused> {
    let mut refused = Refused::new();
    for (id, spec) in crawls {
        if let Some(why) = take_crawl(turn, *id, spec)? {
            let (id, said) = (*id, why.clone());
            turn.log(move || tracing::error!("failed to take crawl {id} of the fleet: {said}"));
            refused.insert(id, why);
        }
    }
    Ok(refused)
}

/// Queues pages. A page that cannot be read, or whose crawl cannot, ends as failed in the fleet;
/// the others are taken.
fn take_pages(
    turn: &mut Turn<'_>,
    pages: &[LeasedPage],
    host: HostId,
    epoch: Epoch,
    refused: &Refused,
) -> TurnResult<()> {
    for page in pages {
        match row_check::readable(turn, page, refused)? {
            Ok(url) => take_page(turn, page, &url, host, epoch)?,
            Err(why) => {
                let is_crawl_here = !refused.contains_key(&page.crawl);
                refuse_page(turn, page, epoch, why, is_crawl_here)?;
            }
        }
    }
    Ok(())
}

fn refuse_page(
    turn: &mut Turn<'_>,
    page: &LeasedPage,
    epoch: Epoch,
    why: String,
    is_crawl_here: bool,
) -> TurnResult<()> {
    let crawl = page.crawl;
    if !is_crawl_here {
        crawls::withdraw_close(turn, crawl)?;
    }
    fleet::send_to_fleet(
        turn,
        &NodeRequest::Record(Record {
            page: page.id,
            epoch,
            end: PageEnd::Sealed,
            reason: Some(why),
            directory: None,
            results: Vec::new(),
            children: Vec::new(),
            times: PageTimes::default(),
        }),
    )?;
    if !is_crawl_here {
        // No hook of it runs here.
        fleet::send_to_fleet(turn, &NodeRequest::CrawlClosed { crawl })?;
    }
    Ok(())
}

/// Queues a page. A page that the node has under the same epoch stays as it is.
fn take_page(
    turn: &mut Turn<'_>,
    leased: &LeasedPage,
    url: &PageUrl,
    host: HostId,
    epoch: Epoch,
) -> TurnResult<()> {
    let known = turn.tx.page_epoch(leased.id)?;
    if known.is_some_and(|(known, _)| known == epoch) {
        return Ok(());
    }
    let (id, page) = (leased.id, &leased.page);
    let texts = PageTexts::of(page);
    if known.is_some() {
        // It ran under an earlier lease, which was lost in between.
        lost::discard_page(turn, id)?;
    }
    if let Some(former) = turn.tx.page_of_url(leased.crawl, url.as_str(), id)? {
        // The database lost it in a failover, and the node that added it sent it again.
        lost::discard_page(turn, former)?;
        turn.tx.set_replaced(former)?;
    }
    let row = GivenPage {
        id,
        crawl: leased.crawl,
        url: url.as_str(),
        title: texts.title.as_deref(),
        bookmarked_at: texts.bookmarked_at.as_deref(),
        depth: page.depth,
        given: page.given,
        attempts: leased.attempts.saturating_sub(1),
        epoch,
    };
    let before = turn.tx.add_given_page(&row, host, turn.now)?;
    if before.is_some_and(Lifecycle::is_final) {
        turn.tx.step_snapshot(id, Step::Retry, Some(turn.now), None, turn.now)?;
        turn.tx.requeue_results(Owner::Snapshot(id), None)?;
    }
    if page.given && before.is_none() {
        // Its host may be in a network that the pages so far did not open.
        turn.engine.ways.borrow_mut().remove(&leased.crawl);
    }
    for tag in &texts.tags {
        turn.tx.tag_snapshot(id, tag)?;
    }
    turn.tx.set_paged_at(leased.crawl, turn.now)?;
    turn.changes.insert(Change::Snapshot { crawl: leased.crawl, id });
    notices::announce_snapshot(turn, id, Notice::Added)
}

/// Adds a crawl of the fleet, or reopens it. Returns why it cannot, if so.
fn take_crawl(turn: &mut Turn<'_>, id: CrawlId, spec: &CrawlSpec) -> TurnResult<Option<String>> {
    if let Err(why) = check_id(id.0) {
        return Ok(Some(why));
    }
    match turn.tx.crawl(id)? {
        None => match document_of(spec) {
            Ok(document) => crawls::add_given_crawl(turn, id, spec.max_depth, &document)?,
            Err(why) => return Ok(Some(why)),
        },
        Some(known) => {
            let other = row_check::why_other_crawl(turn, id, &known.url, spec)?;
            if other.is_some() {
                return Ok(other);
            }
            turn.tx.set_fleet_crawl(id, FleetCrawl::Open)?;
            if known.status.is_final() {
                turn.tx.step_crawl(id, Step::Retry, Some(turn.now), None, turn.now)?;
            }
        }
    }
    crawls::withdraw_close(turn, id)?;
    turn.changes.insert(Change::Crawl(id));
    Ok(None)
}

fn boot_time(turn: &Turn<'_>) -> BootTime {
    BootTime(turn.boottime.unsigned_abs())
}
