//! Directories that hooks write, reached from one open descriptor.

pub mod allocation;
pub mod beneath;
pub mod output;
pub mod tidy;
pub mod walk;
