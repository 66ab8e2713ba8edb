//! Which orchestrator works on a data directory: the newest.

pub mod gate;
pub mod me;
pub mod obstacle;
pub mod seats;
