//! Calls of users: adding, cancelling, retrying and holding crawls.

pub mod add;
pub mod foreground;
pub mod listed;
pub mod pin;
pub mod requests;
pub mod retry;
pub mod tag;

pub(crate) use foreground::abandoned;
pub(crate) use requests::{reloaded, retry_later};
