//! Connection to the orchestrator.

pub mod background;
pub mod details;
pub mod exit;
pub mod fleet;
pub mod fleet_service;
pub mod hint;
pub mod journal;
pub mod linger;
pub mod location;
pub mod owner;
pub mod page;
pub mod paging;
pub mod reader;
pub mod reader_files;
pub mod search_index;
pub mod server;
pub mod stream;
pub mod timers;
pub mod transfer;
