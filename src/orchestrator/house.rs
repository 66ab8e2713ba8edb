//! The house as the loop sees it: which room takes which event, and what each turn begins and ends
//! with.

use crate::calls;
use crate::clock;
use crate::deletion;
use crate::expiry;
use crate::kinds::KINDS;
use crate::main_loop::action::{CallerAction, EngineAction, LoopAction};
use crate::main_loop::due::DueResult;
use crate::main_loop::event::{Event, ReadingContext};
use crate::main_loop::rooms::{Rooms, Step};
use crate::main_loop::turn::{Turn, TurnResult};
use crate::notices;
use crate::orders;
use crate::programs;
use crate::quota;
use crate::transfer;
use crate::units::life;
use crate::watch;
use crate::work;
use archivist_core::model::CrawlId;

/// All rooms.
pub(crate) struct House;

impl Rooms for House {
    fn before(&self) -> &'static [Step] {
        &[orders::keep_deadlines, clock::observe, expiry::expire_some, quota::delete_oldest]
    }

    fn handle(&self, turn: &mut Turn<'_>, event: &Event) -> TurnResult<()> {
        match event {
            Event::Request(request) => calls::request(turn, request),
            Event::Watches(request) => calls::watches(turn, request),
            Event::Work(work) => work::work(turn, work),
            Event::Node(call) => orders::node_call(turn, call),
            Event::Hint(hint) => life::hint(turn, KINDS, hint),
            Event::HungUp => {
                turn.act(LoopAction::Fail("lost the connection to the bus"));
                Ok(())
            }
            Event::Started { run, result, .. } => {
                turn.act(CallerAction::StatusChanged);
                life::started_unit(turn, KINDS, *run, result)
            }
            Event::Read { run, unit, early, evidence, result, stopping } => {
                let seen = ReadingContext {
                    early: *early,
                    evidence: evidence.as_ref(),
                    stopping: *stopping,
                };
                life::read(turn, KINDS, *run, unit, &seen, result)
            }
            Event::Listed(result) => life::listed(turn, KINDS, result),
            Event::Collected(collected) => life::collected(turn, KINDS, collected),
            Event::FillStore(after) => transfer::fill_store(turn, *after),
            Event::DeleteSome => deletion::delete_some(turn),
            Event::DiskShort(rate) => {
                turn.disk_rate = *rate;
                Ok(())
            }
            Event::Measured(writers, rate) => work::measured(turn, writers, *rate),
            Event::Inspected(seen) => programs::inspected(turn, seen),
            Event::Abandoned { crawl, cancel } => calls::abandoned(turn, *crawl, *cancel),
            Event::CommandEnded(number) => {
                turn.act(EngineAction::Deregister(*number));
                turn.act(CallerAction::StatusChanged);
                Ok(())
            }
            Event::ClockSet(by) => Ok(turn.tx.clock_set(*by)?),
            // Settings, plugins and the table of runners were read again before the turn.
            Event::Reload => {
                turn.act(LoopAction::Again(Event::FillStore(0)));
                Ok(())
            }
            Event::Hinted(_) | Event::Due | Event::Damaged(_) => Ok(()),
            Event::RunnersChanged => {
                turn.act(CallerAction::StatusChanged);
                Ok(())
            }
            Event::Terminate => {
                work::thaw_at_shutdown(turn)?;
                turn.act(LoopAction::Exit);
                Ok(())
            }
        }
    }

    fn due(&self, turn: &Turn<'_>) -> DueResult {
        life::due(turn, KINDS)
    }

    fn cancel_some(&self, turn: &mut Turn<'_>, crawl: CrawlId, reason: &str) -> TurnResult<()> {
        work::cancel_some(turn, crawl, reason)
    }

    fn after(&self) -> &'static [Step] {
        &[
            work::watch_disk,
            notices::tell_of_changes,
            orders::report_ended_pages,
            notices::tell,
            watch::prune_checks,
            expiry::schedule,
            quota::schedule,
            watch::queue_idle_alert,
        ]
    }
}
