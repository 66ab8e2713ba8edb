//! An orchestrator without systemd: the loop, one turn at a time.

mod progress;

use super::worker::Did;
use super::world::{BOOT, Call, Mood, World};
use crate::database::{Database, Durability, Tx};
use crate::engine::state::{Engine, Programs};
use crate::house::House;
use crate::main_loop::event::Event;
use crate::main_loop::perform::Performer;
use crate::main_loop::transaction::{self, Committed, Moment};
use archivist_config::{Scope, Settings};
use archivist_core::model::{CrawlId, Lifecycle, Owner, RunId, Time};
use archivist_plugin::sample;
use archivist_shared::bus::documents::report::Filter;
use archivist_shared::systemd::Hint;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tempfile::TempDir;

pub const DATABASE: &str = "test.sqlite3";

/// Small limits, so that tests reach each of them.
fn settings() -> Settings {
    Settings {
        workers_per_kind: 3,
        workers_max: 4,
        snapshots_per_crawl: 2,
        starts_in_flight: 3,
        host_workers: 2,
        ..Settings::default()
    }
}

fn engine(directory: &TempDir) -> Engine {
    let plugins = [
        sample::plugin("alpha", json!({}), &["on_Snapshot__10_alpha.py"]),
        sample::plugin(
            "beta",
            json!({"required_binaries": [{"name": "tool", "binproviders": "shelf"}]}),
            &["on_Snapshot__20_beta.py"],
        ),
        sample::plugin(
            "import",
            json!({"x-on-demand": true, "properties": {
                "IMPORT_KEEP": {"type": "boolean", "default": false},
                "IMPORT_SOURCE": {"type": "string", "default": ""},
            }}),
            &["on_Snapshot__50_import.sh"],
        ),
        sample::plugin("shelf", json!({}), &["on_BinaryRequest__10_shelf.py"]),
        sample::plugin(
            "setup",
            json!({}),
            &["on_CrawlSetup__10_setup.py", "on_CrawlCleanup__90_end.py"],
        ),
    ];
    Engine::new(
        Scope::system(directory.path()),
        settings(),
        sample::catalogue(plugins),
        BOOT.into(),
        Programs {
            worker: "/usr/lib/archivist/archivist-orchestrator".into(),
            archivist: "/usr/bin/archivist".into(),
            launcher: Some("/bin/launcher".into()),
            store: "/bin/store".into(),
            search: "/bin/search".into(),
        },
        "252".into(),
    )
}

fn open(directory: &TempDir, now: Time) -> Database {
    let mut database = Database::open(&directory.path().join(DATABASE)).unwrap();
    database.take_over("test.service", BOOT, now).unwrap();
    database
}

pub struct Bed {
    pub directory: TempDir,
    pub database: Database,
    pub engine: Engine,
    pub performer: Performer,
    pub world: World,
    pub now: Time,
    /// CLOCK_BOOTTIME in milliseconds.
    pub machine: i64,
    /// Runs that were open after the last turn.
    pub known: BTreeSet<RunId>,
    /// When a snapshot of a host was started last.
    pub begun: BTreeMap<String, Time>,
    pub pace: Duration,
    /// Final items, and those that were retried since.
    pub finals: BTreeMap<Owner, Lifecycle>,
    /// Items that were deleted.
    pub deleted: BTreeSet<Owner>,
}

impl Bed {
    pub fn new() -> Bed {
        // The tests ask SQLite for many durable commits.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let now = Time(1_000_000);
        Bed {
            database: open(&directory, now),
            engine: engine(&directory),
            directory,
            performer: Performer::default(),
            world: World::default(),
            now,
            machine: 0,
            known: BTreeSet::new(),
            begun: BTreeMap::new(),
            pace: Duration::ZERO,
            finals: BTreeMap::new(),
            deleted: BTreeSet::new(),
        }
    }

    /// The same with so much time from one start on a host to the next.
    pub fn with_pace(pace: Duration) -> Bed {
        let mut bed = Bed::new();
        bed.engine.settings.host_delay = pace;
        Bed { pace, ..bed }
    }

