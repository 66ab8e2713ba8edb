//! Answers questions of users: makes documents of rows, and explains why something waits or failed.

pub mod documents;
pub mod why;
pub mod why_watch;
