//! The orchestrators of a data directory, as `archivist status` lists them.

use archivist_core::model::{Locality, ProcessLocation, Runner};
use archivist_shared::bus::documents::report;

/// The orchestrators that are alive, including `rank`. `is_alive` is asked for the others.
pub fn reported(
    runners: &[Runner],
    rank: i64,
    here: &ProcessLocation,
    is_alive: impl Fn(&Runner) -> bool,
) -> Vec<report::Runner> {
    let alive = |runner: &&Runner| runner.rank == rank || is_alive(runner);
    let shown = runners.iter().filter(alive).map(|runner| {
        let place = Locality::of(here, &runner.place).words();
        report::Runner {
            state: if runner.active { "active" } else { "waiting" }.to_owned(),
            pid: runner.pid,
            unit: runner.unit.clone(),
            components: runner.components.clone(),
            since: runner.since,
            epoch: runner.epoch,
            place: Some(place.to_owned()).filter(|place| !place.is_empty()),
            directory: None,
        }
    });
    shown.collect()
}
