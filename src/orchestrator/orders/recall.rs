//! What the node remembers of the database of the fleet, and what it sends again to one of another
//! generation, which lost transactions or was restored from a backup. The rules are in
//! `core/fleet/recall.rs` and `core/fleet/memory.rs`.

use crate::database::rows::recall::Remembered;
use crate::fleet::submit::CrawlDocument;
use crate::main_loop;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::orders::deliver::log_refusal;
use crate::orders::ended;
use archivist_core::fleet::{
    Compare, CrawlSpec, Fate, Item, Memory, NodeRefusal, NodeReply, NodeRequest, OutboxEntry,
    RECALL, Restored, crawl_again, resent_since,
};
use archivist_core::model::{CrawlId, IdMarks, SnapshotId};
use std::time::Duration;

/// The database has another generation: everything that it may lack is compared, and what it answered
/// since it last knew of this node is sent again.
pub(crate) fn begin_recall(turn: &mut Turn<'_>, forgot: Option<Duration>) -> TurnResult<()> {
    let since = resent_since(forgot.unwrap_or(Duration::MAX));
    turn.tx.send_again(turn.now.before(since))?;
    turn.tx.begin_recall()?;
    let remembered = turn.tx.remembered()?;
    Ok(turn.tx.remember(&Remembered { given: remembered.given, ..Remembered::default() })?)
}

/// Returns the next request about what the database may lack, as an entry of the outbox.
pub(crate) fn recall_entry(turn: &Turn<'_>) -> TurnResult<Option<OutboxEntry>> {
    let request = match turn.tx.next_recall()? {
        None => return Ok(None),
        Some((false, items)) => NodeRequest::Compare(compare(turn, &items)?),
        Some((true, items)) => lacking(turn, &items)?,
    };
    Ok(Some(OutboxEntry { number: RECALL, request }))
}

fn compare(turn: &Turn<'_>, items: &[Item]) -> TurnResult<Compare> {
    let mut compare = Compare::default();
    for item in items {
        match item {
            Item::Crawl(id) => compare.crawls.push(*id),
            Item::Page(id) => compare.pages.push((*id, turn.tx.recorded(*id)?)),
        }
    }
    Ok(compare)
}

fn lacking(turn: &Turn<'_>, items: &[Item]) -> TurnResult<NodeRequest> {
    let mut pages = Vec::new();
    for item in items {
        match item {
            Item::Crawl(id) => return Ok(crawl_again(*id, spec_of(turn, *id)?)),
            Item::Page(id) => pages.extend(page_again(turn, *id)?),
        }
    }
    Ok(NodeRequest::Restore { pages })
}

fn spec_of(turn: &Turn<'_>, id: CrawlId) -> TurnResult<CrawlSpec> {
    let crawl = main_loop::crawl_of(turn, id)?;
    let only_new = turn.tx.is_only_new(id)?;
    let document = CrawlDocument {
        url: crawl.url,
        plugins: crawl.plugins,
        config: crawl.config,
        tags: turn.tx.crawl_tags(id)?,
        only_new,
    };
    Ok(CrawlSpec {
        max_depth: crawl.max_depth,
        urls_max: None,
        only_new,
        document: serde_json::to_string(&document)?,
    })
}

fn page_again(turn: &Turn<'_>, id: SnapshotId) -> TurnResult<Option<Restored>> {
    let Some(page) = turn.tx.given_page(id)? else {
        return Ok(None);
    };
    let epoch = turn.tx.recorded(id)?;
    let mut record = None;
    if epoch.0 > 0 {
        record = ended::record_of(turn, id, epoch)?;
    }
    if let (Some(record), Some(ended)) = (&mut record, turn.tx.snapshot_ended_at(id)?) {
        record.times.ended_ago = turn.now.until(ended);
    }
    Ok(Some(Restored { page, record }))
}

/// The database answered the request of [`recall_entry`].
pub(crate) fn recalled(
    turn: &mut Turn<'_>,
    reply: &Result<NodeReply, NodeRefusal>,
) -> TurnResult<()> {
    let Some((_, items)) = turn.tx.next_recall()? else {
        return Ok(());
    };
    let mut lacking = Vec::new();
    match reply {
        Ok(NodeReply::Lacks { crawls, pages }) => {
            lacking.extend(crawls.iter().copied().map(Item::Crawl));
            lacking.extend(pages.iter().copied().map(Item::Page));
        }
        Ok(NodeReply::Restored { refused }) => {
            for page in refused {
                let why = format!(
                    "{page} of this node: the database has another page with its id or URL; its files stay"
                );
                log_refusal(turn, why);
            }
        }
        Ok(_) => {}
        Err(refusal) => log_refusal(turn, refusal.to_string()),
    }
    Ok(turn.tx.recall_answered(&items, &lacking)?)
}

/// Notes what the database has, from its answer to an entry of the outbox.
pub(crate) fn learn_answer(turn: &mut Turn<'_>, number: u64, reply: &NodeReply) -> TurnResult<()> {
    let is_about_rows = matches!(
        reply,
        NodeReply::Recorded(_) | NodeReply::Submitted { .. } | NodeReply::CrawlIds { .. }
    );
    if !is_about_rows {
        return Ok(());
    }
    let before = turn.tx.remembered()?;
    let mut now = before;
    match (turn.tx.entry(number)?, reply) {
        (Some(NodeRequest::Record(record)), NodeReply::Recorded(Fate::Stale)) => {
            turn.tx.withdraw_record(record.page, record.epoch)?;
        }
        (Some(NodeRequest::Record(record)), NodeReply::Recorded(_))
            if record.directory.is_some() =>
        {
            now.recorded = Some((record.page, record.epoch));
        }
        (Some(NodeRequest::Submit(submit)), NodeReply::Submitted { .. }) => {
            now.submitted = Some(submit.crawl);
        }
        (_, NodeReply::CrawlIds { first, count }) => {
            let last = CrawlId(first.0 + i64::from(*count) - 1);
            now.given.crawl = now.given.crawl.max(last);
        }
        _ => {}
    }
    remember(turn, before, now)
}

/// Notes the highest ids that the fleet has given.
pub(crate) fn learn_ids(turn: &mut Turn<'_>, given: IdMarks) -> TurnResult<()> {
    let before = turn.tx.remembered()?;
    let now = Remembered { given: before.given.or_higher(given), ..before };
    remember(turn, before, now)
}

fn remember(turn: &Turn<'_>, before: Remembered, now: Remembered) -> TurnResult<()> {
    if now != before {
        turn.tx.remember(&now)?;
    }
    Ok(())
}

/// Returns what the next hello says of the database; `None` before the first welcome.
pub(crate) fn memory(turn: &Turn<'_>) -> TurnResult<Option<Memory>> {
    let Some(node) = turn.tx.node()? else {
        return Ok(None);
    };
    let Remembered { given, submitted, recorded } = turn.tx.remembered()?;
    let leases = turn.tx.leases(&turn.engine.boot)?.into_iter();
    Ok(Some(Memory {
        node: node.node,
        generation: node.generation,
        given,
        submitted,
        recorded,
        claimed: leases.map(|lease| (lease.name, lease.epoch)).collect(),
        highest: turn.tx.highest_ids()?.or_higher(given),
    }))
}
