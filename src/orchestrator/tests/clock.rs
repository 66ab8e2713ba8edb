//! Retries, delays and time limits when the clock of the machine is set.

use super::bed::Bed;
use crate::database::rows::lease::Leases;
use crate::main_loop::event::Event;
use archivist_core::model::{Lifecycle, SnapshotId, Time};
use archivist_core::plan::{Clocks, HostNetwork};
use archivist_shared::bus::documents::report::{Crawl, Filter};
use std::time::Duration;

const DAY: i64 = 86_400_000;

impl Bed {
    /// The loop sees it with whatever it hears next.
    pub fn set_clock(&mut self, by: i64) {
        self.now = Time(self.now.0 + by);
        for time in self.begun.values_mut() {
            time.0 += by;
        }
        self.turn(vec![Event::ClockSet(by), Event::Due]);
    }

    fn first_crawl(&mut self) -> Crawl {
        let crawls = self.look(|tx| tx.list_crawls(&Filter::default()));
        crawls.into_iter().next().unwrap()
    }
}

/// Its worker died: it waits for its next attempt.
fn put_off(bed: &mut Bed) -> Duration {
    bed.add(1);
    bed.until_quiet();
    bed.world.end("archivist-crawl-1.service", 2, 9, "signal");
    bed.until_quiet();
    let crawl = bed.first_crawl();
    assert_eq!(crawl.status, Lifecycle::Queued);
    crawl.retry_at.unwrap().until(bed.now)
}

#[test]
fn retry_keeps_its_delay_when_the_clock_is_set() {
    for by in [-DAY, DAY] {
        let mut bed = Bed::new();
        let delay = put_off(&mut bed);
        assert!(delay > Duration::from_secs(20), "{delay:?}");
        bed.set_clock(by);
        let crawl = bed.first_crawl();
        assert_eq!(crawl.status, Lifecycle::Queued, "{by}");
        assert_eq!(crawl.retry_at.unwrap().until(bed.now), delay, "{by}");
        assert_eq!(bed.performer.wake_at, crawl.retry_at, "{by}");
        bed.until_woken();
        assert_eq!(bed.first_crawl().status, Lifecycle::Started, "{by}");
        bed.come_to_an_end();
    }
}

/// A page is due from the moment that it was added at.
#[test]
fn queued_item_starts_when_the_clock_is_set_back() {
    let mut bed = Bed::new();
    bed.fill_disk(true);
    bed.add(1);
    bed.set_clock(-DAY);
    assert_eq!(bed.first_crawl().status, Lifecycle::Queued);
    bed.fill_disk(false);
    bed.until_woken();
    assert_eq!(bed.first_crawl().status, Lifecycle::Started);
    bed.come_to_an_end();
}

#[test]
fn crawl_time_limit_ignores_clock_steps() {
    let mut bed = Bed::new();
    bed.add(1);
    let began = bed.first_crawl().started_at.unwrap();
    bed.set_clock(DAY);
    assert_eq!(bed.first_crawl().started_at.unwrap().0, began.0 + DAY);
    bed.come_to_an_end();
    let over = bed.first_crawl();
    bed.set_clock(DAY);
    assert_eq!(bed.first_crawl().started_at, over.started_at);
}

/// The delay of a host may be as long as the step of the clock, so a limit alone does not find it.
#[test]
fn host_keeps_its_delay_when_the_clock_is_set_back_between_orchestrators() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.come_to_an_end();
    let (now, wait) = (bed.now, Duration::from_secs(3600));
    bed.look(|tx| {
        let host = tx.host_of(SnapshotId(1))?;
        tx.host_until(host, now.after(wait), "Retry-After", now)?;
        assert_eq!(tx.set_back_by(now)?, Duration::ZERO);
        let later = Time(now.0 - DAY);
        let back = tx.set_back_by(later)?;
        tx.clock_set(-i64::try_from(back.as_millis()).unwrap())?;
        let leases = Leases {
            are_needed: false,
            boot: "",
            clocks: Clocks { now: later, machine: 0 },
            orders: None,
        };
        let next_at = tx.host_view(host, Duration::ZERO, &leases, &|_| HostNetwork::Up)?.next_at;
        // The time from the end of the last run until the start is not known.
        let idle = Duration::from_millis(DAY as u64) - back;
        assert_eq!(next_at.until(later), wait + idle);
        assert_eq!(tx.set_back_by(later)?, Duration::ZERO, "adjusted once");
        Ok(())
    });
}

/// An orchestrator that ran when the clock was set has adjusted everything.
#[test]
fn restart_after_a_set_clock_adjusts_nothing() {
    let mut bed = Bed::new();
    bed.add(1);
    bed.come_to_an_end();
    bed.set_clock(-DAY);
    let now = bed.now;
    assert_eq!(bed.look(|tx| tx.set_back_by(now)), Duration::ZERO);
}

/// The clock was set back while no orchestrator was there.
#[test]
fn delays_are_capped_after_a_restart() {
    let mut bed = Bed::new();
    put_off(&mut bed);
    let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(86_400));
    let now = bed.now;
    bed.look(|tx| {
        assert_eq!(tx.bring_forward(now, hour, day)?, 0);
        let before = Time(now.0 - DAY);
        assert!(tx.bring_forward(before, hour, day)? > 0);
        let crawls = tx.list_crawls(&Filter::default())?;
        assert_eq!(crawls[0].retry_at, Some(before));
        Ok(())
    });
}
