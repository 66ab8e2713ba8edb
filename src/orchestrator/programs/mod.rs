//! The programs that plugins need: looking at them, and bringing them.

pub mod derived;
pub mod inspect;
pub mod inspected;
pub mod install;
pub mod library;
