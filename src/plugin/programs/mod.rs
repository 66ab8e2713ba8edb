//! The programs that plugins need, and where they can be had.

pub mod binaries;
pub mod binary;
pub mod install;
pub mod source;
pub mod version;
