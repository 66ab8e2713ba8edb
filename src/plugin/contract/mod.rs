//! The contract with a hook: its arguments, its environment, and the records that it prints.

pub mod arguments;
pub mod environment;
pub mod lines;
pub mod record;
