//! Tests of hooks that fill the disk.

use super::bed::Bed;
use crate::main_loop::event::Event;
use archivist_core::model::RunId;
use archivist_core::plan::{Amount, Writer};
use archivist_core::unit::UnitKind;

const GIB: u64 = 1 << 30;

fn running_hook(bed: &mut Bed) -> RunId {
    let runs = bed.look(|tx| tx.open_runs());
    let hook = runs.iter().find(|run| run.kind == UnitKind::Hook);
    hook.expect("a hook that runs").id
}

/// Of the free space, more than MinFreeSpace= is left each time.
#[test]
fn hook_that_fills_the_disk_fast_is_ended_before_it_is_full() {
    let mut bed = Bed::new();
    bed.engine.load.free = Some(6 * GIB);
    bed.add(1);
    bed.until_quiet();
    let run = running_hook(&mut bed);
    bed.turn(vec![Event::DiskShort(GIB)]);
    assert!(bed.world.measured.is_none(), "it takes seconds until it is full");
    bed.turn(vec![Event::DiskShort(20 * GIB)]);
    let (hooks, rate) = bed.world.measured.take().expect("a measurement");
    assert!(hooks.iter().any(|hook| hook.run == run));
    let writer =
        Writer { run, own: Amount { bytes: 50 * GIB, files: 14 }, shared: Amount::default() };
    bed.turn(vec![Event::Measured(vec![writer], rate)]);
    let runs = bed.look(|tx| tx.open_runs());
    let ended: Vec<RunId> = runs.iter().filter(|run| run.short_of_disk).map(|run| run.id).collect();
    assert_eq!(ended, [run]);
    // It may still write until it has ended, and no other hook is the reason.
    bed.turn(vec![Event::DiskShort(20 * GIB)]);
    assert!(bed.world.measured.is_none());
    bed.engine.load.free = Some(GIB / 4);
    bed.turn(vec![Event::DiskShort(20 * GIB)]);
    assert!(bed.world.measured.is_some(), "little is left");
    bed.engine.load.free = None;
    bed.come_to_an_end();
}
