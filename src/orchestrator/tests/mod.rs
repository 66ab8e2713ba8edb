//! Runs turns with a real database and a simulated systemd: random operations, with every invariant
//! checked after each turn, until everything has ended.

mod access;
mod alerts;
pub(crate) mod bed;
mod cancel;
mod check;
mod clock;
mod delete;
mod disk;
mod effects;
mod entries;
mod expiry;
mod facts;
mod features;
mod fleet;
mod indexing;
mod interrupt;
pub(crate) mod journal;
mod limits;
mod lists;
mod machine;
mod network;
mod pause;
mod processes;
mod quota;
pub(crate) mod requests;
pub(crate) mod retry;
mod settings;
mod sharing;
mod signals;
mod tags;
mod taken;
mod transfer;
mod verification;
mod versions;
mod visit;
mod why;
mod worker;
pub(crate) mod world;

use crate::main_loop::event::Event;
use archivist_core::model::{DEPENDENCY, Lifecycle, Outcome, Reading};
use archivist_core::plan::Evidence;
use archivist_shared::bus::documents::report::Filter;
use archivist_shared::systemd::{ErrorKind, ManagerError};
use bed::Bed;
use proptest::prelude::*;
use world::Mood;

/// One operation. Numbers choose among the existing items.
#[derive(Clone, Debug)]
enum Operation {
    Add {
        urls: usize,
    },
    /// Entries of a list are kept without a visit.
    Keep {
        entries: usize,
    },
    Install,
    Elapse(usize),
    Cancel(usize),
    Delete(usize),
    Retry(usize),
    RetryFailed,
    Pause(usize),
    Resume(usize),
    /// The disk is full, or has space again.
    FillDisk(bool),
    /// PID 1 handles this number of calls.
    Handle(usize, Mood),
    /// The loop takes this number of signals and answers; the seed orders the answers.
    Turn {
        signals: usize,
        answers: usize,
        seed: usize,
    },
    Work(usize),
    Hold(usize),
    Abandon(usize, bool),
    Abort(usize),
    Interrupt(usize),
    Proceed(usize, bool),
    End(usize, i32, i32, &'static str),
    Vanish(usize),
    StopByHand(usize),
    Pass(u64),
    SetClock(i64),
    DaemonReload,
    /// The orchestrator is killed; PID 1 still handles this number of its calls.
    Restart(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation::*;
    let ends = prop_oneof![
        4 => Just((1, 0, "success")),
        1 => Just((1, 1, "exit-code")),
        1 => Just((2, 9, "signal")),
        1 => Just((2, 15, "timeout")),
        1 => Just((2, 9, "oom-kill")),
    ];
    let mood = prop_oneof![
        8 => Just(Mood::Fine), 1 => Just(Mood::Refuse), 1 => Just(Mood::Broken),
        1 => Just(Mood::Lack)
    ];
    prop_oneof![
        3 => (1..5usize).prop_map(|urls| Add { urls }),
        1 => (1..5usize).prop_map(|entries| Keep { entries }),
        1 => Just(Install),
        2 => any::<usize>().prop_map(Elapse),
        2 => any::<usize>().prop_map(Cancel),
        2 => any::<usize>().prop_map(Delete),
        2 => any::<usize>().prop_map(Retry),
        1 => Just(RetryFailed),
        3 => any::<usize>().prop_map(Pause),
        3 => any::<usize>().prop_map(Resume),
        1 => any::<bool>().prop_map(FillDisk),
        12 => (1..6usize, mood).prop_map(|(n, mood)| Handle(n, mood)),
        12 => (0..6usize, 0..6usize, any::<usize>())
            .prop_map(|(signals, answers, seed)| Turn { signals, answers, seed }),
        14 => any::<usize>().prop_map(Work),
        2 => any::<usize>().prop_map(Hold),
        1 => any::<(usize, bool)>().prop_map(|(n, cancel)| Abandon(n, cancel)),
        1 => any::<usize>().prop_map(Abort),
        3 => any::<usize>().prop_map(Interrupt),
        3 => any::<(usize, bool)>().prop_map(|(n, again)| Proceed(n, again)),
        6 => (any::<usize>(), ends).prop_map(|(n, (code, status, r))| End(n, code, status, r)),
        1 => any::<usize>().prop_map(Vanish),
        1 => any::<usize>().prop_map(StopByHand),
        2 => (1..200_000u64).prop_map(Pass),
        1 => (-90_000_000..90_000_000i64).prop_map(SetClock),
        1 => Just(DaemonReload),
        1 => (0..4usize).prop_map(Restart),
    ]
}

fn apply(bed: &mut Bed, operation: &Operation) {
    use Operation::*;
    match operation {
        Add { urls } => bed.add(*urls),
        Keep { entries } => bed.keep(*entries),
        Install => bed.install(),
        Elapse(n) => features::OPERATIONS.iter().for_each(|operate| operate(bed, *n)),
        Cancel(n) => bed.cancel(*n),
        Delete(n) => bed.delete(*n),
        Retry(n) => bed.retry(*n),
        RetryFailed => bed.retry_failed(),
        Pause(n) => bed.pause(*n),
        Resume(n) => bed.resume(*n),
        FillDisk(full) => bed.fill_disk(*full),
        Handle(n, mood) => {
            for _ in 0..*n {
                bed.world.handle(*mood);
            }
        }
        Turn { signals, answers, seed } => bed.turn_with(*signals, *answers, *seed),
        Work(n) => {
            bed.work(*n);
        }
        Hold(n) => bed.hold(*n),
        Abandon(n, cancel) => bed.abandon(*n, *cancel),
        Abort(n) => bed.abort(*n),
        Interrupt(n) => bed.interrupt(*n),
        Proceed(n, again) => bed.proceed(*n, *again),
        End(n, code, status, result) => {
            bed.of_running(*n, |world, unit| world.end(unit, *code, *status, result));
        }
        Vanish(n) => bed.of_running(*n, |world, unit| world.vanish(unit)),
        StopByHand(n) => bed.of_running(*n, |world, unit| world.stop_by_hand(unit)),
        Pass(ms) => bed.pass(*ms),
        SetClock(by) => bed.set_clock(*by),
        DaemonReload => bed.daemon_reload(),
        Restart(heard) => bed.restart(*heard),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(), max_shrink_iters: 2000, failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_operations_keep_invariants_and_end(
        operations in prop::collection::vec(operation(), 1..120), pace in 0..3u64
    ) {
        apply_all(&operations, pace);
    }

    /// The other half of the cases, at the same time.
    #[test]
    fn more_random_operations_keep_invariants_and_end(
        operations in prop::collection::vec(operation(), 1..120), pace in 0..3u64
    ) {
        apply_all(&operations, pace);
    }
}

fn apply_all(operations: &[Operation], pace: u64) {
    let mut bed = Bed::with_pace(std::time::Duration::from_secs(pace));
    for operation in operations {
        apply(&mut bed, operation);
    }
    bed.come_to_an_end();
}

/// The earlier unit is still loaded, because its release was lost with the orchestrator, as was the
/// start that was recorded for the same name: one is not taken for the other.
#[test]
fn recorded_start_is_repeated_after_a_crash() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.world.handle(Mood::Fine);
    bed.turn_with(9, 9, 0);
    bed.of_running(0, |world, unit| world.end(unit, 2, 9, "signal"));
    bed.turn_with(9, 9, 0);
    bed.world.handle(Mood::Fine);
    bed.turn_with(9, 9, 0);
    bed.pass(3_600_000);
    let open = bed.look(|tx| tx.open_runs());
    assert_eq!((open.len(), open[0].starting, open[0].attempt), (1, true, 2));
    assert_eq!(bed.world.units.len(), 1, "the first worker's unit");
    bed.restart(0);
    bed.come_to_an_end();
}

/// The machine reboots repeatedly during a long crawl: that does not count as attempts, up to a
/// limit.
#[test]
fn reboots_do_not_count_as_attempts() {
    let mut bed = Bed::new();
    bed.add(1);
    let mut boots = 0;
    loop {
        bed.until_quiet();
        boots += 1;
        bed.world = world::World::default();
        bed.restart(0);
        bed.engine.boot = format!("boot {boots}");
        bed.until_quiet();
        let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
        if crawls[0].status.is_final() {
            break;
        }
        bed.pass(7_200_000);
    }
    assert!((20..30).contains(&boots), "{boots}");
    bed.come_to_an_end();
}

/// The system shuts down, and systemd refuses all starts: that is no failure.
#[test]
fn start_refused_at_shutdown_is_retried() {
    let mut bed = Bed::new();
    bed.add(1);
    let run = bed.look(|tx| tx.open_runs()).remove(0);
    let why = ManagerError {
        verb: "start",
        object: run.unit.clone(),
        why: "Transaction is destructive".into(),
        kind: ErrorKind::GoingDown,
    };
    bed.turn(vec![Event::Started { run: run.id, unit: run.unit, result: Err(why) }]);
    let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
    assert_eq!(crawls[0].status, Lifecycle::Queued);
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    assert_eq!(runs[0].outcome, Some(Outcome::Lost));
}

/// A cancel is committed, and the orchestrator is killed before it can stop a unit: the next one
/// stops it.
#[test]
fn cancelled_unit_is_stopped_after_a_restart() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.cancel(0);
    // PID 1 handles the start that was made before, and not the stop of the slice.
    bed.restart(1);
    assert_eq!(bed.world.running().len(), 1);
    while bed.world.handle(Mood::Fine) || !bed.world.is_quiet() {
        bed.turn_with(9, 9, 0);
    }
    assert_eq!(bed.world.running().len(), 0);
    bed.come_to_an_end();
}

/// A unit may be gone before it is read: the evidence of the signal counts, and without any the run
/// is lost. Neither is a success.
#[test]
fn missing_unit_ends_by_evidence_or_is_lost() {
    let outcomes = [
        (true, Outcome::Signal(15), Lifecycle::Cancelled),
        (false, Outcome::Lost, Lifecycle::Queued),
    ];
    for (by_hand, outcome, status) in outcomes {
        let mut bed = Bed::new();
        bed.add(1);
        bed.world.handle(Mood::Fine);
        bed.turn_with(9, 9, 0);
        bed.of_running(
            0,
            |world, unit| {
                if by_hand { world.stop_by_hand(unit) } else { world.vanish(unit) }
            },
        );
        bed.turn_with(9, 9, 0);
        while bed.world.handle(Mood::Fine) {}
        bed.turn_with(9, 9, 0);
        let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
        assert_eq!(runs[0].outcome, Some(outcome));
        let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
        assert_eq!(crawls[0].status, status);
        bed.come_to_an_end();
    }
}

/// An installation is a crawl without pages: its worker runs the provider's hook, and it ends.
#[test]
fn installation_runs_provider_hooks() {
    let mut bed = Bed::new();
    bed.install();
    bed.come_to_an_end();
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    let hooks: Vec<_> = runs.iter().filter_map(|run| run.hook.as_deref()).collect();
    assert_eq!(hooks, ["on_BinaryRequest__10_shelf@tool"]);
    let hook = runs.iter().find(|run| run.hook.is_some()).unwrap();
    assert!(hook.argv.contains(&"--name=tool".to_owned()), "{:?}", hook.argv);
    assert!(hook.argv.contains(&"--plugin-name=beta".to_owned()));
    let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
    assert_eq!(crawls[0].url, "archivist:install/beta");
    assert_eq!(crawls[0].status, Lifecycle::Sealed);

    bed.retry_hook("shelf");
    bed.come_to_an_end();
    let runs = bed.look(|tx| tx.list_runs(&Filter::default()));
    assert_eq!(runs.iter().filter(|run| run.hook.is_some()).count(), 2);
    let crawls = bed.look(|tx| tx.list_crawls(&Filter::default()));
    assert_eq!(crawls[0].status, Lifecycle::Sealed);
}

/// At a shutdown a required unit may stop first; otherwise a failed dependency is a failure.
#[test]
fn failed_dependency_at_shutdown_is_retried() {
    for stopping in [true, false] {
        let mut bed = Bed::new();
        bed.add(1);
        bed.until_quiet();
        let unit = bed.running_hook().unwrap();
        let run = bed.look(|tx| tx.open_run(&unit)).unwrap().id;
        let gone = Reading { load_state: "not-found".into(), ..Reading::default() };
        if !stopping {
            bed.world.units.remove(&unit);
        }
        let (code, status, result) = (0, 0, DEPENDENCY.to_owned());
        bed.turn(vec![Event::Read {
            run,
            unit: unit.clone(),
            early: false,
            evidence: Some(Evidence { code, status, result }),
            result: Ok(Box::new(gone)),
            stopping,
        }]);
        let open = bed.look(|tx| tx.open_run(&unit)).is_some();
        assert_eq!(open, stopping);
    }
}

/// Returns how many cases of random operations each half runs, of `PROPTEST_CASES` or 64.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let all: u32 = asked.and_then(|text| text.parse().ok()).unwrap_or(64);
    all.div_ceil(2)
}
