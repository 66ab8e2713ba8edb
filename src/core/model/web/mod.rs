//! URLs, the addresses behind them, and rules for robots.

pub mod filter;
pub mod list;
pub mod local;
pub mod network_error;
pub mod pattern;
pub mod reach;
pub mod robots;
pub mod shown;
pub mod subnet;
pub mod surt;
pub mod url;
