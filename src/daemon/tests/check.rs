//! What has to hold after each turn.

use super::bed::Bed;
use super::world::{Call, State};
use crate::bus::report::{Counts, Crawl, Filter, HookResult, Snapshot};
use crate::daemon::event::Event;
use crate::model::{Lifecycle, Owner};
use crate::store::RunRow;
use crate::unit::UnitKind;
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
        self.limits_hold(&open);
        self.states_and_runs_agree(&crawls, &snapshots, &results, &open);
        self.final_is_final(&crawls, &snapshots);
        assert_eq!(tallies.0, count(crawls.iter().map(|c| c.status.as_str())));
        assert_eq!(
            tallies.1,
            count(snapshots.iter().map(|s| s.status.as_str()))
        );
        self.tallies_are_true(&crawls, &snapshots, &results);
        self.starts_are_known(&open);
        if self.world.is_quiet() {
            self.units_and_rows_agree(&open);
        }
    }

    fn limits_hold(&self, open: &[RunRow]) {
        let of = |kind| open.iter().filter(move |run| run.kind == kind);
        let limits = self.engine.limits();
        let crawls = of(UnitKind::CrawlWorker).count() as u32;
        let snapshots = of(UnitKind::SnapshotWorker).count() as u32;
        assert!(crawls <= limits.workers_per_kind);
        assert!(snapshots <= limits.workers_per_kind);
        assert!(crawls + snapshots <= limits.workers_max);
        let mut by_crawl: BTreeMap<_, u32> = BTreeMap::new();
        for run in of(UnitKind::SnapshotWorker) {
            *by_crawl.entry(run.crawl.0).or_default() += 1;
        }
        let most = by_crawl.values().max().copied().unwrap_or(0);
        assert!(most <= limits.snapshots_per_crawl, "{by_crawl:?}");
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
        let crawls = crawls
            .iter()
            .map(|crawl| (Owner::Crawl(crawl.id), crawl.status, crawl.attempts));
        let snapshots = snapshots
            .iter()
            .map(|s| (Owner::Snapshot(s.id), s.status, s.attempts));
        for (owner, status, attempts) in crawls.chain(snapshots) {
            let results = all_results.iter().filter(|result| result.owner == owner);
            let results: Vec<&HookResult> = results.collect();
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
            let crawl = crawls.iter().find(|crawl| crawl.id == snapshot.crawl);
            let crawl = crawl.expect("its crawl");
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
            assert_eq!(now[owner], *status, "{owner} was final");
        }
        let finals = now.into_iter().filter(|(_, status)| status.is_final());
        self.finals = finals.collect();
    }

    fn tallies_are_true(&self, crawls: &[Crawl], snapshots: &[Snapshot], all: &[HookResult]) {
        for crawl in crawls {
            let own: Vec<_> = snapshots.iter().filter(|s| s.crawl == crawl.id).collect();
            assert_eq!(
                crawl.snapshots,
                count(own.iter().map(|s| s.status.as_str()))
            );
            let of_crawl = |result: &&HookResult| match result.owner {
                Owner::Crawl(id) => id == crawl.id,
                Owner::Snapshot(id) => own.iter().any(|snapshot| snapshot.id == id),
            };
            let results = all.iter().filter(of_crawl);
            assert_eq!(crawl.results, count(results.map(|r| r.status.as_str())));
        }
    }

    /// Every row that is `starting` has a start under way, an answer, or a repair to come.
    fn starts_are_known(&self, open: &[RunRow]) {
        let unanswered = self.starts.unanswered();
        let world = &self.world;
        let repair = |event: &Event| matches!(event, Event::Listed(_) | Event::Read { .. });
        let repaired = world.answers.iter().any(repair)
            || (world.calls.iter()).any(|call| matches!(call, Call::List | Call::Read { .. }));
        for run in open.iter().filter(|run| run.starting) {
            let answered =
                |event: &Event| matches!(event, Event::Started { run: id, .. } if *id == run.id);
            assert!(
                unanswered.contains(&run.id) || world.answers.iter().any(answered) || repaired,
                "nobody knows of the start of {}",
                run.unit
            );
        }
    }

    /// With nothing on its way, every open run is a process, and every unit is of an open run.
    fn units_and_rows_agree(&self, open: &[RunRow]) {
        for run in open {
            let state = self.world.units.get(&run.unit).map(|unit| &unit.state);
            assert_eq!(state, Some(&State::Running), "{} is open", run.unit);
            let over = self.finals.get(&run.owner);
            assert!(
                over.is_none(),
                "{} runs, {} is {over:?}",
                run.unit,
                run.owner
            );
        }
        for unit in self.world.units.keys() {
            let row = open.iter().find(|run| run.unit == *unit);
            assert!(row.is_some(), "{unit} has no row");
        }
    }
}
