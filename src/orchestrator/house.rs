//! The house as the loop sees it: which room takes which event, what each turn begins and ends with, and
//! what rooms add to answers.

use crate::alert;
use crate::calls;
use crate::clock;
use crate::deletion;
#[cfg(feature = "retention")]
use crate::expiry;
#[cfg(feature = "search")]
use crate::indexing;
use crate::kinds::KINDS;
use crate::main_loop::access;
use crate::main_loop::action::{CallerAction, LoopAction};
use crate::main_loop::due::DueResult;
use crate::main_loop::event::{Event, ReadingContext};
use crate::main_loop::order::Call;
use crate::main_loop::rooms::{Parts, Rooms, Step, Which};
use crate::main_loop::turn::{Turn, TurnResult};
use crate::notices;
use crate::orders;
#[cfg(feature = "quota")]
use crate::quota;
#[cfg(feature = "store")]
use crate::transfer;
use crate::units::life;
#[cfg(feature = "verification")]
use crate::verification;
#[cfg(feature = "watches")]
use crate::watch;
use crate::work;
use archivist_core::model::{CrawlId, Owner};

pub(crate) struct House;

impl Rooms for House {
    fn first(&self) -> Vec<Event> {
        vec![
            #[cfg(feature = "store")]
            Event::of(|turn| transfer::fill_store(turn, 0)),
            Event::of(deletion::delete_some),
        ]
    }

    fn before(&self) -> &'static [Step] {
        &[
            orders::keep_deadlines,
            clock::observe,
            #[cfg(feature = "retention")]
            expiry::expire_some,
            #[cfg(feature = "quota")]
            quota::delete_some,
        ]
    }

    fn handle(&self, turn: &mut Turn<'_>, event: &Event) -> TurnResult<()> {
        match event {
            Event::Call(Call { order, reply }) => {
                if let Some(call) = order.user_call() {
                    access::check(turn, &call)?;
                }
                if let Some(answer) = order.carry_out(turn, reply)? {
                    turn.answer(reply, answer);
                }
                Ok(())
            }
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
            Event::Of(take) => take(turn),
            Event::DiskShort(rate) => {
                turn.disk_rate = *rate;
                Ok(())
            }
            Event::Measured(writers, rate) => work::measured(turn, writers, *rate),
            Event::Abandoned { crawl, cancel } => calls::abandoned(turn, *crawl, *cancel),
            Event::CommandEnded(number) => {
                let number = *number;
                turn.remember(move |engine| engine.commands.remove(number));
                turn.act(CallerAction::StatusChanged);
                Ok(())
            }
            Event::ClockSet(by) => Ok(turn.tx.clock_set(*by)?),
            Event::Reload => calls::reloaded(turn),
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

    fn retry(&self, id: Option<Owner>, which: Which) -> Call {
        calls::retry_later(id, which)
    }

    fn after(&self) -> &'static [Step] {
        &[
            work::watch_disk,
            notices::tell_of_changes,
            orders::report_ended_pages,
            notices::tell,
            alert::prune,
            #[cfg(feature = "retention")]
            expiry::schedule,
            #[cfg(feature = "quota")]
            quota::schedule,
            alert::queue_idle_alert,
        ]
    }

    fn parts(&self) -> &'static Parts {
        &PARTS
    }
}

const PARTS: Parts = Parts {
    admit_new: &[
        #[cfg(feature = "quota")]
        quota::admit,
    ],
    admit: &[
        #[cfg(feature = "store")]
        transfer::has_local_files,
    ],
    sealed: &[
        #[cfg(feature = "store")]
        transfer::queue_copy,
    ],
    clock_gap: &[
        #[cfg(feature = "retention")]
        expiry::review,
    ],
    status: &[
        #[cfg(feature = "watches")]
        watch::status,
        #[cfg(feature = "store")]
        transfer::status,
        #[cfg(feature = "retention")]
        expiry::status,
        #[cfg(feature = "search")]
        indexing::status,
    ],
    metrics: &[
        #[cfg(feature = "watches")]
        watch::metrics,
        #[cfg(feature = "store")]
        transfer::metrics,
        #[cfg(feature = "search")]
        indexing::metrics,
    ],
    details: &[
        #[cfg(feature = "store")]
        transfer::details,
    ],
    why: &[
        #[cfg(feature = "store")]
        transfer::why_copy,
        #[cfg(feature = "retention")]
        expiry::why,
        #[cfg(feature = "quota")]
        quota::why,
        #[cfg(feature = "verification")]
        verification::why,
    ],
    why_run: &[
        #[cfg(feature = "watches")]
        watch::why_run,
    ],
};
