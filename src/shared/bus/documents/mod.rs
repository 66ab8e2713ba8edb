//! Documents that travel over the bus, and their limits.

#![warn(missing_docs)]

pub mod bounds;
pub mod fleet;
pub mod notice;
pub mod record;
pub mod report;
pub mod watches;
pub mod work;
