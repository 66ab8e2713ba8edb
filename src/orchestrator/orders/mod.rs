//! What the database of a fleet wants of this node: pages, orders, and the hosts that it takes back.

pub mod crawls;
pub mod deliver;
pub mod ended;
pub mod holdings;
pub mod lost;
pub mod recall;
pub mod release;
pub mod row_check;

pub(crate) use ended::report_ended_pages;
pub(crate) use lost::keep_deadlines;
