//! The disk while hooks run: when it is nearly full, the hook that has written most is ended, so that
//! the others and the rest of the machine have what is left.

use crate::main_loop::action::Action;
use crate::main_loop::event::Event;
use crate::main_loop::log::{HookLog, Problem};
use crate::main_loop::turn::{Turn, TurnResult};
use crate::store::RunRow;
use archivist_core::model::{Outcome, Owner, RunId, Time};
use archivist_core::plan::{Amount, LOOK, Lack, Writer, lack, worst};
use archivist_core::unit::UnitKind;
use archivist_plugin::files::allocation::{Allocation, allocations};
use archivist_shared::systemd::Whom;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;

const SIGKILL: i32 = 9;
/// A start is recorded by our clock, and files are marked by the kernel's, which is a tick behind.
const SLACK: Duration = Duration::from_secs(1);

/// Where a hook that runs may have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    run: RunId,
    since: Time,
    /// The directory of its page or crawl, and in it that of its plugin.
    own: (PathBuf, String),
    /// Everything, that one among it.
    all: Vec<PathBuf>,
}

/// Measures what each hook has written on a thread, and says so with an event.
pub fn measure(reaches: Vec<Reach>, events: mpsc::UnboundedSender<Event>) {
    tokio::task::spawn_blocking(move || {
        let _ = events.send(Event::Measured(measured(&reaches)));
    });
}

fn measured(reaches: &[Reach]) -> Vec<Writer> {
    let mut known: HashMap<(PathBuf, Option<String>), Vec<Allocation>> = HashMap::new();
    let mut amount = |dir: &PathBuf, part: Option<&String>, since: Time| {
        let place = (dir.clone(), part.cloned());
        let files = known
            .entry(place)
            .or_insert_with_key(|(dir, part)| allocations(dir, part.as_deref()));
        let new = files.iter().filter(|(changed, _)| *changed >= since.0);
        new.fold(Amount::default(), |sum, (_, bytes)| Amount {
            bytes: sum.bytes.saturating_add(*bytes),
            files: sum.files + 1,
        })
    };
    let writers = reaches.iter().map(|reach| {
        let own = amount(&reach.own.0, Some(&reach.own.1), reach.since);
        let all = reach.all.iter().map(|dir| amount(dir, None, reach.since));
        let shared = all.fold(Amount::default(), |sum, part| Amount {
            bytes: sum.bytes.saturating_add(part.bytes),
            files: sum.files + part.files,
        });
        Writer {
            run: reach.run,
            own,
            shared: Amount {
                bytes: shared.bytes.saturating_sub(own.bytes),
                files: shared.files.saturating_sub(own.files),
            },
        }
    });
    writers.collect()
}

impl Turn<'_> {
    fn lack(&self) -> Option<Lack> {
        let engine = self.engine;
        lack(&engine.strain, &engine.strains(), engine.disk_lack)
    }

    /// While hooks run the disk is looked at from time to time, and what they wrote when it is nearly full.
    pub(crate) fn watch_disk(&mut self, hooks: u64) -> TurnResult<()> {
        if hooks == 0 || self.engine.settings.min_free_space == 0 {
            return Ok(());
        }
        self.actions.push(Action::WakeAt(self.now.after(LOOK)));
        if self.lack().is_none() {
            return Ok(());
        }
        let runs = self.tx.open_runs()?.into_iter();
        let hooks = runs.filter(|run| run.kind == UnitKind::Hook && !run.short_of_disk);
        let reaches = hooks
            .map(|run| self.reach(&run))
            .collect::<TurnResult<_>>()?;
        self.actions.push(Action::Measure(reaches));
        Ok(())
    }

    fn reach(&self, run: &RunRow) -> TurnResult<Reach> {
        let crawl = self.crawl_of(run.crawl)?;
        let of_crawl = self.crawl_directory(&crawl);
        let place = match run.owner {
            Owner::Snapshot(id) => self.snapshot_of(id)?.directory.map(PathBuf::from),
            Owner::Crawl(_) => None,
        };
        let place = place.unwrap_or_else(|| of_crawl.clone());
        let own = (place.clone(), run.plugin.clone().unwrap_or_default());
        let mut all = vec![place, of_crawl, self.engine.shared_tmp(crawl.id)];
        all.dedup();
        let since = run.started_at.map_or(0, |time| time.0);
        Ok(Reach {
            run: run.id,
            since: Time(since.saturating_sub(SLACK.as_millis() as i64)),
            own,
            all,
        })
    }

    /// Ends the hook that has written most, if the disk is still nearly full.
    pub(crate) fn measured(&mut self, writers: &[Writer]) -> TurnResult<()> {
        let Some(lack) = self.lack() else {
            return Ok(());
        };
        let Some(writer) = worst(lack, writers, &self.engine.strains()) else {
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
        self.actions.push(Action::Signal {
            unit: run.unit,
            whom: Whom::All,
            signal: SIGKILL,
        });
        self.actions.push(Action::DiskLacked(lack));
        Ok(())
    }
}

fn said(lack: Lack) -> String {
    match lack {
        Lack::Bytes(free) => format!("{} MiB are free for the archive", free >> 20),
        Lack::Inodes(free) => format!("the archive has room for {free} more files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_before_a_hook_is_not_its_own() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("wget");
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join("a"), vec![1; 1 << 20]).unwrap();
        std::fs::write(top.path().join("beside"), vec![1; 2 << 20]).unwrap();
        let reach = |since| Reach {
            run: RunId(1),
            since: Time(since),
            own: (top.path().to_owned(), "wget".to_owned()),
            all: vec![top.path().to_owned()],
        };
        let found = measured(&[reach(0), reach(i64::MAX)]);
        let mib = |amount: Amount| (amount.bytes >> 20, amount.files);
        assert_eq!((mib(found[0].own), mib(found[0].shared)), ((1, 1), (2, 1)));
        assert_eq!((mib(found[1].own), mib(found[1].shared)), ((0, 0), (0, 0)));
    }
}
