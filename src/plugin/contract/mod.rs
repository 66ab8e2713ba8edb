//! The contract between runner and hook: arguments, environment, and printed records.

#![warn(missing_docs)]

pub mod arguments;
pub mod environment;
pub mod lines;
pub mod record;
