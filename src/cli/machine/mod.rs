//! What verbs read and run on this machine without the orchestrator.

pub mod browser;
pub mod orchestrator;
pub mod pages;
pub mod plugins;
pub mod pools;
