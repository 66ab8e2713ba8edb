//! What followers of a crawl receive: lines of JSON, in the order of the changes.

use crate::bus::call::{Answer, Reply};
use crate::database::DatabaseError;
use crate::main_loop;
use crate::main_loop::action::CallerAction;
use crate::main_loop::order::{Order, UserCall};
use crate::main_loop::turn::{Change, Turn, TurnResult};
use archivist_core::model::{CrawlId, Owner};
use archivist_shared::bus::callers::Claim;
use archivist_shared::bus::documents::report::{CrawlEvent, Filter};

/// Snapshots that a new follower receives at once; of a larger crawl it receives the changes.
const PRESENT_MAX: u32 = 500;

fn line(event: &CrawlEvent) -> Result<String, DatabaseError> {
    let mut text = serde_json::to_string(event)?;
    text.push('\n');
    Ok(text)
}

/// A stream that the caller reads.
pub(crate) enum Follow {
    /// Gets a stream of [`CrawlEvent`], one JSON document per line.
    Crawl {
        crawl: CrawlId,
        /// Counts for the caller while the stream is open.
        claim: Claim,
    },
    /// Report when the answer to `Status` may have changed.
    /// Gets a stream of empty lines.
    Status {
        /// Counts for the caller while the stream is open.
        claim: Claim,
    },
}

impl Order for Follow {
    fn carry_out(&self, turn: &mut Turn<'_>, reply: &Reply) -> TurnResult<Option<Answer>> {
        match self {
            Follow::Crawl { crawl, claim } => follow(turn, *crawl, claim, reply)?,
            Follow::Status { claim } => {
                let (claim, reply) = (claim.clone(), reply.clone());
                turn.act(CallerAction::FollowStatus { claim, reply });
            }
        }
        Ok(None)
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        UserCall::of_all(match self {
            Follow::Crawl { .. } => "Watch",
            Follow::Status { .. } => "WatchStatus",
        })
    }
}

fn follow(turn: &mut Turn<'_>, crawl: CrawlId, claim: &Claim, reply: &Reply) -> TurnResult<()> {
    main_loop::crawl_of(turn, crawl)?;
    let first = present_state(turn, crawl)?;
    turn.act(CallerAction::Follow { crawl, first, claim: claim.clone(), reply: reply.clone() });
    Ok(())
}

/// The lines that a new follower receives at once.
fn present_state(turn: &Turn<'_>, crawl: CrawlId) -> Result<Vec<String>, DatabaseError> {
    let open = |status: &str| Filter {
        status: Some(status.to_owned()),
        limit: PRESENT_MAX,
        ..Filter::of(Owner::Crawl(crawl))
    };
    let mut lines = Vec::new();
    for snapshot in turn.tx.list_snapshots(&open("started"))? {
        lines.push(line(&CrawlEvent::Snapshot { snapshot })?);
    }
    for result in turn.tx.list_results(&open("started"))? {
        lines.push(line(&CrawlEvent::Hook { result })?);
    }
    lines.extend(crawl_line(turn, crawl)?.map(|(text, _)| text));
    Ok(lines)
}

fn crawl_line(turn: &Turn<'_>, id: CrawlId) -> Result<Option<(String, bool)>, DatabaseError> {
    let filter = Filter::of(Owner::Crawl(id));
    let crawl = turn.tx.list_crawls(&filter)?.into_iter().next();
    crawl
        .map(|crawl| {
            let last = crawl.status.is_final();
            Ok((line(&CrawlEvent::Crawl { crawl })?, last))
        })
        .transpose()
}

/// Queues the changes for the followers of their crawls.
pub(crate) fn tell(turn: &mut Turn<'_>) -> TurnResult<()> {
    for change in std::mem::take(&mut turn.changes) {
        let crawl = match &change {
            Change::Hook { crawl, .. } | Change::Snapshot { crawl, .. } => *crawl,
            Change::Crawl(crawl) => *crawl,
        };
        if !turn.followed.contains(&crawl) {
            continue;
        }
        let (line, last) = match change {
            Change::Hook { owner, plugin, hook, .. } => {
                let Some(result) = turn.tx.result(owner, &plugin, &hook)? else {
                    continue;
                };
                (line(&CrawlEvent::Hook { result })?, false)
            }
            Change::Snapshot { id, .. } => {
                let filter = Filter::of(Owner::Snapshot(id));
                let found = turn.tx.list_snapshots(&filter)?.into_iter().next();
                let Some(snapshot) = found else { continue };
                (line(&CrawlEvent::Snapshot { snapshot })?, false)
            }
            Change::Crawl(id) => match crawl_line(turn, id)? {
                Some(pair) => pair,
                None => continue,
            },
        };
        turn.act(CallerAction::Tell { crawl, line, last });
    }
    Ok(())
}

/// Reports to callers that follow the status that it may have changed.
pub(crate) fn tell_of_changes(turn: &mut Turn<'_>) -> TurnResult<()> {
    if !turn.changes.is_empty() {
        turn.act(CallerAction::StatusChanged);
    }
    Ok(())
}
