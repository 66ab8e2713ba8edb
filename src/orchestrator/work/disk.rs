//! The disk while hooks run: when it is nearly full, the hook that has written most is ended, so
//! that the rest is left for other hooks and the machine.
//!
//! # What happens when the disk fills
//!
//! | when | what acts | what happens |
//! |---|---|---|
//! | less than `MinFreeSpace=`, with what running pages will probably write | `machine/pressure.rs` measures, `core/plan/pressure.rs` decides | nothing starts; fast checks, alerts and transfers do, because some transfers make space |
//! | hooks run | `main_loop/live/disk_watch.rs` reads the free space, the more often the faster it shrinks (`core/plan/disk.rs`) | – |
//! | it is nearly full, or soon will be | `main_loop/measure.rs` sums up what each hook wrote, `core/plan/disk.rs` chooses, `work/disk.rs` kills | the hook that wrote most ends as `disk-limit` |
//! | the hook has ended | its worker, with `worker/files/overflow.rs` | what it wrote is removed, and the other hooks of the page continue |
//! | a file reaches 4 GiB | the kernel (`LimitFSIZE=` of the unit) | SIGXFSZ ends the hook |
//! | a hook logs too much | its relay (`src/hook-exec/log.rs`) | the rest is dropped and counted, before it reaches journald |
//! | a hook ends while nothing is free | `worker/output/disk.rs` | its result is retried, because programs ignore failed writes |
//! | a worker ends while nothing could be written | `Shortage` (`core/plan/pressure.rs`), asked by `work/ends.rs` and `work/run_result.rs` | no attempt is counted |
//! | a transaction fails for lack of space | `defer()` in `process/orchestrator.rs` | callers get the error; other events are kept, and the next turn takes them again |
//! | the orchestrator starts and cannot write | `process/startup_wait.rs` | it waits, and `STATUS=` has the reason |

use crate::database::RunRow;
use crate::main_loop;
use crate::main_loop::action::{FileAction, UnitAction};
use crate::main_loop::measure::HookDirs;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::work::pause;
use archivist_core::model::{Outcome, Owner, Time};
use archivist_core::plan::{Lack, Writer, lack, worst};
use archivist_core::unit::UnitKind;
use archivist_shared::systemd::Whom;
use std::path::PathBuf;
use std::time::Duration;

const SIGKILL: i32 = 9;
/// Difference of the clocks: starts are recorded by the process's clock, files are marked by the
/// kernel's, which is a tick behind.
const CLOCK_SLACK: Duration = Duration::from_secs(1);

fn present_lack(turn: &Turn<'_>, rate: u64) -> Option<Lack> {
    let engine = turn.engine;
    lack(&engine.load, &engine.load_limits(), engine.disk_lack, rate)
}

/// While hooks run, has the free space read, and measures what they wrote when the disk is nearly
/// full or soon will be.
pub(crate) fn watch_disk(turn: &mut Turn<'_>) -> TurnResult<()> {
    let units = turn.tx.open_run_counts()?;
    let hooks = units.get("hook").copied().unwrap_or(0);
    let is_limited = turn.engine.settings.min_free_space > 0;
    turn.act(FileAction::WatchDisk(is_limited && hooks > 0));
    if hooks == 0 || present_lack(turn, turn.disk_rate).is_none() {
        return Ok(());
    }
    let runs = turn.tx.open_runs()?.into_iter();
    let hooks = runs.filter(|run| run.kind == UnitKind::Hook);
    let (ending, running): (Vec<_>, Vec<_>) = hooks.partition(|run| run.short_of_disk);
    if !ending.is_empty() && present_lack(turn, 0).is_none() {
        // Space may still shrink because of the hook that is being ended.
        return Ok(());
    }
    let reaches = running.iter().map(|run| reach(turn, run)).collect::<TurnResult<_>>()?;
    turn.act(FileAction::Measure(reaches, turn.disk_rate));
    Ok(())
}

fn reach(turn: &Turn<'_>, run: &RunRow) -> TurnResult<HookDirs> {
    let crawl = main_loop::crawl_of(turn, run.crawl)?;
    let of_crawl = main_loop::crawl_directory(turn, &crawl);
    let of_page = match run.owner {
        Owner::Snapshot(id) => main_loop::snapshot_of(turn, id)?.directory.map(PathBuf::from),
        Owner::Crawl(_) => None,
    };
    let place = of_page.unwrap_or_else(|| of_crawl.clone());
    let own = (place.clone(), run.plugin.clone().unwrap_or_default());
    let mut all = vec![place, of_crawl, turn.engine.shared_tmp(crawl.id)];
    all.dedup();
    let since = run.started_at.map_or(0, |time| time.0);
    Ok(HookDirs {
        run: run.id,
        since: Time(since.saturating_sub(CLOCK_SLACK.as_millis() as i64)),
        own,
        all,
    })
}

/// Ends the hook that has written most, if the disk is still nearly full.
pub(crate) fn measured(turn: &mut Turn<'_>, writers: &[Writer], rate: u64) -> TurnResult<()> {
    let Some(lack) = present_lack(turn, rate) else {
        return Ok(());
    };
    let Some(writer) = worst(lack, writers, &turn.engine.load_limits()) else {
        let shortage = said(lack);
        turn.log(move || tracing::debug!("{shortage}, and no hook has written much of it"));
        return Ok(());
    };
    let Some(run) = turn.tx.open_run_by_id(writer.run)? else {
        return Ok(());
    };
    let amount = match writer.own.bytes.max(writer.own.files) {
        0 => writer.shared,
        _ => writer.own,
    };
    let (killed, shortage) = (run.clone(), said(lack));
    turn.log(move || {
        tracing::warn!(
            archivist_crawl_id = killed.crawl.0,
            archivist_plugin = killed.plugin.as_deref(),
            archivist_hook = killed.hook.as_deref(),
            archivist_unit = killed.unit.as_str(),
            "killed {}: {shortage} (MinFreeSpace=), and it has written most: {} MiB in {} files",
            killed.unit,
            amount.bytes >> 20,
            amount.files
        )
    });
    turn.tx.mark_run(run.id, &Outcome::DiskLimit)?;
    pause::thaw(turn, &run);
    turn.act(UnitAction::Signal { unit: run.unit, whom: Whom::All, signal: SIGKILL });
    turn.remember(move |engine| engine.disk_lack = Some(lack));
    Ok(())
}

fn said(lack: Lack) -> String {
    match lack {
        Lack::Bytes(free) => format!("{} MiB are free for the archive", free >> 20),
        Lack::Inodes(free) => format!("{free} inodes are free for the archive"),
    }
}
