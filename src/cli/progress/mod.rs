//! The progress of a crawl: what is followed, and how it is shown until its end.

pub mod bar;
pub mod follow;
pub mod wait;
