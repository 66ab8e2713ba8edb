//! The protocol in a simulated fleet: machines with drifting clocks, pauses, power cuts, partitions,
//! lost, late and repeated messages, restarts and failovers of the database, clones, commands. After
//! each step, the invariants of `oracle.rs` must hold; after the faults, all pages are recorded.
//!
//! A failure prints its seed. `FLEET_SEED=N` runs this seed alone, `FLEET_SEEDS=N` the first N.

mod database;
mod early;
mod faults;
mod machine;
mod mutation;
mod network;
mod oracle;
mod random;
mod restored;
mod rules;
mod world;

use faults::LAST;
use mutation::Mutation;
use world::World;

const SEEDS: u64 = 240;
/// Time after the faults in which all pages must be recorded, in milliseconds.
const PATIENCE: u64 = 1_500_000;
/// Seeds within which each mutation must be found.
const SEEDS_PER_MUTATION: u64 = 400;

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    steps: u64,
    starts: u64,
    claims: u64,
    stale: u64,
    pages: u64,
    failovers: u64,
}

/// Runs one seed. Returns what it exercised, or what broke and when.
fn run(seed: u64, mutation: Option<Mutation>) -> Result<Sum, String> {
    let mut world = World::new(seed, mutation);
    let begin = world.now;
    let result = run_world(&mut world);
    let after = (world.now - begin) / 1_000;
    result.map_err(|broken| format!("seed {seed}, after {after} s: {broken}"))?;
    Ok(Sum {
        steps: world.steps,
        starts: world.oracle.starts,
        claims: world.oracle.handovers,
        stale: world.oracle.stale,
        pages: world.page_count() as u64,
        failovers: world.database.ledger.generation.0.unsigned_abs(),
    })
}

fn run_world(world: &mut World) -> Result<(), String> {
    world.plan();
    let faults_end = world.now + LAST + 1;
    while world.step(faults_end)? {}
    world.now = faults_end;
    world.end_faults();
    let end = faults_end + PATIENCE;
    while !world.is_done() {
        if !world.step(end)? {
            return Err(format!("I7: not done: {}", world.remaining()));
        }
    }
    // All entries are answered: what was promised is in the database now.
    world.oracle.check_promises(&world.database.ledger, [].into_iter())
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs seeds on two threads.
fn run_all(seeds: std::ops::Range<u64>) -> Vec<Result<Sum, String>> {
    let half = |rest: u64| {
        let seeds = seeds.clone().filter(move |seed| seed % 2 == rest);
        seeds.map(|seed| run(seed, None)).collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let even = scope.spawn(|| half(0));
        let odd = half(1);
        let even = even.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        [even, odd].concat()
    })
}

#[test]
fn invariants_hold_under_random_faults() {
    let seeds = match number("FLEET_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FLEET_SEEDS").unwrap_or(SEEDS),
    };
    let results = run_all(seeds.clone());
    let failed: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert!(
        failed.is_empty(),
        "{} of {} seeds failed; the first ones:\n{:#?}",
        failed.len(),
        results.len(),
        &failed[..failed.len().min(5)]
    );
    let sums = results.into_iter().flatten();
    let sum = sums.fold(Sum::default(), |all, one| Sum {
        steps: all.steps + one.steps,
        starts: all.starts + one.starts,
        claims: all.claims + one.claims,
        stale: all.stale + one.stale,
        pages: all.pages + one.pages,
        failovers: all.failovers + one.failovers,
    });
    println!("{} seeds: {sum:?}", seeds.end - seeds.start);
    // The runs are about something: pages move between nodes, records come too late.
    if seeds.end - seeds.start >= SEEDS {
        assert!(sum.stale > 0 && sum.failovers > 0 && sum.starts > sum.pages, "{sum:?}");
    }
}

#[test]
fn every_mutation_is_found() {
    let all = Mutation::ALL;
    let find = |mutation: Mutation| {
        let mut seeds = std::iter::once(mutation.likely_seed()).chain(0..SEEDS_PER_MUTATION);
        seeds.find_map(|seed| Some((seed, run(seed, Some(mutation)).err()?)))
    };
    let found: Vec<_> = std::thread::scope(|scope| {
        let halves = all.chunks(all.len().div_ceil(2));
        let threads: Vec<_> = halves
            .map(|half| scope.spawn(move || half.iter().map(|one| (*one, find(*one))).collect()))
            .collect();
        let found = threads.into_iter().map(|thread| thread.join());
        found.flat_map(|found: std::thread::Result<Vec<_>>| found.unwrap_or_default()).collect()
    });
    assert_eq!(found.len(), Mutation::ALL.len());
    let missed: Vec<_> = found.iter().filter(|(_, error)| error.is_none()).collect();
    // The seeds are for `likely_seed`: without them, this test takes minutes of a processor.
    for (mutation, error) in &found {
        match error {
            Some((seed, error)) => println!("{mutation:?}: seed {seed}: {error}"),
            None => println!("{mutation:?}: NOT FOUND"),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn seed_determines_the_run() {
    let sums: Vec<_> = (0..2).map(|_| format!("{:?}", run(7, None))).collect();
    assert_eq!(sums[0], sums[1]);
}
