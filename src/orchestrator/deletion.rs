//! Deleted crawls and snapshots. Their rows are gone first, so that no user sees them any more. The
//! directory is in the table `deletion` until a unit has removed it (`worker/delete.rs`), so nothing
//! stays after a crash:
//! the unit compares its identity, renames it and removes it, and leaves the directory of another page
//! alone. A transfer removes the copy in the store; its row outlives that of the page. The pages of a
//! crawl are deleted in pieces, one per turn; its row in `deletion` says so after a crash. Lists are
//! written after the last removal, and notes in `archive/.index/stale` say which
//! (`archive_index/stale.rs`). An imported file goes when no crawl has its tag. After the last removal,
//! each turn returns some of the unused pages of the database to the file system. A pinned page or
//! crawl (`pinned` in its row, and the user who pinned it) is refused.
//!
//! The file `deleted` in the data directory has the ids of what was deleted (`shared/deleted.rs`). The
//! orchestrator writes it when the rows are gone and the unit that removes the files is started; both
//! are repeated after a crash. It is in no backup, and no restoration replaces it: a restoration
//! compares it with the rows of the backup, asks, and deletes such pages again in the database that it
//! restores, before it is in place (`backup/deleted.rs`). `fsck` compares it with the rows.

use crate::bus::call::{Answer, Refusal, Reply};
use crate::database::{Shrunk, UnitRow};
use crate::main_loop;
use crate::main_loop::access;
use crate::main_loop::action::{CallerAction, FileAction, LoopAction};
use crate::main_loop::due::{Due, DueResult, DueUnit};
use crate::main_loop::event::{Contents, Event, UnitEnd};
use crate::main_loop::order::{Order, UserCall};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Turn, TurnError, TurnResult, invalid};
use crate::units::{Kind, life};
use archivist_core::model::Act;
use archivist_core::model::{CrawlId, Lifecycle, Outcome, Owner, SnapshotId};
use archivist_core::plan::{Allowance, Outlook};
use archivist_core::store::CopyStatus;
use archivist_core::text::human_size;
use archivist_core::unit::{UnitKind, UnitSpec};
use archivist_shared::bus::documents::report::{Deleted, NotDeleted};
use archivist_shared::bus::documents::work::{Removed, ToRemove};
use archivist_shared::deleted;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

const PAGES_PER_TURN: u32 = 100;
/// Pages that a rule of retention or a quota deletes in one turn.
pub(crate) const DELETED_PER_TURN: usize = 25;
const DIRECTORIES_PER_UNIT: u32 = 1_000;
/// `RuntimeMaxSec=` of the unit.
const LIMIT: Duration = Duration::from_secs(6 * 3600);

/// Deletes crawls and snapshots.
/// Gets the JSON of [`Deleted`].
pub(crate) struct Delete {
    pub ids: Vec<Owner>,
    /// Whether nothing is deleted, and the answer says what would be.
    pub dry_run: bool,
    pub user: u32,
}

impl Order for Delete {
    fn carry_out(&self, turn: &mut Turn<'_>, _reply: &Reply) -> TurnResult<Option<Answer>> {
        let may = |turn: &Turn<'_>, id| access::check_one(turn, Act::Delete, id, self.user);
        Ok(Some(Answer::json(&delete(turn, &self.ids, self.dry_run, may)?)?))
    }

    /// The answer names what the caller may not delete.
    fn user_call(&self) -> Option<UserCall<'_>> {
        UserCall::of_all("Delete")
    }
}

