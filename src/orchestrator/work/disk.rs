//! The disk while hooks run: when it is nearly full, the hook that has written most is ended, so
//! that the rest is left for other hooks and the machine.

use crate::main_loop::action::{EngineAction, FileAction, UnitAction};
use crate::main_loop::log::{HookLog, Problem};
use crate::main_loop::measure::HookDirs;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::RunRow;
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

impl Turn<'_> {
    fn lack(&self, rate: u64) -> Option<Lack> {
        let engine = self.engine;
        lack(&engine.load, &engine.load_limits(), engine.disk_lack, rate)
    }

    /// While hooks run, has the free space read, and measures what they wrote when the disk is nearly
    /// full or soon will be.
    pub(crate) fn watch_disk(&mut self, hooks: u64) -> TurnResult<()> {
        let is_limited = self.engine.settings.min_free_space > 0;
        self.act(FileAction::WatchDisk(is_limited && hooks > 0));
        if hooks == 0 || self.lack(self.disk_rate).is_none() {
            return Ok(());
        }
        let runs = self.tx.open_runs()?.into_iter();
        let hooks = runs.filter(|run| run.kind == UnitKind::Hook);
        let (ending, running): (Vec<_>, Vec<_>) = hooks.partition(|run| run.short_of_disk);
        if !ending.is_empty() && self.lack(0).is_none() {
            // Space may still shrink because of the hook that is being ended.
            return Ok(());
        }
        let reaches = running
            .iter()
            .map(|run| self.reach(run))
            .collect::<TurnResult<_>>()?;
        self.act(FileAction::Measure(reaches, self.disk_rate));
        Ok(())
    }

    fn reach(&self, run: &RunRow) -> TurnResult<HookDirs> {
        let crawl = self.crawl_of(run.crawl)?;
        let of_crawl = self.crawl_directory(&crawl);
        let of_page = match run.owner {
            Owner::Snapshot(id) => self.snapshot_of(id)?.directory.map(PathBuf::from),
            Owner::Crawl(_) => None,
        };
        let place = of_page.unwrap_or_else(|| of_crawl.clone());
        let own = (place.clone(), run.plugin.clone().unwrap_or_default());
        let mut all = vec![place, of_crawl, self.engine.shared_tmp(crawl.id)];
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
    pub(crate) fn measured(&mut self, writers: &[Writer], rate: u64) -> TurnResult<()> {
        let Some(lack) = self.lack(rate) else {
            return Ok(());
        };
        let Some(writer) = worst(lack, writers, &self.engine.load_limits()) else {
            self.log_problem(Problem::DiskShort(said(lack)));
            return Ok(());
        };
        let Some(run) = self.tx.open_run_by_id(writer.run)? else {
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
        self.log_hook(run.crawl, log);
        self.tx.mark_run(run.id, &Outcome::DiskLimit)?;
        self.thaw(&run);
        self.act(UnitAction::Signal {
            unit: run.unit,
            whom: Whom::All,
            signal: SIGKILL,
        });
        self.act(EngineAction::DiskLacked(lack));
        Ok(())
    }
}

fn said(lack: Lack) -> String {
    match lack {
        Lack::Bytes(free) => format!("{} MiB are free for the archive", free >> 20),
        Lack::Inodes(free) => format!("{free} inodes are free for the archive"),
    }
}
