//! Which orchestrator is active on a data directory: the newest.

pub mod identity;
pub mod locks;
pub mod reported;
