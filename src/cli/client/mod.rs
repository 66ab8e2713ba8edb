//! The conversation with the orchestrator.

pub mod exit;
pub mod follow;
pub mod pieces;
pub mod server;
pub mod wait;
