//! The start of a transfer: the record first, then the action.

use crate::bus::call::Refusal;
use crate::database::SnapshotWork;
use crate::main_loop;
use crate::main_loop::action::{CallerAction, ReplyAction};
use crate::main_loop::starts::Output;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::transfer::files::record_path;
use crate::transfer::queue;
use crate::transfer::rows::STORE_TEST;
use crate::units::life;
use archivist_core::model::{Lifecycle, SnapshotId};
use archivist_core::store::{Assignment, Copy, CopyStatus, KeepLocal, Location, Task};
use archivist_core::unit::{StoreSpec, UnitSpec};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `RuntimeMaxSec=` of a transfer: a snapshot of many gigabytes over a slow line.
const TRANSFER_LIMIT: Duration = Duration::from_secs(6 * 3600);
/// The same of the test of the store, for which a user waits.
const TEST_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn begin_transfer(turn: &mut Turn<'_>, id: SnapshotId) -> TurnResult<()> {
    let Some(copy) = turn.tx.copy(id)?.filter(|copy| copy.status != CopyStatus::Running) else {
        return Ok(());
    };
    let snapshot = turn.tx.snapshot(id)?;
    let Some((task, store)) = next_task(turn, &copy, snapshot.as_ref()) else {
        if copy.task.is_urgent() {
            let answer = Err(Refusal::Failed("there is no store any more".to_owned()));
            turn.act(ReplyAction::Settle(queue::files_of(id), answer));
        }
        return Ok(turn.tx.set_copy(id, &copy.nothing_to_do(turn.now))?);
    };
    let directory = snapshot.as_ref().and_then(|page| page.directory.clone());
    let directory = directory.map(PathBuf::from);
    let assignment = Assignment {
        task,
        store: store.to_string(),
        path: path_in_archive(turn, directory.as_deref()),
        directory: directory.clone().unwrap_or_default(),
        object: copy.object.clone(),
        reread: copy.needs_reading(turn.now),
    };
    let page = snapshot.as_ref();
    let spec = StoreSpec {
        task,
        program: &turn.engine.programs.store,
        id: (id != STORE_TEST).then_some(id),
        page: page.map(|page| (page.crawl, page.url.as_str())),
        directory,
        store,
        limit: match task {
            Task::Test => TEST_LIMIT,
            _ => TRANSFER_LIMIT,
        },
    };
    let spec = UnitSpec::store(&turn.engine.names, spec);
    turn.tx.set_copy(id, &copy.begun(task))?;
    let run = turn.tx.start_transfer(id, &spec.name, &turn.engine.boot, turn.now)?;
    let stdin = Some(serde_json::to_vec(&assignment)?);
    let stdout = Output::Record(record_path(&turn.engine.scope, run));
    life::start(turn, run, spec, stdin, stdout, None);
    turn.act(CallerAction::StatusChanged);
    Ok(())
}

/// What is done now for a copy, and in which store; none if nothing is to do.
fn next_task(
    turn: &Turn<'_>,
    copy: &Copy,
    page: Option<&SnapshotWork>,
) -> Option<(Task, Location)> {
    let current = turn.engine.settings.store.clone();
    let of_object = || Location::parse(&copy.object.as_ref()?.store);
    let is_sealed =
        page.is_some_and(|page| page.status == Lifecycle::Sealed && page.directory.is_some());
    let task = match copy.status {
        // Its files are older than `KeepLocal=` says.
        CopyStatus::Idle => Task::Drop,
        _ => copy.task,
    };
    match task {
        Task::Test => current.map(|store| (Task::Test, store)),
        Task::Get => page.and(of_object()).map(|store| (Task::Get, store)),
        Task::Delete => of_object().map(|store| (Task::Delete, store)),
        Task::Put | Task::Drop if !is_sealed => None,
        Task::Put => current.map(|store| (Task::Put, store)),
        Task::Drop => {
            let is_there = of_object() == current;
            let stays = copy.keep_until.is_some_and(|until| until > turn.now)
                || main_loop::keep_local(turn) == Some(KeepLocal::Always);
            match (is_there, stays) {
                (false, _) => current.map(|store| (Task::Put, store)),
                (true, true) => None,
                (true, false) => current.map(|store| (Task::Drop, store)),
            }
        }
    }
}

/// The path of a snapshot's directory below the archive, which names its objects.
fn path_in_archive(turn: &Turn<'_>, directory: Option<&Path>) -> String {
    let archive = turn.engine.archive();
    let path = directory.map(|path| path.strip_prefix(&archive).unwrap_or(path));
    let path = path.unwrap_or(Path::new("")).to_string_lossy();
    path.trim_start_matches('/').to_owned()
}
