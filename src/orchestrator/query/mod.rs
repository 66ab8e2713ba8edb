//! Why something waits, or is not as it should be.

pub mod why;
pub mod why_watch;
