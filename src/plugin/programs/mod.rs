//! The programs that plugins require, and how to get them.

pub mod binaries;
pub mod binary;
pub mod distribution;
pub mod install;
pub mod requirement;
pub mod source;
pub mod version;
