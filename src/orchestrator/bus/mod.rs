//! The ground of the service side of the bus: answers and their limits, lists of callers, signals.

pub mod announcer;
pub mod call;
mod emit;
pub mod limits;
pub mod list;
pub mod subscribers;

pub use emit::emit;
