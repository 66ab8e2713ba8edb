//! Decisions and their vocabulary: functions from values to values. Nothing in this crate reads a
//! clock, a file, the environment, a bus or a database; time and limits are arguments.

pub mod fleet;
mod lock;
pub mod model;
pub mod plan;
pub mod store;
pub mod text;
pub mod unit;

pub use lock::lock;
