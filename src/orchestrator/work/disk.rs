//! The disk while hooks run: when it is nearly full, the hook that has written most is ended, so
//! that the rest is left for other hooks and the machine.

use crate::main_loop;
use crate::main_loop::action::{EngineAction, FileAction, UnitAction};
use crate::main_loop::log::{HookLog, Problem};
use crate::main_loop::measure::HookDirs;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::RunRow;
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
        turn.log_problem(Problem::DiskShort(said(lack)));
        return Ok(());
    };
    let Some(run) = turn.tx.open_run_by_id(writer.run)? else {
        return Ok(());
    };
    let amount = match writer.own.bytes.max(writer.own.files) {
        0 => writer.shared,
        _ => writer.own,
    };
    let log = HookLog::KilledForDisk {
        unit: run.unit.clone(),
        plugin: run.plugin.clone(),
        hook: run.hook.clone(),
        shortage: said(lack),
        bytes: amount.bytes,
        files: amount.files,
    };
    turn.log_hook(run.crawl, log);
    turn.tx.mark_run(run.id, &Outcome::DiskLimit)?;
    pause::thaw(turn, &run);
    turn.act(UnitAction::Signal { unit: run.unit, whom: Whom::All, signal: SIGKILL });
    turn.act(EngineAction::DiskLacked(lack));
    Ok(())
}

fn said(lack: Lack) -> String {
    match lack {
        Lack::Bytes(free) => format!("{} MiB are free for the archive", free >> 20),
        Lack::Inodes(free) => format!("{free} inodes are free for the archive"),
    }
}