/// Deletes snapshots, and begins to delete crawls, or says what would be deleted. What cannot be deleted
/// now is left alone, with the reason, and so is what `may` refuses to the caller.
///
/// # Errors
/// On a node of a fleet.
pub(crate) fn delete(
    turn: &mut Turn<'_>,
    ids: &[Owner],
    dry_run: bool,
    may: impl Fn(&Turn<'_>, Owner) -> TurnResult<()>,
) -> TurnResult<Deleted> {
    if !turn.engine.settings.fleet_database.is_empty() {
        let why = "this machine is a node of a fleet, whose pages cannot be deleted";
        return Err(invalid(why.to_owned()));
    }
    let mut deleted = Deleted::default();
    for id in ids {
        let done = may(turn, *id).and_then(|()| delete_one(turn, *id, dry_run));
        match done {
            Ok((pages, bytes)) => {
                deleted.pages += pages;
                deleted.bytes += bytes;
            }
            Err(TurnError::Refused(
                Refusal::Invalid(reason)
                | Refusal::NoSuch(reason)
                | Refusal::Denied(reason)
                | Refusal::Failed(reason),
            )) => deleted.left.push(NotDeleted { id: *id, reason }),
            Err(other) => return Err(other),
        }
    }
    if !dry_run {
        turn.act(CallerAction::StatusChanged);
    }
    Ok(deleted)
}

/// Returns the number of pages and their bytes.
pub(crate) fn delete_one(turn: &mut Turn<'_>, id: Owner, dry_run: bool) -> TurnResult<(u64, u64)> {
    let (crawl, pages) = match id {
        Owner::Crawl(crawl) => {
            require_end(id, main_loop::crawl_of(turn, crawl)?.status)?;
            (crawl, turn.tx.counts("snapshot", Some(crawl))?.values().sum())
        }
        Owner::Snapshot(page) => {
            let page = main_loop::snapshot_of(turn, page)?;
            require_end(id, page.status)?;
            // A crawl that is not over would find the page again.
            require_end(Owner::Crawl(page.crawl), main_loop::crawl_of(turn, page.crawl)?.status)?;
            (page.crawl, 1)
        }
    };
    require_no_unit(turn, crawl)?;
    require_unpinned(turn, id, crawl)?;
    let bytes = turn.tx.bytes_of(id)?;
    if dry_run {
        return Ok((pages, bytes));
    }
    match id {
        Owner::Crawl(crawl) => {
            turn.tx.begin_deletion(crawl, turn.now)?;
            turn.act(LoopAction::Again(Event::of(delete_some)));
        }
        Owner::Snapshot(page) => {
            delete_rows(turn, page)?;
            if turn.tx.is_without_pages(crawl)? {
                forget_crawl(turn, crawl)?;
            }
        }
    }
    Ok((pages, bytes))
}

fn require_end(owner: Owner, status: Lifecycle) -> TurnResult<()> {
    if status.is_final() {
        return Ok(());
    }
    Err(invalid(format!(
        "{owner} is {status}: only what has ended can be deleted; to end it: archivist cancel {owner}"
    )))
}

fn require_unpinned(turn: &Turn<'_>, id: Owner, crawl: CrawlId) -> TurnResult<()> {
    let Some(pin) = turn.tx.pin_of(id, crawl)? else {
        return Ok(());
    };
    let what = match (id, pin) {
        (id, pin) if id == pin => format!("{id} is pinned"),
        (Owner::Snapshot(_), crawl) => format!("its crawl {crawl} is pinned"),
        (Owner::Crawl(_), page) => format!("its page {page} is pinned"),
    };
    Err(invalid(format!("{what}; to delete it, first: archivist unpin {pin}")))
}

/// Deletes a page of a crawl that has ended.
fn delete_rows(turn: &mut Turn<'_>, id: SnapshotId) -> TurnResult<()> {
    if let Some(copy) = turn.tx.copy(id)? {
        if copy.status == CopyStatus::Running {
            let unit = turn.engine.names.store(Some(id));
            return Err(invalid(format!("{unit} works on {id}; try again later")));
        }
        turn.tx.delete_copy(id, copy, turn.now)?;
    }
    Ok(turn.tx.delete_snapshot(id, turn.now)?)
}

/// A unit of a crawl that was cancelled may still start or end.
fn require_no_unit(turn: &Turn<'_>, crawl: CrawlId) -> TurnResult<()> {
    match turn.tx.unit_at_work(crawl)? {
        None => Ok(()),
        Some(unit) => {
            Err(invalid(format!("{unit} still works on {crawl}; try again after its end")))
        }
    }
}

fn forget_crawl(turn: &mut Turn<'_>, id: CrawlId) -> TurnResult<()> {
    turn.tx.delete_crawl(id, turn.now)?;
    turn.engine.forget(id);
    Ok(())
}

/// Deletes the next pages of a crawl that is being deleted, and the crawl after the last of them. Then
/// the file of the database becomes smaller, a piece in each turn.
pub(crate) fn delete_some(turn: &mut Turn<'_>) -> TurnResult<()> {
    let Some(crawl) = turn.tx.half_deleted_crawl()? else {
        match turn.tx.shrink()? {
            Shrunk::Nothing => {}
            Shrunk::Some => turn.act(LoopAction::Again(Event::of(delete_some))),
            Shrunk::All(bytes) => turn.log(move || {
                tracing::info!(
                    "returned unused space of the database to the file system; its file has {} now",
                    human_size(bytes)
                )
            }),
        }
        return Ok(());
    };
    let mut is_busy = false;
    for page in turn.tx.some_snapshots(crawl, PAGES_PER_TURN)? {
        match delete_rows(turn, page) {
            Ok(()) => {}
            Err(TurnError::Refused(_)) => is_busy = true,
            Err(other) => return Err(other),
        }
    }
    if is_busy {
        // The end of the transfer continues.
        return Ok(());
    }
    if turn.tx.is_without_pages(crawl)? {
        forget_crawl(turn, crawl)?;
    }
    turn.act(LoopAction::Again(Event::of(delete_some)));
    Ok(())
}

/// The removal of the directories of deleted crawls and snapshots.
pub(crate) struct Removal;

impl Kind for Removal {
    /// Waits for neither space nor memory: it makes space.
    fn due(&self, turn: &Turn<'_>, allowance: &Allowance) -> DueResult {
        if !turn.tx.has_deletions()? {
            return Ok(Due::default());
        }
        let may_start = !allowance.is_outage && !turn.tx.is_deleting()?;
        let is_due = may_start && !turn.tx.deleted_directories(turn.now, 1)?.is_empty();
        let start = || DueUnit::of("the removal of deleted files", (), begin);
        Ok(Due {
            starts: is_due.then(start).into_iter().collect(),
            outlook: Outlook {
                is_busy: true,
                blocked: None,
                next: turn.tx.next_removal(turn.now)?,
            },
        })
    }

    fn ended(
        &self,
        turn: &mut Turn<'_>,
        run: &UnitRow,
        end: &UnitEnd,
        _contents: Option<&Contents>,
    ) -> TurnResult<()> {
        turn.act(CallerAction::StatusChanged);
        if end.outcome == Outcome::Exit(0) {
            turn.act(LoopAction::Again(Event::of(delete_some)));
            return Ok(turn.tx.end_removal(run.id)?);
        }
        let is_lost =
            matches!(end.outcome, Outcome::Lost | Outcome::Interrupted | Outcome::Stopped);
        let failed = turn.tx.removal_attempts(run.id)?;
        if is_lost {
            return Ok(turn.tx.repeat_removal(run.id, failed, turn.now)?);
        }
        let attempts = failed.saturating_add(1);
        let retries = turn.retries();
        let retry_at = retries.at(attempts);
        turn.tx.repeat_removal(run.id, attempts, retry_at)?;
        let (unit, reason) = (run.unit.clone(), end.outcome.clone());
        turn.log(move || {
            tracing::warn!(
                archivist_unit = unit.as_str(),
                "failed to remove deleted files: {reason}; next attempt after {retry_at}"
            )
        });
        Ok(())
    }
}

fn begin(turn: &mut Turn<'_>, (): ()) -> TurnResult<()> {
    let deleted = turn.tx.deleted_directories(turn.now, DIRECTORIES_PER_UNIT)?;
    let (crawls, directories): (BTreeSet<CrawlId>, Vec<Removed>) = deleted.into_iter().unzip();
    let run = turn.tx.queue_run(UnitKind::Delete, turn.now)?;
    let (names, programs) = (&turn.engine.names, &turn.engine.programs);
    let archive = turn.engine.archive();
    let mut argv = vec![programs.worker.clone()];
    if turn.engine.scope.user {
        argv.push("--user".to_owned());
    }
    argv.push("delete".to_owned());
    let count = directories.len();
    let description = format!("Remove the files of deleted pages ({count})");
    let spec = UnitSpec {
        limit: Some(LIMIT),
        bind: vec![archive.clone()],
        ..UnitSpec::of_run(UnitKind::Delete, names, run, description, argv)
    };
    turn.tx.start_queued(run, &spec.name, &turn.engine.boot, turn.now)?;
    turn.tx.begin_removal(&directories, run)?;
    let mut lists = BTreeMap::new();
    for id in crawls {
        let crawl = turn.tx.crawl(id)?;
        let directory = crawl.and_then(|crawl| crawl.directory);
        lists.extend(directory.map(|directory| (id, PathBuf::from(directory))));
    }
    let to_remove = ToRemove {
        archive,
        directories,
        lists,
        imported: turn.tx.unused_imports()?,
        is_last: !turn.tx.has_other_deletions(run)?,
    };
    // The rows of what is deleted are gone, and after a crash the unit is started again, which records it again.
    let ids = to_remove.directories.iter().map(|removed| removed.owner).collect();
    record_deletions(turn, ids);
    let stdin = Some(serde_json::to_vec(&to_remove)?);
    life::start(turn, run, spec, stdin, Output::OfUnit, None);
    turn.act(CallerAction::StatusChanged);
    Ok(())
}

/// A setting such as `Retention=` or `Quota=` deleted pages.
pub(crate) fn log_deleted(turn: &mut Turn<'_>, cause: String, pages: Vec<SnapshotId>) {
    turn.log(move || {
        let ids: Vec<_> = pages.iter().map(SnapshotId::to_string).collect();
        let count = match pages.len() {
            1 => "1 page".to_owned(),
            n => format!("{n} pages"),
        };
        tracing::info!("deleted {count} because of {cause}: {}", ids.join(" "));
    });
}

/// Records what was deleted where a restored backup does not replace it. A failure is logged and ignored: the pages
/// are deleted anyway, and only an older backup has them again.
fn record_deletions(turn: &mut Turn<'_>, ids: Vec<Owner>) {
    let at = turn.now;
    turn.act(FileAction::Run(Box::new(move |scope| {
        let data = scope.data_dir();
        if let Err(error) = deleted::add(&data, &ids, at) {
            let file = data.join(deleted::FILE);
            tracing::warn!(
                "failed to record deleted pages in '{}': {error}, ignoring",
                file.display()
            );
        }
        Event::Due
    })));
}
