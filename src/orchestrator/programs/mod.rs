//! The programs that plugins need: looking at them, and bringing them.

pub mod inspect;
pub mod install;
pub mod records;
