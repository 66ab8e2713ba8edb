//! The settings of plugins, from their schema and the layers of configuration to the value that a hook sees.

pub mod check;
pub mod crawl_limits;
pub mod derived;
pub mod effective;
pub mod general;
pub mod limit;
pub mod parse;
pub mod values;
