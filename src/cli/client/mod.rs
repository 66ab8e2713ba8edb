//! Connection to the orchestrator.

pub mod exit;
pub mod fleet;
#[path = "../progress/follow.rs"]
pub mod follow;
pub mod hint;
pub mod linger;
pub mod owner;
pub mod page;
pub mod paging;
pub mod reader;
pub mod room;
pub mod search_index;
pub mod server;
pub mod stream;
pub mod transfer;
#[path = "../progress/wait.rs"]
pub mod wait;
