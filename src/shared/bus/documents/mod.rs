//! The documents that travel over the bus, and how large they may be.

pub mod bounds;
pub mod record;
pub mod report;
pub mod watches;
pub mod work;