    pub fn look<T>(&mut self, read: impl FnOnce(&Tx<'_>) -> crate::database::Result<T>) -> T {
        read(&self.database.begin().unwrap()).unwrap()
    }

    /// One turn of the loop, as the orchestrator makes it.
    pub fn turn(&mut self, batch: Vec<Event>) {
        self.try_turn(batch).unwrap();
    }

    /// The same; an error if the transaction was not committed, and nothing was done then.
    pub fn try_turn(&mut self, mut batch: Vec<Event>) -> crate::database::Result<()> {
        let unanswered = self.performer.unanswered();
        for event in &batch {
            self.performer.observe(event, &mut self.world);
        }
        let retries = |event: &Event| {
            let Event::Call(call) = event else {
                return false;
            };
            call.name().is_some_and(|name| name.starts_with("Retry") || name == "Update")
        };
        if batch.iter().any(retries) {
            self.finals.clear();
        }
        self.engine.read_start_facts();
        let moment = Moment {
            now: self.now,
            boottime: self.machine,
            jitter: 0.5,
            followed: &BTreeSet::new(),
            is_subscribed: self.world.is_subscribed,
            unanswered: &unanswered,
            durability: Durability::ProcessCrash,
        };
        let Committed { actions, outlook, left } =
            transaction::run(&mut self.database, &mut self.engine, &House, &moment, &mut batch)?;
        self.note_expired();
        let left = left.into_iter().map(|place| batch[place].clone());
        let mut left: Vec<Event> = left.collect();
        self.performer.perform_all(actions, outlook.is_some(), &mut self.engine, &mut self.world);
        if self.engine.facts.are_awaited() {
            left.push(Event::Due);
            return self.try_turn(left);
        }
        self.check();
        match std::mem::take(&mut self.world.read) {
            read if read.is_empty() => Ok(()),
            read => self.try_turn(read),
        }
    }

    /// Notes what rules deleted: the tests of rules look at what they left.
    fn note_expired(&mut self) {
        let settings = &self.engine.settings;
        if settings.retention.is_empty() && settings.quotas.is_empty() {
            return;
        }
        let all = Filter { limit: u32::MAX, ..Filter::default() };
        let crawls = self.look(|tx| tx.list_crawls(&all));
        let pages = self.look(|tx| tx.list_snapshots(&all));
        let crawls = crawls.iter().map(|crawl| Owner::Crawl(crawl.id));
        let left: BTreeSet<Owner> =
            crawls.chain(pages.iter().map(|page| Owner::Snapshot(page.id))).collect();
        self.deleted.extend(self.finals.keys().filter(|owner| !left.contains(owner)));
    }

    pub fn crawl(&mut self, n: usize) -> Option<CrawlId> {
        let crawls = self.look(|tx| tx.list_crawls(&Filter::default()));
        (!crawls.is_empty()).then(|| crawls[n % crawls.len()].id)
    }

    pub fn owner(&mut self, n: usize) -> Option<Owner> {
        let all = Filter::default();
        let crawls = self.look(|tx| tx.list_crawls(&all));
        let snapshots = self.look(|tx| tx.list_snapshots(&all));
        let crawls = crawls.iter().map(|crawl| Owner::Crawl(crawl.id));
        let snapshots = snapshots.iter().map(|s| Owner::Snapshot(s.id));
        let owners: Vec<Owner> = crawls.chain(snapshots).collect();
        (!owners.is_empty()).then(|| owners[n % owners.len()])
    }

    pub fn turn_with(&mut self, signals: usize, answers: usize, seed: usize) {
        let mut batch = Vec::new();
        let signals = signals.min(self.world.signals.len());
        batch.extend(self.world.signals.drain(..signals));
        for n in 0..answers {
            let there = self.world.answers.len();
            if there > 0 {
                let answer = self.world.answers.remove((seed >> (3 * (n % 20))) % there);
                let place = (seed >> (2 * (n % 20))) % (batch.len() + 1);
                batch.insert(place, answer);
            }
        }
        // Signals keep their order among themselves; answers may stand anywhere.
        self.turn(batch);
    }

    pub fn work(&mut self, n: usize) -> bool {
        let units = self.world.units.iter();
        let workers = units.filter(|(_, unit)| unit.worker.is_some());
        let names: Vec<String> = workers.map(|(name, _)| name.clone()).collect();
        let Some(name) = (!names.is_empty()).then(|| names[n % names.len()].clone()) else {
            return false;
        };
        let unit = self.world.units.get_mut(&name).unwrap();
        match unit.worker.as_mut().unwrap().step() {
            Did::Called(event) => self.turn(vec![*event]),
            Did::Waits => return false,
            Did::Exits(0) => self.world.end(&name, 1, 0, "success"),
            Did::Exits(code) => self.world.end(&name, 1, code, "exit-code"),
        }
        true
    }

    /// Returns the next call of a worker without making it.
    pub fn next_call(&mut self) -> Event {
        let workers = self.world.units.values_mut();
        let mut steps =
            workers.filter_map(|unit| unit.worker.as_mut().map(super::worker::Worker::step));
        let call = steps.find_map(|did| match did {
            Did::Called(event) => Some(*event),
            _ => None,
        });
        call.expect("a worker that calls")
    }

    pub fn of_running(&mut self, n: usize, what: impl FnOnce(&mut World, &str)) {
        let running = self.world.running();
        if !running.is_empty() {
            what(&mut self.world, &running[n % running.len()]);
        }
    }
}
