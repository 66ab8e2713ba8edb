//! Answers questions of users: makes documents of rows, and explains why something waits or failed.

pub mod documents;
pub mod draft;
pub mod lists;
pub mod plugins;
pub mod show;
pub mod status;
pub mod steps;
pub mod why;
pub mod why_run;
pub mod why_watch;
