//! Calls of users: adding, holding, cancelling, retrying and following crawls, and the commands that
//! do it in the foreground.

pub mod add;
pub mod announce;
pub mod children;
pub mod follow;
pub mod foreground;
pub mod limits;
pub mod listed;
pub mod log;
pub mod pause;
pub mod requests;
pub mod retry;
