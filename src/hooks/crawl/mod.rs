//! What the hooks of one crawl share.

pub mod housekeeping;
mod peer;
pub mod robots;
pub mod sonic;
mod sonic_config;
pub mod sonic_index;
