//! URLs, the addresses behind them, and what sites ask of robots.

pub mod filter;
pub mod reach;
pub mod robots;
pub mod shown;
pub mod subnet;
pub mod url;
