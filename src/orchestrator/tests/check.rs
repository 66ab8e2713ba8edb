//! The invariants after each turn.

use super::bed::Bed;
use super::features;
use super::world::{Call, State};
use crate::database::RunRow;
use crate::main_loop::event::Event;
use archivist_core::model::{Lifecycle, Owner};
use archivist_core::unit::UnitKind;
use archivist_shared::bus::documents::report::{Counts, Filter, HookResult};
use archivist_shared::bus::documents::report::{Crawl, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

fn count<'a>(states: impl Iterator<Item = &'a str>) -> Counts {
    let mut counts = Counts::new();
    for state in states {
        *counts.entry(state.to_owned()).or_default() += 1;
    }
    counts
}

impl Bed {
    pub fn check(&mut self) {
        let all = Filter::default();
        let (crawls, snapshots, results, open, tallies) = self.look(|tx| {
            Ok((
                tx.list_crawls(&all)?,
                tx.list_snapshots(&all)?,
                tx.list_results(&all)?,
                tx.open_runs()?,
                (tx.counts("crawl", None)?, tx.counts("snapshot", None)?),
            ))
        });
        self.limits_hold(&snapshots, &open);
        self.states_and_runs_agree(&crawls, &snapshots, &results, &open);
        self.final_is_final(&crawls, &snapshots);
        assert_eq!(tallies.0, count(crawls.iter().map(|c| c.status.as_str())));
        assert_eq!(tallies.1, count(snapshots.iter().map(|s| s.status.as_str())));
        self.tallies_are_true(&crawls, &snapshots, &results);
        self.starts_are_known(&open);
        features::INVARIANTS.iter().for_each(|hold| hold(self));
        if self.world.is_quiet() {
            self.units_and_rows_agree();
            self.ended_owners_have_no_units(&open);
        }
    }

    /// Paused items, and crawls that wait only for paused pages, use no slot, and get their slot
    /// back at once when they are resumed: there may be too many workers then, but no more are
    /// started.
    fn limits_hold(&mut self, snapshots: &[Snapshot], open: &[RunRow]) {
        let paused: BTreeSet<Owner> = self.look(|tx| {
            let owners = open.iter().map(|run| run.owner);
            let paused = owners.filter(|owner| tx.is_paused(*owner).unwrap());
            Ok(paused.collect())
        });
        let idle = self.look(|tx| {
            let waits = |run: &&RunRow| {
                let mut pages = snapshots
                    .iter()
                    .filter(|page| page.crawl == run.crawl && !page.status.is_final())
                    .peekable();
                let some = pages.peek().is_some();
                let ready = tx.crawl(run.crawl).unwrap().is_some_and(|it| it.ready);
                ready && some && pages.all(|page| page.status == Lifecycle::Paused)
            };
            let crawls = open.iter().filter(|run| run.kind == UnitKind::CrawlWorker);
            Ok(crawls.filter(waits).map(|run| run.owner).collect::<BTreeSet<_>>())
        });
        let is_new = |run: &&RunRow| !self.known.contains(&run.id);
        for run in open.iter().filter(is_new) {
            assert!(!paused.contains(&run.owner), "{} is started", run.unit);
            let least = self.engine.settings.min_free_space;
            let free = self.engine.load.free;
            let room = run.kind == UnitKind::Hook || free.is_none_or(|free| free >= least);
            assert!(room, "{} is started without room", run.unit);
        }
        let limits = self.engine.limits();
        let holds = |of: &dyn Fn(&RunRow) -> bool, limit: u32| {
            let workers = open.iter().filter(|run| run.kind != UnitKind::Hook);
            let awake: Vec<&RunRow> = workers
                .filter(|run| !paused.contains(&run.owner) && !idle.contains(&run.owner))
                .filter(|run| of(run))
                .collect();
            let grew = awake.iter().any(is_new);
            assert!(awake.len() as u32 <= limit || !grew, "{awake:?}");
        };
        holds(&|run| run.kind == UnitKind::CrawlWorker, limits.workers_per_kind);
        holds(&|run| run.kind == UnitKind::SnapshotWorker, limits.workers_per_kind);
        let pages = |run: &&RunRow| run.kind == UnitKind::SnapshotWorker;
        // Beyond it a crawl, or several that were resumed, may have a first page.
        if open.iter().filter(pages).count() > 1 {
            holds(&|_| true, limits.workers_max);
        }
        let per_host = self.engine.settings.host_workers;
        for snapshot in snapshots {
            let of = |run: &RunRow| {
                let same = |s: &&Snapshot| s.url == snapshot.url;
                let mut owners = snapshots.iter().filter(same).map(|s| Owner::Snapshot(s.id));
                run.kind == UnitKind::SnapshotWorker && owners.any(|owner| owner == run.owner)
            };
            holds(&of, per_host);
        }
        let crawls: BTreeSet<_> = open.iter().map(|run| run.crawl.0).collect();
        for crawl in crawls {
            let of = |run: &RunRow| run.crawl.0 == crawl && run.kind == UnitKind::SnapshotWorker;
            holds(&of, limits.snapshots_per_crawl);
        }
        if self.world.is_quiet() {
            for run in open.iter().filter(|run| run.kind == UnitKind::Hook) {
                let unit = &self.world.units[&run.unit];
                let pause = paused.contains(&run.owner);
                assert_eq!(unit.frozen, pause, "{} of {}", run.unit, run.owner);
            }
        }
        self.hosts_are_spared(open);
        self.known = open.iter().map(|run| run.id).collect();
    }

