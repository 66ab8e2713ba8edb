//! What the hooks of one crawl share.

pub mod keeper;
pub mod persona;
pub mod robots;
pub mod sonic;
