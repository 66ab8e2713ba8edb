//! Access to directories that hooks can write to.

pub mod allocation;
pub mod beneath;
pub mod copy;
pub mod digest;
pub mod output;
pub mod removal;
pub mod remove;
pub mod tidy;
pub mod trail;
pub mod walk;
pub mod whole;
