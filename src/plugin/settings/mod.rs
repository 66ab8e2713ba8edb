//! Settings of plugins: from schema and configuration layers to the values that hooks see.

pub mod check;
pub mod crawl_limits;
pub mod derived;
pub mod effective;
pub mod general;
pub mod limit;
pub mod needs;
pub mod parse;
pub mod values;
