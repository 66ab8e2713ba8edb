//! Checks of watched sites and their alerts.

pub mod alerts;
pub mod checks;
pub mod files;

pub(crate) use alerts::{crawl_sealed, queue_alert_unit, queue_idle_alert};
pub(crate) use checks::{Check, prune_checks};
