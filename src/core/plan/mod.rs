//! Judgement. Everything here is a function of its arguments; time and limits are among them.

mod checks;
mod decide;
mod disk;
mod idle;
mod page_order;
mod pressure;
mod reconcile;
mod settle;
mod takeover;

pub use checks::{Checks, Lane, against_check, conclude, decide_checks, prune_at};
pub use decide::{Decision, Due, Hindrance, Host, HostId, Limits, OpenCrawl, Places, View};
pub use decide::{against_host, decide};
pub use disk::{Amount, LOOK, Lack, Writer, lack, still, worst};
pub use idle::Idle;
pub use page_order::{HostRange, PagePosition, host_turns, take_turns};
pub use pressure::{LOOK_AGAIN, Shortage, Strain, Strains, pressure};
pub use reconcile::{LiveUnit, OpenRun, Repair, reconcile};
pub use settle::{Settled, WorkerEnd, settle_worker};
pub use takeover::{Gate, Rival, gate, may_be_killed};
