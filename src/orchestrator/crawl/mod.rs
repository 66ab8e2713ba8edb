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

pub(crate) use add::add;
pub(crate) use announce::{announce_crawl, announce_idle, announce_snapshot};
pub(crate) use children::{add_children, add_some_children};
pub(crate) use follow::tell;
pub(crate) use foreground::{abandoned, is_held};
pub(crate) use limits::{admit, too_large};
pub(crate) use log::{log_end, log_snapshot};
pub(crate) use pause::{
    forgive_limit, freeze, freeze_if_paused, pause_owner, resume_owner, thaw, thaw_at_shutdown,
};
pub(crate) use requests::request;
