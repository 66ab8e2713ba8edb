//! Checks of watched sites and their alerts.

pub mod alerts;
pub mod checks;
pub mod files;

pub(crate) use alerts::{announce_idle, crawl_sealed};
pub(crate) use checks::{Check, prune_checks};
