//! Directories that the worker shares with hooks.

pub mod directory;
pub mod heartbeat;
#[cfg(test)]
mod hostile;
pub mod identity;
pub mod leftover;
pub mod overflow;
pub mod write;
