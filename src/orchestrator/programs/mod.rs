//! The programs that plugins require: inspecting and installing them.

pub mod derived;
pub mod inspect;
pub mod inspected;
pub mod install;
pub mod library;
