//! URLs, the addresses behind them, and rules for robots.

pub mod filter;
pub mod list;
pub mod local;
pub mod reach;
pub mod robots;
pub mod shown;
pub mod subnet;
pub mod url;