    fn hosts_are_spared(&mut self, open: &[RunRow]) {
        let workers = open.iter().filter(|run| run.kind == UnitKind::SnapshotWorker);
        let snapshots = self.look(|tx| tx.list_snapshots(&Filter::default()));
        let host = |run: &RunRow| {
            let mut snapshots = snapshots.iter();
            let snapshot = snapshots.find(|s| Owner::Snapshot(s.id) == run.owner);
            snapshot.unwrap().url.clone()
        };
        for run in workers.clone().filter(|run| !self.known.contains(&run.id)) {
            let host = host(run);
            let before = self.begun.insert(host.clone(), self.now);
            let free = before.is_none_or(|time| time.after(self.pace) <= self.now);
            assert!(free, "{host} again at {}, after {before:?}", self.now);
        }
    }

    fn states_and_runs_agree(
        &self,
        crawls: &[Crawl],
        snapshots: &[Snapshot],
        all_results: &[HookResult],
        open: &[RunRow],
    ) {
        let units: BTreeSet<&str> = open.iter().map(|run| run.unit.as_str()).collect();
        assert_eq!(units.len(), open.len(), "one unit, two open runs");
        let worker = |owner: Owner| {
            let mut runs = open.iter();
            runs.find(|run| run.owner == owner && run.kind != UnitKind::Hook)
        };
        let crawls =
            crawls.iter().map(|crawl| (Owner::Crawl(crawl.id), crawl.status, crawl.attempts));
        let snapshots = snapshots.iter().map(|s| (Owner::Snapshot(s.id), s.status, s.attempts));
        for (owner, status, attempts) in crawls.chain(snapshots) {
            let results: Vec<&HookResult> =
                all_results.iter().filter(|result| result.owner == owner).collect();
            if status == Lifecycle::Started {
                let run = worker(owner).unwrap_or_else(|| panic!("{owner} has no worker"));
                assert_eq!(run.attempt, attempts, "{owner}: counted before the start");
            }
            if status.is_final() {
                let open = results.iter().find(|result| !result.status.is_final());
                assert!(open.is_none(), "{owner} is {status}: {open:?}");
            }
            for run in open {
                let (Some(plugin), Some(hook)) = (&run.plugin, &run.hook) else {
                    continue;
                };
                let of = |r: &&&HookResult| {
                    (&r.plugin, &r.hook) == (plugin, hook) && !r.status.is_final()
                };
                if run.owner == owner
                    && status == Lifecycle::Started
                    && let Some(result) = results.iter().find(of)
                {
                    assert_eq!(result.attempts, run.attempt, "{}", run.unit);
                }
            }
        }
    }

    fn final_is_final(&mut self, crawls: &[Crawl], snapshots: &[Snapshot]) {
        for snapshot in snapshots {
            let crawl = crawls.iter().find(|crawl| crawl.id == snapshot.crawl).expect("its crawl");
            assert!(
                !crawl.status.is_final() || snapshot.status.is_final(),
                "crawl {} is {}, its snapshot {} {}",
                crawl.id,
                crawl.status,
                snapshot.id,
                snapshot.status
            );
        }
        let crawls = crawls.iter().map(|c| (Owner::Crawl(c.id), c.status));
        let snapshots = snapshots.iter().map(|s| (Owner::Snapshot(s.id), s.status));
        let now: BTreeMap<Owner, Lifecycle> = crawls.chain(snapshots).collect();
        for (owner, status) in &self.finals {
            match now.get(owner) {
                Some(now) => assert_eq!(now, status, "{owner} was final"),
                None => assert!(self.deleted.contains(owner), "{owner} is gone"),
            }
        }
        let finals = now.into_iter().filter(|(_, status)| status.is_final());
        self.finals = finals.collect();
    }

    fn tallies_are_true(&self, crawls: &[Crawl], snapshots: &[Snapshot], all: &[HookResult]) {
        for crawl in crawls {
            let own: Vec<_> = snapshots.iter().filter(|s| s.crawl == crawl.id).collect();
            assert_eq!(crawl.snapshots, count(own.iter().map(|s| s.status.as_str())));
            let of_crawl = |result: &&HookResult| match result.owner {
                Owner::Crawl(id) => id == crawl.id,
                Owner::Snapshot(id) => own.iter().any(|snapshot| snapshot.id == id),
            };
            let results = all.iter().filter(of_crawl);
            assert_eq!(crawl.results, count(results.map(|r| r.status.as_str())));
        }
    }

    /// Every row that is `starting` has a start in progress, an answer, or a repair to come.
    fn starts_are_known(&self, open: &[RunRow]) {
        let unanswered = self.performer.unanswered();
        let world = &self.world;
        let repair = |event: &Event| matches!(event, Event::Listed(_) | Event::Read { .. });
        let repaired = world.answers.iter().any(repair)
            || (world.calls.iter()).any(|call| matches!(call, Call::List | Call::Read { .. }));
        for run in open.iter().filter(|run| run.starting) {
            let answered =
                |event: &Event| matches!(event, Event::Started { run: id, .. } if *id == run.id);
            assert!(
                unanswered.contains(&run.id) || world.answers.iter().any(answered) || repaired,
                "the start of {} has no answer and no repair",
                run.unit
            );
        }
    }

    /// With nothing on its way, every open run is a process, and every unit is of an open run.
    fn units_and_rows_agree(&mut self) {
        let open = self.look(|tx| tx.open_units());
        for run in &open {
            let state = self.world.units.get(&run.unit).map(|unit| &unit.state);
            assert_eq!(state, Some(&State::Running), "{} is open", run.unit);
        }
        for unit in self.world.units.keys() {
            let row = open.iter().find(|run| run.unit == *unit);
            assert!(row.is_some(), "{unit} has no row");
        }
    }

    fn ended_owners_have_no_units(&self, open: &[RunRow]) {
        for run in open {
            let over = self.finals.get(&run.owner);
            assert!(over.is_none(), "{} runs, {} is {over:?}", run.unit, run.owner);
        }
    }
}
