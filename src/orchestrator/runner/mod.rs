//! Which orchestrator is active on a data directory: the newest.

pub mod gate;
pub mod identity;
pub mod locks;
pub mod startup_wait;
