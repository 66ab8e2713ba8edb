//! The connection to PostgreSQL: its URL, secrets, trust, and faults.

mod link;
mod problem;
mod secret;
mod target;
mod trust;

pub use link::{HEARTBEAT, HINTS, Hint, Link};
pub use problem::Problem;
pub use secret::{AUTHORITY, PASSWORD, Secrets};
pub use target::{DATABASE, Target, TargetError};
